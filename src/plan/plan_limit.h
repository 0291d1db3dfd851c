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

/* How many rows of a sort are needed, as the planner knows it. */
typedef struct GsPlanLimit
{
	bool		may_stop;		/* a LIMIT, a cursor or a join above may leave rows
								 * unread, of this node or of one between */
	bool		bounded;
	bool		computable;		/* by the node, from count and offset */
	double		rows;			/* < 0: not known before execution */
	Node	   *count;			/* expressions of the LIMIT; may be NULL */
	Node	   *offset;
} GsPlanLimit;

extern const GsPlanLimit gs_plan_limit_none;

/* The bound that a Limit with these clauses sets for the node below it. */
extern GsPlanLimit gs_plan_limit_of_clauses(LimitOption option, Node *count, Node *offset);

/* The bound in a worker, below a Gather or Gather Merge: executor parameters are not computable. */
extern GsPlanLimit gs_plan_limit_in_worker(GsPlanLimit bound);

/* The list for custom_exprs of the plan node. */
extern List *gs_plan_limit_exprs(const GsPlanLimit *bound);

#endif							/* GPUSORT_PLAN_LIMIT_H */
