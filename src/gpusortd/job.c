/*-------------------------------------------------------------------------
 *
 * job.c
 *	  One sort: its life.
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
 *-------------------------------------------------------------------------
 */
#include "gpusortd/job.h"

#include <stdlib.h>

#include "gpusortd/job_internal.h"
#include "gpusortd/log.h"

/* -------------------------------------------------------------------- life */

GsSortJob *
gs_job_open(GsDevice *device, const GsJobMemory *memory,
			uint32_t nwords, bool keys_only, const GsParticipant *consumer)
{
	const GsDeviceOps *ops = device->ops;
	GsSortJob  *job = calloc(1, sizeof(GsSortJob));

	if (job == NULL)
		return NULL;
	job->device = device;
	job->memory = *memory;
	job->consumer.job = job;
	job->consumer.participant = *consumer;
	job->keys_only = keys_only;
	job->nwords = (int) nwords;
	job->record_bytes = (uint32_t) sizeof(uint64_t) * (nwords + (keys_only ? 0 : 1));
	job->phase = GS_JOB_INPUT;
	job->next_block_bytes = GS_FIRST_BLOCK_BYTES;
	job->rests_since = gs_clock_us();
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

/* A broken device has nothing left to do. */
void
gs_job_check_fence(GsSortJob *job)
{
	if (job->parked)
		job->passed_fence = gs_job_parked_reached(job);
	else if (!job->device_lost && job->passed_fence < job->marked)
		gs_job_check(job, job->device->ops->passed_fence(job->stream, &job->passed_fence));
}

bool
gs_job_close(GsSortJob *job)
{
	const GsDeviceOps *ops = job->device->ops;
	uint64_t	fence;

	/* the first time; what was being queued when the job failed is behind no mark yet */
	if (job->phase != GS_JOB_CLOSING)
	{
		job->phase = GS_JOB_CLOSING;
		gs_job_fail_producers(job, "the leader of the sort has ended it");
		if (!job->device_lost)
			gs_job_record_fence(job, &fence);
	}
	gs_job_check_fence(job);
	if (!job->device_lost && job->passed_fence < job->marked)
		return false;
	if (!gs_job_end_parking(job))
		return false;
	ops->stream_close(job->stream);
	gs_job_detach_producers(job);
	if (!job->parked)
		gs_device_pool_free_all(&job->memory);
	if (job->sort.boundaries != NULL)
		ops->release_host(job->device, job->sort.boundaries);
	if (job->sort.batches != NULL)
		ops->release_host(job->device, job->sort.batches);
	ops->release_host(job->device, job->pinned);
	free(job->batches);
	free(job->order);
	free(job);
	return true;
}

void
gs_job_fail(GsSortJob *job, GsFailure failure, const char *text)
{
	const GsJobEvents *events = &job->consumer.participant.events;

	if (job->phase == GS_JOB_CLOSING)
		return;
	job->phase = failure == GS_FAILED_MEMORY ? GS_JOB_FULL : GS_JOB_FAILED;
	job->sort.go_on = NULL;
	events->failed(events->arg, failure, text);
	if (failure == GS_FAILED_JOB)
		gs_job_fail_producers(job, text);
}

bool
gs_job_check(GsSortJob *job, bool device_is_fine)
{
	if (!device_is_fine && !job->device_lost)
	{
		job->device_lost = true;
		gs_job_fail(job, GS_FAILED_DEVICE, job->device->error);
	}
	return device_is_fine;
}

bool
gs_job_record_fence(GsSortJob *job, uint64_t *fence)
{
	if (job->parked)
		*fence = gs_job_parked_mark(job);
	else if (!gs_job_check(job, job->device->ops->record_fence(job->stream, fence)))
		return false;
	job->marked = *fence;
	return true;
}

/* -------------------------------------------------------------------- poll */

/* Is there anything to do for the client? */
static bool
has_work(const GsSortJob *job)
{
	return job->passed_fence < job->marked || gs_job_has_to_end_producers(job) || gs_job_has_to_emit(job);
}

bool
gs_job_busy(const GsSortJob *job)
{
	return !job->device_lost && (has_work(job) || gs_job_is_being_parked(job));
}

/* Between two calls everything that the client wanted may have been done. */
static void
note_rest(GsSortJob *job, bool worked)
{
	if (has_work(job))
		job->rests_since = 0;
	else if (worked || job->rests_since == 0)
		job->rests_since = gs_clock_us();
}

void
gs_job_poll(GsSortJob *job)
{
	bool		worked = has_work(job);

	gs_job_check_fence(job);
	if (job->device_lost)
		return;
	gs_job_end_transfers(job);
	if (job->sort.go_on != NULL && job->sort.fence <= job->passed_fence)
	{
		GsSortContinuation go_on = job->sort.go_on;

		job->sort.go_on = NULL;
		go_on(job);
	}
	gs_job_emit(job);
	gs_job_go_on_parking(job);
	note_rest(job, worked);
}

uint64_t
gs_job_commitment(const GsSortJob *job)
{
	return job->parked ? 0 : gs_device_pool_commitment(&job->memory);
}

uint64_t
gs_job_rests_since(const GsSortJob *job)
{
	return job->rests_since;
}
