/*-------------------------------------------------------------------------
 *
 * plan_rewrite.h
 *	  Which Sort of a plan becomes a GpuSort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PLAN_REWRITE_H
#define GPUSORT_PLAN_REWRITE_H

#include "plan/plan_choice.h"

#include "nodes/plannodes.h"

/*
 * Replaces Sort nodes of a finished plan, subplans included, in place.  With
 * gpusort.debug_plan, reports the others and why they were left.
 */
/*
 * settings: as they were while the query was planned.  repeatable: what gs_plan_is_repeatable()
 * said of the query before.
 */
extern void gs_plan_rewrite(PlannedStmt *statement, const GsChoiceSettings *settings,
								 bool repeatable);

/* May parts of the query run twice, without anybody noticing? */
extern bool gs_plan_is_repeatable(Query *query);

#endif							/* GPUSORT_PLAN_REWRITE_H */
