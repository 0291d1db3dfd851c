/*-------------------------------------------------------------------------
 *
 * engine_gpu.c
 *	  The GPU engine: rows are sorted by gpusortd, through a link.
 *
 * Rows are written to a batch in a shared buffer, and sorted rows return the same way (README.md).
 * A producer uses the first half of this engine: it sends rows to the job of
 * another process, and returns only batches that the device did not take.  A
 * reader uses the second half: it gets sorted rows of such a job.
 *
 *-------------------------------------------------------------------------
 */
#include "engine/engine.h"

#include <limits.h>
#include <string.h>

#include "common/basics.h"
#include "engine/engine_gpu_internal.h"

/* Timeout for answers, in addition to the time that a job may wait. */
#define ANSWER_MS	2000

/* --------------------------------------------------------------------- input */

static char *
buffer_start(const GpuEngine *engine, uint32_t buffer)
{
	return engine->link->buffer_pool + (size_t) buffer * engine->link->buffer_bytes;
}

/* Adds the open batch to those in filled buffers, which gpusortd may not have taken. */
static void
keep_batch(GpuEngine *engine)
{
	engine->batch_open = false;
	engine->filled.buffers[engine->filled.nbuffers++] = engine->batch_buffer;
	engine->filled_batches[engine->batch_buffer] = engine->batch;
}

/* Sends the open batch, unless it is empty. */
static GsStatus
send_batch(GpuEngine *engine)
{
	const uint32_t buffer = engine->batch_buffer;
	const GsBatch *batch = &engine->batch;
	GsBatchFilled filled = {
		.buffer = buffer,
		.nrows = (uint32_t) batch->nrows,
		.rows_bytes = (uint32_t) (batch->rows_end - batch->base)
	};

	if (!engine->batch_open)
		return GS_STATUS_OK;
	if (batch->nrows == 0)
	{
		engine->batch_open = false;
		engine->free_buffers |= UINT64_C(1) << buffer;
		return GS_STATUS_OK;
	}
	engine->has_input = true;
	keep_batch(engine);
	engine->nrows += batch->nrows;
	engine->base.stats.bytes_up += filled.rows_bytes + batch->nrows * engine->record_bytes;
	return gs_gpu_send(engine, &filled.message, GS_MESSAGE_BATCH_FILLED, sizeof(filled));
}

/*
 * Is there a buffer to fill?  One is left free, through which the input can be
 * returned, except in a producer.
 */
static bool
can_fill(const GpuEngine *engine)
{
	if (engine->is_producer)
		return engine->free_buffers != 0;
	return (engine->free_buffers & (engine->free_buffers - 1)) != 0;
}

/* Begins a batch in the lowest free buffer; waits if there is none. */
static GsStatus
begin_batch(GpuEngine *engine)
{
	GsStatus	status;
	GsAnyMessage message;

	do
		status = gs_gpu_receive(engine, !can_fill(engine), &message);
	while (status == GS_STATUS_OK && (message.message.type != 0 || !can_fill(engine)));
	if (status != GS_STATUS_OK)
		return status;
	engine->batch_buffer = (uint32_t) __builtin_ctzll(engine->free_buffers);
	engine->free_buffers &= engine->free_buffers - 1;
	engine->batch_open = true;
	gs_batch_init(&engine->batch, buffer_start(engine, engine->batch_buffer),
				  engine->link->buffer_bytes, engine->record_bytes);
	return GS_STATUS_OK;
}

static GsStatus
gpu_reserve(GsEngine *base, size_t row_bytes, GsBatch **batch)
{
	GpuEngine  *engine = (GpuEngine *) base;
	GsStatus	status;

	if (engine->memory_failed)
		return GS_STATUS_FULL;
	if (row_bytes > GS_MAX_ROW_BYTES(engine->link->buffer_bytes))
		return gs_gpu_full(engine, "a row is too long for the device");
	if (engine->nrows + engine->batch.nrows >= GS_MAX_JOB_ROWS)
		return gs_gpu_full(engine, "the sort has too many rows for the device");
	if (!engine->batch_open || !gs_batch_has_space(&engine->batch, row_bytes))
	{
		status = send_batch(engine);
		if (status == GS_STATUS_OK)
			status = begin_batch(engine);
		if (status != GS_STATUS_OK)
			return status;
	}
	*batch = &engine->batch;
	return GS_STATUS_OK;
}

/* -------------------------------------------------------------- end of input */

