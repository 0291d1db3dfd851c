/*-------------------------------------------------------------------------
 *
 * connection_message.c
 *	  One client: reads its messages, validates them and handles them.
 *
 * A message is checked for its length, for being legal in the state of the
 * connection, and for its contents; only then it has an effect.  A client that
 * breaks the protocol gets an error and is disconnected.
 *
 * A descriptor may accompany a message.  Descriptors are received with every
 * message, with close-on-exec set, and closed after it; only HELLO may have
 * one.
 *
 *-------------------------------------------------------------------------
 */
#include "gpusortd/connection.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/basics.h"
#include "job/log.h"

/* Messages to read in one turn of the loop, so that other clients get theirs. */
#define MAX_MESSAGES_PER_TURN	32

/* The shortest row: the header of a stored tuple. */
#define MIN_ROW_BYTES	16

#define IN(state) (1u << STATE_##state)

/* Length of each message, and the states in which it is legal. */
static const struct
{
	size_t		nbytes;
	unsigned	states;
}			message_rules[] = {
	[GS_MESSAGE_HELLO] = {sizeof(GsHello), IN(NEW)},
	[GS_MESSAGE_JOB_OPEN] = {sizeof(GsJobOpen), IN(IDLE)},
	[GS_MESSAGE_JOB_JOIN] = {sizeof(GsJobJoin), IN(IDLE)},
	[GS_MESSAGE_JOB_READ] = {sizeof(GsJobJoin), IN(IDLE)},
	[GS_MESSAGE_BATCH_FILLED] = {sizeof(GsBatchFilled),
	IN(INPUT) | IN(FULL) | IN(PRODUCING) | IN(PRODUCER_FULL) | IN(FAILED)},
	[GS_MESSAGE_PRODUCER_END] =
	{sizeof(GsProducerEnd), IN(PRODUCING) | IN(PRODUCER_FULL) | IN(FAILED)},
	[GS_MESSAGE_SORT] = {sizeof(GsSortRequest), IN(INPUT) | IN(FULL) | IN(FAILED)},
	[GS_MESSAGE_FETCH] = {sizeof(GsFetch), IN(SORTED) | IN(READING) | IN(FAILED)},
	[GS_MESSAGE_BATCH_RELEASED] = {sizeof(GsBufferMessage),
	IN(INPUT) | IN(SORTING) | IN(SORTED) | IN(FULL) | IN(RETURNING) | IN(READING) | IN(FAILED)},
	[GS_MESSAGE_RETURN_INPUT] = {sizeof(GsMessage), IN(INPUT) | IN(FULL)},
	[GS_MESSAGE_JOB_CLOSE] = {sizeof(GsMessage),
	IN(WAITING) | IN(INPUT) | IN(SORTING) | IN(SORTED) | IN(FULL) | IN(RETURNING) |
	IN(PRODUCING) | IN(PRODUCER_FULL) | IN(READING) | IN(FAILED)},
};

#define NMESSAGE_RULES	(sizeof(message_rules) / sizeof(message_rules[0]))

/* Rejects the message if a condition is false; then the connection is closed.  Returns it. */
static bool
require(GsConnection *connection, bool condition, const char *text)
{
	if (!condition)
		gs_connection_reject(connection, text);
	return condition;
}

/* ---------------------------------------------------------------- handlers */

/*
 * Maps and pins the shared buffers.  False: the connection has been closed.  The file
 * must be sealed against shrinking: if the client truncated it, access to it would raise
 * SIGBUS here.
 */
