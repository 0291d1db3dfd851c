/*-------------------------------------------------------------------------
 *
 * engine_gpu.c
 *	  The engine at the other end of a link: rows are sorted by gpusortd.
 *
 * A batch is written straight into a slot of the ring, sent off by a message
 * when it is full, and the next slot is begun.  The device reads it from there.
 * Sorted rows come back the same way, whole batches in order, ahead of the
 * driver as far as there are slots.  So each side copies a row once, and the
 * ring stays in the processor's cache: the lowest free slot is always taken.
 *
 * Nothing of the rows stays here.  Memory on this side is the ring, however
 * many rows there are.
 *
 * A feeder is the first half of this engine: it loads somebody else's job, and
 * has nothing to hand out but what the device did not take.
 *
 *-------------------------------------------------------------------------
 */
#include "engine/engine.h"

#include <limits.h>
#include <string.h>
#include <time.h>

#include "common/protocol.h"
#include "engine/engine_link.h"

/* How long the service may take to answer, beside what it was told to wait. */
#define ANSWER_MS	2000

#define Min(a, b)	((a) < (b) ? (a) : (b))

typedef enum ServicePhase
{
	GPU_INPUT,
	GPU_SORTED,
	GPU_RETURNING,			/* batches come back from the service */
	GPU_RETURNED,			/* those that it did not take follow */
	GPU_PRODUCED,				/* a feeder's end: the same */
	SERVICE_CLOSED				/* the link is gone */
} ServicePhase;

/* Slots in the order in which something happened to them. */
typedef struct BufferQueue
{
	uint32_t	nbuffers;
	uint32_t	buffers[GS_MAX_BUFFERS];
} BufferQueue;

typedef struct GpuEngine
{
	GsEngine	base;
	GsEngineLink *link;
	int			algorithm;
	uint64_t	token;			/* of a shared job that is its own */
	bool		is_producer;
	ServicePhase phase;
	size_t		record_bytes;
	uint64_t	nrows;			/* pushed, but for those in the open batch */
	uint64_t	nrows_of_producers;	/* that the device took */
	bool		memory_failed;	/* the device had no more */
	bool		loaded;			/* a batch was sent; or it has joined a job, which
								 * hangs on it */

	/*
	 * Each slot is free, or filled, or ready, or being read, or the service's.
	 */
	uint64_t	free_buffers;		/* a bit each: may be filled */
	BufferQueue	filled;			/* sent, and not freed yet */
	GsBatch		filled_batches[GS_MAX_BUFFERS];	/* by slot */

	/* loading: the batch being filled; draining: the one being read */
	GsBatch		batch;
	bool		batch_open;
	uint32_t	batch_buffer;

	/* sorted: batches of rows, in order, the first one being read */
	uint32_t	stream;
	uint32_t	nready;
	GsBatchReady ready[GS_MAX_BUFFERS];
	uint64_t	next_position;	/* of the row after the last ready batch */

	char		detail[GS_FAILED_TEXT_BYTES];
} GpuEngine;

static GsStatus service_reserve(GsEngine *base, size_t row_bytes, GsBatch **batch);
static GsStatus service_sort(GsEngine *base);
static GsStatus service_fetch(GsEngine *base, uint64_t position, size_t nrows,
							  const void **rows, const uint64_t **records, size_t *fetched);
static GsStatus gpu_return_input(GsEngine *base);
static GsStatus service_next_batch(GsEngine *base, const GsBatch **batch);
static void service_close(GsEngine *base);

static const GsEngineOps service_ops = {
	.reserve = service_reserve,
	.sort = service_sort,
	.fetch = service_fetch,
	.return_input = gpu_return_input,
	.next_batch = service_next_batch,
	.close = service_close
};

/* ------------------------------------------------------------------ messages */

/* A text that is the engine's to keep. */
static const char *
save_text(GpuEngine *engine, const char *text)
{
	size_t		len = strlen(text);

	if (len >= sizeof(engine->detail))
		len = sizeof(engine->detail) - 1;
	memcpy(engine->detail, text, len);
	engine->detail[len] = '\0';
	return engine->detail;
}

