/*-------------------------------------------------------------------------
 *
 * sort_input.h
 *	  Takes the rows of a sort and sorts them.
 *
 * An executor node has its child read.  Who comes by rows in another way puts
 * them, one after the other:
 *
 *	  begin { put } perform { next } forget		(gs_sort_next(): sort_output.h)
 *
 * forget is legal after any of them; after an ERROR the memory contexts and
 * resource owners do.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_INPUT_H
#define GPUSORT_SORT_INPUT_H

#include "sort/sort_state.h"

/* From IDLE to one of the other phases, positioned before the first of the child's rows. */
extern void gs_sort_read_input(GsSortState *state);

/*
 * The same step by step, for rows that the caller has.  put takes the slot's row, perform sorts.
 * False: the engine failed and has lost the rows; forget them, or report it.
 */
extern void gs_sort_begin(GsSortState *state, int memory_kb);
extern bool gs_sort_add(GsSortState *state, TupleTableSlot *slot);
extern bool gs_sort_perform(GsSortState *state);

/* Back to IDLE: frees what a sort holds; it is as if it had never begun. */
extern void gs_sort_reset(GsSortState *state);

/* The engine failed, and has lost the rows: an ERROR; or for the log only, as they come again. */
extern void gs_sort_report_failure(const GsSortState *state);
extern void gs_sort_log_failure(const GsSortState *state);

#endif							/* GPUSORT_SORT_INPUT_H */
