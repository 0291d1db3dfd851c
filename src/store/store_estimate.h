/*-------------------------------------------------------------------------
 *
 * store_estimate.h
 *	  What is known of a sort before it has read its rows.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_STORE_ESTIMATE_H
#define GPUSORT_STORE_ESTIMATE_H

#include "store/store.h"

/* Bytes of a row and its key record, as estimated. */
extern double gs_store_row_bytes(const GsStore *store);

/*
 * Does a node return all rows of this process by gs_sort_next(), forward?  Nobody else reads the
 * rows of the engine, and each has more than a value.
 */
extern bool gs_store_returns_in_turn(const GsStore *store);

/* Will the rows probably move to a device?  It compares nothing but keys, so these must be full. */
extern bool gs_store_device_is_likely(const GsStore *store);

#endif							/* GPUSORT_STORE_ESTIMATE_H */