/* The engine is broken; the link with it. */
static GsStatus
fail(GpuEngine *engine, const char *detail)
{
	engine->base.stats.detail = save_text(engine, detail);
	if (engine->phase != SERVICE_CLOSED)
		engine->link->release(engine->link, false);
	engine->phase = SERVICE_CLOSED;
	return GS_STATUS_FAILED;
}

static GsStatus
full(GpuEngine *engine, const char *why)
{
	engine->base.stats.full = why;
	return GS_STATUS_FULL;
}

static GsStatus
send_message(GpuEngine *engine, GsMessage *message, uint32_t type, size_t nbytes)
{
	if (engine->phase == SERVICE_CLOSED)
		return GS_STATUS_FAILED;
	message->type = type;
	message->nbytes = (uint32_t) nbytes;
	if (!engine->link->send(engine->link, message))
		return fail(engine, "gpusortd closed the connection");
	return GS_STATUS_OK;
}

static GsStatus
send_buffer(GpuEngine *engine, uint32_t type, uint32_t buffer)
{
	GsBufferMessage message = {.buffer = buffer};

	return send_message(engine, &message.message, type, sizeof(message));
}

static GsStatus
send_plain(GpuEngine *engine, uint32_t type)
{
	GsMessage	message;

	return send_message(engine, &message, type, sizeof(message));
}

/* A slot that was filled is free again. */
static bool
receive_freed(GpuEngine *engine, uint32_t buffer)
{
	BufferQueue  *filled = &engine->filled;

	for (uint32_t i = 0; i < filled->nbuffers; i++)
	{
		if (filled->buffers[i] != buffer)
			continue;
		filled->nbuffers--;
		memmove(&filled->buffers[i], &filled->buffers[i + 1],
				sizeof(filled->buffers[0]) * (filled->nbuffers - i));
		engine->free_buffers |= UINT64_C(1) << buffer;
		return true;
	}
	return false;
}

/* Sorted rows, or a batch that comes back. */
static bool
receive_ready(GpuEngine *engine, const GsBatchReady *ready)
{
	uint64_t	used = ready->rows_bytes;

	if (engine->nready == GS_MAX_BUFFERS)
		return false;
	if (ready->nrows > 0)
	{
		if (engine->phase == GPU_RETURNING)
			used += (uint64_t) ready->nrows * engine->record_bytes;
		else if (!engine->base.job.layout->keys_only)
			used += (uint64_t) ready->nrows * sizeof(uint32_t);
		if (ready->buffer >= engine->link->nbuffers || used > engine->link->buffer_bytes)
			return false;
		if (engine->phase == GPU_SORTED && ready->stream == engine->stream &&
			engine->nready > 0 && ready->position != engine->next_position)
			return false;
	}
	engine->ready[engine->nready++] = *ready;
	engine->next_position = ready->position + ready->nrows;
	engine->base.stats.bytes_down += used;
	return true;
}

/*
 * Deals with the next message.  Without wait, there may be none: *type 0.
 * FULL: the device has no more memory.
 */
static GsStatus
receive_message(GpuEngine *engine, bool wait, uint32_t *type, GsAnyMessage *message)
{
	bool		fine = true;

	*type = 0;
	if (engine->phase == SERVICE_CLOSED)
		return GS_STATUS_FAILED;
	if (!engine->link->receive(engine->link, wait ? -1 : 0, message))
		return fail(engine, "gpusortd ended or closed the connection");
	*type = message->message.type;
	switch (*type)
	{
		case 0:
		case GS_MESSAGE_SORTED:
		case GS_MESSAGE_PRODUCER_DONE:
			break;
		case GS_MESSAGE_BATCH_FREE:
			fine = receive_freed(engine, message->buffer.buffer);
			break;
		case GS_MESSAGE_BATCH_READY:
			if (message->ready.stream != engine->stream)
			{
				/* of a stream given up: only the slot matters */
				*type = 0;
				if (message->ready.nrows > 0)
					return send_buffer(engine, GS_MESSAGE_BATCH_RELEASED, message->ready.buffer);
				break;
			}
			fine = receive_ready(engine, &message->ready);
			break;
		case GS_MESSAGE_FAILED:
			message->failed.text[sizeof(message->failed.text) - 1] = '\0';
			if (message->failed.failure == GS_FAILED_MEMORY && engine->phase == GPU_INPUT)
			{
				engine->memory_failed = true;
				return full(engine, "the rows exceed device memory");
			}

			/* said before the service knew that it is to drain */
			if (message->failed.failure == GS_FAILED_MEMORY && engine->phase == GPU_RETURNING)
				break;
			return fail(engine, message->failed.text);
		default:
			fine = false;
	}
	return fine ? GS_STATUS_OK : fail(engine, "unexpected message from gpusortd");
}

