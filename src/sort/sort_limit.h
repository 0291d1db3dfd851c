/*-------------------------------------------------------------------------
 *
 * sort_limit.h
 *	  How many rows a LIMIT above a sort asks it for, computed as the sort runs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_LIMIT_H
#define GPUSORT_SORT_LIMIT_H

#include "nodes/execnodes.h"

/* The bound of a plan node; NULL if there is none.  exprs: gs_bound_exprs() (plan_limit.h). */
typedef struct GsBoundState GsBoundState;

extern GsBoundState *gs_bound_init(List *exprs, PlanState *parent);

/* Computes it; GS_UNBOUNDED if all rows are asked for. */
#define GS_UNBOUNDED	PG_INT64_MAX

extern int64 gs_bound_compute(GsBoundState *bound, ExprContext *econtext);

#endif							/* GPUSORT_SORT_LIMIT_H */
