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

/* The bound of a plan node; NULL if there is none.  exprs: gs_limit_exprs() (plan_limit.h). */
typedef struct GsLimitState GsLimitState;

extern GsLimitState *gs_limit_init(List *exprs, PlanState *parent);

/* Computes it; GS_UNBOUNDED if all rows are asked for. */
#define GS_UNBOUNDED	PG_INT64_MAX

extern int64 gs_limit_compute(GsLimitState *bound, ExprContext *econtext);

#endif							/* GPUSORT_SORT_LIMIT_H */
