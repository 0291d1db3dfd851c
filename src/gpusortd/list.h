/*-------------------------------------------------------------------------
 *
 * list.h
 *	  Doubly linked lists whose nodes are members of what they list.
 *
 * ISO C, all inline.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_LIST_H
#define GPUSORT_LIST_H

#include <stdbool.h>
#include <stddef.h>

/* A member of a list, or the list itself, which is a circle. */
typedef struct GsListNode
{
	struct GsListNode *previous;
	struct GsListNode *next;	/* NULL: in no list */
} GsListNode;

/* What the node is a member of. */
#define GS_LIST_OWNER(type, member, node) \
	((type *) ((char *) (node) - offsetof(type, member)))

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
