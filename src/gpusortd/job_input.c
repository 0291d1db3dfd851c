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

#define MAX_SLAB_BYTES		((size_t) 32 << 20)
#define FIRST_BATCHES		64

#define Min(a, b)		((a) < (b) ? (a) : (b))
#define Max(a, b)		((a) > (b) ? (a) : (b))

/* ------------------------------------------------------------------- feeders */

GsFeed *
gs_job_owner(GsSortJob *job)
{
	return &job->owner;
}

bool
gs_job_has_feeders(const GsSortJob *job)
{
	return job->feeders != NULL;
}

GsFeed *
gs_job_join(GsSortJob *job, uint32_t nwords, bool keys_only, const GsParticipant *feeder,
			const char **why_not)
{
	GsFeed	   *feed;

	if (job->phase != GS_JOB_LOADING)
		*why_not = "the sort takes no more rows";
	else if ((int) nwords != job->nwords || keys_only != job->keys_only)
		*why_not = "the rows of the sort have another form";
	else if (feeder->ring.slot_bytes > job->owner.participant.ring.slot_bytes)
		*why_not = "batches of this ring could not go through the owner's";
	else
	{
		feed = calloc(1, sizeof(GsFeed));
		if (feed == NULL)
		{
			*why_not = "the service has no memory for a feeder";
			return NULL;
		}
		feed->job = job;
		feed->participant = *feeder;
		feed->next = job->feeders;
		job->feeders = feed;
		return feed;
	}
	return NULL;
}

/* Takes a feed out of its job's list. */
static void
unlink_feed(GsFeed *feed)
{
	GsFeed	  **link = &feed->job->feeders;

	while (*link != feed)
		link = &(*link)->next;
	*link = feed->next;
}

void
gs_feed_end(GsFeed *feed)
{
	if (feed->job != NULL && feed->state != GS_FEED_FAILED)
		feed->state = GS_FEED_ENDING;
}

void
gs_job_fail_feeders(GsSortJob *job, const char *text)
{
	for (GsFeed *feed = job->feeders; feed != NULL; feed = feed->next)
	{
		const GsJobEvents *events = &feed->participant.events;

		if (feed->state == GS_FEED_FAILED)
			continue;
		feed->state = GS_FEED_FAILED;
		events->failed(events->arg, GS_FAILED_JOB, text);
	}
}

void
gs_job_cut_feeders(GsSortJob *job)
{
	for (GsFeed *feed = job->feeders; feed != NULL; feed = feed->next)
		feed->job = NULL;
}

/* Does the device read the feed's ring? */
static bool
is_read(GsFeed *feed)
{
	GsSortJob  *job = feed->job;
	uint32_t	last = (feed->first_transfer + feed->ntransfers - 1) % GS_MAX_SLOTS;

	gs_job_look(job);
	return !job->lost && feed->ntransfers > 0 && feed->transfers[last].ticket > job->reached;
}

bool
gs_feed_leave(GsFeed *feed)
{
	GsSortJob  *job = feed->job;

	if (job != NULL)
	{
		feed->state = GS_FEED_FAILED;
		if (job->phase == GS_JOB_LOADING)
			gs_job_fail(job, GS_FAILED_JOB,
						"a process that fed the sort has gone, and its rows with it");
		if (is_read(feed))
			return false;
		unlink_feed(feed);
	}
	free(feed);
	return true;
}

/* ----------------------------------------------------------------- transfers */

bool
gs_feed_add_transfer(GsFeed *feed, GsTransfer *transfer)
{
	if (!gs_job_mark(feed->job, &transfer->ticket))
		return false;
	feed->transfers[(feed->first_transfer + feed->ntransfers++) % GS_MAX_SLOTS] = *transfer;
	return true;
}

static void
end_upload(GsFeed *feed, uint32_t slot)
{
	GsSortJob  *job = feed->job;
	const GsJobEvents *events = &feed->participant.events;

	feed->slot_is_ours[slot] = false;
	if (--job->nuploads == 0)
		job->upload_us += gs_clock_us() - job->upload_start_us;
	if (feed->state != GS_FEED_FAILED)
		events->batch_free(events->arg, slot);
}

