/*-------------------------------------------------------------------------
 *
 * sort.h
 *	  Sorts rows: what callers use.
 *
 * The rows of an executor node's child, all at once, or those of each batch if there are
 * spec.groups:
 *
 *	  init { read_input { next } reset }
 *
 * or rows that the caller has, one at a time:
 *
 *	  init { begin [ disable_device ] { add } perform { next } reset }
 *
 * reset is legal after any of these.  For example:
 *
 *	  GsSortState *sort = palloc0(sizeof(GsSortState));
 *	  GsSortSpec	spec = {
 *		  .desc = desc,.columns = columns,.ncolumns = 2,.expected_rows = 100000,
 *		  .slot = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple),
 *		  .parent_context = CurrentMemoryContext
 *	  };
 *	  bool		sorted = true;
 *
 *	  gs_sort_init(sort, &spec);
 *	  gs_sort_begin(sort, work_mem);
 *	  while (sorted && read_row(slot))
 *		  sorted = gs_sort_add(sort, slot);
 *	  if (!sorted || !gs_sort_perform(sort))
 *		  ... a device failed: reset, begin, disable_device, and add the rows again
 *	  while (!TupIsNull(slot = gs_sort_next(sort, true)))
 *		  return_row(slot);
 *	  gs_sort_reset(sort);
 *
 * For a sort that several processes share: sort_parallel.h, and share/share_streams.h.
 *
 * All may raise an ERROR, such as that an engine has failed and lost its rows.  Then the memory of
 * the sort is freed with its context.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_H
#define GPUSORT_SORT_H

#include "sort/sort_state.h"
#include "store/store_fetch.h"

/* Not for callers: writes the rows that a device has sorted, and left tied, as a run, in order. */
extern GsStatus gs_sort_device_ties_write(void *sort);

/*
 * Makes a sort, IDLE, in zeroed memory.  The spec is copied; what it points to must live as long.
 */
static inline void
gs_sort_init(GsSortState *state, const GsSortSpec *spec)
{
	state->spec = *spec;
	state->spec.write_tied = gs_sort_device_ties_write;
}

/* Back to IDLE: frees what a sort holds, after which it can begin again.  Legal at any time. */
extern void gs_sort_reset(GsSortState *state);

/* ------------------------------------------------------------------- rows in */

/*
 * Reads all rows of spec.child, or of its next batch, and sorts them, with work_mem.  If a device
 * fails, starts again or raises an ERROR.
 */
extern void gs_sort_read_input(GsSortState *state);

/*
 * Sorts rows that the caller has, in steps; add takes the slot's row.  False: the engine failed
 * and has lost the rows.  Call gs_sort_abandon() (sort_failure.h) or gs_sort_reset().
 */
extern void gs_sort_begin(GsSortState *state, int memory_kb);
extern void gs_sort_disable_device(GsSortState *state);
extern bool gs_sort_add(GsSortState *state, TupleTableSlot *slot);
extern bool gs_sort_perform(GsSortState *state);

/* ------------------------------------------------------------------ rows out */

/* Not for callers: gs_sort_next() for all but the usual case. */
extern TupleTableSlot *gs_sort_find_next(GsSortState *state, bool forward);

/*
 * The next row in the given direction, in the sort's slot, which is empty after the last row.
 * Valid until the next call.
 */
static inline TupleTableSlot *
gs_sort_next(GsSortState *state, bool forward)
{
	const void *row = forward ? gs_store_next_in_window(&state->store) : NULL;

	return row != NULL ? gs_store_row_to_slot(&state->store, row, state->spec.slot) :
		gs_sort_find_next(state, forward);
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
 * Can the rows be returned from the first one again?  Not if no one asked for random access, or if
 * the LIMIT asks for more rows than were kept.
 */
extern bool gs_sort_can_rewind(const GsSortState *state);
extern void gs_sort_rewind(GsSortState *state);

/* Returns to the position that gs_store_mark() has remembered. */
extern void gs_sort_restore(GsSortState *state);

#endif							/* GPUSORT_SORT_H */
