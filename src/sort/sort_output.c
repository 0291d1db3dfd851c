/*-------------------------------------------------------------------------
 *
 * sort_output.c
 *	  Hands the rows of a sort out in order.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sort/sort_output.h"
#include "sort/sort_input.h"

/* Has the window hold a position, and what comes next in the given direction. */
static pg_noinline void
move_window(GsSortState *state, int64 position, bool forward)
{
	int64		start = forward ? position : Max(position - (GS_SORT_WINDOW - 1), 0);

	do
	{
		if (gs_sort_fill_window(state, start) != GS_STATUS_OK)
			gs_sort_report_failure(state);
		start += state->window_rows;
	} while (position >= start);
}

/* The row at a position, from the window, or from a merge, where it is the next one. */
static inline const void *
row_at(GsSortState *state, int64 position, bool forward)
{
	if (state->phase == GS_SORT_MERGE)
		return gs_run_set_next(state->spill);
	if (position < state->window_start ||
		position >= state->window_start + state->window_rows)
		move_window(state, position, forward);
	return state->window[position - state->window_start];
}

/* The same over all rows of a keys_only sort: NULL where a NULL belongs. */
static const void *
value_at(GsSortState *state, int64 position, bool forward)
{
	uint64		stored = state->nrows - state->nnulls;

	if (state->columns[0].nulls_first)
		position -= state->nnulls;
	return position < 0 || position >= stored ? NULL : row_at(state, position, forward);
}

/* A row that is not in the window yet, or not in an engine, or no row but a value. */
pg_noinline TupleTableSlot *
gs_sort_find_next(GsSortState *state, bool forward)
{
	TupleTableSlot *slot = state->slot;

	if (state->phase == GS_SORT_FALLBACK)
	{
		gs_fallback_get(&state->fallback, forward, slot);
		return slot;
	}

	if (forward)
	{
		if (state->position < (int64) state->nrows)
			state->position++;
	}
	else if (state->position >= 0)
		state->position--;
	if (state->position >= gs_topn_nrows(&state->top))
		elog(ERROR, "more rows requested from a sort than its LIMIT allows");
	if (state->position < 0 || state->position >= (int64) state->nrows)
		return ExecClearTuple(slot);

	if (state->phase == GS_SORT_FEW)
		gs_few_get(state->few, state->position, slot);
	else if (state->keys_only)
		gs_sort_store_value(state, value_at(state, state->position, forward), slot);
	else
		ExecStoreMinimalTuple((MinimalTuple) unconstify(void *, row_at(state, state->position, forward)),
							  slot, false);
	return slot;
}

TupleTableSlot *
gs_sort_next_verified(GsSortState *state, bool forward)
{
	TupleTableSlot *slot = gs_sort_next(state, forward);

	if (!forward)
		gs_sort_verify_restart(state->verify, false);
	else if (!TupIsNull(slot))
		gs_sort_verify_row(state->verify, slot);
	else if (state->top.bound == GS_UNBOUNDED)
		gs_sort_verify_end(state->verify, state->nread);
	return slot;
}

int
gs_sort_next_rows(GsSortState *state, int nwanted, MinimalTuple *rows)
{
	TupleTableSlot *slot;
	int			nrows = 0;

	if (state->phase == GS_SORT_MERGE && !state->verified)
	{
		/* a slot for each would cost a tenth of the merge */
		rows[0] = (MinimalTuple) unconstify(void *, gs_run_set_next(state->spill));
		nrows = rows[0] != NULL;
		state->position += nrows;
		return nrows;
	}
	slot = gs_sort_next_checked(state);
	if (TupIsNull(slot))
		return 0;
	rows[nrows++] = ((MinimalTupleTableSlot *) slot)->mintuple;
	/* and what the window has behind it, if it has that row, unless each is to be looked at */
	for (int64 next = state->position + 1 - state->window_start;
		 nrows < nwanted && (uint64) next < (uint64) state->window_rows && !state->verified;
		 next++)
	{
		rows[nrows++] = (MinimalTuple) unconstify(void *, state->window[next]);
		state->position++;
	}
	return nrows;
}
