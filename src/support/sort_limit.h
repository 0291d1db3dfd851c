/*-------------------------------------------------------------------------
 *
 * sort_limit.h
 *	  How many rows the LIMIT above a sort asks for, computed at execution time.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_LIMIT_H
#define GPUSORT_SORT_LIMIT_H

#include "nodes/execnodes.h"

typedef struct GsLimitState GsLimitState;

/*
 * Prepares the expressions that gs_limit_exprs() (plan_limit.h) has put in the plan, in the current
 * memory context.  Returns NULL if there are none.
 */
extern GsLimitState *gs_limit_init(List *exprs, PlanState *parent);

/* Computes the number of rows; GS_UNBOUNDED: all rows.  May raise the errors of the expressions. */
#define GS_UNBOUNDED	PG_INT64_MAX

extern int64 gs_limit_compute(GsLimitState *limit, ExprContext *econtext);

#endif							/* GPUSORT_SORT_LIMIT_H */
