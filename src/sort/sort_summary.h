/*-------------------------------------------------------------------------
 *
 * sort_summary.h
 *	  How a sort was sorted, in words: for EXPLAIN, and for the log.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_SUMMARY_H
#define GPUSORT_SORT_SUMMARY_H

#include "sort/sort_state.h"

/* The summary of a sort whose rows were sorted. */
extern void gs_sort_summarize(const GsSortState *state, GsSortSummary *summary);

/* Why PostgreSQL's sort was used, or no device although one was requested; NULL: neither. */
extern const char *gs_sort_engine_reason(const GsSortState *state);

#endif							/* GPUSORT_SORT_SUMMARY_H */
