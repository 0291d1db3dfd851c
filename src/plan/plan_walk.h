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

/* Does the plan have a GpuSort? */
extern bool gs_plan_has_gpusort(const PlannedStmt *statement);

/*
 * The numbers of the subqueries of a statement of which only the first rows may be needed, because
 * an EXISTS, or a comparison with the rows one by one, ends with the first one that decides it.
 */
extern Bitmapset *gs_plan_subqueries_that_may_stop(const PlannedStmt *statement);

#endif							/* GPUSORT_PLAN_WALK_H */
