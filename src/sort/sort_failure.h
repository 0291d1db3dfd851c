/*-------------------------------------------------------------------------
 *
 * sort_failure.h
 *	  What a sort does if a device or gpusortd fails.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_FAILURE_H
#define GPUSORT_SORT_FAILURE_H

#include "sort/sort_state.h"

/* Did a call of the engine return GS_STATUS_FAILED? */
static inline bool
gs_sort_has_failed(const GsSortState *state)
{
	return state->store.engine->stats.detail != NULL;
}

/*
 * Before a row was returned, where the child can run again: logs the failure.  Returns why the
 * device failed, in spec.parent_context.  Raises the engine's ERROR if a second run of the child
 * could be noticed.
 */
extern const char *gs_sort_accept_failure(GsSortState *state);

/*
 * Where the caller has to read its rows to the end: leaves a job that is shared, and logs the
 * failure.  The caller must not add more rows.
 */
extern void gs_sort_abandon(GsSortState *state);

#endif							/* GPUSORT_SORT_FAILURE_H */