/* Deals with messages until one of a type has come. */
static GsStatus
wait_for(GpuEngine *engine, uint32_t wanted, GsAnyMessage *message)
{
	uint32_t	type = 0;

	while (type != wanted)
	{
		GsStatus	status = receive_message(engine, true, &type, message);

		if (status != GS_STATUS_OK)
			return status;
	}
	return GS_STATUS_OK;
}

static uint64_t
now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t) now.tv_sec * 1000000 + (uint64_t) now.tv_nsec / 1000;
}

/* ---------------------------------------------------------------------- open */

/* No job, or none that can be joined.  FULL: the link is good for another one. */
static GsStatus
refused(GpuEngine *engine, const GsFailed *failed)
{
	if (failed->failure == GS_FAILED_JOB || failed->failure == GS_FAILED_MEMORY)
		return full(engine, save_text(engine, failed->text));
	return fail(engine, failed->text);
}

/*
 * What the job before left on its way to us, slots that it gave back or filled,
 * means nothing any more.
 */
static GsStatus
wait_until_ready(GpuEngine *engine, int timeout_ms)
{
	GsAnyMessage message;

	do
	{
		if (!engine->link->receive(engine->link, timeout_ms, &message))
			return fail(engine, "gpusortd ended or closed the connection");
		if (message.message.type == 0)
			return fail(engine, "gpusortd does not answer");
		if (message.message.type == GS_MESSAGE_FAILED)
		{
			message.failed.text[sizeof(message.failed.text) - 1] = '\0';
			return refused(engine, &message.failed);
		}
	} while (message.message.type != GS_MESSAGE_JOB_READY);
	engine->token = message.job_ready.token;
	return GS_STATUS_OK;
}

/* An engine that has no job yet.  NULL if out of memory; the link is given back. */
static GpuEngine *
new_engine(const GsJob *job, GsEngineLink *link)
{
	GpuEngine *engine = job->host.allocate(job->host.arg, sizeof(GpuEngine));

	if (engine == NULL)
	{
		link->release(link, true);
		return NULL;
	}
	memset(engine, 0, sizeof(*engine));
	engine->base.ops = &service_ops;
	engine->base.job = *job;
	engine->base.stats.engine = "cuda";
	engine->base.stats.device = link->welcome.device_name;
	engine->base.stats.peak_bytes = (size_t) link->buffer_bytes * link->nbuffers;
	engine->link = link;
	engine->record_bytes = gs_record_bytes(job->layout);
	engine->free_buffers = UINT64_MAX >> (64 - link->nbuffers);
	return engine;
}

GsStatus
gs_engine_gpu_open(const GsJob *job, GsEngineLink *link,
					   const GsGpuOptions *options, GsEngine **result)
{
	GpuEngine *engine = new_engine(job, link);
	GsJobOpen	open = {
		.nwords = (uint32_t) job->layout->nwords,
		.keys_only = job->layout->keys_only,
		.expected_bytes = options->expected_bytes,
		.session_bytes = options->session_bytes,
		.wait_ms = options->wait_ms,
		.shared = options->shared,
		.participant = options->participant
	};
	GsStatus	status;

	*result = engine == NULL ? NULL : &engine->base;
	if (engine == NULL)
		return GS_STATUS_OOM;
	engine->algorithm = options->algorithm;
	status = send_message(engine, &open.message, GS_MESSAGE_JOB_OPEN, sizeof(open));
	if (status == GS_STATUS_OK)
		status = wait_until_ready(engine, (int) Min(options->wait_ms, INT_MAX - ANSWER_MS) + ANSWER_MS);
	return status;
}

