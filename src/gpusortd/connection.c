/*-------------------------------------------------------------------------
 *
 * connection.c
 *	  One client: its states, its job, and what it is sent.
 *
 * The states, and the messages that are legal in each (connection_message.c
 * enforces them).  JOB_CLOSE is also legal in each state that has or waits for
 * a job, except ENDING.
 *
 *	  NEW			HELLO with buffers -> IDLE
 *	  IDLE			JOB_OPEN -> WAITING; JOB_JOIN -> PRODUCING or FAILED;
 *					JOB_READ -> READING or FAILED
 *	  WAITING		-- admitted -> INPUT, or FAILED
 *	  INPUT			BATCH_FILLED, BATCH_RELEASED, SORT -> SORTING,
 *					RETURN_INPUT -> RETURNING; -- out of memory -> FULL
 *	  SORTING		BATCH_RELEASED; -- sorted -> SORTED; -- out of memory -> FULL
 *	  SORTED		BATCH_RELEASED, FETCH
 *	  FULL			BATCH_RELEASED, SORT if partial -> SORTING,
 *					RETURN_INPUT -> RETURNING
 *	  RETURNING		BATCH_RELEASED
 *	  PRODUCING		BATCH_FILLED, PRODUCER_END -> ENDING;
 *					-- out of memory -> PRODUCER_FULL
 *	  PRODUCER_FULL	PRODUCER_END if partial -> ENDING
 *	  ENDING		-- all batches are uploaded -> IDLE
 *	  READING		BATCH_RELEASED, FETCH
 *	  FAILED		only JOB_CLOSE
 *	  CLOSING		-- the device has finished with the buffers -> IDLE
 *	  CLOSED		the socket is closed; the job may still be closing
 *
 * A client may send messages before it learns of a failure.  So in FULL,
 * PRODUCER_FULL and FAILED the messages of the preceding states are legal, too:
 * they are validated and buffers change owners, but the job does not see them.
 *
 * Nothing is read in CLOSING.  Therefore a JOB_OPEN that directly follows a
 * JOB_CLOSE waits in the socket until the device has finished.
 *
 * Sends do not block.  The number of messages in flight is bounded by the
 * number of buffers and is far below the capacity of a socket.  If a socket is
 * full, its client does not read, and it is disconnected.
 *
 *-------------------------------------------------------------------------
 */
#include "gpusortd/connection.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/basics.h"
#include "job/log.h"

/* ---------------------------------------------------------- state, sending */

/* Appends the node to the list, or removes it. */
static void
set_in_list(GsListNode *list, GsListNode *node, bool is_in)
{
	if (is_in && !gs_list_has(node))
		gs_list_append(list, node);
	else if (!is_in && gs_list_has(node))
		gs_list_remove(node);
}

/* Adds the socket to the epoll set, or removes it; false: errno has the error. */
static bool
watch(GsConnection *connection, bool is_watched)
{
	struct epoll_event event = {.events = EPOLLIN,.data.ptr = connection};

	if (is_watched != connection->is_watched &&
		epoll_ctl(connection->service->epoll, is_watched ? EPOLL_CTL_ADD : EPOLL_CTL_DEL,
				  connection->socket, &event) != 0)
		return false;
	connection->is_watched = is_watched;
	return true;
}

void
gs_connection_enter(GsConnection *connection, ConnectionState state)
{
	GsService  *service = connection->service;
	bool		ends = state == STATE_CLOSING || state == STATE_CLOSED;

	/* after ENDING the buffers may hold rows that the client needs */
	bool		is_idle = state == STATE_IDLE && connection->state != STATE_ENDING;

	set_in_list(&service->idle, &connection->idle, false);
	set_in_list(&service->idle, &connection->idle, is_idle);
	connection->idle_since_us = is_idle ? gs_clock_us() : 0;
	connection->state = state;
	set_in_list(&service->active, &connection->active, ends || connection->job != NULL);
	if ((state == STATE_WAITING) != gs_list_has(&connection->waiting))
		service->nwaiting += state == STATE_WAITING ? 1 : -1;
	set_in_list(&service->waiting, &connection->waiting, state == STATE_WAITING);
	if (state != STATE_CLOSED && !watch(connection, !ends))
	{
		gs_log_limited("could not watch the socket of client %d: %s", connection->pid,
					   strerror(errno));
		gs_connection_drop(connection);
	}
}

