/*-------------------------------------------------------------------------
 *
 * sort_in_order.c
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
 * At the first row below the one before, which among rows in random order is
 * one of the first few, or when memory is at its end, all rows so far are loaded
 * once more, with their keys (sort_load.c).  That is one more copy of them, where
 * PostgreSQL's sort would have made its n - 1 comparisons for nothing, too.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sort_bound.h"
#include "sort_in_order.h"
#include "sort_row.h"

/* Of the memory: the rest is for keys, should they be needed. */
#define ENGINE_SHARE	0.75

bool
gs_in_order_pays(const GsSortState *state, int64 bound)
{
	return state->compare != NULL && bound == GS_UNBOUNDED;
}

GsEngine *
gs_in_order_open(const GsJob *job)
{
	GsJob		unkeyed = *job;

	unkeyed.layout = palloc(sizeof(GsKeyLayout));
	gs_key_layout_init(unkeyed.layout);
	unkeyed.compare = NULL;
	unkeyed.memory_limit = job->memory_limit * ENGINE_SHARE;
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

bool
gs_in_order_take(GsSortState *state, TupleTableSlot *slot, GsBatch **batch)
{
	const bool	is_first = *batch == NULL;
	GsRowSource source;
	char	   *row;

	gs_row_source_init(&source, slot);
	if ((is_first || !gs_engine_has_room(*batch, source.nbytes)) &&
		gs_engine_reserve(state->engine, source.nbytes, batch) != GS_STATUS_OK)
		return false;
	row = gs_batch_next_row(*batch);
	gs_row_store(&source, slot, row);
	if (is_below_last(state->compare, is_first, (MinimalTuple) row))
		return false;
	*gs_batch_next_record(*batch) = gs_batch_next_place(*batch, 0);
	gs_batch_push(*batch, source.nbytes);
	return true;
}
