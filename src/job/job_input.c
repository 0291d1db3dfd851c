/*-------------------------------------------------------------------------
 *
 * job_input.c
 *	  One sort: participants, their buffers, and the upload of batches.
 *
 * A producer and its job refer to each other until one of them ends.  The device
 * may read a producer's buffers after the job failed, and even after its client
 * disconnected.  Therefore a producer is freed only after its last transfer, and
 * a job only after all transfers.
 *
 * Batches are stored one after the other in blocks; the rows of a batch are
 * contiguous, and so are its records.  The block size grows, so that a small job
 * needs little memory and a large one few blocks.  Batches arrive from all
 * participants in any order.  Row numbers are assigned at the end of the input,
 * by participant and arrival, so the sort is stable by both.
 *
 *-------------------------------------------------------------------------
 */
#include "job/job.h"

#include <stdlib.h>

#include "common/clock.h"
#include "common/min_max.h"
#include "job/job_internal.h"

#define MAX_BLOCK_BYTES		((size_t) 32 << 20)
#define FIRST_BATCHES		64

/* ------------------------------------------------------------- participants */

GsProducer *
gs_job_consumer(GsSortJob *job)
{
	return &job->consumer;
}

bool
gs_job_has_producers(const GsSortJob *job)
{
	return job->producers != NULL;
}

GsProducer *
gs_job_join(GsSortJob *job, uint32_t nwords, bool keys_only, const GsParticipant *participant,
			const char **why_not)
{
	GsProducer *producer;

	if (job->phase != GS_JOB_INPUT)
		*why_not = "the sort takes no more rows";
	else if ((int) nwords != job->nwords || keys_only != job->keys_only)
		*why_not = "the rows of the sort have another layout";
	else if (participant->buffer_pool.buffer_bytes > job->consumer.participant.buffer_pool.buffer_bytes)
		*why_not = "the buffers are larger than those of the leader";
	else
	{
		producer = calloc(1, sizeof(GsProducer));
		if (producer == NULL)
		{
			*why_not = "gpusortd is out of memory";
			return NULL;
		}
		producer->job = job;
		producer->participant = *participant;
		producer->next = job->producers;
		job->producers = producer;
		return producer;
	}
	return NULL;
}

/* Removes a producer from its job. */
static void
unlink_producer(GsProducer *producer)
{
	GsProducer **link = &producer->job->producers;

	while (*link != producer)
		link = &(*link)->next;
	*link = producer->next;
}

void
gs_producer_end(GsProducer *producer)
{
	if (producer->job != NULL && producer->state != GS_PRODUCER_FAILED)
		producer->state = GS_PRODUCER_ENDING;
}

void
gs_job_fail_producers(GsSortJob *job, const char *text)
{
	for (GsProducer *producer = job->producers; producer != NULL; producer = producer->next)
	{
		const GsJobEvents *events = &producer->participant.events;

		if (producer->state == GS_PRODUCER_FAILED)
			continue;
		producer->state = GS_PRODUCER_FAILED;
		events->failed(events->arg, GS_FAILED_JOB, text);
	}
}

void
gs_job_detach_producers(GsSortJob *job)
{
	for (GsProducer *producer = job->producers; producer != NULL; producer = producer->next)
		producer->job = NULL;
}

/* Does the device still read the buffers? */
static bool
is_being_read(GsProducer *producer)
{
	GsSortJob  *job = producer->job;
	uint32_t	last = (producer->first_transfer + producer->ntransfers - 1) % GS_MAX_BUFFERS;

	gs_job_check_fence(job);
	return !job->device_failed && producer->ntransfers > 0 && producer->transfers[last].fence > job->passed_fence;
}

bool
gs_producer_leave(GsProducer *producer)
{
	GsSortJob  *job = producer->job;

	if (job != NULL)
	{
		producer->state = GS_PRODUCER_FAILED;
		if (job->phase == GS_JOB_INPUT)
			gs_job_fail(job, GS_FAILED_JOB,
						"a process disconnected before all its rows were sent");
		if (is_being_read(producer))
			return false;
		unlink_producer(producer);
	}
	free(producer);
	return true;
}

/* ----------------------------------------------------------------- transfers */

bool
gs_producer_add_transfer(GsProducer *producer, GsTransfer *transfer)
{
	if (!gs_job_record_fence(producer->job, &transfer->fence))
		return false;
	producer->transfers[(producer->first_transfer + producer->ntransfers++) % GS_MAX_BUFFERS] = *transfer;
	return true;
}

