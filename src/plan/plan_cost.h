/*-------------------------------------------------------------------------
 *
 * plan_cost.h
 *	  The cost model of a GpuSort: arithmetic without state.
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
	double		key_bytes;		/* of keys that are stored behind a row */
	bool		keys_only;		/* no row beside the key */
	bool		bounded;		/* a LIMIT needs only the first rows, ... */
	double		bound;			/* ... this many; < 0 if not known yet */
} GsPlanEstimate;

/* Bytes that the CPU engine needs. */
extern double gs_plan_cost_bytes(const GsPlanEstimate *estimate);

/*
 * The cost until the first row is returned, without that of the input, in the
 * planner's units.  on_device: gs_device_is_likely().
 */
extern double gs_plan_cost_startup(const GsPlanEstimate *estimate, bool on_device);

/*
 * The cost until the first row is returned, without that of the input, for one of
 * several participants that send rows to one sort on a device; and the cost, for the
 * one that returns all rows, of returning them.
 */
extern double gs_plan_cost_shared_input(const GsPlanEstimate *estimate);
extern double gs_plan_cost_emit(const GsPlanEstimate *estimate, double nrows);

/* The cost of writing the rows to disk and reading them. */
extern double gs_plan_cost_disk(const GsPlanEstimate *estimate);

/* The cost, for the leader, of merging so many rows that participants without a device send. */
extern double gs_plan_cost_streams(double nrows);

/*
 * The cost, for one of several participants that sort nrows rows each and return ranges of all, of
 * giving its rows to the others, in files or on a device, and of returning as many.
 */
extern double gs_plan_cost_exchange(const GsPlanEstimate *estimate, bool on_device);

/*
 * What WindowAggs, and the aggregates in them, take for each row in addition to what the planner
 * counts.
 */
extern double gs_plan_cost_windows(int nwindows, int naggregates);

/* Among how many processes the planner divides the work of a parallel plan. */
extern double gs_plan_cost_participants(int nworkers);

/* The cost of the comparisons with which PostgreSQL sorts all of nrows rows. */
extern double gs_plan_cost_comparisons(double nrows);

/*
 * What a GpuSort of nrows rows costs at most by what was measured, if PostgreSQL's sort has that
 * cost.
 */
extern double gs_plan_cost_expected(double postgres, double nrows, bool on_device);

/*
 * About how many rows a group of an incremental sort has, by the costs of its plan and of its
 * input, which has nrows rows.  Rather too many if it is more than a few.
 */
extern double gs_plan_cost_group_rows(double startup, double input_startup, double input_total,
									  double nrows);

/*
 * Is what is computed from each row after the sort so expensive that the
 * participants of a parallel plan should share it?
 */
extern bool gs_plan_cost_is_expensive(double per_row);

#endif							/* GPUSORT_PLAN_COST_H */
