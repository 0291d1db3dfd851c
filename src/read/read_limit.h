/*-------------------------------------------------------------------------
 *
 * read_limit.h
 *	  How many rows the LIMIT above a sort asks for, computed at execution time.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_READ_LIMIT_H
#define GPUSORT_READ_LIMIT_H

#include "nodes/execnodes.h"

/* The expressions of a LIMIT, ready to be computed; the planner has GsPlanLimit (plan/plan.h). */
typedef struct GsReadLimit GsReadLimit;

/*
 * Prepares the expressions that gs_plan_limit_exprs() (plan/plan.h) has put in the plan, in the
 * current memory context.  Returns NULL if there are none.
 */
extern GsReadLimit *gs_read_limit_init(List *exprs, PlanState *parent);

/* Computes the number of rows; GS_UNBOUNDED: all rows.  May raise the errors of the expressions. */
extern int64 gs_read_limit_compute(GsReadLimit *limit, ExprContext *econtext);

#endif							/* GPUSORT_READ_LIMIT_H */