static void
end_upload(GsProducer *producer, uint32_t buffer)
{
	GsSortJob  *job = producer->job;
	const GsJobEvents *events = &producer->participant.events;

	producer->buffer_is_ours[buffer] = false;
	if (--job->nuploads == 0)
		job->upload_us += gs_clock_us() - job->upload_start_us;
	if (producer->state != GS_PRODUCER_FAILED)
		events->batch_free(events->arg, buffer);
}

static void
end_transfers(GsProducer *producer)
{
	GsSortJob  *job = producer->job;

	while (producer->ntransfers > 0 &&
		   producer->transfers[producer->first_transfer].fence <= job->passed_fence)
	{
		GsTransfer	transfer = producer->transfers[producer->first_transfer];

		producer->first_transfer = (producer->first_transfer + 1) % GS_MAX_BUFFERS;
		producer->ntransfers--;
		if (transfer.upload)
			end_upload(producer, transfer.buffer);
		else
			gs_job_end_download(job, &transfer);
	}
}

void
gs_job_end_transfers(GsSortJob *job)
{
	GsProducer *next;

	end_transfers(&job->consumer);
	for (GsProducer *producer = job->producers; producer != NULL; producer = next)
	{
		const GsJobEvents *events = &producer->participant.events;

		next = producer->next;
		end_transfers(producer);
		if (producer->state == GS_PRODUCER_ENDING && producer->ntransfers == 0)
		{
			unlink_producer(producer);
			events->producer_done(events->arg, producer->nrows);
			free(producer);
		}
	}
}

bool
gs_job_has_ended_producers(const GsSortJob *job)
{
	for (const GsProducer *producer = job->producers; producer != NULL; producer = producer->next)
		if (producer->state == GS_PRODUCER_ENDING && producer->ntransfers == 0)
			return true;
	return false;
}

/* -------------------------------------------------------------- uploads */

/*
 * Allocates device memory for part of a batch.  A new block is as large as all
 * before together, or only as large as needed if that exceeds available.
 */
static char *
allocate_space(GsSortJob *job, size_t nbytes, uint64_t available)
{
	size_t		nbytes_aligned = GS_DEVICE_ALIGN(nbytes);
	char	   *d_result;

	if (nbytes_aligned > job->left)
	{
		size_t		block_bytes = Max(nbytes_aligned, job->next_block_bytes);
		char	   *d_block = NULL;

		if (gs_device_pool_block_bytes(block_bytes) <= available)
			d_block = gs_device_pool_allocate(&job->memory, block_bytes);
		if (d_block == NULL && gs_device_pool_block_bytes(nbytes_aligned) <= available)
		{
			block_bytes = nbytes_aligned;
			d_block = gs_device_pool_allocate(&job->memory, block_bytes);
		}
		if (d_block == NULL)
			return NULL;
		job->d_next = d_block;
		job->left = block_bytes;
		job->next_block_bytes = Min(job->next_block_bytes * 2, MAX_BLOCK_BYTES);
	}
	d_result = job->d_next;
	job->d_next += nbytes_aligned;
	job->left -= nbytes_aligned;
	return d_result;
}

/* Reserves one more entry in batches[] and order[]. */
static bool
reserve_space(GsSortJob *job)
{
	uint32_t	nallocated = Max(2 * job->batches_allocated, FIRST_BATCHES);
	void	   *grown;

	if (job->nbatches < job->batches_allocated)
		return true;
	grown = realloc(job->batches, nallocated * sizeof(GsJobBatch));
	if (grown == NULL)
		return false;
	job->batches = grown;
	grown = realloc(job->order, nallocated * sizeof(uint32_t));
	if (grown == NULL)
		return false;
	job->order = grown;
	job->batches_allocated = nallocated;
	return true;
}

/* Memory that the job can allocate beyond what the sort will need. */
static uint64_t
available_bytes(const GsSortJob *job, uint64_t sort_bytes)
{
	uint64_t	left = gs_device_pool_available(&job->memory);

	return left < sort_bytes ? 0 : left - sort_bytes;
}

/*
 * Allocates device memory for a batch.  A batch is refused if not enough memory
 * would be left for the sort, while the rows can still be sorted elsewhere.
 */