/* Number of rows in buffers that were filled and not freed. */
static uint64_t
count_filled_rows(const GpuEngine *engine)
{
	uint64_t	nrows = 0;

	for (uint32_t i = 0; i < engine->filled.nbuffers; i++)
		nrows += engine->filled_batches[engine->filled.buffers[i]].nrows;
	return nrows;
}

/*
 * Ends the open batch: sends it, or, if the device is out of memory, adds it to
 * those that gpusortd did not take.
 */
static GsStatus
end_batches(GpuEngine *engine)
{
	if (!engine->memory_failed)
		return send_batch(engine);
	if (engine->batch_open)
	{
		engine->nrows += engine->batch.nrows;
		keep_batch(engine);
	}
	return GS_STATUS_OK;
}

/* Are the rows on the device and in buffers all the rows? */
static bool
rows_are_complete(const GpuEngine *engine, uint64_t ntaken)
{
	return ntaken + count_filled_rows(engine) == engine->nrows + engine->nrows_of_producers;
}

GsStatus
gs_engine_end_producer(GsEngine *base, uint64_t *nrows)
{
	GpuEngine  *engine = (GpuEngine *) base;
	GsProducerEnd end = {.partial = engine->memory_failed};
	GsAnyMessage message;
	GsStatus	status = end_batches(engine);

	*nrows = 0;
	if (status == GS_STATUS_OK)
		status = gs_gpu_send(engine, &end.message, GS_MESSAGE_PRODUCER_END, sizeof(end));
	if (status == GS_STATUS_OK)
		status = gs_gpu_wait_for_message(engine, GS_MESSAGE_PRODUCER_DONE, &message);
	if (status != GS_STATUS_OK)
		return status;
	if (!rows_are_complete(engine, message.producer_done.nrows))
		return gs_gpu_fail(engine, "gpusortd reported an unexpected number of rows");
	engine->phase = GPU_PRODUCED;
	base->stats.nrows = message.producer_done.nrows;
	*nrows = message.producer_done.nrows;
	return GS_STATUS_OK;
}

void
gs_engine_gpu_expect(GsEngine *consumer, uint64_t nrows_of_producers)
{
	((GpuEngine *) consumer)->nrows_of_producers = nrows_of_producers;
}

/* ---------------------------------------------------------------------- sort */

/* Releases all free buffers to gpusortd. */
static GsStatus
release_free_buffers(GpuEngine *engine)
{
	while (engine->free_buffers != 0)
	{
		uint32_t	buffer = (uint32_t) __builtin_ctzll(engine->free_buffers);
		GsStatus	status = gs_gpu_send_buffer(engine, GS_MESSAGE_BATCH_RELEASED, buffer);

		if (status != GS_STATUS_OK)
			return status;
		engine->free_buffers &= engine->free_buffers - 1;
	}
	return GS_STATUS_OK;
}

static void
save_stats(GsEngineStats *stats, const GsSorted *sorted)
{
	stats->nrows = sorted->nrows;
	stats->method = sorted->algorithm == GS_ALGORITHM_MERGE ?
		GS_METHOD_WARP_MERGE : GS_METHOD_RADIX;
	stats->key_bits = (int) sorted->key_bits;
	stats->key_tails = sorted->key_tails != 0;
	stats->passes = (int) sorted->passes;
	stats->tied_rows = sorted->tied_rows;
	stats->all_differ = sorted->all_differ != 0;
	stats->device_bytes = sorted->device_bytes;
	stats->upload_us = sorted->upload_us;
	stats->sort_us = sorted->sort_us;
}

/*
 * The columns that a device sorts by: not one without a field, which only the caller can compare.
 */
static GsKeyLayout
layout_of_fields(const GsKeyLayout *layout)
{
	GsKeyLayout with_fields = *layout;

	while (with_fields.ncolumns > 0 && with_fields.columns[with_fields.ncolumns - 1].nfields == 0)
		with_fields.ncolumns--;
	with_fields.ndecisive = Min(with_fields.ndecisive, with_fields.ncolumns);
	return with_fields;
}

static GsStatus
gpu_sort(GsEngine *base)
{
	GpuEngine  *engine = (GpuEngine *) base;
	GsSortRequest sort = {
		.algorithm = (uint32_t) engine->algorithm,.partial = engine->memory_failed,
		.find_equal = base->request.find_equal
	};
	GsAnyMessage message;
	GsStatus	status = end_batches(engine);

	if (status == GS_STATUS_OK)
	{
		sort.layout = layout_of_fields(base->request.layout);
		status = gs_gpu_send(engine, &sort.message, GS_MESSAGE_SORT, sizeof(sort));
	}
	if (status == GS_STATUS_OK)
		status = gs_gpu_wait_for_message(engine, GS_MESSAGE_SORTED, &message);
	if (status != GS_STATUS_OK)
		return status;
	if (!rows_are_complete(engine, message.sorted.nrows))
		return gs_gpu_fail(engine, "gpusortd reported an unexpected number of rows");
	save_stats(&base->stats, &message.sorted);
	engine->phase = GPU_SORTED;
	return release_free_buffers(engine);
}

