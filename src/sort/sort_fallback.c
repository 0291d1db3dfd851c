/*-------------------------------------------------------------------------
 *
 * sort_fallback.c
 *	  Gives a sort's rows up to PostgreSQL's tuplesort.
 *
 * Where gpusort cannot go on: a value has no code, the rows are more than
 * memory holds and may be asked for again, an order was disproved.  The rows
 * taken so far go to the tuplesort, the engine's memory being freed on the
 * way; what the child still has follows them (sort_input.c).  Nothing was handed out yet, so
 * nobody can tell.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sort/sort_fallback.h"

#include "executor/executor.h"
#include "miscadmin.h"

void
gs_sort_begin_fallback(GsSortState *state, int memory_kb, const char *reason)
{
	MemoryContext old = MemoryContextSwitchTo(state->context);

	state->fallback_reason = pstrdup(reason);
	gs_fallback_begin(&state->fallback, state->columns, state->ncolumns + state->nstable,
				   state->desc, memory_kb,
				   state->top.bound, state->random_access);
	MemoryContextSwitchTo(old);
	state->phase = GS_SORT_FALLBACK;
}

/* Moves the rows of all runs to a tuplesort. */
static void
move_runs(GsSortState *state, TupleTableSlot *slot)
{
	const void *row;

	/* the tuplesort has the rest */
	gs_run_set_begin_merge(state->spill, state->memory_limit / 4);
	while ((row = gs_run_set_next(state->spill)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		gs_sort_store_row(state, row, slot);
		gs_fallback_put(&state->fallback, slot);
	}
	ExecClearTuple(slot);
	gs_run_set_close(state->spill);
	state->spill = NULL;
}

/* Moves the rows that the engine has not sorted to a tuplesort, its memory being freed on the way. */
static GsStatus
move_unsorted(GsSortState *state, TupleTableSlot *slot)
{
	const GsKeyLayout *layout = state->engine->job.layout;
	const GsBatch *batch;
	GsStatus	status = gs_engine_return_input(state->engine);

	while (status == GS_STATUS_OK &&
		   (status = gs_engine_next_batch(state->engine, &batch)) == GS_STATUS_OK &&
		   batch != NULL)
	{
		for (size_t i = 0; i < batch->nrows; i++)
		{
			CHECK_FOR_INTERRUPTS();
			gs_sort_store_row(state, gs_batch_pushed(batch, layout, i), slot);
			gs_fallback_put(&state->fallback, slot);
		}
	}
	return status;
}

/* Moves those that it has sorted. */
static GsStatus
move_sorted(GsSortState *state, TupleTableSlot *slot)
{
	uint64		position = 0;

	do
	{
		GsStatus	status = gs_sort_fill_window(state, position);

		if (status != GS_STATUS_OK)
			return status;
		CHECK_FOR_INTERRUPTS();
		for (int i = 0; i < state->window_rows; i++)
		{
			gs_sort_store_row(state, state->window[i], slot);
			gs_fallback_put(&state->fallback, slot);
		}
		position += state->window_rows;
	} while (state->window_rows > 0);
	return GS_STATUS_OK;
}

/*
 * Moves the rows taken so far from the engine, and from runs, to a tuplesort.
 * The tuplesort gets three quarters of the memory, as it fills up while the
 * engine still has some of the rows; or what is left, and a quarter in any case, where the
 * engine gives no memory back on the way, having sorted.  False if the engine
 * failed over it.
 */
bool
gs_sort_fall_back(GsSortState *state, const char *reason)
{
	TupleTableSlot *slot = state->slot;
	const GsEngineStats *stats = gs_engine_stats(state->engine);
	const int	limit_kb = state->memory_limit / 1024;
	int			memory_kb = limit_kb - limit_kb / 4;
	GsStatus	status;

	if (stats->method == GS_METHOD_NONE)
	{
		gs_sort_begin_fallback(state, memory_kb, reason);
		status = move_unsorted(state, slot);
	}
	else
	{
		memory_kb = limit_kb - Min(stats->peak_bytes / 1024, limit_kb);
		gs_sort_begin_fallback(state, Max(memory_kb, limit_kb / 4), reason);
		status = move_sorted(state, slot);
	}
	for (uint64 i = 0; i < state->nnulls && status == GS_STATUS_OK; i++)
	{
		CHECK_FOR_INTERRUPTS();
		gs_sort_store_row(state, NULL, slot);
		gs_fallback_put(&state->fallback, slot);
	}
	ExecClearTuple(slot);
	if (status != GS_STATUS_OK)
		return false;
	gs_engine_close(state->engine);
	state->engine = NULL;
	if (state->spill != NULL)
		move_runs(state, slot);
	return true;
}
