/*-------------------------------------------------------------------------
 *
 * job_input.c
 *	  One sort: the upload of batches.
 *
 * Batches are stored one after the other in blocks; the rows of a batch are contiguous, and so are
 * its records.  The block size grows, so that a small job needs little memory and a large one few
 * blocks.
 *
 *-------------------------------------------------------------------------
 */
#include "job/job_internal.h"

#include <stdlib.h>

#include "common/basics.h"

#define MAX_BLOCK_BYTES		((size_t) 32 << 20)
#define FIRST_BATCHES		64

/*
 * A job may become so many times larger than it is, or than expected.  With 4, rows of
 * 100 bytes go to other devices when the job has taken six tenths of this one, and it can
 * grow to 2.4 times what this one could sort even if that was not expected.
 */
#define GROWTH				4
#define EXPECTED_GROWTH		2

/* -------------------------------------------------------------- uploads */

/*
 * What the sort of nrows rows will need when all others have arrived, if it needs sort_bytes now.
 */
static uint64_t
later_sort_bytes(const GsSortJob *job, uint64_t nrows, uint64_t nunits, uint64_t sort_bytes)
{
	double		now = (double) (nunits * GS_ROW_ALIGN + nrows * job->record_bytes + sort_bytes);
	double		growth = Max(GROWTH, EXPECTED_GROWTH * (double) job->memory.expected_bytes / now);

	growth = Min(growth, (double) GS_MAX_JOB_ROWS / (double) nrows);
	return gs_job_sort_bytes(job, (uint64_t) (growth * (double) nrows),
							 (uint64_t) (growth * (double) nunits));
}

/*
 * Adds a block for at least nbytes, by one of the functions that leave keep_bytes for the
 * sort.  It is as large as all before together; if that is too much, a half or a quarter
 * of it, and so on.  False: there is no memory.
 */
static bool
add_block(GsSortJob *job,
		  void *(*allocate) (GsJobMemory *memory, size_t nbytes, uint64_t keep_bytes),
		  size_t nbytes, uint64_t keep_bytes)
{
	size_t		block_bytes = Max(nbytes, job->next_block_bytes);
	char	   *d_block = allocate(&job->memory, block_bytes, keep_bytes);

	while (d_block == NULL && block_bytes > nbytes)
	{
		block_bytes = Max(nbytes, block_bytes / 2);
		d_block = allocate(&job->memory, block_bytes, keep_bytes);
	}
	if (d_block == NULL)
		return false;
	job->d_next = d_block;
	job->left = block_bytes;
	job->next_block_bytes = Min(job->next_block_bytes * 2, MAX_BLOCK_BYTES);
	return true;
}

/*
 * Allocates device memory for part of a batch: of this device, if the sort will have
 * enough there, too, when all rows have arrived; otherwise of others; otherwise of this
 * device, so that the rows so far can be sorted.
 */
static char *
allocate_space(GsSortJob *job, size_t nbytes, uint64_t sort_bytes, uint64_t later_bytes)
{
	size_t		nbytes_aligned = GS_DEVICE_ALIGN(nbytes);
	char	   *d_result;

	if (nbytes_aligned > job->left &&
		!add_block(job, gs_device_pool_allocate_rows, nbytes_aligned, later_bytes) &&
		!add_block(job, gs_device_pool_borrow_rows, nbytes_aligned, sort_bytes) &&
		!add_block(job, gs_device_pool_allocate_rows, nbytes_aligned, sort_bytes))
		return NULL;
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

/*
 * Allocates device memory for a batch.  A batch is refused if not enough memory
 * would be left for the sort, while the rows can still be sorted elsewhere.
 */
static GsDeviceBatch *
place_batch(GsMember *producer, uint32_t nrows, size_t rows_bytes, size_t records_bytes)
{
	GsSortJob  *job = producer->job;
	uint64_t	all_rows = job->nrows + nrows;
	uint64_t	all_units = job->nunits + rows_bytes / GS_ROW_ALIGN;
	uint64_t	sort_bytes = gs_job_sort_bytes(job, all_rows, all_units);
	uint64_t	later_bytes = later_sort_bytes(job, all_rows, all_units, sort_bytes);
	char	   *d_rows = NULL;
	char	   *d_records;
	GsJobBatch *batch;

	if (gs_device_pool_available(&job->memory) < sort_bytes || !reserve_space(job))
		return NULL;
	if (rows_bytes > 0)
	{
		d_rows = allocate_space(job, rows_bytes, sort_bytes, later_bytes);
		if (d_rows == NULL)
			return NULL;
	}
	d_records = allocate_space(job, records_bytes, sort_bytes, later_bytes);
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
report_full(GsMember *producer, const char *text)
{
	const GsJobEvents *events = &producer->participant.events;

	producer->state = GS_MEMBER_FULL;
	events->failed(events->arg, GS_FAILED_MEMORY, text);
}

void
gs_member_batch_filled(GsMember *producer, uint32_t buffer, uint32_t nrows, uint32_t rows_bytes)
{
	GsSortJob  *job = producer->job;
	const char *start = gs_member_buffer(producer, buffer);
	GsTransfer	transfer = {.buffer = buffer,.upload = true};
	const GsDeviceOps *ops;
	size_t		records_bytes;
	GsDeviceBatch *batch;

	/* the client may not have learned yet that the job failed */
	if (job == NULL || job->phase != GS_JOB_INPUT || producer->state != GS_MEMBER_INPUT ||
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
										start + producer->participant.buffer_pool.buffer_bytes -
										records_bytes,
										records_bytes)) ||
		!gs_member_add_transfer(producer, &transfer))
		return;
	producer->buffer_is_ours[buffer] = true;
	if (job->nuploads++ == 0)
		job->upload_start_us = gs_clock_us();
}

void
gs_member_end_upload(GsMember *producer, uint32_t buffer)
{
	GsSortJob  *job = producer->job;
	const GsJobEvents *events = &producer->participant.events;

	producer->buffer_is_ours[buffer] = false;
	if (--job->nuploads == 0)
		job->upload_us += gs_clock_us() - job->upload_start_us;
	if (producer->state != GS_MEMBER_FAILED)
		events->batch_free(events->arg, buffer);
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
