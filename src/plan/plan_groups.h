/*-------------------------------------------------------------------------
 *
 * plan_groups.h
 *	  Nodes of a finished plan whose work a GpuSort by ranges does.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PLAN_GROUPS_H
#define GPUSORT_PLAN_GROUPS_H

#include "nodes/plannodes.h"

/*
 * If a GpuSort by ranges can do the work of the Unique above it, or of the WindowAgg, whose
 * functions are row_number() and lag() of columns, it replaces them.  Returns the node that is in
 * their place.
 */
extern Plan *gs_plan_groups_replace(Plan *plan);

#endif							/* GPUSORT_PLAN_GROUPS_H */
