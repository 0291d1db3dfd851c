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
#include "sort/sort_fetch.h"
#include "sort_parts/engine_drain.h"
#include "sort_parts/sort_device.h"

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

/* Moves one row; NULL is a counted NULL.  A top-N sort has more rows than its bound; the tuplesort drops them. */
static bool
move_row(void *arg, const void *row)
{
	GsSortState *state = arg;
	TupleTableSlot *slot = state->spec.slot;

	gs_sort_row_to_slot(&state->input, row, slot);
	gs_tuplesort_put(&state->input.fallback, slot);
	return true;
}

static void
move_runs(GsSortState *state)
{
	GsSortInput *input = &state->input;
	const void *row;

	/* the tuplesort has the rest of the memory */
	gs_run_set_begin_merge(input->runs, input->memory_limit / 4);
	while ((row = gs_run_set_next(input->runs)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		(void) move_row(state, row);
	}
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
	bool		moved;

	gs_sort_begin_fallback(state, fallback_memory_kb(input, status), status, reason);
	status = gs_engine_drain(input->engine, move_row, state, &moved);
	for (uint64 i = 0; i < input->nnulls && status == GS_STATUS_OK; i++)
		(void) move_row(state, NULL);
	ExecClearTuple(state->spec.slot);
	if (status != GS_STATUS_OK)
		return false;
	gs_device_close(input->engine);
	input->engine = NULL;
	if (input->runs != NULL)
		move_runs(state);
	return true;
}
