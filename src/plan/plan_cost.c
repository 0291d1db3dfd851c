/*-------------------------------------------------------------------------
 *
 * plan_cost.c
 *	  The cost model of a GpuSort: arithmetic without state.
 *
 * It does not choose the GPU: store/store_device_choice.c does, at execution time.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "common/batch.h"
#include "engine/word_sort.h"
#include "plan/plan_cost.h"
#include "store/store_topn.h"

#include "access/htup_details.h"
#include "optimizer/optimizer.h"

/* The share of the rows for a LIMIT that is not known yet; the planner assumes the same. */
#define UNKNOWN_BOUND_SHARE	0.1

/* The number of rows that the engine must hold at least. */
static double
rows_held(const GsPlanEstimate *estimate)
{
	double		bound = estimate->bound;

	if (!estimate->bounded)
		return estimate->nrows;
	if (bound < 0)
		bound = estimate->nrows * UNKNOWN_BOUND_SHARE;
	return Min(estimate->nrows, gs_topn_min_rows(bound));
}

double
gs_plan_cost_bytes(const GsPlanEstimate *estimate)
{
	double		row = 0;
	double		record = sizeof(uint64) * estimate->ncolumns;

	if (!estimate->keys_only)
	{
		row = MAXALIGN(MAXALIGN(SizeofMinimalTupleHeader) + estimate->width) + estimate->key_bytes;
		record += sizeof(uint64);
	}
	return rows_held(estimate) * (row + record + gs_word_sort_row_bytes(false)) +
		GS_WORD_SORT_STATE_BYTES;
}

/*
 * The planner counts two operators for a comparison, and n log2 n comparisons for PostgreSQL's
 * sort of n rows: 33 operators for each of 100 k rows, 43 for each of 3 M rows.  A GpuSort
 * handles each row once, and the number of columns has little influence.  Where there was a
 * choice it is the larger number: a plan should change only for a gain that is certain.  1 M rows
 * of 150 bytes without the scan below, PostgreSQL and gpusort: by a bigint 380 and 213 ns a row,
 * by 3 columns 913 and 181 (Zen 5, busy, PostgreSQL 15.20, 2026-11).
 */
#define ROW_OPERATORS		28
#define COLUMN_OPERATORS	2

/* A device took 0.4 of the CPU engine's time for 10 M rows, 0.8 for 100 k, more for few. */
#define DEVICE_SHARE		0.7

/*
 * The share of returning the rows, which one participant does; several divide the rest.  Of
 * 0.84 s for 10 M rows by a bigint, that was 0.11 s, and the scan below about 0.35 s (H200, 16
 * cores of a Xeon, PostgreSQL 15.20, 2026-11).
 */
#define EMIT_SHARE			0.3

/* The planner computes more expensive expressions after a sort. */
#define EXPENSIVE_OPERATORS		10

static double
row_cost(const GsPlanEstimate *estimate, double share)
{
	double		noperators = ROW_OPERATORS + COLUMN_OPERATORS * (estimate->ncolumns - 1);

	return noperators * share * cpu_operator_cost;
}

double
gs_plan_cost_startup(const GsPlanEstimate *estimate, bool on_device)
{
	return estimate->nrows * row_cost(estimate, on_device ? DEVICE_SHARE : 1);
}

double
gs_plan_cost_shared_input(const GsPlanEstimate *estimate)
{
	return estimate->nrows * row_cost(estimate, DEVICE_SHARE * (1 - EMIT_SHARE));
}

double
gs_plan_cost_emit(const GsPlanEstimate *estimate, double nrows)
{
	return nrows * row_cost(estimate, DEVICE_SHARE * EMIT_SHARE);
}

