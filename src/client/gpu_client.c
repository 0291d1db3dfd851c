/*-------------------------------------------------------------------------
 *
 * gpu_client.c
 *	  The connections of this backend to the gpusortd of each device.
 *
 * README.md says which device is chosen, how long connections are kept, and what happens if
 * gpusortd hangs.
 *
 * A link is in the list of idle links, or tied to a memory context that uses it.
 * ERROR, cancel and the end of the backend need no code: the reset callback of the
 * context closes the socket, or the kernel does.
 *
 * A session waits for the first answer of gpusortd for a second, since the CPU engine can sort
 * instead.  A participant of a job that is open already waits for it as the others do for the job.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "guc.h"
#include "pg_compat.h"
#include "client/gpu_client.h"
#include "client/service_process.h"
#include "common/basics.h"

#include "lib/ilist.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/fd.h"
#include "storage/latch.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/*
 * The shared buffers: large enough that device and backend work concurrently, and small enough
 * to stay in the CPU cache.  10 M rows of 166 bytes by a bigint: 0.76 to 0.82 s, with 16 buffers
 * of 1 MB 0.85 to 0.88 s, with 8 of 256 kB no less (Xeon, 2 MB of L2 per core; H200; 2026-11).
 */
#define BUFFER_BYTES		((uint32) 512 << 10)
#define NBUFFERS			8

/*
 * The buffers of a producer, a parallel worker, are pinned for each query, by one thread of
 * gpusortd for all workers.  This thread also handles every batch, so there are few buffers
 * rather than small ones.  Not measured on a GPU yet.
 */
#define PRODUCER_BUFFER_BYTES	((uint32) 256 << 10)
#define PRODUCER_NBUFFERS		4

/* The use of a link, which determines its buffers. */
typedef enum LinkUse
{
	LINK_SORT,					/* for a job of its own, or to read another one's */
	LINK_PRODUCER,				/* to join a job */
	LINK_STATUS					/* only for the status; without buffers */
} LinkUse;

/* Idle links kept for each use, of all devices; a merge join of two sorts uses two. */
#define MAX_IDLE		2

/*
 * An idle link is not reused within this time before gpusortd may close it, so that
 * gpusortd reads the next message in time.
 */
#define IDLE_MARGIN_MS	1000

/* Delay before the next connection after HELLO was not answered. */
#define RETRY_DELAY_MS		10000

/* Attempts to receive before sleeping, because answers often take that long. */
#define RECEIVE_SPINS			50

typedef struct ClientLink
{
	GsEngineLink base;			/* must be first */
	LinkUse		use;
	dlist_node	node;			/* in idle_links, if idle; latest first */
	uint64		last_sent_us;	/* time of the last message */
	uint32		last_type;		/* its type, a GsMessageType */
	int			socket;
	bool		other_build;	/* gpusortd is of another build */
	struct ClientLink **holder; /* in the memory context; NULL if idle */
} ClientLink;

static dlist_head idle_links = DLIST_STATIC_INIT(idle_links);
static int	nidle[LINK_STATUS];
static int	nin_use = 0;
static TimestampTz retry_after[GS_MAX_DEVICES]; /* of each device */
static const char not_answering[] = "gpusortd does not answer";

static Size
buffer_pool_bytes(const ClientLink *link)
{
	return (Size) link->base.buffer_bytes * link->base.nbuffers;
}

/* ------------------------------------------------------- links and contexts */

static void
disconnect(ClientLink *link)
{
	if (link->socket >= 0)
	{
		close(link->socket);
		ReleaseExternalFD();
	}
	if (link->base.buffer_pool != NULL)
		munmap(link->base.buffer_pool, buffer_pool_bytes(link));
	pfree(link);
}

/* A memory context is reset before its link was released. */
static void
disconnect_with_context(void *arg)
{
	ClientLink **holder = arg;

	if (*holder != NULL)
	{
		nin_use--;
		disconnect(*holder);
	}
}

/*
 * Ties a link to a memory context.  The argument of the callback is in the context,
 * because the link may belong to another context when it is called.
 */
static void
tie_to_context(ClientLink *link, MemoryContext context)
{
	MemoryContextCallback *callback = MemoryContextAlloc(context, sizeof(MemoryContextCallback));
	ClientLink **holder = MemoryContextAlloc(context, sizeof(ClientLink *));

	*holder = link;
	nin_use++;
	callback->func = disconnect_with_context;
	callback->arg = holder;
	MemoryContextRegisterResetCallback(context, callback);
	link->holder = holder;
}

/* ------------------------------------------------------------------- messages */

