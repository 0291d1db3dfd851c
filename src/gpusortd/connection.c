/*-------------------------------------------------------------------------
 *
 * connection.c
 *	  One client: its messages, their order, its ring and the job that it owns
 *	  or feeds.
 *
 * The states, and what a client may say in each (JOB_CLOSE too in any that has
 * or wants a job, but ENDING):
 *
 *	  NEW		HELLO with a ring -> IDLE
 *	  IDLE		JOB_OPEN -> WAITING, JOB_JOIN -> FEEDING, or FAILED
 *	  WAITING	-- admitted -> LOADING, or FAILED
 *	  LOADING	BATCH_FILLED, BATCH_RELEASED, SORT -> SORTING, DRAIN -> DRAINING
 *	  SORTING	BATCH_RELEASED -- sorted -> SORTED
 *	  SORTED	BATCH_RELEASED, FETCH
 *	  DRAINABLE	BATCH_RELEASED, DRAIN -> DRAINING
 *	  DRAINING	BATCH_RELEASED
 *	  FEEDING	BATCH_FILLED, FEED_END -> ENDING
 *	  FEED_FULL	FEED_END -> ENDING
 *	  ENDING	-- all is uploaded -> IDLE
 *	  FAILED	-- only JOB_CLOSE helps
 *	  CLOSING	-- the device lets go of the ring -> IDLE
 *	  GONE		the socket is closed; the job may still be closing
 *
 * A failure crosses what the client sent before it heard of it.  So in DRAINABLE,
 * FEED_FULL and FAILED the messages of the states before are legal too: they are
 * checked as ever, and slots change hands, but the job never hears of them.
 *
 * Who only asks how the service is stays with the greeter, and never comes here.
 *
 * In CLOSING nothing is read.  That is how a JOB_OPEN right behind a JOB_CLOSE
 * waits until the device has let go, without a place of its own to wait in.
 *
 * Sends do not block.  The number of messages under way is bounded by the number of
 * slots, and far below what a socket holds: one that is full belongs to a
 * client that does not read, and it is dropped.
 *
 * A ring is pinned memory, so a connection that stays IDLE for long is dropped, and
 * its ring's pages are freed, by a hole in the file: the client, which has it mapped and
 * sleeps, need not wake up for that.  Not so where IDLE follows on ENDING: there
 * the client may still need what was in its slots.
 *
 * Descriptors arrive beside a message.  They are taken off every message,
 * closed on exec from the first moment, and closed at once unless it is the
 * HELLO that one belongs to.
 *
 *-------------------------------------------------------------------------
 */
#include "gpusortd/connection.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gpusortd/admission.h"
#include "gpusortd/log.h"
#include "gpusortd/buffer_pool.h"

/* Messages taken in one turn: other clients wait too. */
#define READ_MESSAGES	32

#define Min(a, b)		((a) < (b) ? (a) : (b))

/* The shortest row: the header of a stored tuple. */
#define MIN_ROW_BYTES	16

typedef enum ConnectionState
{
	STATE_NEW,
	STATE_IDLE,
	STATE_WAITING,
	STATE_INPUT,
	STATE_SORTING,
	STATE_SORTED,
	STATE_DRAINABLE,
	STATE_RETURNING,
	STATE_PRODUCING,
	STATE_PRODUCER_FULL,
	STATE_ENDING,
	STATE_FAILED,
	STATE_CLOSING,
	STATE_CLOSED
} ConnectionState;

#define IN(state) (1u << STATE_##state)

