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
typedef struct GsLimit
{
	bool		bounded;
	bool		computable;		/* by the node, from count and offset */
	double		rows;			/* < 0: not known before it runs */
	Node	   *count;			/* of the LIMIT; either may be NULL */
	Node	   *offset;
} GsLimit;

extern const GsLimit gs_no_limit;

/* What a Limit with these clauses tells the node below it. */
extern GsLimit gs_limit_of_clauses(LimitOption option, Node *count, Node *offset);

/* The same below a Gather or Gather Merge, in a worker. */
extern GsLimit gs_limit_in_worker(GsLimit bound);

/* What the plan node carries: the list to put in custom_exprs. */
extern List *gs_limit_exprs(const GsLimit *bound);

#endif							/* GPUSORT_PLAN_LIMIT_H */
