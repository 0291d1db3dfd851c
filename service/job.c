/*-------------------------------------------------------------------------
 *
 * job.c
 *	  One sort: its life, its slots, and its batches on their way up.
 *
 * All work of a job goes through one stream, so it is done in the order in
 * which it was queued, and memory may be used again by what is queued later
 * without a look at the clock.  Only what the host does waits for tickets: it
 * reads what was copied out, tells the client that a slot is its own again,
 * gives memory back to the pool.
 *
 * Copies up and down do not overlap within a job, which has either to do; a
 * gather takes a twentieth of the time of the copy behind it, so a second
 * stream would gain no more than that.
 *
 * Batches are put one behind the other in slabs, rows and records each in one
 * piece.  The slabs grow, so that a small job takes little and a large one few.
 *
 *-------------------------------------------------------------------------
 */
#include "job.h"

#include <stdlib.h>
#include <string.h>

#include "job_parts.h"
#include "log.h"

#define FIRST_SLAB_BYTES	((size_t) 1 << 20)
#define MAX_SLAB_BYTES		((size_t) 32 << 20)
#define FIRST_BATCHES		64

#define Min(a, b)		((a) < (b) ? (a) : (b))
#define Max(a, b)		((a) > (b) ? (a) : (b))

/* -------------------------------------------------------------------- life */

GsSortJob *
gs_job_open(GsDevice *device, const GsJobMemory *memory, const GsRing *ring,
			uint32_t nwords, bool keys_only, const GsJobEvents *events)
{
	const GsDeviceOps *ops = device->ops;
	GsSortJob  *job = calloc(1, sizeof(GsSortJob));

	if (job == NULL)
		return NULL;
	job->device = device;
	job->memory = *memory;
	job->ring = *ring;
	job->events = *events;
	job->keys_only = keys_only;
	job->nwords = (int) nwords;
	job->record_bytes = (uint32_t) sizeof(uint64_t) * (nwords + (keys_only ? 0 : 1));
	job->phase = GS_JOB_LOADING;
	job->next_slab_bytes = FIRST_SLAB_BYTES;
	job->pinned = ops->allocate_host(device, sizeof(GsJobPinned));
	if (job->pinned != NULL)
		job->stream = ops->stream_open(device);
	if (job->stream == NULL)
	{
		if (job->pinned != NULL)
			ops->release_host(device, job->pinned);
		free(job);
		return NULL;
	}
	return job;
}

/* Notes which tickets were reached.  A broken device has nothing left to do. */
static void
look(GsSortJob *job)
{
	if (!job->lost && job->reached < job->marked)
		gs_job_check(job, job->device->ops->reached(job->stream, &job->reached));
}

bool
gs_job_close(GsSortJob *job)
{
	const GsDeviceOps *ops = job->device->ops;
	uint64_t	ticket;

	/* the first time; what was being queued when the job failed is behind no mark yet */
	if (job->phase != GS_JOB_CLOSING)
	{
		job->phase = GS_JOB_CLOSING;
		if (!job->lost)
			gs_job_mark(job, &ticket);
	}
	look(job);
	if (!job->lost && job->reached < job->marked)
		return false;
	ops->stream_close(job->stream);
	gs_slab_give_all(&job->memory);
	if (job->sort.cuts != NULL)
		ops->release_host(job->device, job->sort.cuts);
	if (job->batches != NULL)
		ops->release_host(job->device, job->batches);
	ops->release_host(job->device, job->pinned);
	free(job);
	return true;
}

void
gs_job_fail(GsSortJob *job, GsFailure failure, const char *text)
{
	if (job->phase == GS_JOB_CLOSING)
		return;
	job->phase = failure == GS_FAILED_MEMORY ? GS_JOB_FULL : GS_JOB_FAILED;
	job->sort.go_on = NULL;
	job->events.failed(job->events.arg, failure, text);
}