/* What a client may send: how long it is, and when it is legal. */
static const struct
{
	size_t		nbytes;
	unsigned	states;
}			message_rules[] = {
	[GS_MESSAGE_HELLO] = {sizeof(GsHello), IN(NEW)},
	[GS_MESSAGE_JOB_OPEN] = {sizeof(GsJobOpen), IN(IDLE)},
	[GS_MESSAGE_JOB_JOIN] = {sizeof(GsJobJoin), IN(IDLE)},
	[GS_MESSAGE_BATCH_FILLED] = {sizeof(GsBatchFilled),
	IN(INPUT) | IN(DRAINABLE) | IN(PRODUCING) | IN(PRODUCER_FULL) | IN(FAILED)},
	[GS_MESSAGE_PRODUCER_END] = {sizeof(GsProducerEnd), IN(PRODUCING) | IN(PRODUCER_FULL) | IN(FAILED)},
	[GS_MESSAGE_SORT] = {sizeof(GsSortRequest), IN(INPUT) | IN(DRAINABLE) | IN(FAILED)},
	[GS_MESSAGE_FETCH] = {sizeof(GsFetch), IN(SORTED) | IN(FAILED)},
	[GS_MESSAGE_BATCH_RELEASED] = {sizeof(GsBufferMessage),
	IN(INPUT) | IN(SORTING) | IN(SORTED) | IN(DRAINABLE) | IN(RETURNING) | IN(FAILED)},
	[GS_MESSAGE_RETURN_INPUT] = {sizeof(GsMessage), IN(INPUT) | IN(DRAINABLE)},
	[GS_MESSAGE_JOB_CLOSE] = {sizeof(GsMessage),
	IN(WAITING) | IN(INPUT) | IN(SORTING) | IN(SORTED) | IN(DRAINABLE) | IN(RETURNING) |
	IN(PRODUCING) | IN(PRODUCER_FULL) | IN(FAILED)},
};

#define NMESSAGE_RULES	(sizeof(message_rules) / sizeof(message_rules[0]))

/* Whose is a slot? */
typedef enum BufferOwner
{
	BUFFER_CLIENT,
	BUFFER_FILLED,				/* the service's, with a batch of the client's */
	BUFFER_RELEASED				/* the service's, to be filled */
} BufferOwner;

struct GsConnection
{
	GsService  *service;
	int			socket;			/* -1 if gone */
	int			pid;			/* of the client, for the log */
	ConnectionState state;
	bool		is_watched;		/* in the epoll set */
	GsListNode	all;
	GsListNode	active;
	GsListNode	waiting;
	GsBufferPool		buffer_pool;			/* base NULL: none */
	BufferOwner	owners[GS_MAX_BUFFERS];
	GsJobOpen	open;			/* what the last job asked for */
	uint64_t	token;			/* of the job, if shared; else 0 */
	GsConnection *next_shared;
	GsListNode	idle;			/* in the list of those whose rings nobody uses */
	uint64_t	idle_since_us;	/* 0: its ring is in use */
	bool		ring_is_unused;	/* and was when it was dropped */
	uint64_t	nrows;			/* of what was sorted */
	GsMemoryAccount *session;	/* NULL: it has none yet */
	uint64_t	arrival;
	uint64_t	waits_since;
	uint64_t	deadline_us;
	uint64_t	park_again_us;
	GsSortJob  *job;			/* that it owns */
	GsProducer	   *producer;			/* of that one, or of the job that it feeds */
};

/* ------------------------------------------------------------ state, sending */

/* Puts the node into the list, or takes it out. */
static void
list_if(GsListNode *list, GsListNode *node, bool is_in)
{
	if (is_in && !gs_list_has(node))
		gs_list_append(list, node);
	else if (!is_in && gs_list_has(node))
		gs_list_remove(node);
}

/* Has the loop look at the socket, or not; false: it cannot. */
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

static void drop(GsConnection *connection);

static void
enter(GsConnection *connection, ConnectionState state)
{
	GsService  *service = connection->service;
	bool		ends = state == STATE_CLOSING || state == STATE_CLOSED;
	bool		is_idle = state == STATE_IDLE && connection->state != STATE_ENDING;

	list_if(&service->idle, &connection->idle, false);
	list_if(&service->idle, &connection->idle, is_idle);
	connection->idle_since_us = is_idle ? gs_clock_us() : 0;
	connection->state = state;
	list_if(&service->active, &connection->active, ends || connection->job != NULL);
	if ((state == STATE_WAITING) != gs_list_has(&connection->waiting))
		service->nwaiting += state == STATE_WAITING ? 1 : -1;
	list_if(&service->waiting, &connection->waiting, state == STATE_WAITING);
	if (state != STATE_CLOSED && !watch(connection, !ends))
	{
		gs_log_limited("could not wait for client %d: %s", connection->pid, strerror(errno));
		drop(connection);
	}
}

static void
drop(GsConnection *connection)
{
	char		unread[1];

	if (connection->state == STATE_CLOSED)
		return;

	/*
	 * A socket closed with messages unread is a broken one for the client, which
	 * would find an error before it found our last words.
	 */
	for (int i = 0; i < 2 * GS_MAX_BUFFERS; i++)
		if (recv(connection->socket, unread, sizeof(unread), MSG_DONTWAIT) <= 0)
			break;
	watch(connection, false);
	close(connection->socket);
	connection->socket = -1;
	enter(connection, STATE_CLOSED);
}

