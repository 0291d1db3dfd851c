/*-------------------------------------------------------------------------
 *
 * sort_presorted.c
 *	  Rows that arrive in the requested order.
 *
 * Many do: those of a table that was filled in that order, or of a scan or a sort
 * below.  PostgreSQL's sort notices this with n - 1 comparisons.  Where keys are
 * truncated or approximate, rows have to be compared in any case, and a key costs
 * as much as a comparison.  So as long as no row sorts before the last one, rows
 * are compared as they arrive and get no keys.  They go to an engine whose layout
 * has no columns.  For it all rows are equal, so it keeps them in input order,
 * which is the requested order, and already verified.
 *
 * If memory is full, the rows become a sorted run without keys, which the
 * following rows extend.  The last row is copied to compare the next one with it.
 * If all rows are in order, this is the only run, and it is returned as it was
 * written.
 *
 * At the first row out of order, among random rows the second or third, the rows
 * in memory get keys (sort_reload.c).  A run that was written by then is merged
 * with later runs by comparisons, as PostgreSQL merges all runs (sort_order.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key/key_row.h"
#include "sort/sort_external.h"
#include "sort/sort_place.h"
#include "sort/sort_presorted.h"
#include "sort_parts/sort_limit.h"

#include "utils/memutils.h"

bool
gs_presorted_pays(const GsSortInput *input)
{
	return input->compare != NULL && input->top.bound == GS_UNBOUNDED;
}

GsEngine *
gs_presorted_open(const GsJob *job)
{
	GsJob		unkeyed = *job;

	unkeyed.layout = palloc(sizeof(GsKeyLayout));
	gs_key_layout_init(unkeyed.layout);
	unkeyed.compare = NULL;
	return gs_engine_cpu_open(&unkeyed);
}

/* Does a stored row sort before the last one, if there is a last one? */
static bool
is_below_last(GsSortCompare *compare, bool is_first, MinimalTuple row)
{
	if (!is_first)
		return gs_sort_compare_next(compare, row) > 0;
	gs_sort_compare_begin(compare, row);
	return false;
}

/* May the rows become a run?  Not if a device will probably take them all, because it needs keys. */
static bool
may_spill(const GsSortState *state)
{
	return gs_sort_may_spill(state) && !gs_sort_device_is_likely(state);
}

/*
 * Writes the rows in memory as a run, or extends the run.  *last becomes a copy of the last row, to be
 * freed after the next row was compared with it.
 */
static bool
spill(GsSortState *state, Size row_bytes, MinimalTuple *last)
{
	GsSortInput *input = &state->input;
	const GsBatch *batch = input->batch;
	const MinimalTuple row = (MinimalTuple)
		unconstify(void *, gs_batch_pushed(batch, input->engine->job.layout, batch->nrows - 1));

	input->may_use_device = false;	/* it could not merge the run */
	*last = MemoryContextAllocHuge(state->context, row->t_len);
	memcpy(*last, row, row->t_len);
	gs_sort_compare_begin(input->compare, *last);
	return gs_sort_spill(state, row_bytes) == GS_STATUS_OK;
}

/* Ensures that the batch has space for a row.  False: memory is full. */
static bool
reserve_space(GsSortState *state, Size row_bytes, MinimalTuple *last)
{
	GsSortInput *input = &state->input;
	GsStatus	status;

	if (input->batch != NULL && gs_engine_has_space(input->batch, row_bytes))
		return true;
	status = gs_engine_reserve(input->engine, row_bytes, &input->batch);
	if (status == GS_STATUS_FULL && input->batch != NULL && may_spill(state) &&
		spill(state, row_bytes, last))
		status = gs_engine_reserve(input->engine, row_bytes, &input->batch);
	return status == GS_STATUS_OK;
}

bool
gs_presorted_add(GsSortState *state, TupleTableSlot *slot)
{
	GsSortInput *input = &state->input;
	GsSortVerification *verification = &input->verification;
	const bool	is_first = input->batch == NULL;
	MinimalTuple last = NULL;
	GsRowSource source;
	char	   *row;
	bool		below;

	gs_row_source_init(&source, slot);
	if (!reserve_space(state, source.nbytes, &last))
		return false;
	row = gs_batch_next_row(input->batch);
	gs_row_store(&source, slot, row);
	below = is_below_last(input->compare, is_first, (MinimalTuple) row);
	if (last != NULL)
		pfree(last);
	if (below)
		return false;
	if (gs_key_encoder_is_approximate(input->key))
		verification->checksum = gs_sort_checksum(verification->checksum, (MinimalTuple) row);
	*gs_batch_next_record(input->batch) = gs_batch_next_place(input->batch, 0);
	gs_batch_push(input->batch, source.nbytes);
	return true;
}
