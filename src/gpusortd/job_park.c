/*-------------------------------------------------------------------------
 *
 * job_park.c
 *	  One sort: a sorted job that moves from the device to a file.
 *
 * A cursor may rest for hours on device memory that others wait for, and its
 * backend sleeps until its client says something.  So the service does it
 * alone: all batches of sorted rows, since a FETCH may ask for any, are gathered
 * as they are for the client, one after the other through a few buffers:
 *
 *	  gather and copy out, on the job's stream		as far as there are buffers
 *	  write, by the disk's thread					once that is through
 *	  the buffer is free							once that is
 *
 * When all are written the device memory goes back, and from then on tickets
 * are those of the file (gs_job_record_fence, gs_job_check_fence): batches are read into the
 * slots as they were copied there.  A batch takes as much of the file as a slot.
 *
 * Until then nothing is lost: a write that fails, a full disk for one, or a client
 * that comes back in the middle, ends it, and the device has everything.  A read that
 * fails later is the end of the job.
 *
 *-------------------------------------------------------------------------
 */
#include "gpusortd/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpusortd/job_internal.h"
#include "gpusortd/log.h"

/* The device gathers into some while the disk writes others. */
#define NBUFFERS	4

struct GsParking
{
	GsDiskFile *file;
	bool		stops;			/* no more batches: it ends as soon as it can */
	uint32_t   *rows_bytes;		/* of each batch that was gathered */

	/* batches from the first on are: in the file, in the writer's hands, gathered */
	uint64_t	ngathered;
	uint64_t	nasked;
	uint64_t	tickets[NBUFFERS];	/* of batch i in i % NBUFFERS */
	GsBatchSpan *spans;			/* the same; pinned, as are the buffers */
	char	   *buffers[NBUFFERS];
};

/* ------------------------------------------------------------ on the way there */

bool
gs_job_is_being_parked(const GsSortJob *job)
{
	return job->parking != NULL && !job->parked;
}

bool
gs_job_can_be_parked(const GsSortJob *job)
{
	return job->phase == GS_JOB_SORTED && job->rests_since != 0 && job->parking == NULL &&
		!job->device_lost && job->nrows > 0;
}

static void
free_buffers(GsSortJob *job)
{
	const GsDeviceOps *ops = job->device->ops;
	GsParking  *parking = job->parking;

	for (int i = 0; i < NBUFFERS; i++)
	{
		if (parking->buffers[i] != NULL)
			ops->release_host(job->device, parking->buffers[i]);
		parking->buffers[i] = NULL;
	}
	if (parking->spans != NULL)
		ops->release_host(job->device, parking->spans);
	parking->spans = NULL;
}

static void
free_parking(GsSortJob *job)
{
	GsParking  *parking = job->parking;

	free_buffers(job);
	if (parking->file != NULL)
		gs_park_file_close(parking->file);
	free(parking->rows_bytes);
	free(parking);
	job->parking = NULL;
}

bool
gs_job_park(GsSortJob *job, GsParkFile *disk)
{
	const GsDeviceOps *ops = job->device->ops;
	GsParking  *parking = calloc(1, sizeof(GsParking));
	bool		complete;

	if (parking == NULL)
		return false;
	job->parking = parking;
	parking->file = gs_park_file_open(disk, job->nout * gs_job_buffer_bytes(job));
	parking->rows_bytes = malloc(job->nout * sizeof(uint32_t));
	complete = parking->file != NULL && parking->rows_bytes != NULL;
	if (complete)
		parking->spans = ops->allocate_host(job->device, NBUFFERS * sizeof(GsBatchSpan));
	complete = complete && parking->spans != NULL;
	for (int i = 0; i < NBUFFERS && complete; i++)
	{
		parking->buffers[i] = ops->allocate_host(job->device, gs_job_buffer_bytes(job));
		complete = parking->buffers[i] != NULL;
	}
	if (!complete)
		free_parking(job);
	return complete;
}

void
gs_job_stop_parking(GsSortJob *job)
{
	if (gs_job_is_being_parked(job))
		job->parking->stops = true;
}