static void
send_message(GsConnection *connection, GsMessage *message, GsMessageType type, size_t nbytes)
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
	drop(connection);
}

static void
send_failed(GsConnection *connection, GsFailure failure, const char *text)
{
	GsFailed	failed = {.failure = failure};

	snprintf(failed.text, sizeof(failed.text), "%s", text);
	send_message(connection, &failed.message, GS_MESSAGE_FAILED, sizeof(failed));
}

/* Tells the client, and drops it. */
static void
fail(GsConnection *connection, GsFailure failure, const char *text)
{
	connection->ring_is_unused = connection->idle_since_us != 0;
	send_failed(connection, failure, text);
	drop(connection);
}

void
gs_connection_fail_all(GsService *service)
{
	for (GsListNode *node = service->all.next; node != &service->all; node = node->next)
	{
		GsConnection *connection = GS_LIST_OWNER(GsConnection, all, node);

		if (service->device_failed)
			fail(connection, GS_FAILED_DEVICE, service->device_error);
		else
			fail(connection, GS_FAILED_SHUTDOWN, "gpusortd is shutting down");
	}
}

uint64_t
gs_connection_drop_idle(GsService *service, uint64_t now_us, uint64_t idle_us)
{
	while (service->idle.next != &service->idle)
	{
		GsConnection *longest = GS_LIST_OWNER(GsConnection, idle, service->idle.next);
		uint64_t	end_us = longest->idle_since_us + idle_us;

		if (now_us < end_us)
			return end_us;
		fail(longest, GS_FAILED_SHUTDOWN, "the connection was idle");
	}
	return UINT64_MAX;
}

/* The client broke the rules. */
static void
reject(GsConnection *connection, const char *text)
{
	gs_log_limited("protocol violation by client %d: %s", connection->pid, text);
	fail(connection, GS_FAILED_PROTOCOL, text);
}

/* --------------------------------------------------------- what a job reports */

static void
report_batch_free(void *arg, uint32_t buffer)
{
	GsConnection *connection = arg;
	GsBufferMessage freed = {.buffer = buffer};

	connection->owners[buffer] = BUFFER_CLIENT;
	send_message(connection, &freed.message, GS_MESSAGE_BATCH_FREE, sizeof(freed));
}

static void
report_producer_done(void *arg, uint64_t nrows)
{
	GsConnection *connection = arg;
	GsProducerDone		message = {.nrows = nrows};

	connection->producer = NULL;
	if (connection->state == STATE_CLOSED)
		return;
	enter(connection, STATE_IDLE);
	send_message(connection, &message.message, GS_MESSAGE_PRODUCER_DONE, sizeof(message));
}

static void
report_sorted(void *arg, const GsSorted *sorted)
{
	GsConnection *connection = arg;
	GsSorted	message = *sorted;

	if (connection->state == STATE_CLOSED)
		return;
	connection->nrows = sorted->nrows;
	enter(connection, STATE_SORTED);
	send_message(connection, &message.message, GS_MESSAGE_SORTED, sizeof(message));
}

static void
report_batch_ready(void *arg, const GsBatchReady *ready)
{
	GsConnection *connection = arg;
	GsBatchReady message = *ready;

	if (ready->nrows > 0)
		connection->owners[ready->buffer] = BUFFER_CLIENT;
	else
	{
		/* drained: what the job never took is the client's again */
		for (uint32_t buffer = 0; buffer < connection->buffer_pool.nbuffers; buffer++)
			if (connection->owners[buffer] == BUFFER_FILLED)
				connection->owners[buffer] = BUFFER_CLIENT;
	}
	send_message(connection, &message.message, GS_MESSAGE_BATCH_READY, sizeof(message));
}

static void
report_failed(void *arg, GsFailure failure, const char *text)
{
	GsConnection *connection = arg;

	if (failure == GS_FAILED_DEVICE)
	{
		/* the server tells all clients, this one too */
		gs_service_broke(connection->service, text);
		return;
	}
	if (failure == GS_FAILED_PROTOCOL)
	{
		reject(connection, text);
		return;
	}
	if (connection->state == STATE_CLOSED)
		return;
	if (failure == GS_FAILED_ROWS)
		gs_log_limited("invalid rows from client %d: %s", connection->pid, text);
	if (failure == GS_FAILED_MEMORY &&
		(connection->state == STATE_INPUT || connection->state == STATE_SORTING))
		enter(connection, STATE_DRAINABLE);
	else if (failure == GS_FAILED_MEMORY && connection->state == STATE_PRODUCING)
		enter(connection, STATE_PRODUCER_FULL);
	else
		enter(connection, STATE_FAILED);
	send_failed(connection, failure, text);
}

