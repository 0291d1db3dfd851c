/*-------------------------------------------------------------------------
 *
 * plan_ranges.h
 *	  Adds paths for window functions, groups and DISTINCT in which each participant of a parallel
 *	  plan has a range of the sorted rows.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PLAN_RANGES_H
#define GPUSORT_PLAN_RANGES_H

#include "nodes/extensible.h"
#include "nodes/pathnodes.h"

extern const CustomPathMethods gs_ranges_path_methods;

/*
 * Adds paths to an upper relation: UPPERREL_WINDOW, UPPERREL_GROUP_AGG, or UPPERREL_DISTINCT; with
 * PostgreSQL's paths in it, from which they are made.  Does nothing for others.
 */
extern void gs_plan_ranges_add(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input_rel,
							   RelOptInfo *output_rel);

/*
 * What the participants of a partial path save of the WindowAggs, for which the planner counts too
 * little; 0 if it has no GpuSort by ranges.
 */
extern Cost gs_plan_ranges_saved(const Path *partial);

#endif							/* GPUSORT_PLAN_RANGES_H */
