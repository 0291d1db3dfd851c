/*-------------------------------------------------------------------------
 *
 * sort_ranges.h
 *	  A GpuSort in a parallel plan: each participant returns ranges of the rows of all.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_RANGES_H
#define GPUSORT_SORT_RANGES_H

#include "sort/sort_state.h"

/*
 * This participant has sorted what it has read (gs_sort_read_input()): waits until all have, and
 * begins to return rows.  The sort is one of participants.ranges.
 */
extern void gs_sort_ranges_share(GsSortState *state);

/* The next row of this participant's ranges, in the sort's slot, which is empty after the last. */
extern TupleTableSlot *gs_sort_ranges_next(GsSortState *state);

#endif							/* GPUSORT_SORT_RANGES_H */
