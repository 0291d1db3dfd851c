/*-------------------------------------------------------------------------
 *
 * sort_output.c
 *	  Returns the rows of a sort in order.
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

#include "sort/sort_output.h"
#include "sort/sort_ties.h"

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
static inline const void *
row_at(GsSortState *state, int64 position, bool forward)
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
	return position < 0 || position >= nvalues ? NULL : row_at(state, position, forward);
}

/* Moves the position by a row.  Returns false if no row is there. */
static bool
step(GsSortState *state, bool forward)
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

pg_noinline TupleTableSlot *
gs_sort_find_next(GsSortState *state, bool forward)
{
	GsSortInput *input = &state->input;
	TupleTableSlot *slot = state->spec.slot;
	int64		position;

	if (state->phase == GS_SORT_FALLBACK)
	{
		gs_tuplesort_get(&input->fallback, forward, slot);
		return slot;
	}
	if (!step(state, forward))
		return ExecClearTuple(slot);
	if (state->output.ties != NULL)
	{
		slot = gs_sort_ties_next(state);
		if (slot == NULL)
			gs_sort_report_failure(state);
		return slot;
	}
	position = state->output.position;
	if (state->phase == GS_SORT_FEW)
		gs_few_get(input->few, position, slot);
	else
		gs_sort_row_to_slot(input, input->keys_only ? value_at(state, position, forward) :
							row_at(state, position, forward), slot);
	return slot;
}

TupleTableSlot *
gs_sort_next_verified(GsSortState *state, bool forward)
{
	GsOutputVerification *verification = state->output.verification;
	TupleTableSlot *slot = gs_sort_next(state, forward);

	if (!forward)
		gs_verify_output_restart(verification, false);
	else if (!TupIsNull(slot))
		gs_verify_output_row(verification, slot);
	else if (state->input.top.bound == GS_UNBOUNDED)
		gs_verify_output_end(verification, state->spec.groups != NULL ? state->spec.groups->nrows : state->input.nread);
	return slot;
}

/* --------------------------------------------------------------- stored rows */

/* Rows of the window after the one just returned, up to nwanted. */
static int
take_from_window(GsSortOutput *output, int nwanted, MinimalTuple *rows)
{
	int64		next = output->position + 1 - output->window_start;
	int			nrows = 0;

	while (nrows < nwanted && (uint64) next < (uint64) output->window_rows)
		rows[nrows++] = (MinimalTuple) unconstify(void *, output->window[next++]);
	output->position += nrows;
	return nrows;
}

int
gs_sort_next_rows(GsSortState *state, int nwanted, MinimalTuple *rows)
{
	const bool	verify = state->spec.verify_output && !state->output.partial;
	TupleTableSlot *slot;

	if (state->phase == GS_SORT_RUNS && !verify)
	{
		/* a slot for each row would cost a tenth of the merge */
		rows[0] = (MinimalTuple) unconstify(void *, gs_run_set_next(state->input.runs));
		if (rows[0] == NULL)
			return 0;
		state->output.position++;
		return 1;
	}
	slot = verify ? gs_sort_next_verified(state, true) : gs_sort_next(state, true);
	if (TupIsNull(slot))
		return 0;
	rows[0] = ((MinimalTupleTableSlot *) slot)->mintuple;
	return verify ? 1 : 1 + take_from_window(&state->output, nwanted - 1, rows + 1);
}

/* The position at which a range begins. */
static int64
range_start(const GsSortOutput *output, int range, int nranges)
{
	return output->nrows / nranges * range + Min((uint64) range, output->nrows % nranges);
}

void
gs_sort_begin_range_of_engine(GsSortState *state, int range, int nranges, MinimalTuple *end)
{
	GsSortOutput *output = &state->output;
	const int64 start = range_start(output, range, nranges);
	const int64 next = range_start(output, range + 1, nranges);

	*end = NULL;
	if (next < (int64) output->nrows)
	{
		const MinimalTupleData *row = row_at(state, next, true);

		*end = memcpy(palloc(row->t_len), row, row->t_len);
	}
	output->position = start - 1;
	output->window_rows = 0;
	output->partial = true;
}

/* ---------------------------------------------------------------- positions */

bool
gs_sort_can_rewind(const GsSortState *state)
{
	const GsTopN *top = &state->input.top;
	int64		bound;

	if (!state->spec.random_access)
		return false;
	bound = gs_sort_limit_compute(state->spec.limit, state->spec.econtext);
	if (state->phase == GS_SORT_FEW || state->phase == GS_SORT_ENGINE)
		return bound <= gs_topn_nrows(top);
	return bound <= top->bound;
}

void
gs_sort_rewind(GsSortState *state)
{
	ExecClearTuple(state->spec.slot);
	if (state->phase == GS_SORT_FALLBACK)
		tuplesort_rescan(state->input.fallback.state);
	if (state->output.verification != NULL)
		gs_verify_output_restart(state->output.verification, true);
	state->output.position = -1;
}

void
gs_sort_mark(GsSortState *state)
{
	if (state->phase == GS_SORT_FALLBACK)
		tuplesort_markpos(state->input.fallback.state);
	else
		state->output.mark = state->output.position;
}

void
gs_sort_restore(GsSortState *state)
{
	if (state->phase == GS_SORT_FALLBACK)
		tuplesort_restorepos(state->input.fallback.state);
	else
		state->output.position = state->output.mark;
	if (state->output.verification != NULL)
		gs_verify_output_restart(state->output.verification, false);
}
