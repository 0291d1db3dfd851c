/*-------------------------------------------------------------------------
 *
 * plan_path.h
 *	  Adds paths with the cost of a GpuSort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PLAN_PATH_H
#define GPUSORT_PLAN_PATH_H

#include "nodes/pathnodes.h"

/*
 * Adds paths whose sorts will be GpuSorts to the relation of a query's ordered
 * rows, if they are cheaper than with PostgreSQL's sort.
 */
extern void gs_plan_path_add(PlannerInfo *root, RelOptInfo *input_rel,
							 RelOptInfo *ordered_rel);

#endif							/* GPUSORT_PLAN_PATH_H */
