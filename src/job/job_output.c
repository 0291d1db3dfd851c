/*-------------------------------------------------------------------------
 *
 * job_output.c
 *	  One sort: batches to the client, either sorted or the input.
 *
 * Batches are sent in order, each through a free buffer.  Sorted rows are
 * gathered in a staging buffer on the device and copied from there.  One staging
 * buffer suffices, because the stream processes one batch after the other.
 *
 * A new FETCH starts from another batch.  Transfers for the previous FETCH
 * finish, but are not reported; their buffers become free.
 *
 * If the job is parked, the batches are read from a file instead.
 *
 *-------------------------------------------------------------------------
 */
#include "job/job.h"

#include "common/min_max.h"
#include "job/job_internal.h"

/* A limit, for fairness. */
#define BUFFERS_PER_POLL	4

/* ------------------------------------------------------------------ buffers */

static void
add_free_buffer(GsSortJob *job, uint32_t buffer)
{
	job->free_buffers[job->nfree++] = buffer;
}

static char *
buffer_start(const GsSortJob *job, uint32_t buffer)
{
	return job->consumer.participant.buffer_pool.base + (size_t) buffer * gs_job_buffer_bytes(job);
}

void
gs_job_buffer_released(GsSortJob *job, uint32_t buffer)
{
	if (job->consumer.buffer_is_ours[buffer])
		return;					/* an upload in progress: the client is wrong */
	job->consumer.buffer_is_ours[buffer] = true;
	gs_job_cancel_parking(job);
	add_free_buffer(job, buffer);
}

/* ------------------------------------------------------------- sorted rows */

uint64_t
gs_job_first_row(const GsSortJob *job, uint64_t batch)
{
	uint64_t	keys = gs_job_buffer_bytes(job) / sizeof(uint64_t);

	if (!job->keys_only)
		return job->sort.boundaries[batch];
	return Min(batch * keys, job->nrows);
}

/* The batch that has the row. */
static uint64_t
batch_of(const GsSortJob *job, uint64_t position)
{
	uint64_t	low = 0;
	uint64_t	high = job->nout;

	while (high - low > 1)
	{
		uint64_t	mid = low + (high - low) / 2;

		if (gs_job_first_row(job, mid) <= position)
			low = mid;
		else
			high = mid;
	}
	return low;
}

void
gs_job_fetch(GsSortJob *job, uint32_t stream, uint64_t position)
{
	if (job->phase != GS_JOB_SORTED)
		return;
	gs_job_cancel_parking(job);
	job->fetch++;
	job->stream_number = stream;
	job->next_out = position < job->nrows ? batch_of(job, position) : job->nout;
}

/*
 * The maximum size of the rows of a batch, in bytes, without their offsets.  The
 * exact size is only known after the copy.
 */
static size_t
most_rows_bytes(const GsSortJob *job, uint64_t batch, uint32_t nrows)
{
	uint64_t	all_units = 2 * job->nunits + job->nrows;
	uint64_t	row_units = 2 * (uint64_t) job->pinned->control.results.pack.max_row_units + 1;
	uint64_t	start = batch * job->sort.step;
	uint64_t	before = start < row_units ? 0 : start - row_units;
	uint64_t	most = Min(all_units - before, job->sort.step + row_units);

	return (size_t) (most - nrows) * sizeof(uint32_t);
}

static bool
queue_rows(GsSortJob *job, uint64_t batch, uint64_t first, uint32_t nrows, char *to,
		   GsBatchSpan *span)
{
	const GsDeviceOps *ops = job->device->ops;
	const GsSortContext *sort = &job->sort;
	const uint64_t *d_end_offsets = sort->d_words[!sort->sorted];
	size_t		offsets_bytes = nrows * sizeof(uint32_t);
	size_t		offsets_start = gs_job_buffer_bytes(job) - offsets_bytes;

	span->start = 0;
	return ops->gather(job->stream, &sort->rows, sort->d_words[sort->sorted], sort->row_bits,
					   d_end_offsets, first, nrows, job->d_staging, gs_job_buffer_bytes(job)) &&
		ops->copy_out(job->stream, to, job->d_staging, most_rows_bytes(job, batch, nrows)) &&
		ops->copy_out(job->stream, to + offsets_start, job->d_staging + offsets_start,
					  offsets_bytes) &&
		(first == 0 ||
		 ops->copy_out(job->stream, &span->start, &d_end_offsets[first - 1], sizeof(span->start))) &&
		ops->copy_out(job->stream, &span->end, &d_end_offsets[first + nrows - 1], sizeof(span->end));
}

static bool
queue_keys(GsSortJob *job, uint64_t first, uint32_t nrows, char *to)
{
	const GsDeviceOps *ops = job->device->ops;
	const GsSortContext *sort = &job->sort;

	return ops->gather_keys(job->stream, &sort->rows, sort->d_words[sort->sorted],
							sort->row_bits, first, nrows, (uint64_t *) job->d_staging) &&
		ops->copy_out(job->stream, to, job->d_staging, nrows * sizeof(uint64_t));
}

