/*-------------------------------------------------------------------------
 *
 * sort_bound.h
 *	  How many rows a LIMIT above a sort will ask it for.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_BOUND_H
#define GPUSORT_SORT_BOUND_H

#include "nodes/execnodes.h"
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

/* The bound, in the executor: NULL if there is none. */
typedef struct GsBoundState GsBoundState;

extern GsBoundState *gs_bound_init(List *exprs, PlanState *parent);

/* Computes it; GS_UNBOUNDED if all rows are asked for. */
#define GS_UNBOUNDED	PG_INT64_MAX

extern int64 gs_bound_compute(GsBoundState *bound, ExprContext *econtext);

#endif							/* GPUSORT_SORT_BOUND_H */
