/*-------------------------------------------------------------------------
 *
 * sort_fetch.c
 *	  Finds the rows of a sort by their positions.
 *
 * Where the rows are decides how they are found (GsSortPhase):
 *
 *	  FEW		by position
 *	  ENGINE	by position, through a window: rows of the engine are fetched a
 *				few at a time, so that it can prefetch the following ones
 *	  RUNS		forward only, as they are merged, each row once
 *	  FALLBACK	as the tuplesort returns them; it also keeps position and mark
 *
 * A sort of keys only has stored no NULLs.  They come before or after the values.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sort/sort_failure.h"
#include "sort/sort_fetch.h"

/* ------------------------------------------------------------------- window */

void
gs_sort_begin_output(GsSortState *state, uint64 nrows)
{
	GsSortOutput *output = &state->output;

	output->nrows = nrows;
	output->position = -1;
	output->window_rows = 0;
}

GsStatus
gs_sort_fill_window(GsSortState *state, int64 position)
{
	GsSortOutput *output = &state->output;
	size_t		fetched;
	GsStatus	status = gs_engine_fetch(state->input.engine, position, GS_SORT_WINDOW,
										 output->window, &fetched);

	output->window_start = position;
	output->window_rows = status != GS_STATUS_OK ? 0 :
		(int) Min((int64) fetched, gs_topn_nrows(&state->input.top) - position);
	return status;
}

/* Moves the window to a position; backward, to what comes before it, too. */
static pg_noinline void
move_window(GsSortState *state, int64 position, bool forward)
{
	int64		start = forward ? position : Max(position - (GS_SORT_WINDOW - 1), 0);

	do
	{
		if (gs_sort_fill_window(state, start) != GS_STATUS_OK)
			gs_sort_report_failure(state);
		start += state->output.window_rows;
	} while (position >= start);
}

/* -------------------------------------------------------------------- slots */

/* The row at a position; of a merge, the next one. */
const void *
gs_sort_row_at(GsSortState *state, int64 position, bool forward)
{
	const GsSortOutput *output = &state->output;

	if (state->phase == GS_SORT_RUNS)
		return gs_run_set_next(state->input.runs);
	if (position < output->window_start ||
		position >= output->window_start + output->window_rows)
		move_window(state, position, forward);
	return output->window[position - output->window_start];
}

/* The row at a position if keys_only, where NULLs are only counted; returns NULL for them. */
static const void *
value_at(GsSortState *state, int64 position, bool forward)
{
	const int64 nnulls = state->input.nnulls;
	const int64 nvalues = state->output.nrows - nnulls;

	if (state->spec.columns[0].nulls_first)
		position -= nnulls;
	return position < 0 || position >= nvalues ? NULL : gs_sort_row_at(state, position, forward);
}

/* Moves the position by a row.  Returns false if no row is there. */
bool
gs_sort_step(GsSortState *state, bool forward)
{
	GsSortOutput *output = &state->output;
	const int64 nrows = output->nrows;

	if (forward)
	{
		if (output->position < nrows)
			output->position++;
	}
	else if (output->position >= 0)
		output->position--;
	if (output->position >= gs_topn_nrows(&state->input.top))
		elog(ERROR, "more rows were requested from a sort than its LIMIT allows");
	return output->position >= 0 && output->position < nrows;
}

TupleTableSlot *
gs_sort_fetch_next(GsSortState *state, bool forward)
{
	GsSortInput *input = &state->input;
	TupleTableSlot *slot = state->spec.slot;
	int64		position;

	if (state->phase == GS_SORT_FALLBACK)
	{
		gs_tuplesort_get(&input->fallback, forward, slot);
		return slot;
	}
	if (!gs_sort_step(state, forward))
		return ExecClearTuple(slot);
	position = state->output.position;
	if (state->phase == GS_SORT_FEW)
		gs_few_get(input->few, position, slot);
	else
		gs_sort_row_to_slot(input, input->keys_only ? value_at(state, position, forward) :
							gs_sort_row_at(state, position, forward), slot);
	return slot;
}