uint64_t
gs_engine_gpu_token(const GsEngine *base)
{
	return ((const GpuEngine *) base)->token;
}

GsStatus
gs_engine_gpu_join(const GsJob *job, GsEngineLink *link, uint64_t token,
					   uint32_t participant, GsEngine **result)
{
	GpuEngine *engine = new_engine(job, link);
	GsJobJoin	join = {
		.token = token,
		.nwords = (uint32_t) job->layout->nwords,
		.keys_only = job->layout->keys_only,
		.participant = participant
	};
	GsStatus	status;

	*result = engine == NULL ? NULL : &engine->base;
	if (engine == NULL)
		return GS_STATUS_OOM;
	engine->is_producer = true;

	/*
	 * However long it takes: whoever gave up would leave a job that the service
	 * has it join when it comes to it, and the job would fail.
	 */
	status = send_message(engine, &join.message, GS_MESSAGE_JOB_JOIN, sizeof(join));
	if (status == GS_STATUS_OK)
		status = wait_until_ready(engine, -1);
	engine->loaded = status == GS_STATUS_OK;
	return status;
}

/* ---------------------------------------------------------------------- load */

static char *
buffer_start(const GpuEngine *engine, uint32_t buffer)
{
	return engine->link->buffer_pool + (size_t) buffer * engine->link->buffer_bytes;
}

/* Sends the open batch off, unless it is empty. */
static GsStatus
send_batch(GpuEngine *engine)
{
	GsBatchFilled filled = {0};
	uint32_t	buffer = engine->batch_buffer;

	if (!engine->batch_open)
		return GS_STATUS_OK;
	engine->batch_open = false;
	if (engine->batch.nrows == 0)
	{
		engine->free_buffers |= UINT64_C(1) << buffer;
		return GS_STATUS_OK;
	}
	engine->loaded = true;
	filled.buffer = buffer;
	filled.nrows = (uint32_t) engine->batch.nrows;
	filled.rows_bytes = (uint32_t) (engine->batch.rows_end - engine->batch.base);
	engine->filled.buffers[engine->filled.nbuffers++] = buffer;
	engine->filled_batches[buffer] = engine->batch;
	engine->nrows += engine->batch.nrows;
	engine->base.stats.bytes_up += filled.rows_bytes +
		engine->batch.nrows * engine->record_bytes;
	return send_message(engine, &filled.message, GS_MESSAGE_BATCH_FILLED, sizeof(filled));
}

/*
 * Is there a slot to fill?  The last one is left free, to drain through; nothing
 * comes back to a feeder.
 */
static bool
can_fill(const GpuEngine *engine)
{
	if (engine->is_producer)
		return engine->free_buffers != 0;
	return (engine->free_buffers & (engine->free_buffers - 1)) != 0;
}