/* Queues batches for the buffers that are free. */
static void
gather(GsSortJob *job)
{
	GsParking  *parking = job->parking;

	while (!parking->stops && parking->ngathered < job->nout &&
		   parking->ngathered - gs_park_file_done(parking->file) < NBUFFERS)
	{
		uint64_t	batch = parking->ngathered;
		int			i = (int) (batch % NBUFFERS);

		if (!gs_job_queue_sorted(job, batch, parking->buffers[i], &parking->spans[i]) ||
			!gs_job_record_fence(job, &parking->tickets[i]))
			return;
		parking->ngathered++;
	}
}

/* Has those written that have come. */
static void
write_gathered(GsSortJob *job)
{
	GsParking  *parking = job->parking;
	uint32_t	buffer_bytes = gs_job_buffer_bytes(job);

	while (!parking->stops && parking->nasked < parking->ngathered &&
		   parking->tickets[parking->nasked % NBUFFERS] <= job->passed_fence)
	{
		uint64_t	batch = parking->nasked;
		int			i = (int) (batch % NBUFFERS);

		parking->rows_bytes[batch] = gs_job_rows_bytes(job, batch, &parking->spans[i]);
		if (gs_park_file_write(parking->file, parking->buffers[i], buffer_bytes, batch * buffer_bytes))
			parking->nasked++;
		else
			parking->stops = true;
	}
}

/* All is in the file: the device is done with the job. */
static void
leave_device(GsSortJob *job)
{
	free_buffers(job);
	gs_device_pool_free_all(&job->memory);
	job->parked = true;
	job->marked = job->passed_fence = gs_park_file_asked(job->parking->file);
}

void
gs_job_go_on_parking(GsSortJob *job)
{
	GsParking  *parking = job->parking;

	if (!gs_job_is_being_parked(job) || job->device_lost)
		return;
	if (gs_park_file_error(parking->file) != 0 && !parking->stops)
	{
		gs_log_limited("could not write a temporary file, so a sort keeps its device memory: %s",
					   strerror(gs_park_file_error(parking->file)));
		parking->stops = true;
	}
	write_gathered(job);
	gather(job);
	if (gs_park_file_done(parking->file) == job->nout && !parking->stops)
		leave_device(job);
	else if (parking->stops && gs_park_file_done(parking->file) == parking->nasked &&
			 (parking->ngathered == 0 ||
			  parking->tickets[(parking->ngathered - 1) % NBUFFERS] <= job->passed_fence))
		free_parking(job);
}

bool
gs_job_end_parking(GsSortJob *job)
{
	GsParking  *parking = job->parking;

	if (parking == NULL)
		return true;
	if (gs_park_file_done(parking->file) < gs_park_file_asked(parking->file))
		return false;
	free_parking(job);
	return true;
}

/* ----------------------------------------------------------------------- there */

bool
gs_job_queue_parked(GsSortJob *job, uint64_t batch, char *to)
{
	uint32_t	buffer_bytes = gs_job_buffer_bytes(job);

	if (gs_park_file_read(job->parking->file, to, buffer_bytes, batch * buffer_bytes))
		return true;
	gs_job_fail(job, GS_FAILED_JOB, "gpusortd is out of memory");
	return false;
}

uint32_t
gs_job_parked_bytes(const GsSortJob *job, uint64_t batch)
{
	return job->parking->rows_bytes[batch];
}

uint64_t
gs_job_parked_mark(const GsSortJob *job)
{
	return gs_park_file_asked(job->parking->file);
}

uint64_t
gs_job_parked_reached(GsSortJob *job)
{
	/* in this order: what is done by then has left its error */
	uint64_t	passed_fence = gs_park_file_done(job->parking->file);
	int			error = gs_park_file_error(job->parking->file);
	char		text[GS_FAILED_TEXT_BYTES];

	if (error != 0 && job->phase != GS_JOB_FAILED && job->phase != GS_JOB_CLOSING)
	{
		snprintf(text, sizeof(text), "could not read a temporary file of sorted rows: %s",
				 strerror(error));
		gs_job_fail(job, GS_FAILED_JOB, text);
	}
	return passed_fence;
}
