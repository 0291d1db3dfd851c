/*-------------------------------------------------------------------------
 *
 * sort_fallback.c
 *	  Falls back to PostgreSQL's tuplesort.
 *
 * This happens where gpusort cannot continue: a value has no code, more rows
 * than memory holds may be returned twice.  The rows so far move to the tuplesort,
 * while the engine frees its memory batch by batch; the child's following rows are
 * added to the tuplesort (sort_input.c).  No row was returned yet, so the result is
 * the same.
 *
 * After ERROR and cancel the memory context and the resource owner free what
 * both hold.  Loops over rows check for interrupts.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sort/sort_fallback.h"
#include "sort/sort_output.h"
#include "sort/sort_stats.h"

#include "executor/executor.h"
#include "miscadmin.h"

void
gs_sort_begin_fallback(GsSortState *state, int memory_kb, GsStatus status, const char *reason)
{
	const GsSortSpec *spec = &state->spec;
	GsSortInput *input = &state->input;
	MemoryContext old = MemoryContextSwitchTo(state->context);

	input->fallback_reason = pstrdup(reason);
	gs_tuplesort_begin(&input->fallback, spec->columns, spec->ncolumns + spec->nstable,
					   spec->desc, memory_kb, input->top.bound, spec->random_access);
	MemoryContextSwitchTo(old);
	state->phase = GS_SORT_FALLBACK;
	gs_stats_add(status == GS_STATUS_OK ? GS_STAT_FALLBACKS_KEY :
				 status == GS_STATUS_DISPROVED ? GS_STAT_FALLBACKS_ORDER : GS_STAT_FALLBACKS_MEMORY, 1);
	if (status == GS_STATUS_DISPROVED)
		gs_stats_add(GS_STAT_REPAIRS, 1);
}

/* Moves one row; NULL is a counted NULL. */
static void
move_row(GsSortState *state, const void *row)
{
	TupleTableSlot *slot = state->spec.slot;

	CHECK_FOR_INTERRUPTS();
	gs_sort_row_to_slot(&state->input, row, slot);
	gs_tuplesort_put(&state->input.fallback, slot);
}

/* Moves the rows that the engine has not sorted. */
static GsStatus
move_unsorted(GsSortState *state)
{
	GsEngine   *engine = state->input.engine;
	const GsBatch *batch;
	GsStatus	status = gs_engine_return_input(engine);

	while (status == GS_STATUS_OK &&
		   (status = gs_engine_next_batch(engine, &batch)) == GS_STATUS_OK && batch != NULL)
	{
		for (size_t i = 0; i < batch->nrows; i++)
			move_row(state, gs_batch_pushed(batch, engine->request.layout, i));
	}
	return status;
}

/* Moves the rows that it has sorted.  A top-N sort has more rows than its bound; the tuplesort drops them. */
static GsStatus
move_sorted(GsSortState *state)
{
	const void *rows[GS_SORT_WINDOW];
	uint64		position = 0;
	size_t		nrows;
	GsStatus	status;

	while ((status = gs_engine_fetch(state->input.engine, position, GS_SORT_WINDOW, rows,
									 &nrows)) == GS_STATUS_OK && nrows > 0)
	{
		for (size_t i = 0; i < nrows; i++)
			move_row(state, rows[i]);
		position += nrows;
	}
	return status;
}

static void
move_runs(GsSortState *state)
{
	GsSortInput *input = &state->input;
	const void *row;

	/* the tuplesort has the rest of the memory */
	gs_run_set_begin_merge(input->runs, input->memory_limit / 4);
	while ((row = gs_run_set_next(input->runs)) != NULL)
		move_row(state, row);
	ExecClearTuple(state->spec.slot);
	gs_run_set_close(input->runs);
	input->runs = NULL;
}

/*
 * The tuplesort gets all of the memory, because the engine frees its own as the tuplesort fills; runs need some
 * of it to be read.  With three quarters, a tuplesort of more rows than that merges more runs, some of them once
 * more: 1.10 of PostgreSQL's processor time with work_mem = 256kB or 1MB, instead of 0.95 to 0.97 (200,000 rows of
 * 120 bytes by an int; Intel Xeon, PostgreSQL 15.20, 2026-11-27).  The peak is 1.00 to 1.20 times work_mem, instead of
 * 0.88 to 1.10, since an engine takes less for most rows than a tuplesort.
 *
 * An engine that has sorted frees no memory meanwhile: then the tuplesort gets what is left,
 * and at least a quarter.  If the system has no more memory, it gets little,
 * because the first batches that the engine frees are small.
 */
static int
fallback_memory_kb(const GsSortInput *input, GsStatus status)
{
	const GsEngineStats *stats = gs_engine_stats(input->engine);
	const int	limit_kb = input->memory_limit / 1024;

	if (status == GS_STATUS_OOM)
		return Min(stats->peak_bytes / 1024, limit_kb) / 32;
	if (stats->method == GS_METHOD_NONE)
		return input->runs == NULL ? limit_kb : limit_kb - limit_kb / 4;
	return Max(limit_kb - (int) Min(stats->peak_bytes / 1024, limit_kb), limit_kb / 4);
}

bool
gs_sort_fall_back(GsSortState *state, GsStatus status, const char *reason)
{
	GsSortInput *input = &state->input;
	const bool	sorted = gs_engine_stats(input->engine)->method != GS_METHOD_NONE;

	gs_sort_begin_fallback(state, fallback_memory_kb(input, status), status, reason);
	status = sorted ? move_sorted(state) : move_unsorted(state);
	for (uint64 i = 0; i < input->nnulls && status == GS_STATUS_OK; i++)
		move_row(state, NULL);
	ExecClearTuple(state->spec.slot);
	if (status != GS_STATUS_OK)
		return false;
	gs_sort_close_engine(input->engine);
	input->engine = NULL;
	if (input->runs != NULL)
		move_runs(state);
	return true;
}
