/*-------------------------------------------------------------------------
 *
 * plan_cost.c
 *	  When a GpuSort can win: pure arithmetic, no state.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/batch.h"
#include "engine/word_sort.h"
#include "plan/plan_cost.h"
#include "sort/sort_topn.h"

#include "access/htup_details.h"
#include "optimizer/optimizer.h"

/* A LIMIT that is not known yet: the planner takes the same share of the rows. */
#define UNKNOWN_BOUND_SHARE	0.1

/* Rows that the engine has to hold at least. */
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
	return rows_held(estimate) * (row + record + GS_WORD_SORT_ROW_BYTES) + GS_WORD_SORT_STATE_BYTES;
}

/*
 * The planner takes two operators for a comparison, of which a stock sort of n
 * rows makes n log2 n: 33 operators a row of 100 k rows, 43 of 3 M.  A GpuSort
 * takes each row once.  How many operators that is comes from the processor
 * time of whole rows of 150 bytes beside that of the scan below, in ns a row,
 * of PostgreSQL and gpusort:
 *
 *				100 k rows		1 M rows		3 M rows		gain by this cost
 *	 bigint		251	  116		380	  213		471	  222		1.2, 1.4, 1.5
 *	 text "C"	370	  140		421	  276		485	  296		1.2, 1.4, 1.5
 *	 3 columns	656	  167		913	  181		1384  280		1.0, 1.2, 1.3
 *	 the key alone
 *				166	  113		183	  114		178	   88		1.2, 1.4, 1.5
 *
 * (Zen 5, 2 cores, busy, PostgreSQL 15.20, 2026-11).  It is the larger number
 * where there was a choice: a plan is to change only for what is sure.  As a
 * stock sort costs the same for any number of columns, so may this one, nearly.
 *
 * A device took 0.4 of the CPU engine's time for 10 M rows, 0.8 for 100 k, and
 * more than all of it for few: those that gpusort.device_min_rows keeps away from it.
 *
 * Of 0.84 s for 10 M rows by a bigint, 0.11 s were the hand-out, and some 0.35 s
 * the scan below (H200, 16 cores of a Xeon, PostgreSQL 15.20, 2026-11): a fifth or a
 * quarter of what is the sort's, taken for more.  The rest is what several participants
 * do at a time.
 */
#define ROW_OPERATORS		28
#define COLUMN_OPERATORS	2
#define DEVICE_SHARE		0.7
#define EMIT_SHARE		0.3

/* What the planner calls expensive, and so computes after a sort. */
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

bool
gs_plan_cost_is_expensive(double per_row)
{
	return per_row > EXPENSIVE_OPERATORS * cpu_operator_cost;
}