bool
gs_job_check(GsSortJob *job, bool device_is_fine)
{
	if (!device_is_fine && !job->lost)
	{
		job->lost = true;
		gs_job_fail(job, GS_FAILED_DEVICE, job->device->error);
	}
	return device_is_fine;
}

bool
gs_job_mark(GsSortJob *job, uint64_t *ticket)
{
	if (!gs_job_check(job, job->device->ops->mark(job->stream, ticket)))
		return false;
	job->marked = *ticket;
	return true;
}

/* ------------------------------------------------------------------- slots */

void
gs_job_slot_released(GsSortJob *job, uint32_t slot)
{
	if (job->slot_is_ours[slot])
		return;					/* a batch on its way up, which the client cannot mean */
	job->slot_is_ours[slot] = true;
	gs_job_free_slot(job, slot);
}

void
gs_job_free_slot(GsSortJob *job, uint32_t slot)
{
	job->free_slots[job->nfree++] = slot;
}

bool
gs_job_add_transfer(GsSortJob *job, GsTransfer *transfer)
{
	if (!gs_job_mark(job, &transfer->ticket))
		return false;
	job->transfers[(job->first_transfer + job->ntransfers++) % GS_MAX_SLOTS] = *transfer;
	return true;
}

/* Ends the transfers that are through. */
static void
end_transfers(GsSortJob *job)
{
	while (job->ntransfers > 0 &&
		   job->transfers[job->first_transfer].ticket <= job->reached)
	{
		GsTransfer	transfer = job->transfers[job->first_transfer];

		job->first_transfer = (job->first_transfer + 1) % GS_MAX_SLOTS;
		job->ntransfers--;
		if (transfer.upload)
		{
			job->slot_is_ours[transfer.slot] = false;
			if (--job->nuploads == 0)
				job->upload_us += gs_clock_us() - job->upload_start_us;
			job->events.batch_free(job->events.arg, transfer.slot);
		}
		else
			gs_job_batch_arrived(job, &transfer);
	}
}

/* -------------------------------------------------------------- batches up */

/*
 * A piece of device memory for part of a batch, out of a slab as large as all
 * before, or of a smaller one where no more than spare bytes are to be taken.
 */
static char *
take_piece(GsSortJob *job, size_t nbytes, uint64_t spare)
{
	size_t		taken = GS_DEVICE_ALIGN(nbytes);
	char	   *d_piece;

	if (taken > job->left)
	{
		size_t		slab_bytes = Max(taken, job->next_slab_bytes);
		char	   *d_slab = NULL;

		if (gs_slab_bytes(slab_bytes) <= spare)
			d_slab = gs_slab_take(&job->memory, slab_bytes);
		if (d_slab == NULL && gs_slab_bytes(taken) <= spare)
		{
			slab_bytes = taken;
			d_slab = gs_slab_take(&job->memory, slab_bytes);
		}
		if (d_slab == NULL)
			return NULL;
		job->d_next = d_slab;
		job->left = slab_bytes;
		job->next_slab_bytes = Min(job->next_slab_bytes * 2, MAX_SLAB_BYTES);
	}
	d_piece = job->d_next;
	job->d_next += taken;
	job->left -= taken;
	return d_piece;
}

/* One more entry in batches[], which is pinned since it is copied up in the end. */
static GsDeviceBatch *
add_batch(GsSortJob *job)
{
	const GsDeviceOps *ops = job->device->ops;

	if (job->nbatches == job->batches_allocated)
	{
		uint32_t	nallocated = Max(2 * job->batches_allocated, FIRST_BATCHES);
		GsDeviceBatch *batches = ops->allocate_host(job->device,
													nallocated * sizeof(GsDeviceBatch));

		if (batches == NULL)
			return NULL;
		if (job->batches != NULL)
		{
			memcpy(batches, job->batches, job->nbatches * sizeof(GsDeviceBatch));
			ops->release_host(job->device, job->batches);
		}
		job->batches = batches;
		job->batches_allocated = nallocated;
	}
	return &job->batches[job->nbatches++];
}

