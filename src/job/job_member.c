/*-------------------------------------------------------------------------
 *
 * job_member.c
 *	  One sort: the parts of its consumer, producers and readers, and the use of
 *	  their buffers by the device.
 *
 * A member and its job refer to each other until one of them ends.  The device
 * may use a member's buffers after the job failed, and even after its client
 * disconnected.  Therefore a member is freed only after its last transfer, and
 * a job only after all transfers.
 *
 *-------------------------------------------------------------------------
 */
#include "job/job_internal.h"

#include <stdlib.h>


GsMember *
gs_job_consumer(GsSortJob *job)
{
	return &job->consumer;
}

bool
gs_job_has_producers(const GsSortJob *job)
{
	for (const GsMember *member = job->members; member != NULL; member = member->next)
		if (!member->is_reader)
			return true;
	return false;
}

/* -------------------------------------------------------------- join and leave */

/* Can the job, or will it be able to, send sorted rows? */
static bool
may_send(const GsSortJob *job)
{
	return !job->parked && (job->phase == GS_JOB_INPUT || job->phase == GS_JOB_SORTING ||
							job->phase == GS_JOB_SORTED);
}

/* Why a connection cannot join the job; NULL: it can. */
static const char *
why_not_join(const GsSortJob *job, const GsParticipant *participant, bool is_reader)
{
	uint32_t	buffer_bytes = participant->buffer_pool.buffer_bytes;

	if (is_reader ? !may_send(job) : job->phase != GS_JOB_INPUT)
		return is_reader ? "the sort has no rows to read" : "the sort takes no more rows";
	if (is_reader && buffer_bytes != gs_job_buffer_bytes(job))
		return "the buffers have another size than those of the consumer";
	if (buffer_bytes > gs_job_buffer_bytes(job))
		return "the buffers are larger than those of the consumer";
	if (participant->nwords != job->consumer.participant.nwords ||
		participant->keys_only != job->keys_only)
		return "the rows of the sort have another layout";
	return NULL;
}

GsMember *
gs_job_join(GsSortJob *job, const GsParticipant *participant, bool is_reader,
			const char **why_not)
{
	GsMember   *member;

	*why_not = why_not_join(job, participant, is_reader);
	if (*why_not != NULL)
		return NULL;
	*why_not = "gpusortd is out of memory";
	member = calloc(1, sizeof(GsMember));
	if (member == NULL)
		return NULL;
	if (is_reader)
	{
		member->output.spans = job->device->ops->allocate_host(job->device,
															   sizeof(GsBatchSpan) * GS_MAX_BUFFERS);
		if (member->output.spans == NULL)
		{
			free(member);
			return NULL;
		}
		gs_job_cancel_parking(job);
	}
	member->is_reader = is_reader;
	member->job = job;
	member->participant = *participant;
	member->next = job->members;
	job->members = member;
	return member;
}

/* Removes a member from its job. */
static void
detach(GsMember *member)
{
	GsSortJob  *job = member->job;
	GsMember  **link = &job->members;

	while (*link != member)
		link = &(*link)->next;
	*link = member->next;
	if (member->is_reader)
		job->device->ops->release_host(job->device, member->output.spans);
	member->job = NULL;
}

void
gs_job_detach_members(GsSortJob *job)
{
	while (job->members != NULL)
		detach(job->members);
}

/* Does the device still use the buffers? */
static bool
is_in_transfer(GsMember *member)
{
	GsSortJob  *job = member->job;
	uint32_t	last = (member->first_transfer + member->ntransfers - 1) % GS_MAX_BUFFERS;

	gs_job_check_fence(job);
	return !job->device_failed && member->ntransfers > 0 &&
		member->transfers[last].fence > job->passed_fence;
}

bool
gs_member_leave(GsMember *member)
{
	GsSortJob  *job = member->job;

	if (job != NULL)
	{
		member->state = GS_MEMBER_FAILED;
		if (job->phase == GS_JOB_INPUT && !member->is_reader)
			gs_job_fail(job, GS_FAILED_JOB,
						"a process disconnected before all its rows were sent");
		if (is_in_transfer(member))
			return false;
		detach(member);
	}
	free(member);
	return true;
}

void
gs_member_end(GsMember *producer)
{
	if (producer->job != NULL && producer->state != GS_MEMBER_FAILED)
		producer->state = GS_MEMBER_ENDING;
}

void
gs_job_fail_members(GsSortJob *job, const char *text)
{
	for (GsMember *member = job->members; member != NULL; member = member->next)
	{
		const GsJobEvents *events = &member->participant.events;

		if (member->state == GS_MEMBER_FAILED)
			continue;
		member->state = GS_MEMBER_FAILED;
		events->failed(events->arg, GS_FAILED_JOB, text);
	}
}

/* ----------------------------------------------------------------- transfers */

bool
gs_member_add_transfer(GsMember *member, GsTransfer *transfer)
{
	if (!gs_job_record_fence(member->job, &transfer->fence))
		return false;
	member->transfers[(member->first_transfer + member->ntransfers++) % GS_MAX_BUFFERS] = *transfer;
	return true;
}

static void
end_transfers(GsMember *member)
{
	const GsSortJob *job = member->job;

	while (member->ntransfers > 0 &&
		   member->transfers[member->first_transfer].fence <= job->passed_fence)
	{
		GsTransfer	transfer = member->transfers[member->first_transfer];

		member->first_transfer = (member->first_transfer + 1) % GS_MAX_BUFFERS;
		member->ntransfers--;
		if (transfer.upload)
			gs_member_end_upload(member, transfer.buffer);
		else
			gs_member_end_download(member, &transfer);
	}
}

static bool
has_ended(const GsMember *member)
{
	return member->state == GS_MEMBER_ENDING && member->ntransfers == 0;
}

void
gs_job_end_transfers(GsSortJob *job)
{
	GsMember   *next;

	end_transfers(&job->consumer);
	for (GsMember *member = job->members; member != NULL; member = next)
	{
		const GsJobEvents *events = &member->participant.events;

		next = member->next;
		end_transfers(member);
		if (has_ended(member))
		{
			detach(member);
			events->producer_done(events->arg, member->nrows);
			free(member);
		}
	}
}

bool
gs_job_has_ended_producers(const GsSortJob *job)
{
	for (const GsMember *member = job->members; member != NULL; member = member->next)
		if (has_ended(member))
			return true;
	return false;
}