static GsDeviceBatch *
place_batch(GsProducer *producer, uint32_t nrows, size_t rows_bytes, size_t records_bytes)
{
	GsSortJob  *job = producer->job;
	uint64_t	sort_bytes = gs_job_sort_bytes(job, job->nrows + nrows,
											   job->nunits + rows_bytes / GS_ROW_ALIGN);
	char	   *d_rows = NULL;
	char	   *d_records;
	GsJobBatch *batch;

	if (gs_device_pool_available(&job->memory) < sort_bytes || !reserve_space(job))
		return NULL;
	if (rows_bytes > 0)
	{
		d_rows = allocate_space(job, rows_bytes, available_bytes(job, sort_bytes));
		if (d_rows == NULL)
			return NULL;
	}
	d_records = allocate_space(job, records_bytes, available_bytes(job, sort_bytes));
	if (d_records == NULL)
		return NULL;
	batch = &job->batches[job->nbatches++];
	*batch = (GsJobBatch)
	{
		.device = {
			.d_rows = d_rows,.d_records_top = d_records + records_bytes,
			.nrows = nrows,.nunits = (uint32_t) (rows_bytes / GS_ROW_ALIGN)
		},
		.participant = producer->participant.number
	};
	return &batch->device;
}

/* Refuses a batch for lack of memory; other participants may continue. */
static void
report_full(GsProducer *producer, const char *text)
{
	const GsJobEvents *events = &producer->participant.events;

	producer->state = GS_PRODUCER_FULL;
	events->failed(events->arg, GS_FAILED_MEMORY, text);
}

void
gs_producer_batch_filled(GsProducer *producer, uint32_t buffer, uint32_t nrows, uint32_t rows_bytes)
{
	GsSortJob  *job = producer->job;
	const GsBufferPool *buffer_pool = &producer->participant.buffer_pool;
	const char *start = buffer_pool->base + (size_t) buffer * buffer_pool->buffer_bytes;
	GsTransfer	transfer = {.buffer = buffer,.upload = true};
	const GsDeviceOps *ops;
	size_t		records_bytes;
	GsDeviceBatch *batch;

	/* the client may not have learned yet that the job failed */
	if (job == NULL || job->phase != GS_JOB_INPUT || producer->state != GS_PRODUCER_INPUT ||
		producer->buffer_is_ours[buffer])
		return;
	if (job->nrows + nrows > GS_MAX_JOB_ROWS)
	{
		report_full(producer, "the sort has too many rows for the device");
		return;
	}
	ops = job->device->ops;
	records_bytes = (size_t) nrows * job->record_bytes;
	batch = place_batch(producer, nrows, rows_bytes, records_bytes);
	if (batch == NULL)
	{
		report_full(producer, "out of device memory");
		return;
	}
	producer->nrows += nrows;
	job->nrows += nrows;
	job->nunits += batch->nunits;
	if (rows_bytes > 0 &&
		!gs_job_check(job, ops->copy_in(job->stream, (char *) batch->d_rows, start, rows_bytes)))
		return;
	if (!gs_job_check(job, ops->copy_in(job->stream,
										(char *) batch->d_records_top - records_bytes,
										start + buffer_pool->buffer_bytes - records_bytes,
										records_bytes)) ||
		!gs_producer_add_transfer(producer, &transfer))
		return;
	producer->buffer_is_ours[buffer] = true;
	if (job->nuploads++ == 0)
		job->upload_start_us = gs_clock_us();
}

/* -------------------------------------------------------------- input order */

void
gs_job_order_batches(GsSortJob *job)
{
	uint32_t	next[GS_MAX_PARTICIPANTS] = {0};
	uint32_t	nbefore = 0;
	uint64_t	nrows = 0;

	/* first the number of batches of each, then the place of its next one */
	for (uint32_t i = 0; i < job->nbatches; i++)
		next[job->batches[i].participant]++;
	for (int i = 0; i < GS_MAX_PARTICIPANTS; i++)
	{
		uint32_t	nbatches = next[i];

		next[i] = nbefore;
		nbefore += nbatches;
	}
	for (uint32_t i = 0; i < job->nbatches; i++)
		job->order[next[job->batches[i].participant]++] = i;
	for (uint32_t i = 0; i < job->nbatches; i++)
	{
		GsDeviceBatch *batch = &job->batches[job->order[i]].device;

		batch->first_row = nrows;
		nrows += batch->nrows;
	}
}
