/*-------------------------------------------------------------------------
 *
 * job.c
 *	  One sort: opens, closes and polls it.
 *
 * All work of a job goes through one stream and is done in the order in which it
 * was queued.  So memory can be reused by later work without waiting.  Only
 * actions of the host wait for fences: reading copied results, returning a
 * buffer to the client, and freeing memory.
 *
 * A second stream would gain little: uploads and downloads do not overlap within
 * a job, and a gather takes a twentieth of the time of the copy that follows.
 *
 *-------------------------------------------------------------------------
 */
#include "job/job_internal.h"

#include <stdlib.h>

#include "common/basics.h"

/* -------------------------------------------------------------------- life */

GsSortJob *
gs_job_open(GsDevice *device, const GsJobMemory *memory, const GsParticipant *consumer)
{
	const GsDeviceOps *ops = device->ops;
	GsSortJob  *job = calloc(1, sizeof(GsSortJob));

	if (job == NULL)
		return NULL;
	job->device = device;
	job->memory = *memory;
	job->consumer.job = job;
	job->consumer.participant = *consumer;
	job->keys_only = consumer->keys_only;
	job->record_bytes = (uint32_t) sizeof(uint64_t) *
		(consumer->nwords + (consumer->keys_only ? 0 : 1));
	job->phase = GS_JOB_INPUT;
	job->next_block_bytes = GS_FIRST_BLOCK_BYTES;
	job->idle_since_us = gs_clock_us();
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
	job->consumer.output.spans = job->pinned->spans;
	return job;
}

void
gs_job_check_fence(GsSortJob *job)
{
	if (job->parked)
		job->passed_fence = gs_job_parked_passed_fence(job);
	else if (!job->device_failed && job->passed_fence < job->last_fence)
		gs_job_check(job, job->device->ops->passed_fence(job->stream, &job->passed_fence));
}

bool
gs_job_close(GsSortJob *job)
{
	const GsDeviceOps *ops = job->device->ops;
	uint64_t	fence;

	/* work that was being queued when the job failed has no fence yet */
	if (job->phase != GS_JOB_CLOSING)
	{
		job->phase = GS_JOB_CLOSING;
		gs_job_fail_members(job, "the consumer has ended the sort");
		if (!job->device_failed)
			gs_job_record_fence(job, &fence);
	}
	gs_job_check_fence(job);
	if (!job->device_failed && job->passed_fence < job->last_fence)
		return false;
	if (!gs_job_end_parking(job))
		return false;
	ops->stream_close(job->stream);
	gs_job_detach_members(job);
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
	job->sort.continuation = NULL;
	events->failed(events->arg, failure, text);
	if (failure == GS_FAILED_JOB)
		gs_job_fail_members(job, text);
}

bool
gs_job_check(GsSortJob *job, bool device_is_fine)
{
	if (!device_is_fine && !job->device_failed)
	{
		job->device_failed = true;
		gs_job_fail(job, GS_FAILED_DEVICE, job->device->error);
	}
	return device_is_fine;
}

bool
gs_job_record_fence(GsSortJob *job, uint64_t *fence)
{
	if (job->parked)
		*fence = gs_park_file_nrequested(job->parking->file);
	else if (!gs_job_check(job, job->device->ops->record_fence(job->stream, fence)))
		return false;
	job->last_fence = *fence;
	return true;
}

/* -------------------------------------------------------------------- poll */

/* Is there anything to do? */
static bool
has_work(const GsSortJob *job)
{
	return job->passed_fence < job->last_fence || gs_job_has_ended_producers(job) ||
		gs_job_has_output(job);
}

bool
gs_job_busy(const GsSortJob *job)
{
	return !job->device_failed && (has_work(job) || gs_job_is_being_parked(job));
}

/* A job that had work at the previous call may have finished it meanwhile. */
static void
update_idle_since(GsSortJob *job, bool had_work)
{
	if (has_work(job))
		job->idle_since_us = 0;
	else if (had_work || job->idle_since_us == 0)
		job->idle_since_us = gs_clock_us();
}

void
gs_job_poll(GsSortJob *job)
{
	bool		had_work = has_work(job);

	gs_job_check_fence(job);
	if (job->device_failed)
		return;
	gs_job_end_transfers(job);
	if (job->sort.continuation != NULL && job->sort.fence <= job->passed_fence)
	{
		GsSortContinuation continuation = job->sort.continuation;

		job->sort.continuation = NULL;
		continuation(job);
	}
	gs_job_send_output(job);
	gs_job_continue_parking(job);
	update_idle_since(job, had_work);
}

const GsJobMemory *
gs_job_memory(const GsSortJob *job)
{
	return &job->memory;
}

uint64_t
gs_job_idle_since(const GsSortJob *job)
{
	return job->idle_since_us;
}
