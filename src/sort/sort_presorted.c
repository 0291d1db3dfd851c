/*-------------------------------------------------------------------------
 *
 * sort_presorted.c
 *	  Rows that come in the order that is asked for.
 *
 * Many do: those of a table that was filled in that order, or of a scan or a sort
 * below that has it.  PostgreSQL's sort notices by n - 1 comparisons, and is done.
 * Where keys only begin an order or are only a hint, we have to compare anyway, and
 * a key costs as much as a comparison.  So as long as no row is below the one
 * before, rows are compared as they come, and no keys are made.  They go to an
 * engine whose layout has no columns: to it all rows are equal, so it keeps them as
 * they came, which is the order, and proven.
 *
 * Rows that outgrow memory become a sorted run, which also has no keys, and goes on
 * with the rows that follow: to compare the first of those the last one is kept.  If all
 * come in order there is this one run, and it is handed out as it was written.
 *
 * At the first row below the one before, which among rows in random order is
 * one of the first few, the rows in memory are loaded once more, with their keys
 * (sort_input.c).  That is one more copy of them, where PostgreSQL's sort would have
 * made its n - 1 comparisons for nothing, too.  What is on disk by then is merged
 * with the runs to come by comparisons, as PostgreSQL merges all (sort_place.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sort/sort_limit.h"
#include "sort/sort_presorted.h"
#include "sort/sort_place.h"
#include "key/key_row.h"

#include "utils/memutils.h"

bool
gs_presorted_pays(const GsSortState *state)
{
	return state->compare != NULL && state->top.bound == GS_UNBOUNDED;
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

/* Is a row that was stored below the one before, if there is one? */
static bool
is_below_last(GsSortCompare *compare, bool is_first, MinimalTuple row)
{
	if (!is_first)
		return gs_sort_compare_next(compare, row) > 0;
	gs_sort_compare_begin(compare, row);
	return false;
}

/* May the rows become a run?  Not where a device is likely to take them all: it wants keys. */
static bool
may_spill(const GsSortState *state)
{
	return gs_sort_may_spill(state) && !gs_sort_device_is_likely(state);
}

/*
 * Makes the rows in memory a run, or more of the one that there is.  *last becomes a
 * copy of the last row, to be freed when the next one has been compared with it.
 */
static bool
spill(GsSortState *state, Size row_bytes, const GsBatch *batch, MinimalTuple *last)
{
	const MinimalTuple row = (MinimalTuple)
		unconstify(void *, gs_batch_pushed(batch, state->engine->job.layout, batch->nrows - 1));

	state->may_use_device = false;	/* the rest stays with the run */
	*last = MemoryContextAllocHuge(state->context, row->t_len);
	memcpy(*last, row, row->t_len);
	gs_sort_compare_begin(state->compare, *last);
	return gs_sort_spill(state, row_bytes) == GS_STATUS_OK;
}

/* Makes room for a row; false: there is none. */
static bool
reserve_space(GsSortState *state, Size row_bytes, GsBatch **batch, MinimalTuple *last)
{
	GsStatus	status;

	if (*batch != NULL && gs_engine_has_space(*batch, row_bytes))
		return true;
	status = gs_engine_reserve(state->engine, row_bytes, batch);
	if (status == GS_STATUS_FULL && *batch != NULL && may_spill(state) &&
		spill(state, row_bytes, *batch, last))
		status = gs_engine_reserve(state->engine, row_bytes, batch);
	return status == GS_STATUS_OK;
}

bool
gs_presorted_add(GsSortState *state, TupleTableSlot *slot, GsBatch **batch)
{
	const bool	is_first = *batch == NULL;
	MinimalTuple last = NULL;
	GsRowSource source;
	char	   *row;
	bool		below;

	gs_row_source_init(&source, slot);
	if (!reserve_space(state, source.nbytes, batch, &last))
		return false;
	row = gs_batch_next_row(*batch);
	gs_row_store(&source, slot, row);
	below = is_below_last(state->compare, is_first, (MinimalTuple) row);
	if (last != NULL)
		pfree(last);
	if (below)
		return false;
	if (gs_key_encoder_is_approximate(state->key))
		state->verification.checksum = gs_sort_checksum(state->verification.checksum, (MinimalTuple) row);
	*gs_batch_next_record(*batch) = gs_batch_next_place(*batch, 0);
	gs_batch_push(*batch, source.nbytes);
	return true;
}