void
gs_connection_drop(GsConnection *connection)
{
	if (connection->state == STATE_CLOSED)
		return;
	watch(connection, false);
	close(connection->socket);
	connection->socket = -1;
	gs_connection_enter(connection, STATE_CLOSED);
}

void
gs_connection_send(GsConnection *connection, GsMessage *message, GsMessageType type, size_t nbytes)
{
	if (connection->state == STATE_CLOSED)
		return;
	message->type = type;
	message->nbytes = (uint32_t) nbytes;
	gs_service_publish(connection->service);
	if (send(connection->socket, message, nbytes, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
	{
		connection->service->nmessages++;
		return;
	}
	if (errno == EAGAIN)
		gs_log_limited("client %d does not read its messages, disconnecting it", connection->pid);
	else if (errno != EPIPE && errno != ECONNRESET)
		gs_log_limited("could not send to client %d: %s", connection->pid, strerror(errno));
	gs_connection_drop(connection);
}

static void
send_failed(GsConnection *connection, GsFailure failure, const char *text)
{
	GsFailed	failed = {.failure = failure};

	snprintf(failed.text, sizeof(failed.text), "%s", text);
	gs_connection_send(connection, &failed.message, GS_MESSAGE_FAILED, sizeof(failed));
}

void
gs_connection_fail(GsConnection *connection, GsFailure failure, const char *text)
{
	connection->buffers_unused = connection->idle_since_us != 0;
	send_failed(connection, failure, text);
	gs_connection_drop(connection);
}

void
gs_connection_reject(GsConnection *connection, const char *text)
{
	gs_log_limited("protocol violation by client %d: %s", connection->pid, text);
	gs_connection_fail(connection, GS_FAILED_PROTOCOL, text);
}

void
gs_connection_fail_all(GsService *service)
{
	GS_LIST_FOREACH(GsConnection, connection, all, &service->all)
	{
		if (service->device_failed)
			gs_connection_fail(connection,
							   service->device_was_wrong ? GS_FAILED_ORDER : GS_FAILED_DEVICE,
							   service->device_error);
		else
			gs_connection_fail(connection, GS_FAILED_SHUTDOWN, "gpusortd is shutting down");
	}
}

uint64_t
gs_connection_drop_idle(GsService *service, uint64_t now_us, uint64_t idle_us)
{
	GS_LIST_FOREACH(GsConnection, longest, idle, &service->idle)
	{
		uint64_t	end_us = longest->idle_since_us + idle_us;

		if (now_us < end_us)
			return end_us;
		gs_connection_fail(longest, GS_FAILED_SHUTDOWN, "the connection was idle for too long");
	}
	return UINT64_MAX;
}

/* --------------------------------------------------------- events of a job */

static void
report_batch_free(void *arg, uint32_t buffer)
{
	GsConnection *connection = arg;
	GsBufferMessage freed = {.buffer = buffer};

	connection->owners[buffer] = BUFFER_CLIENT;
	gs_connection_send(connection, &freed.message, GS_MESSAGE_BATCH_FREE, sizeof(freed));
}

static void
report_producer_done(void *arg, uint64_t nrows)
{
	GsConnection *connection = arg;
	GsProducerDone message = {.nrows = nrows};

	connection->member = NULL;
	if (connection->state == STATE_CLOSED)
		return;
	gs_connection_enter(connection, STATE_IDLE);
	gs_connection_send(connection, &message.message, GS_MESSAGE_PRODUCER_DONE, sizeof(message));
}

static void
report_sorted(void *arg, const GsSorted *sorted)
{
	GsConnection *connection = arg;
	GsSorted	message = *sorted;

	if (connection->state == STATE_CLOSED)
		return;
	gs_connection_enter(connection, STATE_SORTED);
	gs_connection_send(connection, &message.message, GS_MESSAGE_SORTED, sizeof(message));
}

static void
report_batch_ready(void *arg, const GsBatchReady *ready)
{
	GsConnection *connection = arg;
	GsBatchReady message = *ready;

	if (ready->nrows > 0)
	{
		connection->owners[ready->buffer] = BUFFER_CLIENT;
		gs_device_count(&connection->service->slot->counters.bytes_out, ready->rows_bytes);
	}
	else
	{
		/* the end of the input: the client also gets the buffers that the job did not take */
		for (uint32_t buffer = 0; buffer < connection->buffer_pool.nbuffers; buffer++)
			if (connection->owners[buffer] == BUFFER_FILLED)
				connection->owners[buffer] = BUFFER_CLIENT;
	}
	gs_connection_send(connection, &message.message, GS_MESSAGE_BATCH_READY, sizeof(message));
}

static void
report_failed(void *arg, GsFailure failure, const char *text)
{
	GsConnection *connection = arg;

	if (failure == GS_FAILED_DEVICE || failure == GS_FAILED_ORDER)
	{
		/* the server reports it to all clients, including this one */
		connection->service->device_was_wrong |= failure == GS_FAILED_ORDER;
		gs_service_fail_device(connection->service, text);
		return;
	}
	if (failure == GS_FAILED_PROTOCOL)
	{
		gs_connection_reject(connection, text);
		return;
	}
	if (connection->state == STATE_CLOSED)
		return;
	if (failure == GS_FAILED_ROWS)
		gs_log_limited("client %d sent invalid rows: %s", connection->pid, text);
	if (failure == GS_FAILED_MEMORY &&
		(connection->state == STATE_INPUT || connection->state == STATE_SORTING))
		gs_connection_enter(connection, STATE_FULL);
	else if (failure == GS_FAILED_MEMORY && connection->state == STATE_PRODUCING)
		gs_connection_enter(connection, STATE_PRODUCER_FULL);
	else
		gs_connection_enter(connection, STATE_FAILED);
	send_failed(connection, failure, text);
}

/* ----------------------------------------------------------------- its job */

/* Lets others join the job, by a token that cannot be guessed. */
static bool
share_job(GsConnection *connection)
{
	while (connection->token == 0)
	{
		uint64_t	token;

		if (getrandom(&token, sizeof(token), 0) != (ssize_t) sizeof(token))
			return false;
		connection->token = token;
	}
	gs_list_append(&connection->service->shared, &connection->shared);
	return true;
}

static void
unshare_job(GsConnection *connection)
{
	set_in_list(&connection->service->shared, &connection->shared, false);
	connection->token = 0;
}

GsSortJob *
gs_connection_find_job(const GsService *service, uint64_t token)
{
	GS_LIST_FOREACH(const GsConnection, consumer, shared, &service->shared)
	{
		if (consumer->token == token)
			return consumer->job;
	}
	return NULL;
}

void
gs_connection_close_job(GsConnection *connection)
{
	if (connection->job != NULL)
	{
		unshare_job(connection);
		if (!gs_job_close(connection->job))
			return;
		connection->job = NULL;
		connection->service->njobs--;
		connection->service->jobs_done++;
		gs_device_count(&connection->service->slot->counters.jobs, 1);
	}
	else if (connection->member != NULL && !gs_member_leave(connection->member))
		return;
	connection->member = NULL;
	if (connection->state == STATE_CLOSING)
		gs_connection_enter(connection, STATE_IDLE);
}

GsParticipant
gs_connection_participant(GsConnection *connection)
{
	GsParticipant participant = {
		.buffer_pool = connection->buffer_pool,
		.nwords = connection->open.nwords,
		.keys_only = connection->open.keys_only != 0,
		.number = connection->open.participant,
		.events = {
			.arg = connection,
			.batch_free = report_batch_free,
			.producer_done = report_producer_done,
			.sorted = report_sorted,
			.batch_ready = report_batch_ready,
			.failed = report_failed
		}
	};

	return participant;
}

void
gs_connection_refuse_job(GsConnection *connection, GsFailure failure, const char *text)
{
	gs_connection_enter(connection, STATE_FAILED);
	send_failed(connection, failure, text);
}

void
gs_connection_begin_job(GsConnection *connection, ConnectionState state)
{
	GsJobReady	ready = {.token = connection->token};

	for (uint32_t buffer = 0; buffer < connection->buffer_pool.nbuffers; buffer++)
		connection->owners[buffer] = BUFFER_CLIENT;
	gs_connection_enter(connection, state);
	gs_connection_send(connection, &ready.message, GS_MESSAGE_JOB_READY, sizeof(ready));
}

bool
gs_connection_admit(GsConnection *connection)
{
	GsService  *service = connection->service;
	const GsJobOpen *open = &connection->open;
	GsParticipant consumer = gs_connection_participant(connection);
	GsJobMemory memory = {0};

	if (!gs_device_pool_admit(service->pool, open->expected_bytes, &memory))
		return false;
	connection->job = gs_job_open(service->device, &memory, &consumer);
	if (connection->job == NULL)
	{
		gs_device_pool_free_all(&memory);
		if (service->device->error[0] != '\0')
		{
			gs_connection_enter(connection, STATE_FAILED);
			gs_service_fail_device(service, service->device->error);
		}
		else
			gs_connection_refuse_job(connection, GS_FAILED_MEMORY, "gpusortd is out of memory");
		return true;
	}
	connection->member = gs_job_consumer(connection->job);
	service->njobs++;
	if (open->shared && !share_job(connection))
		gs_connection_refuse_job(connection, GS_FAILED_JOB,
								 "gpusortd could not create a job token");
	else
		gs_connection_begin_job(connection, STATE_INPUT);
	return true;
}

/* -------------------------------------------------------------------- life */

GsConnection *
gs_connection_open(GsService *service, int socket)
{
	GsConnection *connection = calloc(1, sizeof(GsConnection));
	struct ucred peer;
	socklen_t	nbytes = sizeof(peer);

	if (connection == NULL)
		return NULL;
	connection->service = service;
	connection->socket = socket;
	connection->state = STATE_NEW;
	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &nbytes) == 0)
		connection->pid = (int) peer.pid;
	if (!watch(connection, true))
	{
		free(connection);
		return NULL;
	}
	gs_list_append(&service->all, &connection->all);
	return connection;
}

