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

#include "nodes/parsenodes.h"
#include "nodes/plannodes.h"

/*
 * Replaces Sort nodes of a finished plan in place, subplans included.  With
 * gpusort.debug_plan, reports the others and the reasons.  settings: those of the
 * planner.  repeatable: gs_plan_is_repeatable() of the query before it was planned.
 * may_stop: it is planned for its first rows.
 */
extern void gs_plan_rewrite(PlannedStmt *statement, const GsChoiceSettings *settings,
							bool repeatable, bool may_stop);

/*
 * Why a Sort of a plan, which was rewritten, is not a GpuSort: a phrase that starts in
 * lower case.  By the current settings, which may differ from those of the planner.
 */
extern const char *gs_plan_rewrite_why_not(PlannedStmt *statement, const Sort *sort);

/* May parts of the query run twice without visible effects? */
extern bool gs_plan_is_repeatable(Query *query);

#endif							/* GPUSORT_PLAN_REWRITE_H */