static bool
link_send(GsEngineLink *base, const GsMessage *message)
{
	ClientLink *link = (ClientLink *) base;
	ssize_t		sent;

	link->last_sent_us = gs_clock_us();
	link->last_type = message->type;
	do
		sent = send(link->socket, message, message->nbytes, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (sent < 0 && errno == EINTR);
	return sent == (ssize_t) message->nbytes;
}

/* Returns -1 if the connection is closed, 0 without a message, otherwise 1. */
static int
try_receive(ClientLink *link, GsAnyMessage *message)
{
	ssize_t		received;

	/* gpusortd's last messages follow the error that it closed with unread ones of ours */
	do
		received = recv(link->socket, message, sizeof(*message), MSG_DONTWAIT);
	while (received < 0 && (errno == EINTR || errno == ECONNRESET));
	if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return 0;
	return received >= (ssize_t) sizeof(GsMessage) &&
		message->message.nbytes == (uint32) received ? 1 : -1;
}

/* What the next message answers, which follows from the last request. */
static GsWait
next_wait(const ClientLink *link)
{
	switch (link->last_type)
	{
		case GS_MESSAGE_JOB_OPEN:
		case GS_MESSAGE_JOB_JOIN:
		case GS_MESSAGE_JOB_READ:
			return GS_WAIT_DEVICE_MEMORY;
		case GS_MESSAGE_SORT:
			return GS_WAIT_SORT;
		case GS_MESSAGE_BATCH_FILLED:
		case GS_MESSAGE_PRODUCER_END:
		case GS_MESSAGE_FETCH:
		case GS_MESSAGE_BATCH_RELEASED:
		case GS_MESSAGE_RETURN_INPUT:
			return GS_WAIT_BATCH;
		default:
			return GS_WAIT_SERVICE;
	}
}

/* Waits until the socket is readable; timeout_ms -1: forever.  False: timeout. */
static bool
wait_readable(ClientLink *link, long timeout_ms)
{
	int			events = WL_LATCH_SET | WL_SOCKET_READABLE | WL_EXIT_ON_PM_DEATH;

	if (timeout_ms >= 0)
		events |= WL_TIMEOUT;
	events = WaitLatchOrSocket(MyLatch, events, link->socket, timeout_ms,
							   gs_wait_event(next_wait(link)));
	if (events & WL_LATCH_SET)
	{
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	return (events & WL_TIMEOUT) == 0;
}

/* Receives the next message; type 0 after timeout_ms.  False: the connection is closed. */
static bool
receive(ClientLink *link, int timeout_ms, GsAnyMessage *message)
{
	TimestampTz end = 0;

	for (int tries = 0;; tries++)
	{
		int			received = try_receive(link, message);
		long		left = timeout_ms;

		if (received != 0)
			return received > 0;
		if (timeout_ms > 0)
		{
			TimestampTz now = GetCurrentTimestamp();

			if (end == 0)
				end = TimestampTzPlusMilliseconds(now, timeout_ms);
			left = TimestampDifferenceMilliseconds(now, end);
		}
		if (left == 0)
		{
			message->message.type = 0;
			return true;
		}
		if (tries >= RECEIVE_SPINS)
			wait_readable(link, left);
	}
}

/*
 * Asks by another connection, because this one may be busy: does gpusortd answer,
 * and is its loop alive?
 */
static bool
service_answers(int device, int timeout_ms)
{
	GsWelcome	welcome;
	const char *state;
	const char *why_not;

	gs_gpu_client_status(device, &welcome, timeout_ms, &state, &why_not);
	return strcmp(state, "not answering") != 0 && welcome.stalled_ms < (uint32) timeout_ms;
}

static bool
link_receive(GsEngineLink *base, int timeout_ms, GsAnyMessage *message)
{
	ClientLink *link = (ClientLink *) base;
	const int	patience_ms = gpusort_service_timeout;

	while (patience_ms > 0 && (timeout_ms < 0 || timeout_ms > patience_ms))
	{
		if (!receive(link, patience_ms, message))
			return false;
		if (message->message.type != 0)
			return true;
		if (!service_answers(base->device, patience_ms))
			return false;
		if (timeout_ms > 0)
			timeout_ms -= patience_ms;
	}
	return receive(link, timeout_ms, message);
}

/* Disconnects the link for this use that has been idle for the longest time. */
static void
drop_oldest(LinkUse use)
{
	dlist_iter	iter;
	ClientLink *oldest = NULL;

	dlist_foreach(iter, &idle_links)
	{
		ClientLink *link = dlist_container(ClientLink, node, iter.cur);

		if (link->use == use)
			oldest = link;
	}
	dlist_delete(&oldest->node);
	nidle[use]--;
	disconnect(oldest);
}

static void
link_release(GsEngineLink *base, bool reusable)
{
	ClientLink *link = (ClientLink *) base;

	*link->holder = NULL;
	link->holder = NULL;
	nin_use--;
	if (!reusable || link->use == LINK_STATUS)
	{
		disconnect(link);
		return;
	}
	dlist_push_head(&idle_links, &link->node);
	if (nidle[link->use]++ == MAX_IDLE)
		drop_oldest(link->use);
}

/* ------------------------------------------------------------ opening a link */

/*
 * Creates the shared buffers; returns the descriptor, or -1.  The pages are
 * allocated here, because otherwise one thread of gpusortd would have to clear
 * them, for all workers of a query, when it pins the buffers.
 */
static int
create_buffers(ClientLink *link)
{
	int			buffer_pool = memfd_create("gpusort", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (buffer_pool < 0)
		return -1;
	if (ftruncate(buffer_pool, buffer_pool_bytes(link)) == 0 &&
		fcntl(buffer_pool, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
	{
		void	   *memory = mmap(NULL, buffer_pool_bytes(link), PROT_READ | PROT_WRITE,
								  MAP_SHARED | MAP_POPULATE, buffer_pool, 0);

		if (memory != MAP_FAILED)
		{
			link->base.buffer_pool = memory;
			return buffer_pool;
		}
	}
	close(buffer_pool);
	return -1;
}

static bool
connect_socket(ClientLink *link)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	StaticAssertStmt(sizeof(GS_SERVICE_SOCKET) + 3 <= sizeof(address.sun_path),
					 "the socket path is too long");
	strlcpy(address.sun_path, gs_service_socket(link->base.device), sizeof(address.sun_path));
	if (!AcquireExternalFD())
		return false;
	link->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (link->socket < 0)
	{
		ReleaseExternalFD();
		return false;
	}
	return connect(link->socket, (struct sockaddr *) &address, sizeof(address)) == 0;
}

/* buffer_pool: the descriptor; -1: none, to ask for the status only. */
static bool
send_hello(ClientLink *link, int buffer_pool)
{
	GsHello		hello = {
		.message = {.type = GS_MESSAGE_HELLO,.nbytes = sizeof(hello)},
		.magic = GS_WIRE_MAGIC,
		.version = GS_WIRE_VERSION
	};
	struct iovec part = {.iov_base = &hello,.iov_len = sizeof(hello)};
	union
	{
		struct cmsghdr header;
		char		space[CMSG_SPACE(sizeof(int))];
	}			control;
	struct msghdr envelope = {.msg_iov = &part,.msg_iovlen = 1};
	struct cmsghdr *header;

	memcpy(hello.build, gs_build_id, sizeof(hello.build));
	if (buffer_pool < 0)
		return link_send(&link->base, &hello.message);
	hello.buffer_pool_bytes = buffer_pool_bytes(link);
	hello.buffer_bytes = link->base.buffer_bytes;
	hello.nbuffers = link->base.nbuffers;

	memset(&control, 0, sizeof(control));
	envelope.msg_control = &control;
	envelope.msg_controllen = sizeof(control);
	header = CMSG_FIRSTHDR(&envelope);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &buffer_pool, sizeof(int));
	link->last_sent_us = gs_clock_us();
	return sendmsg(link->socket, &envelope, MSG_NOSIGNAL) == (ssize_t) sizeof(hello);
}

/* timeout_ms -1: as long as gpusortd is alive. */
static bool
receive_welcome(ClientLink *link, int timeout_ms, const char **why_not)
{
	GsAnyMessage message;

	*why_not = "gpusortd refused the connection";
	if (timeout_ms < 0 ? !link_receive(&link->base, -1, &message) :
		!receive(link, timeout_ms, &message))
		return false;
	if (message.message.type == 0)
	{
		*why_not = not_answering;
		return false;
	}
	if (message.message.type == GS_MESSAGE_FAILED)
	{
		message.failed.text[sizeof(message.failed.text) - 1] = '\0';
		link->other_build = message.failed.failure == GS_FAILED_VERSION;
		if (link->other_build)
			*why_not = psprintf("gpusortd is of a different build: %s", message.failed.text);
		else
			*why_not = psprintf("gpusortd refused the connection: %s", message.failed.text);
		return false;
	}
	if (message.message.type != GS_MESSAGE_WELCOME ||
		message.message.nbytes != sizeof(GsWelcome) ||
		message.welcome.version != GS_WIRE_VERSION)
		return false;
	link->base.welcome = message.welcome;
	link->base.welcome.device_name[GS_DEVICE_NAME_BYTES - 1] = '\0';
	return true;
}

/* Why nothing listens at the socket of a device, according to the supervisor. */
static const char *
supervisor_reason(int device, int connect_errno)
{
	int			ndevices;
	int			i = 0;
	const GsDeviceStatus *status;

	gs_supervisor_request();
	status = gs_supervisor_status(&ndevices);
	while (i < ndevices - 1 && status[i].device != device)
		i++;
	if (strcmp(status[i].state, GS_SUPERVISOR_RUNNING) == 0)
	{
		errno = connect_errno;
		return psprintf("could not connect to gpusortd: %m");
	}
	return status[i].why[0] == '\0' ? psprintf("gpusortd: %s", status[i].state) :
		psprintf("gpusortd: %s: %s", status[i].state, status[i].why);
}

/*
 * Allocates a link, which is not connected yet.  It is tied to the context at once,
 * because waiting may raise an error.
 */
static ClientLink *
new_link(MemoryContext context, LinkUse use, int device)
{
	ClientLink *link = MemoryContextAllocZero(TopMemoryContext, sizeof(ClientLink));

	link->use = use;
	link->base.device = device;
	if (use != LINK_STATUS)
	{
		link->base.buffer_bytes = use == LINK_PRODUCER ? PRODUCER_BUFFER_BYTES : BUFFER_BYTES;
		link->base.nbuffers = use == LINK_PRODUCER ? PRODUCER_NBUFFERS : NBUFFERS;
	}
	link->base.send = link_send;
	link->base.receive = link_receive;
	link->base.release = link_release;
	link->socket = -1;
	tie_to_context(link, context);
	return link;
}

static ClientLink *
open_link(MemoryContext context, LinkUse use, int device, int timeout_ms, const char **why_not)
{
	ClientLink *link = new_link(context, use, device);
	int			buffer_pool = -1;
	bool		sent;

	if (!connect_socket(link))
		*why_not = supervisor_reason(device, errno);
	else if ((buffer_pool = create_buffers(link)) < 0)
		*why_not = psprintf("could not create shared memory: %m");
	else
	{
		sent = send_hello(link, buffer_pool);
		close(buffer_pool);
		if (!sent)
			*why_not = "gpusortd closed the connection";
		else if (receive_welcome(link, timeout_ms, why_not))
			return link;
		else if (*why_not == not_answering)
			retry_after[device] =
				TimestampTzPlusMilliseconds(GetCurrentTimestamp(), RETRY_DELAY_MS);
	}
	link_release(&link->base, false);
	return NULL;
}

void
gs_gpu_client_status(int device, GsWelcome *welcome, int timeout_ms,
					 const char **state, const char **why_not)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "GpuSort link",
												  ALLOCSET_SMALL_SIZES);
	ClientLink *link = new_link(context, LINK_STATUS, device);

	*state = "not answering";
	if (!connect_socket(link))
		*why_not = psprintf("could not connect to %s: %m", gs_service_socket(device));
	else if (!send_hello(link, -1))
		*why_not = not_answering;
	else if (receive_welcome(link, timeout_ms, why_not))
		*state = "running";
	else if (link->other_build)
		*state = "other build";
	*welcome = link->base.welcome;
	link_release(&link->base, false);
	MemoryContextDelete(context);
}

/* Removes an idle link for this use from the list; NULL: there is none. */
static ClientLink *
pop_idle(LinkUse use, int device)
{
	dlist_iter	iter;

	dlist_foreach(iter, &idle_links)
	{
		ClientLink *link = dlist_container(ClientLink, node, iter.cur);

		if (link->use == use && link->base.device == device)
		{
			dlist_delete(iter.cur);
			nidle[use]--;
			return link;
		}
	}
	return NULL;
}

/* Has gpusortd closed the link for being idle, or may it do so soon? */
static bool
was_idle_too_long(const ClientLink *link)
{
	int64		idle_ms = (int64) (gs_clock_us() - link->last_sent_us) / 1000;

	return idle_ms > gpusort_device_idle * INT64CONST(1000) - IDLE_MARGIN_MS;
}

/*
 * Reuses an idle link; NULL: there is none.  Links whose connection gpusortd has
 * closed meanwhile are freed.
 */
static ClientLink *
reuse_idle(MemoryContext context, LinkUse use, int device)
{
	ClientLink *link;

	while ((link = pop_idle(use, device)) != NULL)
	{
		GsAnyMessage message;
		int			received;

		tie_to_context(link, context);

		/* messages that were in transit when the last job was closed */
		while ((received = try_receive(link, &message)) > 0 &&
			   message.message.type != GS_MESSAGE_FAILED)
			;
		if (received == 0 && !was_idle_too_long(link))
			return link;
		link_release(&link->base, false);
	}
	return NULL;
}

bool
gs_gpu_client_may_link(void)
{
	return nin_use < gpusort_device_session_sorts;
}

/* A link to a device, whose first answer may take so long; NULL and *why_not: there is none. */
static GsEngineLink *
get_link(MemoryContext context, LinkUse use, int device, int timeout_ms, const char **why_not)
{
	ClientLink *link;

	if (!gs_gpu_client_may_link())
	{
		*why_not = "too many concurrent device sorts in this session";
		return NULL;
	}
	link = reuse_idle(context, use, device);
	if (link == NULL && GetCurrentTimestamp() < retry_after[device])
		*why_not = not_answering;
	else if (link == NULL)
		link = open_link(context, use, device, timeout_ms, why_not);
	return link == NULL ? NULL : &link->base;
}

/* ---------------------------------------------------------------- which device */

/* The devices to which there are idle links for a sort.  Disconnects links that are too old. */
static GsDeviceSet
kept_devices(void)
{
	GsDeviceSet devices = 0;
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &idle_links)
	{
		ClientLink *link = dlist_container(ClientLink, node, iter.cur);

		if (was_idle_too_long(link))
		{
			dlist_delete(&link->node);
			nidle[link->use]--;
			disconnect(link);
		}
		else if (link->use == LINK_SORT)
			devices |= GS_DEVICE_BIT(link->base.device);
	}
	return devices;
}

