/*-------------------------------------------------------------------------
 *
 * plan_rewrite.h
 *	  Replaces the Sort nodes of a finished plan.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PLAN_REWRITE_H
#define GPUSORT_PLAN_REWRITE_H

#include "plan/plan_choice.h"

#include "nodes/plannodes.h"

/*
 * Replaces Sort nodes of a finished plan in place, subplans included.  With
 * gpusort.debug_plan, reports the others and the reasons.  settings: those of the
 * planner.  repeatable: gs_plan_is_repeatable() of the query before it was planned.
 */
extern void gs_plan_rewrite(PlannedStmt *statement, const GsChoiceSettings *settings,
								 bool repeatable);

/* May parts of the query run twice without visible effects? */
extern bool gs_plan_is_repeatable(Query *query);

#endif							/* GPUSORT_PLAN_REWRITE_H */
