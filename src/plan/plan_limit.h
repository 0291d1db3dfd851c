/*-------------------------------------------------------------------------
 *
 * plan_limit.h
 *	  Which LIMIT bounds a sort, as the plan has it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PLAN_LIMIT_H
#define GPUSORT_PLAN_LIMIT_H

#include "nodes/plannodes.h"

/* A bound, in the plan. */
typedef struct GsBound
{
	bool		bounded;
	bool		computable;		/* by the node, from count and offset */
	double		rows;			/* < 0: not known before it runs */
	Node	   *count;			/* of the LIMIT; either may be NULL */
	Node	   *offset;
} GsBound;

extern const GsBound gs_no_bound;

/* What a Limit with these clauses tells the node below it. */
extern GsBound gs_bound_of_limit(LimitOption option, Node *count, Node *offset);

/* The same below a Gather or Gather Merge, in a worker. */
extern GsBound gs_bound_in_worker(GsBound bound);

/* What the plan node carries: the list to put in custom_exprs. */
extern List *gs_bound_exprs(const GsBound *bound);

#endif							/* GPUSORT_PLAN_LIMIT_H */
