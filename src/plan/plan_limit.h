/*-------------------------------------------------------------------------
 *
 * plan_limit.h
 *	  The LIMIT above a sort, as expressions for the node.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PLAN_LIMIT_H
#define GPUSORT_PLAN_LIMIT_H

#include "nodes/plannodes.h"

/* How many rows of a sort are needed. */
typedef struct GsLimit
{
	bool		bounded;
	bool		computable;		/* by the node, from count and offset */
	double		rows;			/* < 0: not known before execution */
	Node	   *count;			/* expressions of the LIMIT; may be NULL */
	Node	   *offset;
} GsLimit;

extern const GsLimit gs_no_limit;

/* The bound that a Limit with these clauses sets for the node below it. */
extern GsLimit gs_limit_of_clauses(LimitOption option, Node *count, Node *offset);

/* The same below a Gather or Gather Merge, in a worker. */
extern GsLimit gs_limit_in_worker(GsLimit bound);

/* The list for custom_exprs of the plan node. */
extern List *gs_limit_exprs(const GsLimit *bound);

#endif							/* GPUSORT_PLAN_LIMIT_H */
