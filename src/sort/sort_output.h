/*-------------------------------------------------------------------------
 *
 * sort_output.h
 *	  Hands the rows of a sort out in order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_OUTPUT_H
#define GPUSORT_SORT_OUTPUT_H

#include "sort/sort_state.h"

/* Not for others: what gs_sort_next() does where it has to look for the row. */
extern TupleTableSlot *gs_sort_find_next(GsSortState *state, bool forward);

/*
 * The next row in the given direction in the sort's slot, which is empty after the
 * last.  It is there until the next call.  ERROR: the engine failed, and has lost the rows.
 */
static inline TupleTableSlot *
gs_sort_next(GsSortState *state, bool forward)
{
	int64		next = state->position + 1 - state->window_start;

	/* nearly always: the next row of the window */
	if ((uint64) next < (uint64) state->window_rows && !state->keys_only && forward)
	{
		state->position++;
		return ExecStoreMinimalTuple((MinimalTuple) unconstify(void *, state->window[next]),
									 state->slot, false);
	}
	return gs_sort_find_next(state, forward);
}

/* The same, and the row is compared with the one before, if the sort was made to. */
extern TupleTableSlot *gs_sort_next_verified(GsSortState *state, bool forward);

/* The next row, either way. */
static inline TupleTableSlot *
gs_sort_next_checked(GsSortState *state)
{
	return state->verified ? gs_sort_next_verified(state, true) : gs_sort_next(state, true);
}

/*
 * The next rows forward, up to so many, as they are stored, and checked; returns how many, 0 after
 * the last.  They are there until the next call.  Not of a keys_only sort.
 */
extern int	gs_sort_next_rows(GsSortState *state, int nwanted, MinimalTuple *rows);

#endif							/* GPUSORT_SORT_OUTPUT_H */
