/*-------------------------------------------------------------------------
 *
 * sort_cost.c
 *	  When a GpuSort can win: pure arithmetic, no state.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "batch.h"
#include "key_sort.h"
#include "sort_cost.h"
#include "sort_top.h"

#include "access/htup_details.h"

/* A LIMIT that is not known yet: the planner takes the same share of the rows. */
#define UNKNOWN_BOUND_SHARE	0.1

/* Rows that the engine has to hold at least. */
static double
rows_held(const GsSortEstimate *estimate)
{
	double		bound = estimate->bound;

	if (!estimate->bounded)
		return estimate->nrows;
	if (bound < 0)
		bound = estimate->nrows * UNKNOWN_BOUND_SHARE;
	return Min(estimate->nrows, gs_top_least_rows(bound));
}

double
gs_sort_cost_bytes(const GsSortEstimate *estimate)
{
	double		row = 0;
	double		record = sizeof(uint64) * estimate->ncolumns;

	if (!estimate->keys_only)
	{
		row = MAXALIGN(MAXALIGN(SizeofMinimalTupleHeader) + estimate->width) + estimate->key_bytes;
		record += sizeof(uint64);
	}
	return rows_held(estimate) * (row + record + GS_KEY_SORT_ROW_BYTES) + GS_KEY_SORT_STATE_BYTES;
}
