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

/* True: the walk ends.  It calls gs_plan_walk_children() for the nodes below this one. */
typedef bool (*GsPlanWalker) (Plan *plan, void *context);

/*
 * Calls a walker for each child of a node, but not for those of a foreign scan, whose plans are never
 * executed as such.  Returns true if it did.
 */
extern bool gs_plan_walk_children(Plan *plan, GsPlanWalker walker, void *context);

/* The same for the roots of a statement: its plan and those of its subqueries. */
extern bool gs_plan_walk_statement(const PlannedStmt *statement, GsPlanWalker walker, void *context);

/* Does the plan have a GpuSort? */
extern bool gs_plan_has_gpusort(const PlannedStmt *statement);

/*
 * The numbers of the subqueries of a statement of which only the first rows may be needed, because an
 * EXISTS, or a comparison with the rows one by one, ends with the first one that decides it.
 */
extern Bitmapset *gs_plan_subqueries_that_may_stop(const PlannedStmt *statement);

#endif							/* GPUSORT_PLAN_WALK_H */