GsStatus
gs_engine_gpu_begin_reading(GsEngine *base, uint64_t nrows)
{
	GpuEngine  *engine = (GpuEngine *) base;

	if (engine->phase == GPU_CLOSED)
		return GS_STATUS_FAILED;
	base->stats.nrows = nrows;
	engine->phase = GPU_SORTED;
	return release_free_buffers(engine);
}

/* -------------------------------------------------------------------- output */

/* Releases the first of the ready batches. */
static GsStatus
release_first_batch(GpuEngine *engine)
{
	uint32_t	buffer = engine->ready[0].buffer;
	bool		has_buffer = engine->ready[0].nrows > 0;

	engine->nready--;
	memmove(&engine->ready[0], &engine->ready[1], sizeof(engine->ready[0]) * engine->nready);
	return has_buffer ? gs_gpu_send_buffer(engine, GS_MESSAGE_BATCH_RELEASED, buffer) :
		GS_STATUS_OK;
}

/* Releases all ready batches and requests the rows from a position on. */
static GsStatus
request_rows(GpuEngine *engine, uint64_t position)
{
	GsFetch		fetch = {.position = position};
	GsStatus	status = GS_STATUS_OK;

	while (engine->nready > 0 && status == GS_STATUS_OK)
		status = release_first_batch(engine);
	if (status != GS_STATUS_OK)
		return status;
	fetch.stream = ++engine->stream;
	return gs_gpu_send(engine, &fetch.message, GS_MESSAGE_FETCH, sizeof(fetch));
}

static bool
has_position(const GsBatchReady *ready, uint64_t position)
{
	return position >= ready->position && position < ready->position + ready->nrows;
}

/* Makes the batch with the position the first ready one. */
static GsStatus
seek(GpuEngine *engine, uint64_t position)
{
	GsStatus	status = GS_STATUS_OK;
	GsAnyMessage message;
	uint64_t	start;

	if (engine->nready > 0 && has_position(&engine->ready[0], position))
		return GS_STATUS_OK;

	/* usually it is in the next batch; otherwise, a new FETCH is necessary */
	if (engine->stream > 0 && engine->nready > 0 &&
		position == engine->ready[0].position + engine->ready[0].nrows)
		status = release_first_batch(engine);
	else
		status = request_rows(engine, position);
	start = gs_clock_us();
	while (status == GS_STATUS_OK && engine->nready == 0)
		status = gs_gpu_receive(engine, true, &message);
	engine->base.stats.stream_us += gs_clock_us() - start;
	if (status == GS_STATUS_OK && !has_position(&engine->ready[0], position))
		status = gs_gpu_fail(engine, "gpusortd sent other rows than requested");
	return status;
}

static GsStatus
gpu_fetch(GsEngine *base, uint64_t position, size_t nrows,
		  const void **rows, const uint64_t **records, size_t *fetched)
{
	GpuEngine  *engine = (GpuEngine *) base;
	const GsBatchReady *ready = &engine->ready[0];
	const char *start;
	const uint32_t *offsets;
	size_t		first;
	size_t		n;
	GsStatus	status;

	*fetched = 0;
	if (position >= base->stats.nrows || nrows == 0)
		return GS_STATUS_OK;
	status = seek(engine, position);
	if (status != GS_STATUS_OK)
		return status;

	first = (size_t) (position - ready->position);
	n = Min(ready->nrows - first, nrows);
	start = buffer_start(engine, ready->buffer);
	if (base->request.layout->keys_only)
	{
		for (size_t i = 0; i < n; i++)
			rows[i] = (const uint64_t *) start + first + i;
	}
	else
	{
		offsets = (const uint32_t *) (start + engine->link->buffer_bytes) - 1 - first;
		for (size_t i = 0; i < n; i++)
		{
			size_t		offset = (size_t) *offsets-- * GS_ROW_ALIGN;

			if (offset >= ready->rows_bytes)
				return gs_gpu_fail(engine, "gpusortd sent an invalid row offset");
			rows[i] = start + offset;
		}
	}
	for (size_t i = 0; i < n && records != NULL; i++)
		records[i] = base->request.layout->keys_only ? rows[i] : NULL;
	*fetched = n;
	return GS_STATUS_OK;
}

