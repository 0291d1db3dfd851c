/*-------------------------------------------------------------------------
 *
 * sort_order.h
 *	  What decides the order of a sort's rows: keys, comparisons, or both.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_ORDER_H
#define GPUSORT_SORT_ORDER_H

#include "sort/sort_state.h"

/* For rows whose keys are equal, and for any rows; the argument is the state. */
extern const GsRowCompare gs_sort_compare_tied;
extern const GsRowCompare gs_sort_compare_all;

/* Rows get these keys from now on, and are compared as far as they do not decide. */
extern void gs_sort_use_keys(GsSortState *state, GsKeyEncoder *key);

/* The bytes of memory that a sort should leave for copies of values that are compared. */
extern Size gs_sort_compared_bytes(const GsSortState *state);

/* Sorts the engine's rows: gs_engine_sort(). */
extern GsStatus gs_sort_order_rows(GsSortState *state);

/* Rows with equal keys are compared from now on, because a key was truncated. */
extern void gs_sort_compare_ties(GsSortState *state);

/* The order in which runs are merged. */
extern GsMergeOrder gs_sort_merge_order(GsSortState *state);

/*
 * The order in which runs are merged if they have no keys, or keys that do not count: only
 * comparisons decide.
 */
extern GsMergeOrder gs_sort_compared_order(GsSortState *state);

/*
 * May a device sort by the columns before the first one that is compared?  Then rows that are equal in
 * these columns are ordered by sort_ties.c.
 */
extern bool gs_sort_may_order_ties(const GsSortState *state);

/* Has the engine, a device, left ties, or may it leave some when it sorts? */
extern bool gs_sort_leaves_ties(const GsSortState *state);

/* Are the keys approximate, and does the sort, not its caller, verify the order that they give? */
extern bool gs_sort_verifies_keys(const GsSortState *state);

/*
 * Verifies the order that the engine found, if the sort has to, unless the rows were compared
 * as they arrived or as they were sorted.  If the order is wrong, an engine that can compare sorts
 * again by comparisons.  DISPROVED: another engine must.
 */
extern GsStatus gs_sort_verify_keys(GsSortState *state);

#endif							/* GPUSORT_SORT_ORDER_H */