/*
 * Of rows in runs.  DISTINCT ON of 300,000 rows of 1 kB takes 0.37 s if participants send them to
 * the leader, and 0.53 s by ranges, for which each writes and reads 130 MB; of 3 M rows of 167
 * bytes 1.2 and 1.0 s.  A merge of streams took 0.28 us for a row, where a sequential scan takes
 * 0.1 us (2 cores of an AMD EPYC, work_mem = 4MB, PostgreSQL 18.6, 2026-11-28).  With 256MB, 3 M
 * rows are spread over more memory than the processor's cache: DISTINCT ON takes 1.2 s by streams
 * and 0.9 s by ranges (2 cores of an Intel Xeon, 2026-11-29).
 */
#define DISK_OPERATORS			20
#define DISK_OPERATORS_PER_BYTE	0.04
#define EXCHANGE_SHARE			0.8
#define EXCHANGE_OPERATORS_PER_BYTE	0.08
#define STREAM_OPERATORS		44

double
gs_plan_cost_disk(const GsPlanEstimate *estimate)
{
	return estimate->nrows * cpu_operator_cost *
		(DISK_OPERATORS + estimate->width * DISK_OPERATORS_PER_BYTE);
}

double
gs_plan_cost_streams(double nrows)
{
	return nrows * STREAM_OPERATORS * cpu_operator_cost;
}

double
gs_plan_cost_exchange(const GsPlanEstimate *estimate, bool on_device)
{
	const double noperators = on_device ? 0 : estimate->width * EXCHANGE_OPERATORS_PER_BYTE;

	return estimate->nrows * (row_cost(estimate, EXCHANGE_SHARE) +
							  noperators * cpu_operator_cost);
}

/* As get_parallel_divisor() of costsize.c: the leader also reads the rows of workers. */
double
gs_plan_cost_participants(int nworkers)
{
	return nworkers + (parallel_leader_participation ? Max(1 - 0.3 * nworkers, 0) : 0);
}

/*
 * For each row, a WindowAgg takes 0.35 us more than the planner counts, and a sum of numerics
 * 0.6 us more, where a sequential scan takes 0.1 us (2 cores of an AMD EPYC, 1 M rows,
 * PostgreSQL 18.6, 2026-11-28).
 */
#define WINDOW_OPERATORS			40
#define WINDOW_AGGREGATE_OPERATORS	40

double
gs_plan_cost_windows(int nwindows, int naggregates)
{
	return cpu_operator_cost *
		(nwindows * WINDOW_OPERATORS + naggregates * WINDOW_AGGREGATE_OPERATORS);
}

double
gs_plan_cost_comparisons(double nrows)
{
	nrows = Max(nrows, 2);
	return 2 * cpu_operator_cost * nrows * log2(nrows);
}

/*
 * For advice, not for plans: what a sort took of the time of PostgreSQL's at most, of
 * rows in random order.  Whole statements gained 1.4 to 10 times from 10,000 rows on, and
 * the sorts above 1.5 times and more; with 1,000 and 3,000 rows, 1.07 times and more
 * (docs/performance.md, 2026-11).
 */
#define LARGE_ROWS		10000
#define LARGE_SHARE		0.67
#define SMALL_SHARE		0.9

double
gs_plan_cost_expected(double postgres, double nrows, bool on_device)
{
	return postgres * (nrows < LARGE_ROWS ? SMALL_SHARE : LARGE_SHARE) * (on_device ? DEVICE_SHARE :
																		  1);
}

/*
 * A plan has no number of groups.  The startup cost of an incremental sort is that of its
 * input, of reading the first group, and of sorting it: two operators for each of g log2 g
 * comparisons, of 2 rows at least.  Of 1.5 g rows before PostgreSQL 16.
 */
double
gs_plan_cost_group_rows(double startup, double input_startup, double input_total, double nrows)
{
	const double first_group = startup - input_startup;
	const double read = (input_total - input_startup) / Max(nrows, 1);

	return Min(first_group / (read + 2 * cpu_operator_cost), nrows);
}

bool
gs_plan_cost_is_expensive(double per_row)
{
	return per_row > EXPENSIVE_OPERATORS * cpu_operator_cost;
}