/* -------------------------------------------------------------- return of input */

static GsStatus
gpu_return_input(GsEngine *base)
{
	GpuEngine  *engine = (GpuEngine *) base;
	GsStatus	status = GS_STATUS_OK;

	/* the open batch is returned last */
	if (engine->phase == GPU_CLOSED)
		return GS_STATUS_FAILED;
	if (engine->batch_open)
		keep_batch(engine);
	engine->phase = GPU_RETURNING;
	status = release_free_buffers(engine);
	if (status == GS_STATUS_OK)
		status = gs_gpu_send_plain(engine, GS_MESSAGE_RETURN_INPUT);
	return status;
}

static GsStatus
gpu_next_batch(GsEngine *base, const GsBatch **batch)
{
	GpuEngine  *engine = (GpuEngine *) base;
	GsAnyMessage message;
	GsStatus	status = GS_STATUS_OK;

	*batch = NULL;
	if (engine->phase == GPU_RETURNING)
	{
		if (engine->batch_open)
			status = release_first_batch(engine);
		engine->batch_open = false;
		while (status == GS_STATUS_OK && engine->nready == 0)
		{
			status = gs_gpu_receive(engine, true, &message);

			/* an upload in progress has finished */
			if (status == GS_STATUS_OK && message.message.type == GS_MESSAGE_BATCH_FREE)
				status = release_free_buffers(engine);
		}
		if (status != GS_STATUS_OK)
			return status;
		if (engine->ready[0].nrows > 0)
		{
			const GsBatchReady *ready = &engine->ready[0];

			gs_batch_init(&engine->batch, buffer_start(engine, ready->buffer),
						  engine->link->buffer_bytes, engine->record_bytes);
			engine->batch.rows_end += ready->rows_bytes;
			engine->batch.records -= ready->nrows * engine->record_bytes;
			engine->batch.nrows = ready->nrows;
			engine->batch_open = true;
			*batch = &engine->batch;
			return GS_STATUS_OK;
		}
		engine->phase = GPU_RETURNED;
	}
	if (engine->phase != GPU_RETURNED && engine->phase != GPU_SORTED &&
		engine->phase != GPU_PRODUCED)
		return GS_STATUS_FAILED;

	/* batches that gpusortd did not take */
	if (engine->filled.nbuffers > 0)
	{
		uint32_t	buffer = engine->filled.buffers[0];

		engine->filled.nbuffers--;
		memmove(&engine->filled.buffers[0], &engine->filled.buffers[1],
				sizeof(engine->filled.buffers[0]) * engine->filled.nbuffers);
		*batch = &engine->filled_batches[buffer];
	}
	return GS_STATUS_OK;
}

static void
gpu_close(GsEngine *base)
{
	GpuEngine  *engine = (GpuEngine *) base;
	GsRuntime	runtime = base->request.runtime;
	bool		is_done_producer = engine->phase == GPU_PRODUCED;

	/* if a job ends in the middle, more messages than those of buffers may arrive */
	bool		reusable = is_done_producer || engine->phase == GPU_SORTED ||
		engine->phase == GPU_RETURNED || !engine->has_input;

	if (engine->phase != GPU_CLOSED &&
		(is_done_producer || gs_gpu_send_plain(engine, GS_MESSAGE_JOB_CLOSE) == GS_STATUS_OK))
		engine->link->release(engine->link, reusable);
	runtime.release(runtime.arg, engine, sizeof(GpuEngine));
}

/* ---------------------------------------------------------------------- open */

static const GsEngineOps gpu_ops = {
	.reserve = gpu_reserve,
	.sort = gpu_sort,
	.fetch = gpu_fetch,
	.return_input = gpu_return_input,
	.next_batch = gpu_next_batch,
	.close = gpu_close
};

/*
 * Waits for JOB_READY.  Messages of the previous job, about its buffers, may still
 * arrive and are ignored.  REFUSED: there is no job, or none to join, and the link can be used
 * again.
 */
