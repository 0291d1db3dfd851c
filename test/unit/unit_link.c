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
#include "unit_client.h"

#define DEVICE_BYTES	((uint64_t) 4 << 30)

/* The token of every shared job; there is only one. */
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
on_batch_free(void *arg, uint32_t buffer)
{
	put(arg, GS_MESSAGE_BATCH_FREE, sizeof(GsBufferMessage))->buffer.buffer = buffer;
}

static void
on_fed(void *arg, uint64_t nrows)
{
	UnitLink   *link = arg;

	link->member = NULL;
	put(link, GS_MESSAGE_PRODUCER_DONE, sizeof(GsProducerDone))->producer_done.nrows = nrows;
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
participant_of(UnitLink *link, uint32_t nwords, uint32_t keys_only, uint32_t number)
{
	GsParticipant participant = {
		.buffer_pool = link->buffer_pool,
		.nwords = nwords,
		.keys_only = keys_only != 0,
		.number = number,
		.events = {link, on_batch_free, on_fed, on_sorted, on_batch_ready, on_failed}
	};

	return participant;
}

/* ------------------------------------------------------------- to the job */

static void
open_job(UnitLink *link, const GsJobOpen *open)
{
	GsParticipant consumer = participant_of(link, open->nwords, open->keys_only, open->participant);
	GsJobMemory memory = {0};

	CHECK(link->job == NULL);
	if (!gs_device_pool_admit(link->pool, open->expected_bytes, &memory))
	{
		on_failed(link, GS_FAILED_MEMORY, "no memory");
		return;
	}
	link->job = gs_job_open(link->device, &memory, &consumer);
	CHECK(link->job != NULL);
	link->member = gs_job_consumer(link->job);
	link->token = open->shared ? TICKET : 0;
	put(link, GS_MESSAGE_JOB_READY, sizeof(GsJobReady))->job_ready.token = link->token;
}

/* As a producer or a reader. */
static void
join_job(UnitLink *link, const GsJobJoin *join, bool reads)
{
	GsParticipant participant = participant_of(link, join->nwords, join->keys_only, join->participant);
	const char *why_not = "no such job";

	CHECK(link->member == NULL && link->consumer != NULL);
	if (link->consumer->job != NULL && join->token == link->consumer->token)
		link->member = gs_job_join(link->consumer->job, &participant, reads, &why_not);
	if (link->member == NULL)
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
	else if (link->member != NULL)
		while (!gs_member_leave(link->member))
			;
	link->job = NULL;
	link->member = NULL;
}

/* The end of the connection that a test has asked for. */
static bool
breaks(UnitLink *link)
{
	return link->break_after >= 0 && link->nmessages++ >= link->break_after;
}

static bool
unit_send(GsEngineLink *base, const GsMessage *message)
{
	UnitLink   *link = (UnitLink *) base;
	GsAnyMessage copy;

	CHECK(!link->released);
	if (breaks(link) || link->is_closed)
		return false;
	CHECK(message->nbytes <= sizeof(copy));
	memcpy(&copy, message, message->nbytes);
	switch (message->type)
	{
		case GS_MESSAGE_JOB_OPEN:
			open_job(link, &copy.job_open);
			break;
		case GS_MESSAGE_JOB_JOIN:
		case GS_MESSAGE_JOB_READ:
			join_job(link, &copy.job_join, message->type == GS_MESSAGE_JOB_READ);
			break;
		case GS_MESSAGE_PRODUCER_END:
			/* a producer that had no more room was told so, and may not have heard it yet */
			if (copy.producer_end.partial || link->failure != GS_FAILED_MEMORY)
				gs_member_end(link->member);
			break;
		case GS_MESSAGE_BATCH_FILLED:
			gs_member_batch_filled(link->member, copy.filled.buffer, copy.filled.nrows,
								   copy.filled.rows_bytes);
			break;
		case GS_MESSAGE_SORT:
			CHECK(link->failure == GS_FAILED_JOB || !gs_job_has_producers(link->job));
			gs_job_sort(link->job, copy.sort.algorithm, copy.sort.partial, copy.sort.find_equal, &copy.sort.layout);
			break;
		case GS_MESSAGE_FETCH:
			CHECK(gs_member_fetch(link->member, copy.fetch.stream, copy.fetch.position));
			break;
		case GS_MESSAGE_BATCH_RELEASED:
			gs_member_buffer_released(link->member, copy.buffer.buffer);
			break;
		case GS_MESSAGE_RETURN_INPUT:
			CHECK(link->failure == GS_FAILED_JOB || !gs_job_has_producers(link->job));
			gs_job_return_input(link->job);
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
unit_receive(GsEngineLink *base, int timeout_ms, GsAnyMessage *message)
{
	bool		wait = timeout_ms != 0;
	UnitLink   *link = (UnitLink *) base;
	int			npolls = 0;

	CHECK(!link->released);
	if (breaks(link) || (link->is_closed && link->head == link->tail))
		return false;
	if (link->slow && timeout_ms > 0)
	{
		message->message.type = 0;
		return true;
	}
	while (link->head == link->tail && link->member != NULL && (wait || npolls == 0))
	{
		GsSortJob  *job = link->job != NULL ? link->job : link->consumer->job;

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
unit_release(GsEngineLink *base, bool reusable)
{
	UnitLink   *link = (UnitLink *) base;

	CHECK(!link->released);
	link->released = true;
	link->reusable = reusable;
	close_job(link);
}

/* ------------------------------------------------------------ open and close */

static UnitLink *
make_link(uint32_t buffer_bytes, uint32_t nbuffers)
{
	UnitLink   *link = calloc(1, sizeof(UnitLink));

	CHECK(link != NULL);
	CHECK(posix_memalign((void **) &link->buffer_pool.base, 4096, (size_t) buffer_bytes * nbuffers) == 0);
	link->buffer_pool.buffer_bytes = buffer_bytes;
	link->buffer_pool.nbuffers = nbuffers;
	link->break_after = -1;

	link->base.buffer_pool = link->buffer_pool.base;
	link->base.buffer_bytes = buffer_bytes;
	link->base.nbuffers = nbuffers;
	link->base.send = unit_send;
	link->base.receive = unit_receive;
	link->base.release = unit_release;
	return link;
}

UnitLink *
unit_link_open(uint32_t buffer_bytes, uint32_t nbuffers, uint64_t memory_limit)
{
	UnitLink   *link = make_link(buffer_bytes, nbuffers);

	link->device = unit_open_device(DEVICE_BYTES);
	link->pool = gs_device_pool_create(link->device, memory_limit);
	CHECK(link->pool != NULL);
	return link;
}

UnitLink *
unit_link_open_other(UnitLink *consumer, uint32_t buffer_bytes, uint32_t nbuffers)
{
	UnitLink   *link = make_link(buffer_bytes, nbuffers);

	link->consumer = consumer;
	return link;
}

void
unit_link_close(UnitLink *link)
{
	CHECK(link->released);
	CHECK(link->job == NULL && link->member == NULL);
	if (link->consumer == NULL)
	{
		CHECK(link->pool->used == 0);
		gs_device_pool_destroy(link->pool);
		link->device->ops->close(link->device);
	}
	free(link->buffer_pool.base);
	free(link);
}
