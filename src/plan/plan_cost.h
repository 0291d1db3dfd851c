/*-------------------------------------------------------------------------
 *
 * plan_cost.h
 *	  When a GpuSort can win: pure arithmetic, no state.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PLAN_COST_H
#define GPUSORT_PLAN_COST_H

/* A sort as the planner estimates it. */
typedef struct GsPlanEstimate
{
	double		nrows;
	int			width;			/* bytes of a row's values */
	int			ncolumns;		/* of the ORDER BY */
	double		key_bytes;		/* of keys that go behind a row */
	bool		keys_only;		/* no row beside the key */
	bool		bounded;		/* a LIMIT asks for the first rows only ... */
	double		bound;			/* so many; < 0 if not known yet */
} GsPlanEstimate;

/* Bytes that the CPU engine will need. */
extern double gs_plan_cost_bytes(const GsPlanEstimate *estimate);

/*
 * What the sort costs beside its input, until the first row can leave, in the
 * planner's units.  on_device: gs_device_is_likely().
 */
extern double gs_plan_cost_startup(const GsPlanEstimate *estimate, bool on_device);

/*
 * The same of one participant of several that feed a device's sort; and what it
 * costs the one that hands all rows out until the last has left.
 */
extern double gs_plan_cost_shared_input(const GsPlanEstimate *estimate);
extern double gs_plan_cost_emit(const GsPlanEstimate *estimate, double nrows);

/*
 * What is computed of each row after the sort: does it cost so much that the
 * participants of a parallel plan had better share it?
 */
extern bool gs_plan_cost_is_expensive(double per_row);

#endif							/* GPUSORT_PLAN_COST_H */
