/*-------------------------------------------------------------------------
 *
 * unit_link.c
 *	  A link (service_link.h) to a job in this process: no socket between.
 *
 *-------------------------------------------------------------------------
 */
#include "unit_link.h"

#include <stdlib.h>
#include <string.h>

#include "unit_check.h"

#define DEVICE_BYTES	((uint64_t) 4 << 30)

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

	message->failed.failure = failure;
	strncpy(message->failed.text, text, sizeof(message->failed.text) - 1);
}

/* ------------------------------------------------------------- to the job */

static void
open_job(UnitLink *link, const GsJobOpen *open)
{
	GsJobEvents events = {link, on_batch_free, on_sorted, on_batch_ready, on_failed};
	GsJobMemory memory = {0};

	CHECK(link->job == NULL);
	if (!gs_slab_admit(link->pool, open->expected_bytes, &memory))
	{
		on_failed(link, GS_FAILED_MEMORY, "no memory");
		return;
	}
	link->job = gs_job_open(link->device, &memory, &link->ring, open->nwords,
							open->keys_only != 0, &events);
	CHECK(link->job != NULL);
	put(link, GS_MESSAGE_JOB_READY, sizeof(GsJobReady));
}

static void
close_job(UnitLink *link)
{
	if (link->job != NULL)
		while (!gs_job_close(link->job))
			;
	link->job = NULL;
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
		case GS_MESSAGE_BATCH_FILLED:
			gs_job_batch_filled(link->job, copy.filled.slot, copy.filled.nrows,
								copy.filled.rows_bytes);
			break;
		case GS_MESSAGE_SORT:
			gs_job_sort(link->job, copy.sort.algorithm, copy.sort.partial, &copy.sort.layout);
			break;
		case GS_MESSAGE_FETCH:
			gs_job_fetch(link->job, copy.fetch.stream, copy.fetch.position);
			break;
		case GS_MESSAGE_BATCH_RELEASED:
			gs_job_slot_released(link->job, copy.slot.slot);
			break;
		case GS_MESSAGE_DRAIN:
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
	while (link->head == link->tail && link->job != NULL && (wait || npolls == 0))
	{
		CHECK_MSG(npolls++ < MAX_POLLS, "the job has nothing to say, busy: %d",
				  (int) gs_job_busy(link->job));
		gs_job_poll(link->job);
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

UnitLink *
unit_link_open(uint32_t slot_bytes, uint32_t nslots, uint64_t memory_limit)
{
	UnitLink   *link = calloc(1, sizeof(UnitLink));
	char		why_not[200];

	CHECK(link != NULL);
	link->device = gs_device_host_open(DEVICE_BYTES, why_not, sizeof(why_not));
	CHECK_MSG(link->device != NULL, "%s", why_not);
	link->pool = gs_slab_pool_create(link->device, memory_limit);
	CHECK(link->pool != NULL);
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

void
unit_link_close(UnitLink *link)
{
	CHECK(link->released);
	CHECK(link->job == NULL);
	CHECK(gs_slab_used(link->pool) == 0);
	gs_slab_pool_destroy(link->pool);
	link->device->ops->close(link->device);
	free(link->ring.base);
	free(link);
}
