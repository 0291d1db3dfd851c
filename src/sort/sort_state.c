/*-------------------------------------------------------------------------
 *
 * sort_state.c
 *	  The state of a sort: how it is made, reset and, if its engine failed, reported.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sort/sort_state.h"
#include "sort/sort_stats.h"
#include "sort/sort_ties.h"

#include "utils/memutils.h"

void
gs_sort_init(GsSortState *state, const GsSortSpec *spec)
{
	state->spec = *spec;
}

void
gs_sort_reset(GsSortState *state)
{
	GsSortInput *input = &state->input;

	ExecClearTuple(state->spec.slot);
	gs_sort_stats_end(state);
	if (state->output.ties != NULL)
		gs_sort_ties_end(state);	/* may own files */
	if (state->phase == GS_SORT_FALLBACK)
		gs_tuplesort_end(&input->fallback);	/* may own files */
	if (input->runs != NULL)
		gs_run_set_close(input->runs);	/* owns files */
	if (input->engine != NULL)
		gs_sort_close_engine(input->engine);	/* may own a connection */
	if (state->participants.reader != NULL)
		gs_sort_close_engine(state->participants.reader);	/* may own a connection */
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

void
gs_sort_report_failure(const GsSortState *state)
{
	const GsEngineStats *stats = gs_engine_stats(state->input.engine);

	gs_stats_add(GS_STAT_DEVICE_FAULTS, 1);
	ereport(ERROR,
			(errcode(ERRCODE_SYSTEM_ERROR),
			 errmsg("sort engine \"%s\" failed", stats->engine),
			 errdetail_internal("%s", stats->detail),
			 errhint("Run the query again, or set gpusort.engine to \"cpu\" to sort without a device.")));
}

void
gs_sort_log_failure(const GsSortState *state)
{
	const GsEngineStats *stats = gs_engine_stats(state->input.engine);

	gs_stats_add(GS_STAT_DEVICE_FAULTS, 1);
	ereport(LOG,
			(errmsg("sort engine \"%s\" failed, sorting again without it", stats->engine),
			 errdetail_internal("%s", stats->detail)));
}
