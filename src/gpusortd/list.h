/*-------------------------------------------------------------------------
 *
 * list.h
 *	  Doubly linked lists whose nodes are embedded in the listed structs.
 *
 * C without PostgreSQL, all inline.
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

/* The struct after a node; NULL: it is the last one. */
#define GS_LIST_NEXT(type, member, list, node) \
	((node)->next == (list) ? NULL : GS_LIST_OWNER(type, member, (node)->next))

/* The first struct of a list; NULL: it is empty. */
#define GS_LIST_FIRST(type, member, list) GS_LIST_NEXT(type, member, list, list)

/* Iterates over the structs of a list; the body may remove the current one. */
#define GS_LIST_FOREACH(type, each, member, list) \
	for (type *each = GS_LIST_FIRST(type, member, list), *next_##each = NULL; \
		 each != NULL && (next_##each = GS_LIST_NEXT(type, member, list, &each->member), true); \
		 each = next_##each)

static inline void
gs_list_init(GsListNode *list)
{
	list->previous = list->next = list;
}

static inline bool
gs_list_is_empty(const GsListNode *list)
{
	return list->next == list;
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
