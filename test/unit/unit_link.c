/*-------------------------------------------------------------------------
 *
 * unit_link.c
 *	  A link (engine_link.h) to a job in this process: no socket between.
 *
 *-------------------------------------------------------------------------
 */
#include "unit_link.h"

#include <stdlib.h>
#include <string.h>

#include "unit_check.h"

#define DEVICE_BYTES	((uint64_t) 4 << 30)

/* Of every job that is shared: there is one of an owner. */
#define TICKET			UINT64_C(0xFEED)

/* A job that is busy has a message at last, after so many looks. */
#define MAX_POLLS	1000000

/* ----------------------------------------------------------- from the job */

static GsAnyMessage *
put(UnitLink *link, uint32_t type, size_t nbytes)
{
	GsAnyMessage *message = &link->queue[link->tail % UNIT_LINK_QUEUE];

	CHECK(link->tail - link->head < UNIT_LINK_QUEUE);
	link->tail++;
	memset(message, 0, sizeof(*message));
	message->message.type = type;
	message->message.nbytes = (uint32_t) nbytes;
	return message;
}

static void
on_batch_free(void *arg, uint32_t slot)
{
	put(arg, GS_MESSAGE_BATCH_FREE, sizeof(GsSlotMessage))->slot.slot = slot;
}

static void
on_fed(void *arg, uint64_t nrows)
{
	UnitLink   *link = arg;

	link->feed = NULL;
	put(link, GS_MESSAGE_FED, sizeof(GsFed))->fed.nrows = nrows;
}

static void
on_sorted(void *arg, const GsSorted *sorted)
{
	GsAnyMessage *message = put(arg, GS_MESSAGE_SORTED, sizeof(GsSorted));
	GsMessage	head = message->message;

	message->sorted = *sorted;
	message->message = head;
}

static void
on_batch_ready(void *arg, const GsBatchReady *ready)
{
	GsAnyMessage *message = put(arg, GS_MESSAGE_BATCH_READY, sizeof(GsBatchReady));
	GsMessage	head = message->message;

	message->ready = *ready;
	message->message = head;
}

static void
on_failed(void *arg, GsFailure failure, const char *text)
{
	GsAnyMessage *message = put(arg, GS_MESSAGE_FAILED, sizeof(GsFailed));

	((UnitLink *) arg)->failure = failure;
	message->failed.failure = failure;
	strncpy(message->failed.text, text, sizeof(message->failed.text) - 1);
}

static GsParticipant
participant_of(UnitLink *link, uint32_t number)
{
	GsParticipant participant = {
		.ring = link->ring,
		.number = number,
		.events = {link, on_batch_free, on_fed, on_sorted, on_batch_ready, on_failed}
	};

	return participant;
}

/* ------------------------------------------------------------- to the job */

static void
open_job(UnitLink *link, const GsJobOpen *open)
{
	GsParticipant owner = participant_of(link, open->participant);
	GsJobMemory memory = {0};

	CHECK(link->job == NULL);
	if (!gs_slab_admit(link->pool, NULL, open->expected_bytes, &memory))
	{
		on_failed(link, GS_FAILED_MEMORY, "no memory");
		return;
	}
	link->job = gs_job_open(link->device, &memory, open->nwords, open->keys_only != 0, &owner);
	CHECK(link->job != NULL);
	link->feed = gs_job_owner(link->job);
	link->ticket = open->shared ? TICKET : 0;
	put(link, GS_MESSAGE_JOB_READY, sizeof(GsJobReady))->job_ready.ticket = link->ticket;
}

static void
join_job(UnitLink *link, const GsJobJoin *join)
{
	GsParticipant feeder = participant_of(link, join->participant);
	const char *why_not = "no such job";

	CHECK(link->feed == NULL && link->owner != NULL);
	if (link->owner->job != NULL && join->ticket == link->owner->ticket)
		link->feed = gs_job_join(link->owner->job, join->nwords, join->keys_only != 0, &feeder,
								 &why_not);
	if (link->feed == NULL)
		on_failed(link, GS_FAILED_JOB, why_not);
	else
		put(link, GS_MESSAGE_JOB_READY, sizeof(GsJobReady));
}

static void
close_job(UnitLink *link)
{
	if (link->job != NULL)
		while (!gs_job_close(link->job))
			;
	else if (link->feed != NULL)
		while (!gs_feed_leave(link->feed))
			;
	link->job = NULL;
	link->feed = NULL;
}

/* The end of the connection that a test has asked for. */
static bool
breaks(UnitLink *link)
{
	return link->break_after >= 0 && link->nmessages++ >= link->break_after;
}

