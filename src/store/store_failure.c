/*-------------------------------------------------------------------------
 *
 * store_failure.c
 *	  Reports that an engine has failed.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "store/store_failure.h"

void
gs_store_report_failure(const GsStore *store)
{
	const GsEngineStats *stats = gs_engine_stats(store->engine);

	gs_stats_add(GS_STAT_DEVICE_FAULTS, 1);
	ereport(ERROR,
			(errcode(ERRCODE_SYSTEM_ERROR),
			 errmsg("sort engine \"%s\" failed", stats->engine),
			 errdetail_internal("%s", stats->detail),
			 errhint("Run the query again, or set gpusort.engine to \"cpu\" to sort without a device.")));
}

void
gs_store_log_failure(const GsStore *store)
{
	const GsEngineStats *stats = gs_engine_stats(store->engine);

	gs_stats_add(GS_STAT_DEVICE_FAULTS, 1);
	ereport(LOG,
			(errmsg("sort engine \"%s\" failed, sorting again without it", stats->engine),
			 errdetail_internal("%s", stats->detail)));
}

void
gs_store_report_no_memory(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("out of memory"),
			 errdetail("Failed while allocating memory for a sort.")));
}
