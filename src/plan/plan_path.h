/*-------------------------------------------------------------------------
 *
 * plan_path.h
 *	  What the planner is told of a GpuSort: its cost.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PLAN_PATH_H
#define GPUSORT_PLAN_PATH_H

#include "nodes/pathnodes.h"

/*
 * Adds to the relation of a query's ordered rows the paths whose sorts will be
 * GpuSorts, if they are cheaper than as they are.
 */
extern void gs_plan_path_add(PlannerInfo *root, RelOptInfo *input_rel,
							 RelOptInfo *ordered_rel);

#endif							/* GPUSORT_PLAN_PATH_H */
