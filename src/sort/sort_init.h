/*-------------------------------------------------------------------------
 *
 * sort_init.h
 *	  Makes and clears the state of a sort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_INIT_H
#define GPUSORT_SORT_INIT_H

#include "sort/sort_state.h"

/*
 * Makes a sort, IDLE, in zeroed memory.  The spec is copied; what it points to must live as long.
 */
extern void gs_sort_init(GsSortState *state, const GsSortSpec *spec);

/* Back to IDLE: frees what a sort holds, but for output.ties.  Callers use gs_sort_reset(). */
extern void gs_sort_clear(GsSortState *state);

#endif							/* GPUSORT_SORT_INIT_H */
