/*-------------------------------------------------------------------------
 *
 * sort_failure.c
 *	  Reports that an engine has failed.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sort/sort_failure.h"

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

void
gs_sort_report_no_memory(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("out of memory"),
			 errdetail("Failed while allocating memory for a sort.")));
}
