/*-------------------------------------------------------------------------
 *
 * plan_walk.h
 *	  Visits the nodes of a finished plan.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PLAN_WALK_H
#define GPUSORT_PLAN_WALK_H

#include "nodes/plannodes.h"

/*
 * A copy of a parallel plan, in the current memory context, whose GpuSorts are all parallel_aware;
 * the plan itself if it has none.
 */
extern PlannedStmt *gs_plan_with_reports(PlannedStmt *statement);

/*
 * The numbers of the subqueries of a statement of which only the first rows may be needed, because
 * an EXISTS, or a comparison with the rows one by one, ends with the first one that decides it.
 */
extern Bitmapset *gs_plan_subqueries_that_may_stop(const PlannedStmt *statement);

#endif							/* GPUSORT_PLAN_WALK_H */