void
gs_connection_poll(GsConnection *connection)
{
	if (connection->state == STATE_CLOSING || connection->state == STATE_CLOSED)
		gs_connection_close_job(connection);
	else if (connection->job != NULL)
		gs_job_poll(connection->job);
}

bool
gs_connection_is_busy(const GsConnection *connection)
{
	if (connection->state == STATE_CLOSING || connection->state == STATE_CLOSED)
		return true;
	return connection->job != NULL && gs_job_busy(connection->job);
}

/* Unpins and unmaps the buffers, if there are any. */
static void
unmap_buffers(GsConnection *connection)
{
	GsDevice   *device = connection->service->device;
	const GsBufferPool *buffer_pool = &connection->buffer_pool;
	size_t		nbytes = (size_t) buffer_pool->buffer_bytes * buffer_pool->nbuffers;

	if (buffer_pool->base == NULL)
		return;
	device->ops->unpin(device, buffer_pool->base);

	/* frees the memory, although the client still maps it */
	if (connection->buffers_unused)
		(void) madvise(buffer_pool->base, nbytes, MADV_REMOVE);
	munmap(buffer_pool->base, nbytes);
}

bool
gs_connection_end(GsConnection *connection)
{
	gs_connection_close_job(connection);
	if (connection->member != NULL)
		return false;
	unmap_buffers(connection);
	gs_list_remove(&connection->active);
	gs_list_remove(&connection->all);
	free(connection);
	return true;
}
