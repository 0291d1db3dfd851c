/*-------------------------------------------------------------------------
 *
 * store_sort.h
 *	  Sorts the rows of an engine, and verifies their order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_STORE_SORT_H
#define GPUSORT_STORE_SORT_H

#include "store/store.h"

/* Rows get these keys from now on. */
extern void gs_store_use_keys(GsStore *store, GsKeyEncoder *key);

/* Rows with equal keys are compared from now on, because a key was truncated. */
extern void gs_store_compare_ties(GsStore *store);

/* The bytes of memory that a sort should leave for copies of values that are compared. */
extern Size gs_store_compared_bytes(const GsStore *store);

/* Sorts the engine's rows: gs_engine_sort(). */
extern GsStatus gs_store_sort(GsStore *store);

/* Verifies the order that the engine found: gs_order_verify(). */
extern GsStatus gs_store_verify(GsStore *store);

/*
 * May a device sort by the columns before the first one that is compared?  Then rows that are equal
 * in these columns are ordered as they are returned (sort/sort_ties.c).
 */
extern bool gs_store_may_order_ties(const GsStore *store);

#endif							/* GPUSORT_STORE_SORT_H */