bool
gs_job_queue_sorted(GsSortJob *job, uint64_t batch, char *to, GsBatchSpan *span)
{
	uint64_t	first = gs_job_first_row(job, batch);
	uint32_t	nrows = (uint32_t) (gs_job_first_row(job, batch + 1) - first);

	return gs_job_check(job, job->keys_only ? queue_keys(job, first, nrows, to) :
						queue_rows(job, batch, first, nrows, to, span));
}

uint32_t
gs_job_rows_bytes(const GsSortJob *job, uint64_t batch, const GsBatchSpan *span)
{
	uint32_t	nrows = (uint32_t) (gs_job_first_row(job, batch + 1) - gs_job_first_row(job, batch));

	if (job->keys_only)
		return nrows * (uint32_t) sizeof(uint64_t);
	return (uint32_t) (span->end - span->start - nrows) * (uint32_t) sizeof(uint32_t);
}

/* -------------------------------------------------------------- the input */

void
gs_job_return_input(GsSortJob *job)
{
	if (job->phase != GS_JOB_INPUT && job->phase != GS_JOB_FULL)
		return;
	gs_job_order_batches(job);
	job->phase = GS_JOB_RETURNING;
	job->next_out = 0;
	job->nout = job->nbatches;
}

static bool
queue_input_batch(GsSortJob *job, uint64_t number, char *buffer, GsTransfer *transfer)
{
	const GsDeviceOps *ops = job->device->ops;
	const GsDeviceBatch *batch = &job->batches[job->order[number]].device;
	size_t		records_bytes = (size_t) batch->nrows * job->record_bytes;

	transfer->ready.position = batch->first_row;
	transfer->ready.nrows = batch->nrows;
	transfer->ready.rows_bytes = batch->nunits * GS_ROW_ALIGN;
	return (batch->nunits == 0 ||
			ops->copy_out(job->stream, buffer, batch->d_rows, transfer->ready.rows_bytes)) &&
		ops->copy_out(job->stream, buffer + gs_job_buffer_bytes(job) - records_bytes,
					  batch->d_records_top - records_bytes, records_bytes);
}

/* -------------------------------------------------------------------- both */

/* Queues the next batch for a free buffer. */
static bool
queue_next(GsSortJob *job)
{
	uint64_t	batch = job->next_out++;
	uint32_t	number = job->free_buffers[--job->nfree];
	char	   *buffer = buffer_start(job, number);
	GsTransfer	transfer = {
		.buffer = number,.fetch = job->fetch,.batch = batch,.ready = {.buffer = number}
	};
	bool		queued;

	if (job->phase == GS_JOB_RETURNING)
		queued = gs_job_check(job, queue_input_batch(job, batch, buffer, &transfer));
	else
	{
		transfer.ready.stream = job->stream_number;
		transfer.ready.position = gs_job_first_row(job, batch);
		transfer.ready.nrows = (uint32_t) (gs_job_first_row(job, batch + 1) -
										   transfer.ready.position);
		queued = job->parked ? gs_job_queue_parked(job, batch, buffer) :
			gs_job_queue_sorted(job, batch, buffer, &job->pinned->spans[number]);
	}
	return queued && gs_producer_add_transfer(&job->consumer, &transfer);
}

bool
gs_job_has_output(const GsSortJob *job)
{
	if (job->phase == GS_JOB_RETURNING && job->next_out == job->nout && !job->input_returned)
		return job->consumer.ntransfers == 0;
	return (job->phase == GS_JOB_SORTED || job->phase == GS_JOB_RETURNING) &&
		job->next_out < job->nout && job->nfree > 0;
}

void
gs_job_send_output(GsSortJob *job)
{
	const GsJobEvents *events = &job->consumer.participant.events;
	const GsBatchReady end = {0};

	for (int i = 0; i < BUFFERS_PER_POLL && gs_job_has_output(job); i++)
	{
		if (job->next_out == job->nout)
		{
			job->input_returned = true;
			events->batch_ready(events->arg, &end);
		}
		else if (!queue_next(job))
			return;
	}
}

void
gs_job_end_download(GsSortJob *job, GsTransfer *transfer)
{
	const GsJobEvents *events = &job->consumer.participant.events;
	GsBatchReady *ready = &transfer->ready;

	/* for a previous FETCH, or from a file that cannot be read */
	if (transfer->fetch != job->fetch || job->phase == GS_JOB_FAILED)
	{
		add_free_buffer(job, transfer->buffer);
		return;
	}
	if (job->parked)
		ready->rows_bytes = gs_job_parked_bytes(job, transfer->batch);
	else if (job->phase == GS_JOB_SORTED)
		ready->rows_bytes = gs_job_rows_bytes(job, transfer->batch,
											  &job->pinned->spans[transfer->buffer]);
	job->consumer.buffer_is_ours[transfer->buffer] = false;
	events->batch_ready(events->arg, ready);
}