static bool
unit_send(GsServiceLink *base, const GsMessage *message)
{
	UnitLink   *link = (UnitLink *) base;
	GsAnyMessage copy;

	CHECK(!link->released);
	if (breaks(link))
		return false;
	CHECK(message->nbytes <= sizeof(copy));
	memcpy(&copy, message, message->nbytes);
	switch (message->type)
	{
		case GS_MESSAGE_JOB_OPEN:
			open_job(link, &copy.job_open);
			break;
		case GS_MESSAGE_JOB_JOIN:
			join_job(link, &copy.job_join);
			break;
		case GS_MESSAGE_FEED_END:
			/* a feeder that had no more room was told so, and may not have heard it yet */
			if (copy.feed_end.partial || link->failure != GS_FAILED_MEMORY)
				gs_feed_end(link->feed);
			break;
		case GS_MESSAGE_BATCH_FILLED:
			gs_feed_batch_filled(link->feed, copy.filled.slot, copy.filled.nrows,
								copy.filled.rows_bytes);
			break;
		case GS_MESSAGE_SORT:
			CHECK(link->failure == GS_FAILED_JOB || !gs_job_has_feeders(link->job));
			gs_job_sort(link->job, copy.sort.algorithm, copy.sort.partial, &copy.sort.layout);
			break;
		case GS_MESSAGE_FETCH:
			gs_job_fetch(link->job, copy.fetch.stream, copy.fetch.position);
			break;
		case GS_MESSAGE_BATCH_RELEASED:
			gs_job_slot_released(link->job, copy.slot.slot);
			break;
		case GS_MESSAGE_DRAIN:
			CHECK(link->failure == GS_FAILED_JOB || !gs_job_has_feeders(link->job));
			gs_job_drain(link->job);
			break;
		case GS_MESSAGE_JOB_CLOSE:
			close_job(link);
			break;
		default:
			CHECK_MSG(false, "message %u", message->type);
	}
	return true;
}

static bool
unit_receive(GsServiceLink *base, int timeout_ms, GsAnyMessage *message)
{
	bool		wait = timeout_ms != 0;
	UnitLink   *link = (UnitLink *) base;
	int			npolls = 0;

	CHECK(!link->released);
	if (breaks(link))
		return false;
	if (link->slow && timeout_ms > 0)
	{
		message->message.type = 0;
		return true;
	}
	while (link->head == link->tail && link->feed != NULL && (wait || npolls == 0))
	{
		GsSortJob  *job = link->job != NULL ? link->job : link->owner->job;

		CHECK_MSG(npolls++ < MAX_POLLS, "the job has nothing to say, busy: %d",
				  (int) gs_job_busy(job));
		gs_job_poll(job);
	}
	CHECK(!wait || link->head < link->tail);
	if (link->head == link->tail)
		message->message.type = 0;
	else
		*message = link->queue[link->head++ % UNIT_LINK_QUEUE];
	return true;
}

static void
unit_release(GsServiceLink *base, bool reusable)
{
	UnitLink   *link = (UnitLink *) base;

	CHECK(!link->released);
	link->released = true;
	link->reusable = reusable;
	close_job(link);
}

/* ------------------------------------------------------------ open and close */

static UnitLink *
make_link(uint32_t slot_bytes, uint32_t nslots)
{
	UnitLink   *link = calloc(1, sizeof(UnitLink));

	CHECK(link != NULL);
	CHECK(posix_memalign((void **) &link->ring.base, 4096, (size_t) slot_bytes * nslots) == 0);
	link->ring.slot_bytes = slot_bytes;
	link->ring.nslots = nslots;
	link->break_after = -1;

	link->base.ring = link->ring.base;
	link->base.slot_bytes = slot_bytes;
	link->base.nslots = nslots;
	link->base.send = unit_send;
	link->base.receive = unit_receive;
	link->base.release = unit_release;
	return link;
}

UnitLink *
unit_link_open(uint32_t slot_bytes, uint32_t nslots, uint64_t memory_limit)
{
	UnitLink   *link = make_link(slot_bytes, nslots);
	char		why_not[200];

	link->device = gs_device_host_open(DEVICE_BYTES, why_not, sizeof(why_not));
	CHECK_MSG(link->device != NULL, "%s", why_not);
	link->pool = gs_slab_pool_create(link->device, memory_limit);
	CHECK(link->pool != NULL);
	return link;
}

UnitLink *
unit_link_open_feeder(UnitLink *owner, uint32_t slot_bytes, uint32_t nslots)
{
	UnitLink   *link = make_link(slot_bytes, nslots);

	link->owner = owner;
	return link;
}

void
unit_link_close(UnitLink *link)
{
	CHECK(link->released);
	CHECK(link->job == NULL && link->feed == NULL);
	if (link->owner == NULL)
	{
		CHECK(gs_slab_used(link->pool) == 0);
		gs_slab_pool_destroy(link->pool);
		link->device->ops->close(link->device);
	}
	free(link->ring.base);
	free(link);
}