/* ----------------------------------------------------------------------- job */

/* From now on others may join the job, by a ticket that cannot be guessed. */
static bool
share_job(GsConnection *connection)
{
	GsService  *service = connection->service;

	while (connection->token == 0)
	{
		uint64_t	token;

		if (getrandom(&token, sizeof(token), 0) != (ssize_t) sizeof(token))
			return false;
		connection->token = token;
	}
	connection->next_shared = service->shared;
	service->shared = connection;
	return true;
}

static void
unshare_job(GsConnection *connection)
{
	GsConnection **link = &connection->service->shared;

	if (connection->token == 0)
		return;
	while (*link != connection)
		link = &(*link)->next_shared;
	*link = connection->next_shared;
	connection->token = 0;
}

static void
leave_session(GsConnection *connection)
{
	if (connection->session != NULL)
		gs_admission_leave(connection->service, connection->session);
	connection->session = NULL;
}

/* The job of a ticket; NULL if there is none, or no more. */
static GsSortJob *
find_job(const GsService *service, uint64_t token)
{
	for (const GsConnection *consumer = service->shared; consumer != NULL; consumer = consumer->next_shared)
		if (consumer->token == token)
			return consumer->job;
	return NULL;
}

/* Tries to end the job, or to leave it; the device may need some time yet. */
static void
close_job(GsConnection *connection)
{
	if (connection->job != NULL)
	{
		unshare_job(connection);
		if (!gs_job_close(connection->job))
			return;
		connection->job = NULL;
		connection->service->njobs--;
		connection->service->jobs_done++;
	}
	else if (connection->producer != NULL && !gs_producer_leave(connection->producer))
		return;
	connection->producer = NULL;
	if (connection->state == STATE_CLOSING)
		enter(connection, STATE_IDLE);
}