static bool
map_buffers(GsConnection *connection, const GsHello *hello, int memfd)
{
	GsDevice   *device = connection->service->device;
	int			seals = fcntl(memfd, F_GET_SEALS);
	struct stat status;
	void	   *base;
	const char *why_not;

	if (!require(connection, seals >= 0 && (seals & F_SEAL_SHRINK) != 0 &&
				 fstat(memfd, &status) == 0 && S_ISREG(status.st_mode),
				 "the shared buffers are not a memfd sealed against shrinking") ||
		!require(connection, (uint64_t) status.st_size == hello->buffer_pool_bytes,
				 "the shared buffers have another size than HELLO says"))
		return false;
	base = mmap(NULL, hello->buffer_pool_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	if (base == MAP_FAILED)
		why_not = "could not map the shared buffers";
	else if (device->ops->pin(device, base, hello->buffer_pool_bytes))
	{
		connection->buffer_pool = (GsBufferPool)
		{
			.base = base,.buffer_bytes = hello->buffer_bytes,.nbuffers = hello->nbuffers
		};
		return true;
	}
	else
	{
		munmap(base, hello->buffer_pool_bytes);
		why_not = "could not pin the shared buffers";
	}
	gs_log_limited("client %d: %s", connection->pid, why_not);
	gs_connection_fail(connection, GS_FAILED_MEMORY, why_not);
	return false;
}

static void
handle_hello(GsConnection *connection, const GsHello *hello, int memfd)
{
	GsWelcome	welcome;

	if (!require(connection, hello->buffer_bytes >= GS_MIN_BUFFER_BYTES &&
				 hello->buffer_bytes <= GS_MAX_BUFFER_BYTES && hello->buffer_bytes % 4096 == 0 &&
				 hello->nbuffers >= 1 && hello->nbuffers <= GS_MAX_BUFFERS &&
				 hello->buffer_pool_bytes == (uint64_t) hello->buffer_bytes * hello->nbuffers,
				 "HELLO has invalid sizes of buffers") ||
		!require(connection, memfd >= 0, "HELLO has no descriptor of the buffers") ||
		!map_buffers(connection, hello, memfd))
		return;
	gs_connection_enter(connection, STATE_IDLE);
	gs_service_publish(connection->service);
	welcome = gs_service_welcome(connection->service->slot);
	gs_connection_send(connection, &welcome.message, GS_MESSAGE_WELCOME, sizeof(welcome));
}

/* Validates what JOB_OPEN, JOB_JOIN and JOB_READ have in common. */
static bool
validate_job(GsConnection *connection, uint32_t nwords, uint32_t keys_only, uint32_t participant)
{
	return require(connection, nwords >= 1 && nwords <= 2 * GS_MAX_FIELDS &&
				   (keys_only == 0 || (keys_only == 1 && nwords == 1)),
				   "invalid number of words in a record") &&
		require(connection, participant < GS_MAX_PARTICIPANTS,
				"participant number is out of range");
}

static void
handle_job_open(GsConnection *connection, const GsJobOpen *open)
{
	GsService  *service = connection->service;

	if (!validate_job(connection, open->nwords, open->keys_only, open->participant) ||
		!require(connection, open->shared <= 1, "invalid flag in JOB_OPEN"))
		return;
	connection->open = *open;
	connection->arrival = ++service->narrivals;
	connection->waiting_since_us = gs_clock_us();
	connection->deadline_us = connection->waiting_since_us + (uint64_t) open->wait_ms * 1000;
	connection->park_retry_us = 0;
	gs_connection_enter(connection, STATE_WAITING);
}

/* JOB_JOIN or JOB_READ, which leads to another state. */
static void
handle_job_join(GsConnection *connection, const GsJobJoin *join, ConnectionState state)
{
	GsSortJob  *job = gs_connection_find_job(connection->service, join->token);
	GsParticipant participant;
	const char *why_not = "there is no such sort (any more)";

	if (!validate_job(connection, join->nwords, join->keys_only, join->participant))
		return;
	connection->open = (GsJobOpen)
	{
		.nwords = join->nwords,.keys_only = join->keys_only,.participant = join->participant
	};
	participant = gs_connection_participant(connection);
	if (job != NULL)
		connection->member = gs_job_join(job, &participant, state == STATE_READING, &why_not);
	if (connection->member == NULL)
		gs_connection_refuse_job(connection, GS_FAILED_JOB, why_not);
	else
		gs_connection_begin_job(connection, state);
}

/* Checks that the client names one of its own buffers. */
static bool
validate_buffer(GsConnection *connection, uint32_t buffer)
{
	return require(connection, buffer < connection->buffer_pool.nbuffers &&
				   connection->owners[buffer] == BUFFER_CLIENT,
				   "the client does not own this buffer");
}

static void
handle_batch_filled(GsConnection *connection, const GsBatchFilled *filled)
{
	const GsJobOpen *open = &connection->open;
	uint64_t	record_bytes = sizeof(uint64_t) * (open->nwords + (open->keys_only ? 0 : 1));
	uint64_t	min_rows_bytes = open->keys_only ? 0 : (uint64_t) filled->nrows * MIN_ROW_BYTES;
	uint64_t	nbytes = filled->rows_bytes + filled->nrows * record_bytes;

	if (!validate_buffer(connection, filled->buffer) ||
		!require(connection, filled->nrows >= 1 && filled->rows_bytes % GS_ROW_ALIGN == 0 &&
				 filled->rows_bytes >= min_rows_bytes &&
				 (!open->keys_only || filled->rows_bytes == 0) &&
				 nbytes <= connection->buffer_pool.buffer_bytes,
				 "BATCH_FILLED does not fit its buffer"))
		return;
	connection->owners[filled->buffer] = BUFFER_FILLED;
	gs_device_count(&connection->service->slot->counters.bytes_in, nbytes);
	if (connection->state == STATE_INPUT || connection->state == STATE_PRODUCING)
		gs_member_batch_filled(connection->member, filled->buffer, filled->nrows,
							   filled->rows_bytes);
}

static void
handle_producer_end(GsConnection *connection, const GsProducerEnd *end)
{
	if (!require(connection, end->partial <= 1, "invalid flag in PRODUCER_END"))
		return;
	if (connection->state != STATE_PRODUCING &&
		!(connection->state == STATE_PRODUCER_FULL && end->partial))
		return;
	gs_connection_enter(connection, STATE_ENDING);
	gs_member_end(connection->member);
}

/* SORT and RETURN_INPUT need the complete input, so all producers must have ended. */
static bool
all_producers_done(GsConnection *connection)
{
	return require(connection, !gs_job_has_producers(connection->job),
				   "the job still has producers");
}

static void
handle_sort(GsConnection *connection, const GsSortRequest *request)
{
	if (!require(connection, request->algorithm <= GS_ALGORITHM_MERGE && request->partial <= 1 &&
				 request->find_equal <= 1, "invalid algorithm or flag in SORT"))
		return;
	if (connection->state != STATE_INPUT &&
		!(connection->state == STATE_FULL && request->partial))
		return;
	if (!all_producers_done(connection))
		return;
	gs_connection_enter(connection, STATE_SORTING);
	gs_job_sort(connection->job, (GsAlgorithm) request->algorithm, request->partial,
				request->find_equal, &request->layout);
}

static void
handle_fetch(GsConnection *connection, const GsFetch *fetch)
{
	if (connection->state != STATE_FAILED)
		require(connection, gs_member_fetch(connection->member, fetch->stream, fetch->position),
				"position of FETCH is out of range, or the rows are not sorted yet");
}

static void
handle_batch_released(GsConnection *connection, const GsBufferMessage *released)
{
	if (!validate_buffer(connection, released->buffer))
		return;
	connection->owners[released->buffer] = BUFFER_RELEASED;
	if (connection->state != STATE_FAILED)
		gs_member_buffer_released(connection->member, released->buffer);
}

static void
handle_return_input(GsConnection *connection)
{
	if (!all_producers_done(connection))
		return;
	gs_connection_enter(connection, STATE_RETURNING);
	gs_job_return_input(connection->job);
}

/* Checks that the client is of our build.  False: the connection has been closed. */
static bool
validate_build(GsConnection *connection, const GsHello *hello, size_t nbytes)
{
	char		text[GS_FAILED_TEXT_BYTES];
	char		build[GS_BUILD_ID_BYTES + 1] = "";

	if (nbytes < offsetof(GsHello, version) + sizeof(hello->version))
		return true;			/* too short in any version: the caller rejects it */
	if (hello->magic != GS_WIRE_MAGIC || hello->version != GS_WIRE_VERSION)
	{
		snprintf(text, sizeof(text),
				 "the client has protocol version %u (magic %08X), "
				 "gpusortd has version %u (magic %08X)",
				 hello->version, hello->magic, GS_WIRE_VERSION, GS_WIRE_MAGIC);
		gs_log_limited("client %d: %s", connection->pid, text);
		gs_connection_fail(connection, GS_FAILED_VERSION, text);
		return false;
	}
	if (nbytes < offsetof(GsHello, build) + sizeof(hello->build) ||
		memcmp(hello->build, gs_build_id, sizeof(hello->build)) == 0)
		return true;
	for (int i = 0; i < GS_BUILD_ID_BYTES; i++)
		build[i] = isxdigit((unsigned char) hello->build[i]) ? hello->build[i] : '?';
	snprintf(text, sizeof(text), "the client has build %s, gpusortd has build %s",
			 build, gs_build_id);

	/* once for each build, because each session tries again and again */
	if (memcmp(hello->build, connection->service->refused_build, sizeof(hello->build)) != 0)
		gs_log("client %d and all others of its build sort without the device: %s", connection->pid,
			   text);
	memcpy(connection->service->refused_build, hello->build, sizeof(hello->build));
	gs_connection_fail(connection, GS_FAILED_VERSION, text);
	return false;
}

/* Validates and handles a message, which may be truncated or have a descriptor (or -1). */
static void
handle_message(GsConnection *connection, const GsAnyMessage *any, size_t nbytes, int memfd)
{
	const GsMessage *message = &any->message;
	const GsHello *hello = &any->hello;

	if (!require(connection, nbytes >= sizeof(GsMessage) && message->nbytes == nbytes &&
				 message->type < NMESSAGE_RULES && message_rules[message->type].nbytes != 0,
				 "a message is truncated, too long or of unknown type") ||
		!require(connection, (message_rules[message->type].states & (1u << connection->state)) != 0,
				 "a message is not legal in this state"))
		return;

	/* before the length, which may differ in another build */
	if ((message->type == GS_MESSAGE_HELLO && !validate_build(connection, hello, nbytes)) ||
		!require(connection, nbytes == message_rules[message->type].nbytes,
				 "a message has the wrong length for its type") ||
		!require(connection, memfd < 0 || message->type == GS_MESSAGE_HELLO,
				 "unexpected descriptor"))
		return;

	switch (message->type)
	{
		case GS_MESSAGE_HELLO:
			handle_hello(connection, hello, memfd);
			break;
		case GS_MESSAGE_JOB_OPEN:
			handle_job_open(connection, &any->job_open);
			break;
		case GS_MESSAGE_JOB_JOIN:
			handle_job_join(connection, &any->job_join, STATE_PRODUCING);
			break;
		case GS_MESSAGE_JOB_READ:
			handle_job_join(connection, &any->job_join, STATE_READING);
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
			gs_connection_enter(connection, STATE_CLOSING);
			gs_connection_close_job(connection);
			break;
	}
}

/* ------------------------------------------------------------------- reading */

/* Space for two, so that more than one is noticed.  The kernel closes those beyond. */
#define MAX_DESCRIPTORS	2

/* Extracts the descriptors of a message; returns their number. */
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

/* Reads and handles the next message.  False: there is none, or the connection is closed. */
static bool
read_message(GsConnection *connection)
{
	GsAnyMessage any;
	union
	{
		struct cmsghdr align;
		char		space[CMSG_SPACE(MAX_DESCRIPTORS * sizeof(int))];
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
			gs_connection_drop(connection);
		return false;
	}
	ndescriptors = receive_descriptors(&header, descriptors);
	if (nbytes == 0)
		gs_connection_drop(connection);
	else if (header.msg_flags & MSG_TRUNC)
		gs_connection_reject(connection, "a message is too long");
	else if (ndescriptors > 1)
		gs_connection_reject(connection, "more than one descriptor");
	else if (header.msg_flags & MSG_CTRUNC)
	{
		/* the kernel could not install the descriptor */
		gs_log_limited("out of file descriptors for client %d", connection->pid);
		gs_connection_fail(connection, GS_FAILED_MEMORY, "gpusortd is out of file descriptors");
	}
	else
	{
		connection->service->nmessages++;
		handle_message(connection, &any, (size_t) nbytes,
					   ndescriptors > 0 ? descriptors[0] : -1);
	}
	for (int i = 0; i < ndescriptors; i++)
		close(descriptors[i]);
	return connection->state != STATE_CLOSED;
}

void
gs_connection_read(GsConnection *connection)
{
	for (int i = 0; i < MAX_MESSAGES_PER_TURN; i++)
	{
		/* after a device failure all connections are about to be closed */
		if (!connection->is_watched || connection->service->device_failed ||
			!read_message(connection))
			break;
	}
}