static GsStatus
wait_until_ready(GpuEngine *engine, int timeout_ms)
{
	GsAnyMessage message;

	do
	{
		if (!engine->link->receive(engine->link, timeout_ms, &message))
			return gs_gpu_fail(engine, "gpusortd closed the connection");
		if (message.message.type == 0)
			return gs_gpu_fail(engine, "gpusortd does not answer");
		if (message.message.type == GS_MESSAGE_FAILED)
		{
			message.failed.text[sizeof(message.failed.text) - 1] = '\0';
			if (message.failed.failure != GS_FAILED_JOB &&
				message.failed.failure != GS_FAILED_MEMORY)
				return gs_gpu_fail(engine, message.failed.text);
			engine->base.stats.full = gs_gpu_save_text(engine, message.failed.text);
			return GS_STATUS_REFUSED;
		}
	} while (message.message.type != GS_MESSAGE_JOB_READY);
	engine->token = message.job_ready.token;
	return GS_STATUS_OK;
}

/*
 * Opens an engine by a message that asks for a job, whose answer may take so long.  OOM: *result is
 * NULL, and the link is released.
 */
static GsStatus
open_engine(const GsEngineRequest *request, GsEngineLink *link, GsMessage *message,
			GsMessageType type, size_t nbytes, int timeout_ms, GsEngine **result)
{
	GpuEngine  *engine = request->runtime.allocate(request->runtime.arg, sizeof(GpuEngine));
	GsStatus	status;

	*result = (GsEngine *) engine;
	if (engine == NULL)
	{
		link->release(link, true);
		return GS_STATUS_OOM;
	}
	memset(engine, 0, sizeof(*engine));
	engine->base.ops = &gpu_ops;
	engine->base.on_device = true;
	engine->base.request = *request;
	engine->base.stats.engine = "cuda";
	engine->base.stats.device = link->welcome.device_name;
	engine->base.stats.devices = link->has_choice ? GS_DEVICE_BIT(link->device) : 0;
	engine->base.stats.peak_bytes = (size_t) link->buffer_bytes * link->nbuffers;
	engine->link = link;
	engine->record_bytes = gs_record_bytes(request->layout);
	engine->free_buffers = UINT64_MAX >> (64 - link->nbuffers);
	status = gs_gpu_send(engine, message, type, nbytes);
	return status == GS_STATUS_OK ? wait_until_ready(engine, timeout_ms) : status;
}

GsStatus
gs_engine_gpu_open(const GsEngineRequest *request, GsEngineLink *link,
				   const GsGpuOptions *options, GsEngine **result)
{
	GsJobOpen	open = {
		.nwords = (uint32_t) request->layout->nwords,
		.keys_only = request->layout->keys_only,
		.expected_bytes = options->expected_bytes,
		.wait_ms = options->wait_ms,
		.shared = options->shared,
		.participant = options->participant
	};
	int			timeout_ms = (int) Min(options->wait_ms, INT_MAX - ANSWER_MS) + ANSWER_MS;
	GsStatus	status = open_engine(request, link, &open.message, GS_MESSAGE_JOB_OPEN,
									 sizeof(open), timeout_ms, result);

	if (*result != NULL)
		((GpuEngine *) *result)->algorithm = options->algorithm;
	return status;
}

int
gs_engine_gpu_device(const GsEngine *base)
{
	return ((const GpuEngine *) base)->link->device;
}

uint64_t
gs_engine_gpu_token(const GsEngine *base)
{
	return ((const GpuEngine *) base)->token;
}

/*
 * Opens an engine for the job of another one, by JOB_JOIN or JOB_READ.  Waits without a timeout,
 * because gpusortd does not answer while a call of the device blocks it, such as a sort by the
 * host's processor.  If a producer left, gpusortd would later add it to the job, which would then
 * fail.
 */
static GsStatus
open_other(const GsEngineRequest *request, GsEngineLink *link, GsMessageType type, uint64_t token,
		   uint32_t participant, GsEngine **result)
{
	GsJobJoin	join = {
		.token = token,
		.nwords = (uint32_t) request->layout->nwords,
		.keys_only = request->layout->keys_only,
		.participant = participant
	};

	return open_engine(request, link, &join.message, type, sizeof(join), -1, result);
}

GsStatus
gs_engine_gpu_join(const GsEngineRequest *request, GsEngineLink *link, uint64_t token,
				   uint32_t participant, GsEngine **result)
{
	GsStatus	status = open_other(request, link, GS_MESSAGE_JOB_JOIN, token, participant, result);
	GpuEngine  *engine = (GpuEngine *) *result;

	if (engine != NULL)
		engine->is_producer = true;
	if (status == GS_STATUS_OK)
		engine->has_input = true;
	return status;
}

GsStatus
gs_engine_gpu_read(const GsEngineRequest *request, GsEngineLink *link, uint64_t token,
				   GsEngine **result)
{
	return open_other(request, link, GS_MESSAGE_JOB_READ, token, 0, result);
}
