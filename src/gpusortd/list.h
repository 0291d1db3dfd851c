/*-------------------------------------------------------------------------
 *
 * list.h
 *	  Doubly linked lists whose nodes are embedded in the listed structs.
 *
 * ISO C, all inline.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_LIST_H
#define GPUSORT_LIST_H

#include <stdbool.h>
#include <stddef.h>

/* A node, or the head of a list; the list is circular. */
typedef struct GsListNode
{
	struct GsListNode *previous;
	struct GsListNode *next;	/* NULL: not in a list */
} GsListNode;

/* The struct that contains the node. */
#define GS_LIST_OWNER(type, member, node) \
	((type *) ((char *) (node) - offsetof(type, member)))

/* The struct after a node, or, given the list itself, the first one; NULL: none. */
#define GS_LIST_NEXT(type, member, list, node) \
	((node)->next == (list) ? NULL : GS_LIST_OWNER(type, member, (node)->next))

static inline void
gs_list_init(GsListNode *list)
{
	list->previous = list->next = list;
}

static inline bool
gs_list_has(const GsListNode *node)
{
	return node->next != NULL;
}

static inline void
gs_list_append(GsListNode *list, GsListNode *node)
{
	node->previous = list->previous;
	node->next = list;
	list->previous->next = node;
	list->previous = node;
}

static inline void
gs_list_remove(GsListNode *node)
{
	node->previous->next = node->next;
	node->next->previous = node->previous;
	node->previous = node->next = NULL;
}

#endif							/* GPUSORT_LIST_H */
