/*-------------------------------------------------------------------------
 *
 * sort_input.h
 *	  Reads the rows of a sort and sorts them.
 *
 * The rows of an executor node's child, all at once:
 *
 *	  init { read_input { next } reset }		(gs_sort_next(): sort_output.h)
 *
 * which is done for each batch if there are spec.groups;
 *
 * or rows that the caller has, one at a time:
 *
 *	  init { begin [ disable_device ] { add } perform { next } reset }
 *
 * reset is legal after any of these.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_INPUT_H
#define GPUSORT_SORT_INPUT_H

#include "sort/sort_state.h"

/*
 * Reads all rows of spec.child, or of its next batch, and sorts them, with work_mem.  If a device
 * fails, starts again or raises an ERROR.
 */
extern void gs_sort_read_input(GsSortState *state);

/*
 * Sorts rows that the caller has, in steps; add takes the slot's row.  False: the engine failed
 * and has lost the rows.  Call gs_sort_abandon() or gs_sort_reset().
 */
extern void gs_sort_begin(GsSortState *state, int memory_kb);
extern void gs_sort_disable_device(GsSortState *state);
extern bool gs_sort_add(GsSortState *state, TupleTableSlot *slot);
extern bool gs_sort_perform(GsSortState *state);

/*
 * After a failure, where the caller has to read its rows to the end: leaves a job that is shared,
 * and logs the failure.  The caller must not add more rows.
 */
extern void gs_sort_abandon(GsSortState *state);

#endif							/* GPUSORT_SORT_INPUT_H */
