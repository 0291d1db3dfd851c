/*-------------------------------------------------------------------------
 *
 * plan_aggregates.h
 *	  In which order the rows of groups should arrive for aggregates that sort them, and whether
 *	  those in the middle are enough.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PLAN_AGGREGATES_H
#define GPUSORT_PLAN_AGGREGATES_H

#include "nodes/pathnodes.h"

/*
 * The pathkeys of GROUP BY, followed by those of the first aggregate that sorts its rows, if these
 * are columns of the path and a GpuSort by them, too, takes less time than the aggregate's sorts
 * save.  PostgreSQL has added those of some aggregates since version 16.
 */
extern List *gs_plan_aggregates_pathkeys(PlannerInfo *root, Path *input);

/*
 * The pathkeys of GROUP BY, followed by that of a value, if all aggregates of the query are medians
 * of it, which need only the rows in the middle of each group, and it is a column of the path or a
 * number that is only cast; else NIL.
 */
extern List *gs_plan_aggregates_median(PlannerInfo *root, Path *input);

#endif							/* GPUSORT_PLAN_AGGREGATES_H */
