/*-------------------------------------------------------------------------
 *
 * sort_init.c
 *	  Makes and clears the state of a sort.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sort/sort_init.h"
#include "sort/sort_stats.h"
#include "sort_parts/sort_device.h"

#include "utils/memutils.h"

void
gs_sort_init(GsSortState *state, const GsSortSpec *spec)
{
	state->spec = *spec;
}

void
gs_sort_clear(GsSortState *state)
{
	GsSortInput *input = &state->input;

	ExecClearTuple(state->spec.slot);
	gs_sort_stats_end(state);
	if (state->phase == GS_SORT_FALLBACK)
		gs_tuplesort_end(&input->fallback);	/* may own files */
	if (input->runs != NULL)
		gs_run_set_close(input->runs);	/* owns files */
	if (input->engine != NULL)
		gs_device_close(input->engine);	/* may own a connection */
	if (state->participants.reader != NULL)
		gs_device_close(state->participants.reader);	/* may own a connection */
	if (input->few != NULL)
		gs_few_clear(input->few);
	if (state->context != NULL)
		MemoryContextReset(state->context);
	*input = (GsSortInput) {.few = input->few};
	state->output = (GsSortOutput) {0};
	state->participants.reader = NULL;
	state->participants.role = GS_ROLE_SERIAL;
	state->participants.of_streams = GS_ROLE_SERIAL;
	state->participants.sends = false;
	state->phase = GS_SORT_IDLE;
}
