/*-------------------------------------------------------------------------
 *
 * plan_medians.h
 *	  Medians of the rows in the middle of each group.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PLAN_MEDIANS_H
#define GPUSORT_PLAN_MEDIANS_H

#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"

/*
 * The pathkeys of GROUP BY, followed by that of a value, if all aggregates of the query are medians
 * of it, which need only the rows in the middle of each group, and it is a column of the path or a
 * number that is only cast; else NIL.
 */
extern List *gs_plan_medians_pathkeys(PlannerInfo *root, Path *input);

/*
 * The rows of each group that an Agg of a finished plan gets from a GpuSort are the one or two in
 * the middle, and all its aggregates are medians of one column (gs_plan_medians_pathkeys()).  If it
 * is of integers, dates, timestamps or numerics with a scale, min() and max() of these rows replace
 * them.
 */
extern void gs_plan_medians_replace(Agg *agg);

#endif							/* GPUSORT_PLAN_MEDIANS_H */
