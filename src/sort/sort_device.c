/*-------------------------------------------------------------------------
 *
 * sort_device.c
 *	  Which engine sorts the rows: the CPU's at first, then perhaps a device's.
 *
 * Every sort starts on the CPU engine, so that one whose size was estimated
 * wrong never waits for a device.  Past
 * gpusort.device_min_rows, or when memory is at its end, the rows move: a copy
 * of what there is by then, in input order, and all further rows go straight
 * to the device's ring.
 *
 * A job that several processes feed is a device's from the first row on.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sort/sort_device.h"
#include "guc.h"
#include "client/gpu_client.h"

#include "miscadmin.h"

/* Device memory that a row takes beside itself and its record: engine and ties. */
#define DEVICE_ROW_BYTES	32

bool
gs_device_pays(uint64 nrows)
{
	return gpusort_engine != GS_ENGINE_CPU && nrows >= (uint64) gpusort_device_min_rows;
}

bool
gs_device_is_likely(double nrows)
{
	const char *why_not;

	return gs_device_pays((uint64) Min(nrows, 1e18)) && gs_gpu_client_is_usable(&why_not);
}

/* Copies a batch's rows.  FULL or FAILED as reserve. */
static GsStatus
copy_batch(GsEngine *engine, const GsBatch *from)
{
	const GsKeyLayout *layout = engine->job.layout;
	GsBatch    *batch = NULL;

	CHECK_FOR_INTERRUPTS();
	for (size_t entry = 0; entry < from->nrows; entry++)
	{
		size_t		row_bytes = gs_batch_row_bytes(from, layout, entry);

		if (batch == NULL || !gs_engine_has_space(batch, row_bytes))
		{
			GsStatus	status = gs_engine_reserve(engine, row_bytes, &batch);

			if (status != GS_STATUS_OK)
				return status;
		}
		gs_batch_push_copy(batch, from, layout, entry, row_bytes);
	}
	return GS_STATUS_OK;
}

/*
 * A link to a device that gpusort.engine would have sort such a job; NULL, and
 * why_not, if there is none.
 */
static GsEngineLink *
open_link(const GsJob *job, MemoryContext context, GsLinkUse use, const char **why_not)
{
	GsEngineLink *link;

	if (job->compare != NULL)
	{
		*why_not = "ties require a comparison function";
		return NULL;
	}
	link = gs_gpu_client_link(context, use, why_not);
	if (link != NULL && !gs_gpu_client_accepts(&link->welcome, why_not))
	{
		link->release(link, true);
		return NULL;
	}
	return link;
}

static GsGpuOptions
service_options(double expected_rows, double expected_bytes)
{
	GsGpuOptions options = {
		.wait_ms = gpusort_device_wait,.algorithm = gpusort_algorithm,
		.session_bytes = (uint64) gpusort_device_session_memory << 20
	};

	options.expected_bytes = (uint64) Min(expected_rows * (expected_bytes + DEVICE_ROW_BYTES), 1e15);
	return options;
}

/* The engine, if all is well with it; else closes it, and says why. */
static GsEngine *
engine_if_ok(GsEngine *engine, GsStatus status, const char **why_not)
{
	if (status == GS_STATUS_OK)
		return engine;
	if (status == GS_STATUS_FULL)
		*why_not = pstrdup(engine->stats.full);
	else
		*why_not = engine != NULL && engine->stats.detail != NULL ?
			pstrdup(engine->stats.detail) : "out of memory";
	if (engine != NULL)
		gs_engine_close(engine);
	return NULL;
}

GsEngine *
gs_device_move(GsEngine *cpu, MemoryContext context,
						 double expected_rows, double expected_bytes,
						 const char **why_not)
{
	GsGpuOptions options = service_options(expected_rows, expected_bytes);
	GsEngineLink *link = open_link(&cpu->job, context, GS_LINK_SORT, why_not);
	GsEngine   *engine;
	const GsBatch *batches;
	size_t		nbatches;
	GsStatus	status;

	if (link == NULL)
		return NULL;
	status = gs_engine_gpu_open(&cpu->job, link, &options, &engine);
	batches = gs_engine_cpu_batches(cpu, &nbatches);
	for (size_t i = 0; i < nbatches && status == GS_STATUS_OK; i++)
		status = copy_batch(engine, &batches[i]);
	engine = engine_if_ok(engine, status, why_not);
	if (engine != NULL)
		gs_engine_close(cpu);
	return engine;
}

GsEngine *
gs_device_open_shared(const GsJob *job, MemoryContext context, uint32 participant,
					  double expected_rows, double expected_bytes, const char **why_not)
{
	GsGpuOptions options = service_options(expected_rows, expected_bytes);
	GsEngineLink *link = open_link(job, context, GS_LINK_SORT, why_not);
	GsEngine   *engine;
	GsStatus	status;

	if (link == NULL)
		return NULL;
	options.shared = true;
	options.participant = participant;
	status = gs_engine_gpu_open(job, link, &options, &engine);
	return engine_if_ok(engine, status, why_not);
}

GsEngine *
gs_device_join_shared(const GsJob *job, MemoryContext context, uint64 token,
					  uint32 participant, const char **why_not)
{
	GsEngineLink *link = open_link(job, context, GS_LINK_PRODUCER, why_not);
	GsEngine   *engine;
	GsStatus	status;

	if (link == NULL)
		return NULL;
	status = gs_engine_gpu_join(job, link, token, participant, &engine);
	return engine_if_ok(engine, status, why_not);
}
