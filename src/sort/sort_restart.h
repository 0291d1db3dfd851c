/*-------------------------------------------------------------------------
 *
 * sort_restart.h
 *	  Prepares a sort to read its rows again after the device failed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_RESTART_H
#define GPUSORT_SORT_RESTART_H

#include "sort/sort_state.h"

/*
 * Resets the sort and rescans spec.child; returns why the device failed, in spec.parent_context.
 * Raises the engine's ERROR if the child cannot run again.
 */
extern const char *gs_sort_restart(GsSortState *state);

#endif							/* GPUSORT_SORT_RESTART_H */