/* Begins a batch in the lowest free slot, waiting for one if there is none. */
static GsStatus
begin_batch(GpuEngine *engine)
{
	GsStatus	status = GS_STATUS_OK;
	GsAnyMessage message;
	uint32_t	type;

	do
		status = receive_message(engine, !can_fill(engine), &type, &message);
	while (status == GS_STATUS_OK && (type != 0 || !can_fill(engine)));
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
service_reserve(GsEngine *base, size_t row_bytes, GsBatch **batch)
{
	GpuEngine *engine = (GpuEngine *) base;
	GsStatus	status;

	if (engine->memory_failed)
		return GS_STATUS_FULL;
	if (row_bytes > GS_MAX_ROW_BYTES(engine->link->buffer_bytes))
		return full(engine, "a row is too long for the device");
	if (engine->nrows + engine->batch.nrows >= GS_MAX_JOB_ROWS)
		return full(engine, "too many rows for the device");
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

/* -------------------------------------------------------------- end of load */

/* The open batch is not sent off: it joins those that the service did not take. */
static void
retain_batch(GpuEngine *engine)
{
	if (!engine->batch_open)
		return;
	engine->batch_open = false;
	engine->filled.buffers[engine->filled.nbuffers++] = engine->batch_buffer;
	engine->filled_batches[engine->batch_buffer] = engine->batch;
}

/* Rows in slots that were filled and not freed. */
static uint64_t
count_filled(const GpuEngine *engine)
{
	uint64_t	nrows = 0;

	for (uint32_t i = 0; i < engine->filled.nbuffers; i++)
		nrows += engine->filled_batches[engine->filled.buffers[i]].nrows;
	return nrows;
}

/*
 * The last batch: sent off, or, if the device has no memory for more, one of those
 * that it did not take.
 */
static GsStatus
end_batches(GpuEngine *engine)
{
	if (!engine->memory_failed)
		return send_batch(engine);
	if (engine->batch_open)
		engine->nrows += engine->batch.nrows;
	retain_batch(engine);
	return GS_STATUS_OK;
}

/* Are the rows that the device took, and those in the slots, all that there are? */
static bool
all_rows_are_there(const GpuEngine *engine, uint64_t ntaken)
{
	return ntaken + count_filled(engine) == engine->nrows + engine->nrows_of_producers;
}

GsStatus
gs_engine_end_producer(GsEngine *base, uint64_t *nrows)
{
	GpuEngine *engine = (GpuEngine *) base;
	GsProducerEnd	end = {.partial = engine->memory_failed};
	GsAnyMessage message;
	GsStatus	status = end_batches(engine);

	*nrows = 0;
	if (status == GS_STATUS_OK)
		status = send_message(engine, &end.message, GS_MESSAGE_PRODUCER_END, sizeof(end));
	if (status == GS_STATUS_OK)
		status = wait_for(engine, GS_MESSAGE_PRODUCER_DONE, &message);
	if (status != GS_STATUS_OK)
		return status;
	if (!all_rows_are_there(engine, message.producer_done.nrows))
		return fail(engine, "gpusortd has a wrong number of rows");
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

/* All slots go to the service. */
static GsStatus
release_free_buffers(GpuEngine *engine)
{
	while (engine->free_buffers != 0)
	{
		uint32_t	buffer = (uint32_t) __builtin_ctzll(engine->free_buffers);
		GsStatus	status = send_buffer(engine, GS_MESSAGE_BATCH_RELEASED, buffer);

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
	stats->device_bytes = sorted->device_bytes;
	stats->upload_us = sorted->upload_us;
	stats->sort_us = sorted->sort_us;
}

static GsStatus
service_sort(GsEngine *base)
{
	GpuEngine *engine = (GpuEngine *) base;
	GsSortRequest request = {
		.algorithm = (uint32_t) engine->algorithm,.partial = engine->memory_failed
	};
	GsAnyMessage message;
	GsStatus	status = end_batches(engine);

	if (status == GS_STATUS_OK)
	{
		request.layout = *base->job.layout;
		status = send_message(engine, &request.message, GS_MESSAGE_SORT, sizeof(request));
	}
	if (status == GS_STATUS_OK)
		status = wait_for(engine, GS_MESSAGE_SORTED, &message);
	if (status != GS_STATUS_OK)
		return status;
	if (!all_rows_are_there(engine, message.sorted.nrows))
		return fail(engine, "gpusortd has a wrong number of rows");
	save_stats(&base->stats, &message.sorted);
	engine->phase = GPU_SORTED;
	return release_free_buffers(engine);
}

/* ------------------------------------------------------------------ hand-out */

/* Gives back the first of the ready batches. */
static GsStatus
release_first(GpuEngine *engine)
{
	uint32_t	buffer = engine->ready[0].buffer;
	bool		has_slot = engine->ready[0].nrows > 0;

	engine->nready--;
	memmove(&engine->ready[0], &engine->ready[1], sizeof(engine->ready[0]) * engine->nready);
	return has_slot ? send_buffer(engine, GS_MESSAGE_BATCH_RELEASED, buffer) : GS_STATUS_OK;
}

/* Gives all of them back and has the rows come from a position on. */
static GsStatus
begin_stream(GpuEngine *engine, uint64_t position)
{
	GsFetch		fetch = {.position = position};
	GsStatus	status = GS_STATUS_OK;

	while (engine->nready > 0 && status == GS_STATUS_OK)
		status = release_first(engine);
	if (status != GS_STATUS_OK)
		return status;
	fetch.stream = ++engine->stream;
	return send_message(engine, &fetch.message, GS_MESSAGE_FETCH, sizeof(fetch));
}

static bool
has_position(const GsBatchReady *ready, uint64_t position)
{
	return position >= ready->position && position < ready->position + ready->nrows;
}

/* Makes the first ready batch the one with the position. */
static GsStatus
seek(GpuEngine *engine, uint64_t position)
{
	GsStatus	status = GS_STATUS_OK;
	GsAnyMessage message;
	uint64_t	start;

	if (engine->nready > 0 && has_position(&engine->ready[0], position))
		return GS_STATUS_OK;

	/* a step forward is the rule; anything else is a new stream */
	if (engine->stream > 0 && engine->nready > 0 &&
		position == engine->ready[0].position + engine->ready[0].nrows)
		status = release_first(engine);
	else
		status = begin_stream(engine, position);
	start = now_us();
	while (status == GS_STATUS_OK && engine->nready == 0)
	{
		uint32_t	type;

		status = receive_message(engine, true, &type, &message);
	}
	engine->base.stats.stream_us += now_us() - start;
	if (status == GS_STATUS_OK && !has_position(&engine->ready[0], position))
		status = fail(engine, "gpusortd sent rows that were not requested");
	return status;
}

static GsStatus
service_fetch(GsEngine *base, uint64_t position, size_t nrows,
			  const void **rows, const uint64_t **records, size_t *fetched)
{
	GpuEngine *engine = (GpuEngine *) base;
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
	n = ready->nrows - first;
	if (n > nrows)
		n = nrows;
	start = buffer_start(engine, ready->buffer);
	if (base->job.layout->keys_only)
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
				return fail(engine, "gpusortd sent an invalid row offset");
			rows[i] = start + offset;
		}
	}
	for (size_t i = 0; i < n && records != NULL; i++)
		records[i] = base->job.layout->keys_only ? rows[i] : NULL;
	*fetched = n;
	return GS_STATUS_OK;
}

/* --------------------------------------------------------------------- drain */

static GsStatus
gpu_return_input(GsEngine *base)
{
	GpuEngine *engine = (GpuEngine *) base;
	GsStatus	status = GS_STATUS_OK;

	/* an open batch is read in its turn, after those that were sent */
	if (engine->phase == SERVICE_CLOSED)
		return GS_STATUS_FAILED;
	retain_batch(engine);
	engine->phase = GPU_RETURNING;
	status = release_free_buffers(engine);
	if (status == GS_STATUS_OK)
		status = send_plain(engine, GS_MESSAGE_RETURN_INPUT);
	return status;
}

static GsStatus
service_next_batch(GsEngine *base, const GsBatch **batch)
{
	GpuEngine *engine = (GpuEngine *) base;
	GsAnyMessage message;
	GsStatus	status = GS_STATUS_OK;

	*batch = NULL;
	if (engine->phase == GPU_RETURNING)
	{
		if (engine->batch_open)
			status = release_first(engine);
		engine->batch_open = false;
		while (status == GS_STATUS_OK && engine->nready == 0)
		{
			uint32_t	type;

			status = receive_message(engine, true, &type, &message);

			/* an upload that was on its way is through */
			if (status == GS_STATUS_OK && type == GS_MESSAGE_BATCH_FREE)
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

	/* what the service did not take */
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
service_close(GsEngine *base)
{
	GpuEngine *engine = (GpuEngine *) base;
	GsRuntime		host = base->job.host;
	bool		is_fed = engine->phase == GPU_PRODUCED;

	/* of a job that was left in the middle, more than slots may be on its way */
	bool		orderly = is_fed || engine->phase == GPU_SORTED ||
		engine->phase == GPU_RETURNED || !engine->loaded;

	if (engine->phase != SERVICE_CLOSED &&
		(is_fed || send_plain(engine, GS_MESSAGE_JOB_CLOSE) == GS_STATUS_OK))
		engine->link->release(engine->link, orderly);
	host.release(host.arg, engine);
}
