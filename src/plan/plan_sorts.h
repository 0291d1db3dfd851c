/*-------------------------------------------------------------------------
 *
 * plan_sorts.h
 *	  The sorts of a plan, and what they cost.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PLAN_SORTS_H
#define GPUSORT_PLAN_SORTS_H

#include "nodes/plannodes.h"

#include "key/key_columns.h"

typedef struct GsPlanSorts
{
	int			nsorts;
	int			nreplaced;		/* of them, GpuSorts */
	double		cost;			/* of the sorts, without their inputs */

	/* what the GpuSorts save that its cost does not contain */
	double		saved;

	/* why the most expensive of the others is not a GpuSort, or gains nothing that is known; NULL if none */
	const char *why_not;
	double		why_not_cost;
} GsPlanSorts;

/* Adds the sorts of a plan to *sorts, which is zero at first. */
extern void gs_plan_sorts_add(PlannedStmt *statement, GsPlanSorts *sorts);

/* Will a device probably sort nrows rows by these columns? */
extern bool gs_plan_sorts_on_device(const GsSortColumn *columns, int ncolumns, double nrows);

#endif							/* GPUSORT_PLAN_SORTS_H */
