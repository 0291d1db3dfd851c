/*-------------------------------------------------------------------------
 *
 * sort_ties.h
 *	  Orders the rows that a device leaves tied, as they are returned or written to a run.
 *
 * For sorts whose last columns are only compared, or have no full key.  begin
 * follows the sort of the device; next returns the rows, forward only.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_TIES_H
#define GPUSORT_SORT_TIES_H

#include "sort/sort_state.h"

/*
 * Does a node return all rows of this process by gs_sort_next(), forward?  Nobody else reads the rows of
 * the engine, and each has more than a value.
 */
extern bool gs_sort_returns_in_turn(const GsSortState *state);

/*
 * May a device sort by the columns before the first one that is compared?  Then rows that are equal in
 * these columns are ordered here.
 */
extern bool gs_sort_may_order_ties(const GsSortState *state);

/* Has the engine, a device, left ties that are ordered here? */
static inline bool
gs_sort_leaves_ties(const GsSortState *state)
{
	const GsEngine *engine = state->input.engine;

	return engine->capabilities->on_device && gs_key_encoder_first_tied(state->input.key) >= 0 && !engine->stats.all_differ;
}

/* Prepares to return the rows that the engine has sorted.  OK or FAILED. */
extern GsStatus gs_sort_ties_begin(GsSortState *state);

/*
 * The next row, in the sort's slot.  There must be one.  Valid until the next call.  NULL: the engine failed.
 * Comparators may raise errors.
 */
extern TupleTableSlot *gs_sort_ties_next(GsSortState *state);

/* No more rows are returned. */
extern void gs_sort_ties_end(GsSortState *state);

#endif							/* GPUSORT_SORT_TIES_H */
