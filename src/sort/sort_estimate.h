/*-------------------------------------------------------------------------
 *
 * sort_estimate.h
 *	  What is known of a sort before it has read its rows.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_ESTIMATE_H
#define GPUSORT_SORT_ESTIMATE_H

#include "sort/sort_state.h"

/* Bytes of a row and its key record, as estimated. */
extern double gs_sort_row_bytes(const GsSortState *state);

/*
 * Does a node return all rows of this process by gs_sort_next(), forward?  Nobody else reads the rows of
 * the engine, and each has more than a value.
 */
extern bool gs_sort_returns_in_turn(const GsSortState *state);

/* Will the rows probably move to a device?  It compares nothing but keys, so these must be full. */
extern bool gs_sort_device_is_likely(const GsSortState *state);

#endif							/* GPUSORT_SORT_ESTIMATE_H */