/* The connection, as a job sees it. */
static GsParticipant
participant_of(GsConnection *connection, uint32_t number)
{
	GsParticipant participant = {
		.buffer_pool = connection->buffer_pool,
		.number = number,
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

static void
refuse_job(GsConnection *connection, GsFailure failure, const char *text)
{
	enter(connection, STATE_FAILED);
	send_failed(connection, failure, text);
}

/* It has one: all slots are the client's, which may fill them. */
static void
begin_job(GsConnection *connection, ConnectionState state)
{
	GsJobReady	ready = {.token = connection->token};

	for (uint32_t buffer = 0; buffer < connection->buffer_pool.nbuffers; buffer++)
		connection->owners[buffer] = BUFFER_CLIENT;
	enter(connection, state);
	send_message(connection, &ready.message, GS_MESSAGE_JOB_READY, sizeof(ready));
}

bool
gs_connection_admit(GsConnection *connection)
{
	GsService  *service = connection->service;
	const GsJobOpen *open = &connection->open;
	GsParticipant consumer = participant_of(connection, open->participant);
	GsJobMemory memory = {0};

	if (!gs_device_pool_admit(service->pool, connection->session, open->expected_bytes, &memory))
		return false;
	connection->job = gs_job_open(service->device, &memory, open->nwords,
								  open->keys_only != 0, &consumer);
	if (connection->job == NULL)
	{
		gs_device_pool_free_all(&memory);
		if (service->device->error[0] != '\0')
		{
			enter(connection, STATE_FAILED);
			gs_service_broke(service, service->device->error);
		}
		else
			refuse_job(connection, GS_FAILED_MEMORY, "gpusortd is out of memory");
		return true;
	}
	connection->producer = gs_job_consumer(connection->job);
	service->njobs++;
	if (open->shared && !share_job(connection))
		refuse_job(connection, GS_FAILED_JOB, "gpusortd could not generate a job token");
	else
		begin_job(connection, STATE_INPUT);
	return true;
}

void
gs_connection_refuse(GsConnection *connection, const char *text)
{
	refuse_job(connection, GS_FAILED_MEMORY, text);
}

uint64_t
gs_connection_need(const GsConnection *connection)
{
	return gs_device_pool_promise(connection->service->pool, connection->session,
						   connection->open.expected_bytes);
}

bool
gs_connection_is_over_share(const GsConnection *connection)
{
	const GsMemoryAccount *session = connection->session;

	return session != NULL &&
		gs_connection_need(connection) < Min(connection->open.expected_bytes, session->limit) / 2;
}

/* ------------------------------------------------------------------ messages */

/* Maps and pins the ring.  False: the connection is gone. */
static bool
map_buffers(GsConnection *connection, const GsHello *hello, int memfd)
{
	GsFailure	failure = GS_FAILED_PROTOCOL;
	const char *why_not = gs_buffer_pool_map(&connection->buffer_pool, connection->service->device, hello,
									  memfd, &failure);

	if (why_not == NULL)
		return true;
	if (failure == GS_FAILED_PROTOCOL)
		reject(connection, why_not);
	else
	{
		gs_log_limited("client %d: %s", connection->pid, why_not);
		fail(connection, failure, why_not);
	}
	return false;
}

static void
handle_hello(GsConnection *connection, const GsHello *hello, int memfd)
{
	GsWelcome	welcome;

	if (hello->buffer_bytes < GS_MIN_BUFFER_BYTES || hello->buffer_bytes > GS_MAX_BUFFER_BYTES ||
		hello->buffer_bytes % 4096 != 0 ||
		hello->nbuffers < 1 || hello->nbuffers > GS_MAX_BUFFERS ||
		hello->buffer_pool_bytes != (uint64_t) hello->buffer_bytes * hello->nbuffers)
	{
		reject(connection, "HELLO has an invalid buffer pool");
		return;
	}
	if (memfd < 0)
	{
		reject(connection, "HELLO has no file descriptor of the buffer pool");
		return;
	}
	if (!map_buffers(connection, hello, memfd))
		return;
	enter(connection, STATE_IDLE);
	gs_service_publish(connection->service);
	welcome = gs_service_stats_welcome(&connection->service->figures);
	send_message(connection, &welcome.message, GS_MESSAGE_WELCOME, sizeof(welcome));
}

/* What both JOB_OPEN and JOB_JOIN say. */
static bool
job_can_be(GsConnection *connection, uint32_t nwords, uint32_t keys_only, uint32_t participant)
{
	if (nwords < 1 || nwords > 2 * GS_MAX_FIELDS || keys_only > 1 || (keys_only && nwords != 1))
		reject(connection, "the job has invalid records");
	else if (participant >= GS_MAX_PARTICIPANTS)
		reject(connection, "invalid participant number");
	else
		return true;
	return false;
}

/* What its session may have in all; 0: no limit of its own.  False: out of memory. */
static bool
join_session(GsConnection *connection, uint64_t session_bytes)
{
	GsService  *service = connection->service;

	if (session_bytes == 0)
	{
		leave_session(connection);
		return true;
	}
	if (connection->session == NULL)
		connection->session = gs_admission_session(service, connection->pid);
	if (connection->session != NULL)
		connection->session->limit = session_bytes;
	return connection->session != NULL;
}

static void
handle_job_open(GsConnection *connection, const GsJobOpen *open)
{
	GsService  *service = connection->service;

	if (!job_can_be(connection, open->nwords, open->keys_only, open->participant))
		return;
	if (open->shared > 1)
	{
		reject(connection, "JOB_OPEN has an invalid flag");
		return;
	}
	if (!join_session(connection, open->session_bytes))
	{
		refuse_job(connection, GS_FAILED_MEMORY, "gpusortd is out of memory");
		return;
	}
	connection->open = *open;
	connection->arrival = ++service->narrivals;
	connection->waits_since = gs_clock_us();
	connection->deadline_us = connection->waits_since + (uint64_t) open->wait_ms * 1000;
	connection->park_again_us = 0;
	enter(connection, STATE_WAITING);
}

static void
handle_job_join(GsConnection *connection, const GsJobJoin *join)
{
	GsSortJob  *job = find_job(connection->service, join->token);
	GsParticipant feeder = participant_of(connection, join->participant);
	const char *why_not = "there is no such job";

	if (!job_can_be(connection, join->nwords, join->keys_only, join->participant))
		return;
	if (job != NULL)
		connection->producer = gs_job_join(job, join->nwords, join->keys_only != 0, &feeder, &why_not);
	if (connection->producer == NULL)
	{
		refuse_job(connection, GS_FAILED_JOB, why_not);
		return;
	}
	connection->open = (GsJobOpen)
	{
		.nwords = join->nwords,.keys_only = join->keys_only
	};
	begin_job(connection, STATE_PRODUCING);
}

/* A slot of the ring, and the client's to give? */
static bool
buffer_is_clients(GsConnection *connection, uint32_t buffer)
{
	if (buffer < connection->buffer_pool.nbuffers && connection->owners[buffer] == BUFFER_CLIENT)
		return true;
	reject(connection, "the buffer does not belong to the client");
	return false;
}

static void
handle_batch_filled(GsConnection *connection, const GsBatchFilled *filled)
{
	const GsJobOpen *open = &connection->open;
	uint64_t	record_bytes = sizeof(uint64_t) * (open->nwords + (open->keys_only ? 0 : 1));
	uint64_t	min_rows_bytes = open->keys_only ? 0 : (uint64_t) filled->nrows * MIN_ROW_BYTES;

	if (!buffer_is_clients(connection, filled->buffer))
		return;
	if (filled->nrows < 1 || filled->rows_bytes % GS_ROW_ALIGN != 0 ||
		filled->rows_bytes < min_rows_bytes || (open->keys_only && filled->rows_bytes != 0) ||
		filled->rows_bytes + filled->nrows * record_bytes > connection->buffer_pool.buffer_bytes)
	{
		reject(connection, "BATCH_FILLED does not fit its buffer");
		return;
	}
	connection->owners[filled->buffer] = BUFFER_FILLED;
	if (connection->state == STATE_INPUT || connection->state == STATE_PRODUCING)
		gs_producer_batch_filled(connection->producer, filled->buffer, filled->nrows, filled->rows_bytes);
}

static void
handle_producer_end(GsConnection *connection, const GsProducerEnd *end)
{
	if (end->partial > 1)
	{
		reject(connection, "PRODUCER_END has an invalid flag");
		return;
	}
	if (connection->state != STATE_PRODUCING &&
		!(connection->state == STATE_PRODUCER_FULL && end->partial))
		return;
	enter(connection, STATE_ENDING);
	gs_producer_end(connection->producer);
}

/* Sort and drain go by what is there, and more may come from feeders. */
static bool
all_producers_done(GsConnection *connection)
{
	if (!gs_job_has_producers(connection->job))
		return true;
	reject(connection, "the job has active producers");
	return false;
}

static void
handle_sort(GsConnection *connection, const GsSortRequest *request)
{
	if (request->algorithm > GS_ALGORITHM_MERGE || request->partial > 1)
	{
		reject(connection, "SORT has an invalid algorithm or flag");
		return;
	}
	if (connection->state != STATE_INPUT &&
		!(connection->state == STATE_DRAINABLE && request->partial))
		return;
	if (!all_producers_done(connection))
		return;
	enter(connection, STATE_SORTING);
	gs_job_sort(connection->job, (GsAlgorithm) request->algorithm, request->partial,
				&request->layout);
}

static void
handle_fetch(GsConnection *connection, const GsFetch *fetch)
{
	if (connection->state != STATE_SORTED)
		return;
	if (fetch->position >= connection->nrows)
	{
		reject(connection, "FETCH has an invalid row number");
		return;
	}
	gs_job_fetch(connection->job, fetch->stream, fetch->position);
}

static void
handle_batch_released(GsConnection *connection, const GsBufferMessage *released)
{
	if (!buffer_is_clients(connection, released->buffer))
		return;
	connection->owners[released->buffer] = BUFFER_RELEASED;
	if (connection->state != STATE_FAILED)
		gs_job_buffer_released(connection->job, released->buffer);
}

static void
handle_return_input(GsConnection *connection)
{
	if (!all_producers_done(connection))
		return;
	enter(connection, STATE_RETURNING);
	gs_job_return_input(connection->job);
}

/* Is the client of our build, and says HELLO as we do?  Else it is told, and dropped. */
static bool
is_of_this_build(GsConnection *connection, const GsHello *hello, size_t nbytes)
{
	char		text[GS_FAILED_TEXT_BYTES];
	char		build[GS_BUILD_ID_BYTES + 1] = "";

	if (nbytes < offsetof(GsHello, version) + sizeof(hello->version))
		return true;			/* it is too short in any version */
	if (hello->magic != GS_WIRE_MAGIC || hello->version != GS_WIRE_VERSION)
	{
		snprintf(text, sizeof(text),
				 "the client has protocol version %u (magic %08X), gpusortd has version %u (magic %08X)",
				 hello->version, hello->magic, GS_WIRE_VERSION, GS_WIRE_MAGIC);
		gs_log_limited("client %d: %s", connection->pid, text);
		fail(connection, GS_FAILED_VERSION, text);
		return false;
	}
	if (nbytes < offsetof(GsHello, build) + sizeof(hello->build) ||
		memcmp(hello->build, gs_build_id, sizeof(hello->build)) == 0)
		return true;
	for (int i = 0; i < GS_BUILD_ID_BYTES; i++)
		build[i] = isxdigit((unsigned char) hello->build[i]) ? hello->build[i] : '?';
	snprintf(text, sizeof(text), "the client has build %s, gpusortd has build %s",
			 build, gs_build_id);

	/* many sessions may be, and each asks again and again */
	if (memcmp(hello->build, connection->service->refused_build, sizeof(hello->build)) != 0)
		gs_log("client %d and others of its build sort without the device: %s", connection->pid, text);
	memcpy(connection->service->refused_build, hello->build, sizeof(hello->build));
	fail(connection, GS_FAILED_VERSION, text);
	return false;
}

/* Takes one message, whole or not, with or without a descriptor. */
static void
receive_message(GsConnection *connection, const GsAnyMessage *any, size_t nbytes, int memfd)
{
	const GsMessage *message = &any->message;
	const GsHello *hello = &any->hello;

	if (nbytes < sizeof(GsMessage) || message->nbytes != nbytes ||
		message->type >= NMESSAGE_RULES || message_rules[message->type].nbytes == 0)
	{
		reject(connection, "invalid message type or length");
		return;
	}
	if (!(message_rules[message->type].states & (1u << connection->state)))
	{
		reject(connection, "unexpected message");
		return;
	}

	/* before its length, which may well be another in another build */
	if (message->type == GS_MESSAGE_HELLO && !is_of_this_build(connection, hello, nbytes))
		return;
	if (nbytes != message_rules[message->type].nbytes)
	{
		reject(connection, "invalid message length");
		return;
	}
	if (memfd >= 0 && message->type != GS_MESSAGE_HELLO)
	{
		reject(connection, "unexpected file descriptor");
		return;
	}

	switch (message->type)
	{
		case GS_MESSAGE_HELLO:
			handle_hello(connection, hello, memfd);
			break;
		case GS_MESSAGE_JOB_OPEN:
			handle_job_open(connection, &any->job_open);
			break;
		case GS_MESSAGE_JOB_JOIN:
			handle_job_join(connection, &any->job_join);
			break;
		case GS_MESSAGE_BATCH_FILLED:
			handle_batch_filled(connection, &any->filled);
			break;
		case GS_MESSAGE_PRODUCER_END:
			handle_producer_end(connection, &any->producer_end);
			break;
		case GS_MESSAGE_SORT:
			handle_sort(connection, &any->sort);
			break;
		case GS_MESSAGE_FETCH:
			handle_fetch(connection, &any->fetch);
			break;
		case GS_MESSAGE_BATCH_RELEASED:
			handle_batch_released(connection, &any->buffer);
			break;
		case GS_MESSAGE_RETURN_INPUT:
			handle_return_input(connection);
			break;
		case GS_MESSAGE_JOB_CLOSE:
			enter(connection, STATE_CLOSING);
			close_job(connection);
			break;
	}
}

/* ------------------------------------------------------------------- reading */

/* Room for two: so one too many is seen.  The kernel closes those beyond. */
#define MAX_DESCRIPTORS	2

/* The descriptors beside a message; how many. */
static int
receive_descriptors(struct msghdr *header, int *descriptors)
{
	int			n = 0;

	for (struct cmsghdr *control = CMSG_FIRSTHDR(header); control != NULL;
		 control = CMSG_NXTHDR(header, control))
	{
		size_t		nbytes = control->cmsg_len - CMSG_LEN(0);

		if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < nbytes / sizeof(int) && n < MAX_DESCRIPTORS; i++, n++)
			memcpy(&descriptors[n], CMSG_DATA(control) + i * sizeof(int), sizeof(int));
	}
	return n;
}

/* Takes the next message.  False: there is none, or the connection is gone. */
static bool
read_message(GsConnection *connection)
{
	GsAnyMessage any;
	union
	{
		struct cmsghdr align;
		char		room[CMSG_SPACE(MAX_DESCRIPTORS * sizeof(int))];
	}			control;
	struct iovec piece = {.iov_base = &any,.iov_len = sizeof(any)};
	struct msghdr header = {
		.msg_iov = &piece,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)
	};
	int			descriptors[MAX_DESCRIPTORS];
	int			ndescriptors;
	ssize_t		nbytes = recvmsg(connection->socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (nbytes < 0)
	{
		if (errno != EAGAIN && errno != EINTR)
			drop(connection);
		return false;
	}
	ndescriptors = receive_descriptors(&header, descriptors);
	if (nbytes == 0)
		drop(connection);
	else if (header.msg_flags & MSG_TRUNC)
		reject(connection, "message too long");
	else if (ndescriptors > 1)
		reject(connection, "more than one file descriptor");
	else if (header.msg_flags & MSG_CTRUNC)
	{
		/* none could be made of what was sent */
		gs_log_limited("client %d: too many open files", connection->pid);
		fail(connection, GS_FAILED_MEMORY, "gpusortd has too many open files");
	}
	else
	{
		connection->service->nmessages++;
		receive_message(connection, &any, (size_t) nbytes,
					 ndescriptors > 0 ? descriptors[0] : -1);
	}
	for (int i = 0; i < ndescriptors; i++)
		close(descriptors[i]);
	return connection->state != STATE_CLOSED;
}

void
gs_connection_read(GsConnection *connection)
{
	for (int i = 0; i < READ_MESSAGES; i++)
	{
		/* a broken device ends all: what comes now cannot be done */
		if (!connection->is_watched || connection->service->device_failed ||
			!read_message(connection))
			break;
	}
}

/* ---------------------------------------------------------------------- life */

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

GsConnection *
gs_connection_first_active(const GsService *service)
{
	GsListNode *node = service->active.next;

	return node == &service->active ? NULL : GS_LIST_OWNER(GsConnection, active, node);
}

GsConnection *
gs_connection_next_active(const GsConnection *connection)
{
	GsListNode *node = connection->active.next;

	return node == &connection->service->active ? NULL : GS_LIST_OWNER(GsConnection, active, node);
}

void
gs_connection_rotate_active(GsService *service)
{
	GsListNode *node = service->active.next;

	if (node == &service->active)
		return;
	gs_list_remove(node);
	gs_list_append(&service->active, node);
}

void
gs_connection_poll(GsConnection *connection)
{
	if (connection->state == STATE_CLOSING || connection->state == STATE_CLOSED)
		close_job(connection);
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

GsSortJob *
gs_connection_job(const GsConnection *connection)
{
	return connection->job;
}

uint64_t
gs_connection_arrival(const GsConnection *connection)
{
	return connection->arrival;
}

GsConnection *
gs_connection_first_waiting(const GsService *service)
{
	GsListNode *node = service->waiting.next;

	return node == &service->waiting ? NULL : GS_LIST_OWNER(GsConnection, waiting, node);
}

GsConnection *
gs_connection_next_waiting(const GsConnection *connection)
{
	GsListNode *node = connection->waiting.next;

	return node == &connection->service->waiting ? NULL :
		GS_LIST_OWNER(GsConnection, waiting, node);
}

uint64_t
gs_connection_waits_since(const GsConnection *connection)
{
	return connection->waits_since;
}

uint64_t
gs_connection_park_again_us(const GsConnection *connection)
{
	return connection->park_again_us;
}

void
gs_connection_set_park_again(GsConnection *connection, uint64_t when_us)
{
	connection->park_again_us = when_us;
}

uint64_t
gs_connection_deadline_us(const GsConnection *connection)
{
	return connection->deadline_us;
}

bool
gs_connection_is_closed(const GsConnection *connection)
{
	return connection->state == STATE_CLOSED;
}

bool
gs_connection_end(GsConnection *connection)
{
	close_job(connection);
	if (connection->producer != NULL)
		return false;
	gs_buffer_pool_unmap(&connection->buffer_pool, connection->service->device, connection->ring_is_unused);
	leave_session(connection);
	gs_list_remove(&connection->active);
	gs_list_remove(&connection->all);
	free(connection);
	return true;
}