/* The devices that did not answer a short time ago. */
static GsDeviceSet
silent_devices(void)
{
	const TimestampTz now = GetCurrentTimestamp();
	GsDeviceSet devices = 0;

	for (int device = 0; device < GS_MAX_DEVICES; device++)
		if (now < retry_after[device])
			devices |= GS_DEVICE_BIT(device);
	return devices;
}

/* The device for a job; -1: none is running.  *has_choice: there are several. */
static int
choose_device(uint64 expected_bytes, GsDeviceSet excluded, bool *has_choice)
{
	GsDeviceTable table;
	GsPlacementRequest request = {
		.expected_bytes = expected_bytes,
		.kept = kept_devices(),
		.excluded = excluded | silent_devices(),
		.only_cuda = gpusort_engine != GS_ENGINE_CUDA,
		.seed = (uint32) MyProcPid
	};

	if (!gs_device_table_read(GS_DEVICE_TABLE, &table))
		return -1;
	*has_choice = gs_device_table_count(&table) > 1;
	return gs_device_place(&table, &request);
}

GsEngineLink *
gs_gpu_client_link(MemoryContext context, uint64 expected_bytes, const char **why_not)
{
	GsEngineLink *link = NULL;
	GsDeviceSet tried = 0;
	bool		has_choice = false;
	int			device;

	while (link == NULL && (device = choose_device(expected_bytes, tried, &has_choice)) >= 0)
	{
		link = get_link(context, LINK_SORT, device, GS_WELCOME_MS, why_not);
		tried |= GS_DEVICE_BIT(device);
	}

	/* whoever does not listen, or is of another build, has the reason */
	if (tried == 0)
	{
		int			ndevices;

		device = gs_supervisor_status(&ndevices)->device;
		link = get_link(context, LINK_SORT, Max(device, 0), GS_WELCOME_MS, why_not);
	}
	if (link != NULL)
		link->has_choice = has_choice;
	return link;
}

GsEngineLink *
gs_gpu_client_producer_link(MemoryContext context, int device, const char **why_not)
{
	return get_link(context, LINK_PRODUCER, device, -1, why_not);
}

GsEngineLink *
gs_gpu_client_reader_link(MemoryContext context, int device, const char **why_not)
{
	return get_link(context, LINK_SORT, device, -1, why_not);
}

bool
gs_gpu_client_accepts(const GsWelcome *welcome, const char **why_not)
{
	if (gpusort_engine == GS_ENGINE_CUDA || welcome->device_kind == GS_DEVICE_KIND_CUDA)
		return true;
	*why_not = "gpusortd has no CUDA device";
	return false;
}

bool
gs_gpu_client_is_usable(void)
{
	bool		has_choice;

	if (choose_device(0, 0, &has_choice) >= 0)
		return true;
	gs_supervisor_request();
	return false;
}
