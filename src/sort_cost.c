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

#include "access/htup_details.h"

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
	return estimate->nrows * (row + record + GS_KEY_SORT_ROW_BYTES) + GS_KEY_SORT_STATE_BYTES;
}

/*
 * A heap of the first n of N rows still reads and compares all N.  Past half
 * of them PostgreSQL itself is about as fast with a full sort, which is what
 * a GpuSort does.
 */
bool
gs_sort_cost_bound_is_large(const GsSortEstimate *estimate)
{
	return estimate->bound > estimate->nrows / 2;
}
