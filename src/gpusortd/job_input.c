/*-------------------------------------------------------------------------
 *
 * job_input.c
 *	  One sort: who feeds it, their slots, and their batches on their way up.
 *
 * A feeder's feed and the job know each other until one of them is over.  The
 * device reads a feeder's ring after the job has failed, even after its owner
 * has gone; so a feed is freed no sooner than its last transfer is through,
 * and a job no sooner than all are.  Whoever is left then is a feed without a
 * job, or a job with a feed less.
 *
 * Batches are put one behind the other in slabs, rows and records each in one
 * piece.  The slabs grow, so that a small job takes little and a large one few.
 * They arrive from all feeds in any order, and are put into input order at the
 * end of the load: row numbers are given only then, and so the sort is
 * stable by what it was told of its participants.
 *
 *-------------------------------------------------------------------------
 */
#include "gpusortd/job.h"

#include <stdlib.h>

#include "gpusortd/job_internal.h"
#include "gpusortd/log.h"

#define MAX_BLOCK_BYTES		((size_t) 32 << 20)
#define FIRST_BATCHES		64

#define Min(a, b)		((a) < (b) ? (a) : (b))
#define Max(a, b)		((a) > (b) ? (a) : (b))

/* ------------------------------------------------------------------- feeders */

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
gs_job_join(GsSortJob *job, uint32_t nwords, bool keys_only, const GsParticipant *feeder,
			const char **why_not)
{
	GsProducer	   *producer;

	if (job->phase != GS_JOB_INPUT)
		*why_not = "the sort takes no more rows";
	else if ((int) nwords != job->nwords || keys_only != job->keys_only)
		*why_not = "the rows of the sort have another form";
	else if (feeder->buffer_pool.buffer_bytes > job->consumer.participant.buffer_pool.buffer_bytes)
		*why_not = "batches of this ring could not go through the owner's";
	else
	{
		producer = calloc(1, sizeof(GsProducer));
		if (producer == NULL)
		{
			*why_not = "the service has no memory for a feeder";
			return NULL;
		}
		producer->job = job;
		producer->participant = *feeder;
		producer->next = job->producers;
		job->producers = producer;
		return producer;
	}
	return NULL;
}

/* Takes a feed out of its job's list. */
static void
unlink_producer(GsProducer *producer)
{
	GsProducer	  **link = &producer->job->producers;

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

/* Does the device read the feed's ring? */
static bool
is_read(GsProducer *producer)
{
	GsSortJob  *job = producer->job;
	uint32_t	last = (producer->first_transfer + producer->ntransfers - 1) % GS_MAX_BUFFERS;

	gs_job_check_fence(job);
	return !job->device_lost && producer->ntransfers > 0 && producer->transfers[last].fence > job->passed_fence;
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
						"a producer of the sort disconnected before it had sent all its rows");
		if (is_read(producer))
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
			gs_job_batch_arrived(job, &transfer);
	}
}

void
gs_job_end_transfers(GsSortJob *job)
{
	GsProducer	   *next;

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
gs_job_has_to_end_producers(const GsSortJob *job)
{
	for (const GsProducer *producer = job->producers; producer != NULL; producer = producer->next)
		if (producer->state == GS_PRODUCER_ENDING && producer->ntransfers == 0)
			return true;
	return false;
}

/* -------------------------------------------------------------- batches up */

/*
 * A piece of device memory for part of a batch, out of a slab as large as all
 * before, or of a smaller one where no more than spare bytes are to be taken.
 */
static char *
allocate_space(GsSortJob *job, size_t nbytes, uint64_t unused)
{
	size_t		taken = GS_DEVICE_ALIGN(nbytes);
	char	   *d_piece;

	if (taken > job->left)
	{
		size_t		slab_bytes = Max(taken, job->next_block_bytes);
		char	   *d_slab = NULL;

		if (gs_device_pool_block_bytes(slab_bytes) <= unused)
			d_slab = gs_device_pool_allocate(&job->memory, slab_bytes);
		if (d_slab == NULL && gs_device_pool_block_bytes(taken) <= unused)
		{
			slab_bytes = taken;
			d_slab = gs_device_pool_allocate(&job->memory, slab_bytes);
		}
		if (d_slab == NULL)
			return NULL;
		job->d_next = d_slab;
		job->left = slab_bytes;
		job->next_block_bytes = Min(job->next_block_bytes * 2, MAX_BLOCK_BYTES);
	}
	d_piece = job->d_next;
	job->d_next += taken;
	job->left -= taken;
	return d_piece;
}

/* Room for one more entry in batches[], and in order[]. */
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

/* What there is beyond the bytes that the sort will need. */
static uint64_t
unused_bytes(const GsSortJob *job, uint64_t sort_bytes)
{
	uint64_t	left = gs_device_pool_available(&job->memory);

	return left < sort_bytes ? 0 : left - sort_bytes;
}

/*
 * Makes room on the device for a batch.  A load that would not leave room for
 * its own sort is refused while the sort can still be done elsewhere.
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
		d_rows = allocate_space(job, rows_bytes, unused_bytes(job, sort_bytes));
		if (d_rows == NULL)
			return NULL;
	}
	d_records = allocate_space(job, records_bytes, unused_bytes(job, sort_bytes));
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

/* The device has no memory for a batch of this feed; other feeds may go on. */
static void
refuse(GsProducer *producer, const char *text)
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

	/* the client may not know yet that the job failed */
	if (job == NULL || job->phase != GS_JOB_INPUT || producer->state != GS_PRODUCER_INPUT ||
		producer->buffer_is_ours[buffer])
		return;
	if (job->nrows + nrows > GS_MAX_JOB_ROWS)
	{
		refuse(producer, "too many rows for the device");
		return;
	}
	ops = job->device->ops;
	records_bytes = (size_t) nrows * job->record_bytes;
	batch = place_batch(producer, nrows, rows_bytes, records_bytes);
	if (batch == NULL)
	{
		refuse(producer, "not enough device memory for these rows");
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

	/* how many batches each has; then, where its next one goes */
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
