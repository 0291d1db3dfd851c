/*-------------------------------------------------------------------------
 *
 * sort_failure.c
 *	  What a sort does if a device or gpusortd fails.
 *
 * Rows that were sent to a device are lost.  As long as none has been returned, the child can run
 * again and the CPU engine sort (gs_sort_read_input() of sort_input.c).  A caller that adds the
 * rows itself does likewise.  After that, store_fetch.c raises an ERROR.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sort/sort_failure.h"
#include "sort/sort_parallel.h"

#include "utils/memutils.h"

const char *
gs_sort_accept_failure(GsSortState *state)
{
	gs_sort_parallel_wait_for_error(state);
	if (!state->spec.repeatable)
		gs_store_report_failure(&state->store);
	gs_store_log_failure(&state->store);
	return MemoryContextStrdup(state->spec.parent_context, state->store.engine->stats.detail);
}

void
gs_sort_abandon(GsSortState *state)
{
	const bool	is_producer = state->participants.role == GS_ROLE_PRODUCER;

	gs_sort_parallel_leave(state);
	if (!is_producer)
		gs_store_log_failure(&state->store); /* the consumer logs it for all producers */
}
