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

/* Is it worth a try?  Only if rows are compared anyway, and none would be dropped by its key. */
extern bool gs_presorted_pays(const GsSortInput *input);

/* Opens an engine for rows without keys, which it keeps as they arrive; NULL: out of memory. */
extern GsEngine *gs_presorted_open(const GsJob *job);

/*
 * Adds the slot's row to that engine.  False: it was not added, because it sorts before the last row, or
 * because memory is full; gs_sort_reload() is to follow.
 */
extern bool gs_presorted_add(GsSortState *state, TupleTableSlot *slot);

#endif							/* GPUSORT_SORT_PRESORTED_H */
