/*-------------------------------------------------------------------------
 *
 * job_park.c
 *	  One sort: a sorted job that moves from the device to a file.
 *
 * README.md says why.  All batches of sorted rows are gathered as for the client, one after
 * the other through a few buffers:
 *
 *	  gather and copy to a buffer, on the job's stream	while buffers are free
 *	  write the buffer, by the thread of park_file.c	after the copy
 *	  free the buffer									after the write
 *
 * When all batches have been written, the device memory is freed.  From then on the fences
 * of the job are the numbers of requests of the file (gs_job_record_fence(),
 * gs_job_check_fence()), and batches are read into the shared buffers.  A batch occupies the
 * size of a buffer in the file.
 *
 * A write that fails only cancels parking; a read that fails later fails the job.
 *
 *-------------------------------------------------------------------------
 */
#include "job/job_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/log.h"

/* ---------------------------------------------------------------- being parked */

bool
gs_job_is_being_parked(const GsSortJob *job)
{
	return job->parking != NULL && !job->parked;
}

bool
gs_job_can_be_parked(const GsSortJob *job)
{
	return job->phase == GS_JOB_SORTED && job->idle_since_us != 0 && job->parking == NULL &&
		job->members == NULL && !job->device_failed && job->nrows > 0;
}

static void
free_buffers(GsSortJob *job)
{
	const GsDeviceOps *ops = job->device->ops;
	GsParking  *parking = job->parking;

	for (int i = 0; i < GS_PARK_BUFFERS; i++)
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
gs_job_park(GsSortJob *job, GsParkFolder *folder)
{
	const GsDeviceOps *ops = job->device->ops;
	GsParking  *parking = calloc(1, sizeof(GsParking));
	bool		complete;

	if (parking == NULL)
		return false;
	job->parking = parking;
	parking->file = gs_park_file_open(folder, job->nout * gs_job_buffer_bytes(job));
	parking->rows_bytes = malloc(job->nout * sizeof(uint32_t));
	complete = parking->file != NULL && parking->rows_bytes != NULL;
	if (complete)
		parking->spans = ops->allocate_host(job->device, GS_PARK_BUFFERS * sizeof(GsBatchSpan));
	complete = complete && parking->spans != NULL;
	for (int i = 0; i < GS_PARK_BUFFERS && complete; i++)
	{
		parking->buffers[i] = ops->allocate_host(job->device, gs_job_buffer_bytes(job));
		complete = parking->buffers[i] != NULL;
	}
	if (!complete)
		free_parking(job);
	return complete;
}

void
gs_job_cancel_parking(GsSortJob *job)
{
	if (gs_job_is_being_parked(job))
		job->parking->canceled = true;
}

/* Queues gathers for free buffers. */
static void
queue_gathers(GsSortJob *job)
{
	GsParking  *parking = job->parking;

	while (!parking->canceled && parking->ngathered < job->nout &&
		   parking->ngathered - gs_park_file_ncompleted(parking->file) < GS_PARK_BUFFERS)
	{
		uint64_t	batch = parking->ngathered;
		int			i = (int) (batch % GS_PARK_BUFFERS);

		if (!gs_job_queue_sorted(job, batch, parking->buffers[i], &parking->spans[i]) ||
			!gs_job_record_fence(job, &parking->fences[i]))
			return;
		parking->ngathered++;
	}
}

/* Requests writes of the batches that have been copied. */
static void
queue_writes(GsSortJob *job)
{
	GsParking  *parking = job->parking;
	uint32_t	buffer_bytes = gs_job_buffer_bytes(job);

	while (!parking->canceled && parking->nrequested < parking->ngathered &&
		   parking->fences[parking->nrequested % GS_PARK_BUFFERS] <= job->passed_fence)
	{
		uint64_t	batch = parking->nrequested;
		int			i = (int) (batch % GS_PARK_BUFFERS);

		parking->rows_bytes[batch] = gs_job_rows_bytes(job, batch, &parking->spans[i]);
		if (gs_park_file_request(parking->file, true, parking->buffers[i], buffer_bytes,
								 batch * buffer_bytes))
			parking->nrequested++;
		else
			parking->canceled = true;
	}
}

/* All batches are in the file: frees the device memory. */
static void
release_device(GsSortJob *job)
{
	free_buffers(job);
	gs_device_pool_free_all(&job->memory);
	job->parked = true;
	job->last_fence = job->passed_fence = gs_park_file_nrequested(job->parking->file);
}

void
gs_job_continue_parking(GsSortJob *job)
{
	GsParking  *parking = job->parking;

	if (!gs_job_is_being_parked(job) || job->device_failed)
		return;
	if (gs_park_file_error(parking->file) != 0 && !parking->canceled)
	{
		gs_log_limited("could not write a temporary file, so a sort keeps its device memory: %s",
					   strerror(gs_park_file_error(parking->file)));
		parking->canceled = true;
	}
	queue_writes(job);
	queue_gathers(job);
	if (gs_park_file_ncompleted(parking->file) == job->nout && !parking->canceled)
		release_device(job);
	else if (parking->canceled && gs_park_file_ncompleted(parking->file) == parking->nrequested &&
			 (parking->ngathered == 0 ||
			  parking->fences[(parking->ngathered - 1) % GS_PARK_BUFFERS] <= job->passed_fence))
		free_parking(job);
}

bool
gs_job_end_parking(GsSortJob *job)
{
	GsParking  *parking = job->parking;

	if (parking == NULL)
		return true;
	if (gs_park_file_ncompleted(parking->file) < gs_park_file_nrequested(parking->file))
		return false;
	free_parking(job);
	return true;
}

/* ---------------------------------------------------------------------- parked */

bool
gs_job_queue_parked(GsSortJob *job, uint64_t batch, char *to)
{
	uint32_t	buffer_bytes = gs_job_buffer_bytes(job);

	if (gs_park_file_request(job->parking->file, false, to, buffer_bytes, batch * buffer_bytes))
		return true;
	gs_job_fail(job, GS_FAILED_JOB, "gpusortd is out of memory");
	return false;
}

uint64_t
gs_job_parked_passed_fence(GsSortJob *job)
{
	/* in this order: a completed request has stored its error */
	uint64_t	passed_fence = gs_park_file_ncompleted(job->parking->file);
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
