/*-------------------------------------------------------------------------
 *
 * sort_fallback.h
 *	  Gives a sort's rows up to PostgreSQL's tuplesort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_FALLBACK_H
#define GPUSORT_SORT_FALLBACK_H

#include "sort/sort_state.h"

/* Opens a tuplesort, which gets all rows from now on.  The reason is for people. */
extern void gs_sort_begin_fallback(GsSortState *state, int memory_kb, const char *reason);

/*
 * Moves the rows taken so far, the engine's and those of runs, to a tuplesort.  Nothing
 * may have been handed out.  False if the engine failed over it.
 */
extern bool gs_sort_fall_back(GsSortState *state, const char *reason);

#endif							/* GPUSORT_SORT_FALLBACK_H */
