/*-------------------------------------------------------------------------
 *
 * sort_runs.c
 *	  Merges runs, of one sort or several.
 *
 * If memory did not hold all rows, sort_space.c has written runs, which are merged while rows are
 * returned.  In a parallel index build each process writes runs, and then merges a range of all of
 * them, or the leader merges all.
 *
 * Temporary files belong to the resource owner, which removes them after ERROR
 * and cancel.  Loops over rows check for interrupts.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sort/sort_failure.h"
#include "sort/sort_fetch.h"
#include "sort/sort_order.h"
#include "sort/sort_runs.h"
#include "sort/sort_space.h"
#include "sort_parts/sort_device.h"

#include "miscadmin.h"
#include "utils/memutils.h"

/* -------------------------------------------------------------------- merge */

/* Does someone else merge the runs, or add those of others before they are merged? */
static bool
are_merged_elsewhere(const GsSortState *state)
{
	return state->spec.merged_elsewhere || state->participants.of_streams != GS_ROLE_SERIAL;
}

/* The rows are in runs only. */
static void
close_engine(GsSortState *state)
{
	if (state->input.engine != NULL)
		gs_device_close(state->input.engine);
	state->input.engine = NULL;
	state->phase = GS_SORT_RUNS;
}

GsStatus
gs_sort_merge_runs(GsSortState *state)
{
	GsStatus	status = GS_STATUS_OK;

	/* the rows that a device did not take become a run of their own */
	if (state->input.engine->capabilities->on_device)
		status = gs_sort_write_run(state, 0);
	if (status == GS_STATUS_OK)
		status = gs_sort_append_run(state);
	if (status != GS_STATUS_OK)
		return status;
	close_engine(state);
	if (!are_merged_elsewhere(state))
		gs_sort_begin_merge(state);
	return GS_STATUS_OK;
}

/* What the engine leaves for a merge, if its rows are one of the runs. */
static Size
merge_limit(const GsSortInput *input)
{
	const Size	held = input->engine == NULL ? 0 : gs_engine_stats(input->engine)->peak_bytes;

	return input->merge_limit - Min(held, input->merge_limit);
}

void
gs_sort_begin_merge(GsSortState *state)
{
	GsSortInput *input = &state->input;

	gs_run_set_begin_merge(input->runs, merge_limit(input));
	gs_sort_begin_output(state, gs_run_set_stats(input->runs)->nrows + input->nnulls);
}

bool
gs_sort_begin_range(GsSortState *state, int range, int nranges, MinimalTuple *end)
{
	GsSortInput *input = &state->input;

	if (!gs_run_set_begin_range(input->runs, input->merge_limit, range, nranges, end))
		return false;
	gs_sort_begin_output(state, gs_run_set_stats(input->runs)->nrows);
	state->output.partial = true;
	return true;
}

void
gs_sort_set_merge_memory(GsSortState *state, int memory_kb)
{
	state->input.merge_limit = (Size) memory_kb * 1024;
}

/* --------------------------------------------------- the runs of several sorts */

/* Writes the rows of a tuplesort as a run. */
static void
write_fallback(GsSortState *state)
{
	GsSortInput *input = &state->input;
	TupleTableSlot *slot = state->spec.slot;

	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		gs_tuplesort_get(&input->fallback, true, slot);
		if (TupIsNull(slot))
			break;
		gs_run_set_write_tuple(input->runs, ((MinimalTupleTableSlot *) slot)->mintuple);
	}
	gs_tuplesort_end(&input->fallback);
}

bool
gs_sort_make_runs(GsSortState *state)
{
	GsSortInput *input = &state->input;

	if (state->phase == GS_SORT_RUNS)
		return true;
	if (input->nread == 0)
		input->presorted = false;	/* without rows no row lacks a key */
	gs_sort_begin_runs(state);
	if (state->phase == GS_SORT_FALLBACK)
		write_fallback(state);
	else if (gs_sort_write_sorted(state) != GS_STATUS_OK)
		return false;
	close_engine(state);
	return true;
}

void
gs_sort_make_run_of_engine(GsSortState *state)
{
	GsSortInput *input = &state->input;

	if (input->nread == 0)
		input->presorted = false;	/* without rows no row lacks a key */
	gs_sort_begin_runs(state);
	gs_run_set_add_engine(input->runs, input->engine);
	state->phase = GS_SORT_RUNS;
}

void
gs_sort_describe_rows(GsSortState *state, GsSharedRows *rows)
{
	const GsSortInput *input = &state->input;

	gs_run_set_describe(input->runs, rows);
	if (gs_run_set_has_keys(input->runs))
	{
		rows->form = gs_key_encoder_fingerprint(input->key);
		rows->first_tied = gs_key_encoder_first_tied(input->key);
	}
	rows->nread = input->nread;
	rows->nnulls = input->nnulls;
}

void
gs_sort_complete_runs(GsSortState *state)
{
	gs_run_set_complete(state->input.runs, merge_limit(&state->input));
}

void
gs_sort_share_runs(GsSortState *state, GsSharedRuns *runs)
{
	gs_run_set_share(state->input.runs, runs);
	gs_sort_describe_rows(state, &runs->rows);
}

/* Do both have keys, and do these mean the same in both processes? */
static bool
has_equal_keys(const GsSortState *state, const GsSharedRows *rows)
{
	const GsSortInput *input = &state->input;

	return gs_run_set_has_keys(input->runs) && rows->layout.ncolumns > 0 &&
		rows->form == gs_key_encoder_fingerprint(input->key);
}

bool
gs_sort_merges_alike(const GsSortState *state, const GsSharedRows *rows)
{
	return has_equal_keys(state, rows) ||
		!(gs_run_set_has_keys(state->input.runs) || rows->layout.ncolumns > 0);
}

/* Makes the order of all rows one that also orders those of another process. */
static void
adopt_order(GsSortState *state, const GsSharedRows *rows)
{
	GsSortInput *input = &state->input;

	if (has_equal_keys(state, rows))
	{
		gs_key_layout_merge(gs_key_encoder_layout(input->key), &rows->layout);
		if (rows->first_tied >= 0)
		{
			gs_key_encoder_tie_from(input->key, rows->first_tied);
			gs_sort_compare_ties(state);
		}
	}
	else if (rows->layout.keys_only)
		gs_sort_report_no_memory();		/* keys only, of the same form in all processes; only without memory this one has rows */
	else
	{
		const GsMergeOrder order = gs_sort_compared_order(state);

		gs_run_set_drop_keys(input->runs, &order);
	}
	input->nread += rows->nread;
	input->nnulls += rows->nnulls;
}

void
gs_sort_adopt_runs(GsSortState *state, const GsSharedRuns *runs, const GsRunPlace *where)
{
	adopt_order(state, &runs->rows);
	gs_run_set_adopt(state->input.runs, runs, where);
}

void
gs_sort_adopt_stream(GsSortState *state, const GsSharedRows *rows, GsRunStream *stream, dsa_area *memory)
{
	adopt_order(state, rows);
	gs_run_set_adopt_stream(state->input.runs, rows, stream, memory);
}
