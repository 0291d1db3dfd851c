/*-------------------------------------------------------------------------
 *
 * sort_fallback.h
 *	  Falls back to PostgreSQL's tuplesort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_FALLBACK_H
#define GPUSORT_SORT_FALLBACK_H

#include "sort/sort_state.h"

/*
 * Begins a tuplesort, which gets all rows from now on.  EXPLAIN shows the reason.  The status is that of
 * the engine; OK: the keys are the reason.
 */
extern void gs_sort_begin_fallback(GsSortState *state, int memory_kb, GsStatus status, const char *reason);

/*
 * Begins a tuplesort as gs_sort_begin_fallback() does, and moves all rows so far to it, those of
 * runs too.  None may have been returned.  False: the engine failed and has lost them.
 */
extern bool gs_sort_fall_back(GsSortState *state, GsStatus status, const char *reason);

#endif							/* GPUSORT_SORT_FALLBACK_H */
