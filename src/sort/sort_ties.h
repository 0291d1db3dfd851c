/*-------------------------------------------------------------------------
 *
 * sort_ties.h
 *	  Orders the rows that a device leaves tied, as they are returned or written to a run.
 *
 * For sorts whose last columns are only compared, or have no full key.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_TIES_H
#define GPUSORT_SORT_TIES_H

#include "sort/sort_state.h"

/*
 * The next row that the engine has sorted, in the sort's slot; forward only.  There must be one.
 * Valid until the next call.  NULL: the engine failed.  Comparators may raise errors.
 */
extern TupleTableSlot *gs_sort_ties_next(GsSortState *state);

/* For spec.write_tied: writes the rows that the engine has sorted as a run, in order. */
extern GsStatus gs_sort_ties_write(void *sort);

/* No more rows are returned. */
extern void gs_sort_ties_end(GsSortState *state);

#endif							/* GPUSORT_SORT_TIES_H */
