/*-------------------------------------------------------------------------
 *
 * sort_state.c
 *	  Makes and clears the state of a sort.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sort/sort.h"
#include "sort/sort_stats.h"
#include "store/store_device.h"

void
gs_sort_init(GsSortState *state, const GsSortSpec *spec)
{
	state->spec = *spec;
}

void
gs_sort_clear(GsSortState *state)
{
	ExecClearTuple(state->spec.slot);
	gs_sort_stats_end(state);
	/* its memory, and perhaps a connection, are the store's context's */
	if (state->participants.reader != NULL)
		gs_device_close(state->participants.reader);
	gs_store_clear(&state->store);
	state->input = (GsSortInput) {0};
	state->output = (GsSortOutput) {0};
	state->participants.reader = NULL;
	state->participants.role = GS_ROLE_SERIAL;
	state->participants.of_streams = GS_ROLE_SERIAL;
	state->participants.sends = false;
}
