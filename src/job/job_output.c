/*-------------------------------------------------------------------------
 *
 * job_output.c
 *	  One sort: batches to the consumer and readers, either sorted or the input.
 *
 * Each of them gets batches in order, each through a free buffer.  Sorted rows are
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
#include "job/job_internal.h"

#include "common/basics.h"

/* A limit, for fairness. */
#define BUFFERS_PER_POLL	4

/* ------------------------------------------------------------------ buffers */

static void
add_free_buffer(GsMember *member, uint32_t buffer)
{
	member->output.free_buffers[member->output.nfree++] = buffer;
}

void
gs_member_buffer_released(GsMember *member, uint32_t buffer)
{
	/* the job has ended, or an upload is in progress and the client is wrong */
	if (member->job == NULL || member->buffer_is_ours[buffer])
		return;
	member->buffer_is_ours[buffer] = true;
	gs_job_cancel_parking(member->job);
	add_free_buffer(member, buffer);
}

/* ------------------------------------------------------------- sorted rows */

/* The first row of a batch of sorted rows; of the one after the last, nrows. */
static uint64_t
first_row(const GsSortJob *job, uint64_t batch)
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

		if (first_row(job, mid) <= position)
			low = mid;
		else
			high = mid;
	}
	return low;
}

bool
gs_member_fetch(GsMember *member, uint32_t stream, uint64_t position)
{
	GsSortJob  *job = member->job;
	GsJobOutput *output = &member->output;

	/* the client may not have learned yet that the job failed */
	if (job == NULL || job->phase == GS_JOB_FAILED || job->phase == GS_JOB_CLOSING)
		return true;
	if (job->phase != GS_JOB_SORTED || position >= job->nrows)
		return false;
	gs_job_cancel_parking(job);
	output->fetch++;
	output->stream_number = stream;
	output->next = batch_of(job, position);
	return true;
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
		 ops->copy_out(job->stream, &span->start, &d_end_offsets[first - 1],
					   sizeof(span->start))) &&
		ops->copy_out(job->stream, &span->end, &d_end_offsets[first + nrows - 1],
					  sizeof(span->end));
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
	uint64_t	first = first_row(job, batch);
	uint32_t	nrows = (uint32_t) (first_row(job, batch + 1) - first);

	return gs_job_check(job, job->keys_only ? queue_keys(job, first, nrows, to) :
						queue_rows(job, batch, first, nrows, to, span));
}

uint32_t
gs_job_rows_bytes(const GsSortJob *job, uint64_t batch, const GsBatchSpan *span)
{
	uint32_t	nrows = (uint32_t) (first_row(job, batch + 1) - first_row(job, batch));

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
	job->consumer.output.next = 0;
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
queue_next(GsMember *member)
{
	GsSortJob  *job = member->job;
	GsJobOutput *output = &member->output;
	uint64_t	batch = output->next++;
	uint32_t	number = output->free_buffers[--output->nfree];
	char	   *buffer = gs_member_buffer(member, number);
	GsTransfer	transfer = {
		.buffer = number,.fetch = output->fetch,.batch = batch,.ready = {.buffer = number}
	};
	bool		queued;

	if (job->phase == GS_JOB_RETURNING)
		queued = gs_job_check(job, queue_input_batch(job, batch, buffer, &transfer));
	else
	{
		transfer.ready.stream = output->stream_number;
		transfer.ready.position = first_row(job, batch);
		transfer.ready.nrows = (uint32_t) (first_row(job, batch + 1) -
										   transfer.ready.position);
		queued = job->parked ? gs_job_queue_parked(job, batch, buffer) :
			gs_job_queue_sorted(job, batch, buffer, &output->spans[number]);
	}
	return queued && gs_member_add_transfer(member, &transfer);
}

/* Is there a batch to send, and a buffer for it? */
static bool
can_send(const GsMember *member)
{
	return member->state != GS_MEMBER_FAILED && member->output.fetch > 0 &&
		member->output.next < member->job->nout && member->output.nfree > 0;
}

bool
gs_job_has_output(const GsSortJob *job)
{
	const GsMember *consumer = &job->consumer;

	if (job->phase == GS_JOB_RETURNING)
		return consumer->output.next < job->nout ? consumer->output.nfree > 0 :
			!job->input_returned && consumer->ntransfers == 0;
	if (job->phase != GS_JOB_SORTED)
		return false;
	if (can_send(consumer))
		return true;
	for (const GsMember *member = job->members; member != NULL; member = member->next)
		if (can_send(member))
			return true;
	return false;
}

/* False: the device failed. */
static bool
send_sorted(GsMember *member)
{
	for (int i = 0; i < BUFFERS_PER_POLL && can_send(member); i++)
	{
		if (!queue_next(member))
			return false;
	}
	return true;
}

static void
send_input(GsSortJob *job)
{
	const GsJobEvents *events = &job->consumer.participant.events;
	const GsBatchReady end = {0};

	for (int i = 0; i < BUFFERS_PER_POLL && gs_job_has_output(job); i++)
	{
		if (job->consumer.output.next == job->nout)
		{
			job->input_returned = true;
			events->batch_ready(events->arg, &end);
		}
		else if (!queue_next(&job->consumer))
			return;
	}
}

void
gs_job_send_output(GsSortJob *job)
{
	bool		fine;

	if (job->phase == GS_JOB_RETURNING)
		send_input(job);
	else if (job->phase == GS_JOB_SORTED)
	{
		fine = send_sorted(&job->consumer);
		for (GsMember *member = job->members; member != NULL && fine; member = member->next)
			fine = send_sorted(member);
	}
}

void
gs_member_end_download(GsMember *member, GsTransfer *transfer)
{
	GsSortJob  *job = member->job;
	const GsJobEvents *events = &member->participant.events;
	GsBatchReady *ready = &transfer->ready;

	/* for a previous FETCH, or from a file that cannot be read */
	if (transfer->fetch != member->output.fetch || job->phase == GS_JOB_FAILED ||
		member->state == GS_MEMBER_FAILED)
	{
		add_free_buffer(member, transfer->buffer);
		return;
	}
	if (job->parked)
		ready->rows_bytes = job->parking->rows_bytes[transfer->batch];
	else if (job->phase == GS_JOB_SORTED)
		ready->rows_bytes = gs_job_rows_bytes(job, transfer->batch,
											  &member->output.spans[transfer->buffer]);
	member->buffer_is_ours[transfer->buffer] = false;
	events->batch_ready(events->arg, ready);
}