/* What there is beyond the bytes that the sort will need. */
static uint64_t
spare_bytes(const GsSortJob *job, uint64_t sort_bytes)
{
	uint64_t	left = gs_slab_left(&job->memory);

	return left < sort_bytes ? 0 : left - sort_bytes;
}

/*
 * Makes room on the device for a batch.  A load that would not leave room for
 * its own sort is refused while the sort can still be done elsewhere.
 */
static GsDeviceBatch *
place_batch(GsSortJob *job, uint32_t nrows, size_t rows_bytes, size_t records_bytes)
{
	uint64_t	sort_bytes = gs_job_sort_bytes(job, job->nrows + nrows,
											   job->nunits + rows_bytes / GS_ROW_ALIGN);
	char	   *d_rows = NULL;
	char	   *d_records;
	GsDeviceBatch *batch;

	if (gs_slab_left(&job->memory) < sort_bytes)
		return NULL;
	if (rows_bytes > 0)
	{
		d_rows = take_piece(job, rows_bytes, spare_bytes(job, sort_bytes));
		if (d_rows == NULL)
			return NULL;
	}
	d_records = take_piece(job, records_bytes, spare_bytes(job, sort_bytes));
	if (d_records == NULL)
		return NULL;
	batch = add_batch(job);
	if (batch == NULL)
		return NULL;
	*batch = (GsDeviceBatch)
	{
		.first_row = job->nrows,.d_rows = d_rows,.d_records_top = d_records + records_bytes,
		.nrows = nrows,.nunits = (uint32_t) (rows_bytes / GS_ROW_ALIGN)
	};
	return batch;
}

void
gs_job_batch_filled(GsSortJob *job, uint32_t slot, uint32_t nrows, uint32_t rows_bytes)
{
	const GsDeviceOps *ops = job->device->ops;
	const char *start = job->ring.base + (size_t) slot * job->ring.slot_bytes;
	size_t		records_bytes = (size_t) nrows * job->record_bytes;
	GsTransfer	transfer = {.slot = slot,.upload = true};
	GsDeviceBatch *batch;

	/* the client may not know yet that the job failed */
	if (job->phase != GS_JOB_LOADING || job->slot_is_ours[slot])
		return;
	if (job->nrows + nrows > GS_MAX_JOB_ROWS)
	{
		gs_job_fail(job, GS_FAILED_MEMORY, "there are more rows than the device can number");
		return;
	}
	batch = place_batch(job, nrows, rows_bytes, records_bytes);
	if (batch == NULL)
	{
		gs_job_fail(job, GS_FAILED_MEMORY, "the device has no memory left for these rows");
		return;
	}
	job->nrows += nrows;
	job->nunits += batch->nunits;
	if (rows_bytes > 0 &&
		!gs_job_check(job, ops->copy_in(job->stream, (char *) batch->d_rows, start, rows_bytes)))
		return;
	if (!gs_job_check(job, ops->copy_in(job->stream,
										(char *) batch->d_records_top - records_bytes,
										start + job->ring.slot_bytes - records_bytes,
										records_bytes)) ||
		!gs_job_add_transfer(job, &transfer))
		return;
	job->slot_is_ours[slot] = true;
	if (job->nuploads++ == 0)
		job->upload_start_us = gs_clock_us();
}

/* -------------------------------------------------------------------- poll */

bool
gs_job_busy(const GsSortJob *job)
{
	return !job->lost && (job->reached < job->marked || gs_job_has_to_hand_out(job));
}

void
gs_job_poll(GsSortJob *job)
{
	look(job);
	if (job->lost)
		return;
	end_transfers(job);
	if (job->sort.go_on != NULL && job->sort.ticket <= job->reached)
	{
		GsSortContinuation go_on = job->sort.go_on;

		job->sort.go_on = NULL;
		go_on(job);
	}
	gs_job_hand_out(job);
}