static void
end_transfers(GsFeed *feed)
{
	GsSortJob  *job = feed->job;

	while (feed->ntransfers > 0 &&
		   feed->transfers[feed->first_transfer].ticket <= job->reached)
	{
		GsTransfer	transfer = feed->transfers[feed->first_transfer];

		feed->first_transfer = (feed->first_transfer + 1) % GS_MAX_SLOTS;
		feed->ntransfers--;
		if (transfer.upload)
			end_upload(feed, transfer.slot);
		else
			gs_job_batch_arrived(job, &transfer);
	}
}

void
gs_job_end_transfers(GsSortJob *job)
{
	GsFeed	   *next;

	end_transfers(&job->owner);
	for (GsFeed *feed = job->feeders; feed != NULL; feed = next)
	{
		const GsJobEvents *events = &feed->participant.events;

		next = feed->next;
		end_transfers(feed);
		if (feed->state == GS_FEED_ENDING && feed->ntransfers == 0)
		{
			unlink_feed(feed);
			events->fed(events->arg, feed->nrows);
			free(feed);
		}
	}
}

bool
gs_job_has_to_end_feeds(const GsSortJob *job)
{
	for (const GsFeed *feed = job->feeders; feed != NULL; feed = feed->next)
		if (feed->state == GS_FEED_ENDING && feed->ntransfers == 0)
			return true;
	return false;
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

/* Room for one more entry in batches[], and in order[]. */
static bool
make_room(GsSortJob *job)
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
place_batch(GsFeed *feed, uint32_t nrows, size_t rows_bytes, size_t records_bytes)
{
	GsSortJob  *job = feed->job;
	uint64_t	sort_bytes = gs_job_sort_bytes(job, job->nrows + nrows,
											   job->nunits + rows_bytes / GS_ROW_ALIGN);
	char	   *d_rows = NULL;
	char	   *d_records;
	GsJobBatch *batch;

	if (gs_slab_left(&job->memory) < sort_bytes || !make_room(job))
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
	batch = &job->batches[job->nbatches++];
	*batch = (GsJobBatch)
	{
		.device = {
			.d_rows = d_rows,.d_records_top = d_records + records_bytes,
			.nrows = nrows,.nunits = (uint32_t) (rows_bytes / GS_ROW_ALIGN)
		},
		.participant = feed->participant.number
	};
	return &batch->device;
}

/* The device has no memory for a batch of this feed; other feeds may go on. */
static void
refuse(GsFeed *feed, const char *text)
{
	const GsJobEvents *events = &feed->participant.events;

	feed->state = GS_FEED_FULL;
	events->failed(events->arg, GS_FAILED_MEMORY, text);
}

void
gs_feed_batch_filled(GsFeed *feed, uint32_t slot, uint32_t nrows, uint32_t rows_bytes)
{
	GsSortJob  *job = feed->job;
	const GsRing *ring = &feed->participant.ring;
	const char *start = ring->base + (size_t) slot * ring->slot_bytes;
	GsTransfer	transfer = {.slot = slot,.upload = true};
	const GsDeviceOps *ops;
	size_t		records_bytes;
	GsDeviceBatch *batch;

	/* the client may not know yet that the job failed */
	if (job == NULL || job->phase != GS_JOB_LOADING || feed->state != GS_FEED_LOADING ||
		feed->slot_is_ours[slot])
		return;
	if (job->nrows + nrows > GS_MAX_JOB_ROWS)
	{
		refuse(feed, "there are more rows than the device can number");
		return;
	}
	ops = job->device->ops;
	records_bytes = (size_t) nrows * job->record_bytes;
	batch = place_batch(feed, nrows, rows_bytes, records_bytes);
	if (batch == NULL)
	{
		refuse(feed, "the device has no memory left for these rows");
		return;
	}
	feed->nrows += nrows;
	job->nrows += nrows;
	job->nunits += batch->nunits;
	if (rows_bytes > 0 &&
		!gs_job_check(job, ops->copy_in(job->stream, (char *) batch->d_rows, start, rows_bytes)))
		return;
	if (!gs_job_check(job, ops->copy_in(job->stream,
										(char *) batch->d_records_top - records_bytes,
										start + ring->slot_bytes - records_bytes,
										records_bytes)) ||
		!gs_feed_add_transfer(feed, &transfer))
		return;
	feed->slot_is_ours[slot] = true;
	if (job->nuploads++ == 0)
		job->upload_start_us = gs_clock_us();
}

/* -------------------------------------------------------------- input order */

void
gs_job_arrange(GsSortJob *job)
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
