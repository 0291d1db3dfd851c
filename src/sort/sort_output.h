/*-------------------------------------------------------------------------
 *
 * sort_output.h
 *	  Returns the rows of a sort in order.
 *
 * The functions may raise an ERROR if the engine fails, which loses its rows.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_OUTPUT_H
#define GPUSORT_SORT_OUTPUT_H

#include "sort/sort_state.h"
#include "store/store_fetch.h"

/* Not for callers: gs_sort_next() for all but the usual case. */
extern TupleTableSlot *gs_sort_find_next(GsSortState *state, bool forward);

/*
 * The next row in the given direction, in the sort's slot, which is empty after the last row.
 * Valid until the next call.
 */
static inline TupleTableSlot *
gs_sort_next(GsSortState *state, bool forward)
{
	GsStore    *store = &state->store;
	int64		next = store->position + 1 - store->window_start;

	/* usually: the next row of the window */
	if ((uint64) next < (uint64) store->window_rows && store->nnulls == 0 && forward)
	{
		store->position++;
		return gs_store_row_to_slot(store, store->window[next], state->spec.slot);
	}
	return gs_sort_find_next(state, forward);
}

/*
 * Like gs_sort_next(), but also compares the row with the one before, if forward: an ERROR if their
 * order is wrong.  Only with spec.verify_output.
 */
extern TupleTableSlot *gs_sort_next_verified(GsSortState *state, bool forward);

/*
 * The next rows, forward, up to nwanted of them, as they are stored; returns how many, 0 after the
 * last.  Valid until the next call.  Each is compared with the one before with spec.verify_output.
 * Not with keys_only.
 */
extern int	gs_sort_next_rows(GsSortState *state, int nwanted, MinimalTuple *rows);

/*
 * Instead of all rows of an engine, next_rows returns those from the first one of a range on.
 * *end, in palloc'd memory, becomes the row that follows the range; NULL: none does.  The caller
 * ends there.
 */
extern void gs_sort_begin_range_of_engine(GsSortState *state, int range, int nranges,
										  MinimalTuple *end);

/*
 * Can the rows be returned from the first one again?  Not if no one asked for random access, or if
 * the LIMIT asks for more rows than were kept.
 */
extern bool gs_sort_can_rewind(const GsSortState *state);
extern void gs_sort_rewind(GsSortState *state);

/* Remembers the position, and returns to it. */
extern void gs_sort_mark(GsSortState *state);
extern void gs_sort_restore(GsSortState *state);

/* Back to IDLE: frees what a sort holds, after which it can begin again.  Legal at any time. */
extern void gs_sort_reset(GsSortState *state);

#endif							/* GPUSORT_SORT_OUTPUT_H */
