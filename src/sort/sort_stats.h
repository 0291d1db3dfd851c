/*-------------------------------------------------------------------------
 *
 * sort_stats.h
 *	  What a sort tells the statistics, EXPLAIN and the log.
 *
 *	  begin { show } begin_step(SORT) sorted end
 *
 * end is legal after any of these, and at any time.  A sort of few rows calls gs_stats_add() only.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_STATS_H
#define GPUSORT_SORT_STATS_H

#include "sort/sort_state.h"

/* The activity shows the number of rows each time as many more were read. */
#define GS_STATS_INTERVAL_ROWS	4096

/*
 * Rows come in.  If an ERROR or a cancel ends the sort, the reset of its memory context is noticed.
 */
extern void gs_sort_stats_begin(GsSortState *state);

/* Shows how many rows came in so far. */
extern void gs_sort_stats_show(GsSortState *state);

/* The next step begins. */
extern void gs_sort_stats_begin_step(GsSortState *state, GsSortStep step);

/* The rows are sorted: counts them, and begins the output. */
extern void gs_sort_stats_sorted(GsSortState *state);

/* No more rows are returned. */
extern void gs_sort_stats_end(GsSortState *state);

/* What sorts, or has sorted. */
extern GsSorter gs_sort_sorter(const GsSortState *state);

/*
 * Has the sort of a node, when its rows are sorted, those of all batches together, taken as long as
 * gpusort.log_min_duration says; or that of an index, when it has ended?
 */
extern bool gs_sort_is_slow(const GsSortState *state);

/* Logs such a sort.  of_what: its key, or the index. */
extern void gs_sort_log_duration(const GsSortState *state, const char *of_what);

#endif							/* GPUSORT_SORT_STATS_H */
