/*-------------------------------------------------------------------------
 *
 * store_device_choice.c
 *	  When a sort uses a device, and how its rows get there.
 *
 * A serial sort starts in the CPU engine (src/sort/README.md).  When it moves, its rows are copied
 * to the buffers that are shared with gpusortd, in input order, and the following rows are written
 * there directly.  A job that participants of a parallel plan share is on a device from the first
 * row on.
 *
 * store_space.c asks when a batch is full, and sort_parallel.c before the first row of a job.
 *
 * If anything fails before all rows are copied, the sort stays in the CPU engine, and EXPLAIN shows
 * the reason.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "client/gpu_client.h"
#include "guc.h"
#include "stats/stats.h"
#include "store/store_device_choice.h"

#include "miscadmin.h"

/* Device memory for a row in addition to the row and its record: sort and ties. */
#define DEVICE_ROW_BYTES	32

bool
gs_device_pays(uint64 nrows)
{
	return gpusort_engine != GS_ENGINE_CPU && nrows >= (uint64) gpusort_device_min_rows;
}

bool
gs_device_is_likely(double nrows)
{
	return gs_device_pays((uint64) Min(nrows, 1e18)) && gs_gpu_client_is_usable();
}

/* Copies the rows of a batch.  FULL or FAILED: see gs_engine_reserve(). */
static GsStatus
copy_batch(GsEngine *engine, const GsBatch *from)
{
	const GsKeyLayout *layout = engine->request.layout;
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

/* Can a device sort such a job? */
static bool
is_sortable(const GsEngineRequest *request, const char **why_not)
{
	if (request->compare == NULL)
		return true;
	*why_not = "ties require a comparison function";
	gs_stats_add(GS_STAT_REFUSALS_KEY, 1);
	return false;
}

/*
 * Returns the link if there is one and gpusort.engine permits its device; otherwise releases it,
 * and counts why not.
 */
static GsEngineLink *
permitted(GsEngineLink *link, const char **why_not)
{
	if (link != NULL && gs_gpu_client_accepts(&link->welcome, why_not))
		return link;
	if (link != NULL)
		link->release(link, true);
	gs_stats_add(gs_gpu_client_may_link() ? GS_STAT_REFUSALS_DEVICE : GS_STAT_REFUSALS_SESSION, 1);
	return NULL;
}

/* Connects to a device for a job of its own.  NULL and *why_not: there is none. */
static GsEngineLink *
open_link(const GsEngineRequest *request, MemoryContext context, const GsGpuOptions *options,
		  const char **why_not)
{
	return is_sortable(request, why_not) ?
		permitted(gs_gpu_client_link(context, options->expected_bytes, why_not), why_not) : NULL;
}

static GsGpuOptions
gpu_options(double expected_rows, double expected_bytes)
{
	return (GsGpuOptions)
	{
		.expected_bytes = (uint64) Min(expected_rows * (expected_bytes + DEVICE_ROW_BYTES), 1e15),
		.wait_ms = gpusort_device_wait,
		.algorithm = gpusort_algorithm
	};
}

/* Returns the engine if its status is OK; otherwise closes it and sets *why_not. */
static GsEngine *
engine_if_ok(GsEngine *engine, GsStatus status, const char **why_not)
{
	switch (status)
	{
		case GS_STATUS_OK:
			return engine;
		case GS_STATUS_FULL:
		case GS_STATUS_REFUSED:
			*why_not = pstrdup(engine->stats.full);
			gs_stats_add(GS_STAT_REFUSALS_MEMORY, 1);
			break;
		case GS_STATUS_OOM:
			*why_not = "out of memory";
			gs_stats_add(GS_STAT_REFUSALS_MEMORY, 1);
			break;
		case GS_STATUS_FAILED:
			gs_stats_add(GS_STAT_DEVICE_FAULTS, 1);
			*why_not = pstrdup(engine->stats.detail);
			break;
		case GS_STATUS_DISPROVED:
			elog(ERROR, "unexpected status of a sort engine: %d", (int) status);
	}
	if (engine != NULL)
		gs_engine_close(engine);
	return NULL;
}

GsEngine *
gs_device_move(GsEngine *cpu, MemoryContext context,
			   double expected_rows, double expected_bytes, bool may_leave_ties,
			   const char **why_not)
{
	GsEngineRequest request = cpu->request;
	GsGpuOptions options = gpu_options(expected_rows, expected_bytes);
	GsEngineLink *link;
	GsEngine   *engine;
	const GsBatch *batches;
	size_t		nbatches;
	GsStatus	status;

	if (may_leave_ties)
	{
		request.find_equal = request.compare != NULL;
		request.compare = NULL;
	}
	link = open_link(&request, context, &options, why_not);
	if (link == NULL)
		return NULL;
	status = gs_engine_gpu_open(&request, link, &options, &engine);
	batches = gs_engine_cpu_batches(cpu, &nbatches);
	for (size_t i = 0; i < nbatches && status == GS_STATUS_OK; i++)
		status = copy_batch(engine, &batches[i]);
	engine = engine_if_ok(engine, status, why_not);
	if (engine != NULL)
		gs_engine_close(cpu);
	return engine;
}

GsEngine *
gs_device_open_shared(const GsEngineRequest *request, MemoryContext context, uint32 participant,
					  double expected_rows, double expected_bytes, const char **why_not)
{
	GsGpuOptions options = gpu_options(expected_rows, expected_bytes);
	GsEngineLink *link = open_link(request, context, &options, why_not);
	GsEngine   *engine;
	GsStatus	status;

	if (link == NULL)
		return NULL;
	options.shared = true;
	options.participant = participant;
	status = gs_engine_gpu_open(request, link, &options, &engine);
	return engine_if_ok(engine, status, why_not);
}

GsEngine *
gs_device_join_shared(const GsEngineRequest *request, MemoryContext context, int device,
					  uint64 token,
					  uint32 participant, const char **why_not)
{
	GsEngineLink *link = NULL;
	GsEngine   *engine;
	GsStatus	status;

	if (is_sortable(request, why_not))
		link = permitted(gs_gpu_client_producer_link(context, device, why_not), why_not);
	if (link == NULL)
		return NULL;
	status = gs_engine_gpu_join(request, link, token, participant, &engine);
	return engine_if_ok(engine, status, why_not);
}

GsEngine *
gs_device_read_shared(const GsEngineRequest *request, MemoryContext context, int device,
					  uint64 token,
					  const char **why_not)
{
	GsEngineLink *link = gs_gpu_client_reader_link(context, device, why_not);
	GsEngine   *engine;
	GsStatus	status;

	if (link == NULL)
		return NULL;
	status = gs_engine_gpu_read(request, link, token, &engine);
	return engine_if_ok(engine, status, why_not);
}

void
gs_device_close(GsEngine *engine)
{
	gs_stats_add(GS_STAT_BYTES_SENT, engine->stats.bytes_up);
	gs_stats_add(GS_STAT_BYTES_RECEIVED, engine->stats.bytes_down);
	gs_engine_close(engine);
}
