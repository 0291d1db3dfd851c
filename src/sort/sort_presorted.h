/*-------------------------------------------------------------------------
 *
 * sort_presorted.h
 *	  Rows that arrive in the requested order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_PRESORTED_H
#define GPUSORT_SORT_PRESORTED_H

#include "sort/sort_state.h"

/*
 * Decides whether it is worth a try, before the engine opens: input.presorted, and the comparator
 * for it.
 */
extern void gs_presorted_begin(GsSortState *state);

/*
 * Adds the slot's row to that engine; form as for gs_row_source_init().  False: it was not added,
 * because it sorts before the last row, or because memory is full; gs_sort_reload() is to follow.
 */
extern bool gs_presorted_add(GsSortState *state, TupleTableSlot *slot, const GsRowForm *form);

#endif							/* GPUSORT_SORT_PRESORTED_H */
