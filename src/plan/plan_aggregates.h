/*-------------------------------------------------------------------------
 *
 * plan_aggregates.h
 *	  In which order the rows of groups should arrive for aggregates that sort them.
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

#endif							/* GPUSORT_PLAN_AGGREGATES_H */
