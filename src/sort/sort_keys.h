/*-------------------------------------------------------------------------
 *
 * sort_keys.h
 *	  Gives other keys to the rows that an engine has.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_KEYS_H
#define GPUSORT_SORT_KEYS_H

#include "sort/sort_state.h"

/*
 * Would other keys suit the rows that were kept (store_few.h), and those that will follow them,
 * better?
 */
extern bool gs_sort_few_want_other_keys(const GsSortState *state);

/* Would other keys suit the rows so far better?  all_read: no more rows follow. */
extern bool gs_sort_wants_other_keys(GsSortState *state, bool all_read);

/* Adds a row in the way of all rows.  False: the engine failed. */
typedef bool (*GsAddRow) (GsSortState *state, TupleTableSlot *slot);

/*
 * Adds the rows of the engine to another engine, with keys if they have none, or with other keys.
 * False: the engine failed and has lost them.
 */
extern bool gs_sort_reload(GsSortState *state, GsAddRow add);

/*
 * Adds the rows that a device has sorted in a wrong order to another engine, with the same keys:
 * in the order that it found, in which equal rows are in input order.  False: the engine failed and
 * has lost them.
 */
extern bool gs_sort_take_back(GsSortState *state, GsAddRow add);

#endif							/* GPUSORT_SORT_KEYS_H */
