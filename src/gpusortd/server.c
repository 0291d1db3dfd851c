/*-------------------------------------------------------------------------
 *
 * server.c
 *	  The socket that clients connect to, and the loop that serves them (README.md).
 *
 * The device does not notify; it must be polled.  While it works for a job, waits are short:
 * 20 us at first, longer while nothing happens.  Otherwise the loop sleeps until something
 * happens.
 *
 * A lock on a file next to the socket decides which process owns the socket.
 * The kernel releases the lock of a dead process, so a socket whose lock is free
 * is stale and can be replaced.
 *
 *-------------------------------------------------------------------------
 */
#include "gpusortd/server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/basics.h"
#include "gpusortd/connection.h"
#include "gpusortd/greeter.h"
#include "job/log.h"

#define BACKLOG				1024	/* parallel workers connect at the same time */
#define EVENTS				64		/* per turn */

/* Waits while the device works: see above. */
#define FIRST_WAIT_US		20
#define LAST_WAIT_US		200

/* More than the backends of any server. */
#define ENOUGH_DESCRIPTORS	((rlim_t) 1 << 16)

/* Minimum time between two checks for idle memory. */
#define MIN_IDLE_CHECK_US	100000

/* A connection is not closed sooner, because a new one is about to open a job. */
#define MIN_CLIENT_IDLE_US	1000000

/* How long to wait at shutdown until the device has finished. */
#define SHUTDOWN_WAIT_US	3000000

struct GsServer
{
	GsService	service;
	struct sockaddr_un address;
	char		lock_path[sizeof(((struct sockaddr_un *) 0)->sun_path) + sizeof(".lock")];
	int			lock;
	int			signals;
	int			watch;			/* from the supervisor; -1: none */
	int			listener;		/* -1: not yet */
	GsGreeter  *greeter;		/* NULL: not yet */

	uint64_t	wait_us;		/* while the device works */
	uint64_t	counted_us;		/* until when busy time was counted; 0: never */
	uint64_t	idle_us;
	uint64_t	idle_check_us;	/* GS_NEVER: no memory is idle */
};

/* -------------------------------------------------------------- the socket */

/*
 * Locks the file next to the socket.  If its owner removed it between our open()
 * and flock(), others will find another file, so try again.
 */
static bool
acquire_lock(GsServer *server)
{
	for (;;)
	{
		struct stat locked;
		struct stat found;

		server->lock = open(server->lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (server->lock < 0)
		{
			gs_log("could not open \"%s\": %s", server->lock_path, strerror(errno));
			return false;
		}
		if (flock(server->lock, LOCK_EX | LOCK_NB) != 0)
		{
			if (errno == EWOULDBLOCK)
				gs_log("another gpusortd uses the socket \"%s\"", server->address.sun_path);
			else
				gs_log("could not lock \"%s\": %s", server->lock_path, strerror(errno));
			break;
		}
		if (fstat(server->lock, &locked) == 0 && stat(server->lock_path, &found) == 0 &&
			locked.st_dev == found.st_dev && locked.st_ino == found.st_ino)
			return true;
		close(server->lock);
	}
	close(server->lock);
	server->lock = -1;
	return false;
}

/* Each client needs a descriptor, and there may be more backends than the usual 1024. */
static void
raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = Max(limit.rlim_cur, Min(limit.rlim_max, ENOUGH_DESCRIPTORS));
	setrlimit(RLIMIT_NOFILE, &limit);
}

GsServer *
gs_server_create(const char *path, int watch)
{
	GsServer   *server = calloc(1, sizeof(GsServer));
	sigset_t	ends;

	if (server == NULL)
	{
		gs_log("out of memory");
		return NULL;
	}
	server->lock = -1;
	server->signals = -1;
	server->watch = watch;
	server->listener = -1;
	server->service.epoll = -1;
	server->idle_check_us = GS_NEVER;
	if (watch >= 0)
		fcntl(watch, F_SETFD, FD_CLOEXEC);
	raise_descriptor_limit();
	server->address.sun_family = AF_UNIX;
	if (path[0] == '\0' || strlen(path) >= sizeof(server->address.sun_path))
	{
		gs_log("the path of a socket has 1 to %zu bytes", sizeof(server->address.sun_path) - 1);
		gs_server_destroy(server);
		return NULL;
	}
	strcpy(server->address.sun_path, path);
	snprintf(server->lock_path, sizeof(server->lock_path), "%s.lock", path);

	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	server->signals = signalfd(-1, &ends, SFD_NONBLOCK | SFD_CLOEXEC);
	if (server->signals < 0)
		gs_log("could not wait for signals: %s", strerror(errno));
	if (server->signals < 0 || !acquire_lock(server))
	{
		gs_server_destroy(server);
		return NULL;
	}
	return server;
}

/* We hold the lock, so an existing socket is stale.  Anything else is an error. */
static bool
remove_stale_socket(const char *path)
{
	struct stat status;

	if (lstat(path, &status) != 0)
		return errno == ENOENT;
	if (!S_ISSOCK(status.st_mode))
	{
		errno = EEXIST;
		return false;
	}
	return unlink(path) == 0;
}

/* Creates the socket without permissions for other users. */
static bool
bind_private(int listener, const struct sockaddr_un *address)
{
	mode_t		before = umask(0177);
	bool		bound = bind(listener, (const struct sockaddr *) address, sizeof(*address)) == 0;

	umask(before);
	return bound;
}

bool
gs_server_listen(GsServer *server, GsDevice *device, uint64_t memory_limit,
				 GsParkFolder *park_folder, GsDeviceTable *table, uint32_t number)
{
	const char *path = server->address.sun_path;
	GsDevicePool *pool = gs_device_pool_create(device, memory_limit);
	GsDeviceSlot *slot = &table->slots[number];
	GsService  *service = &server->service;
	int			listener;

	if (pool == NULL)
	{
		gs_log("out of memory");
		return false;
	}
	gs_device_pool_join(pool, table, number);
	if (!gs_service_open(service, device, pool, park_folder, slot) ||
		!gs_service_watch(service->epoll, server->signals, &server->signals) ||
		(server->watch >= 0 && !gs_service_watch(service->epoll, server->watch, &server->watch)))
	{
		gs_log("could not wait for clients: %s", strerror(errno));
		return false;
	}
	if (device->error[0] != '\0')
	{
		gs_log("the device failed: %s", device->error);
		return false;
	}

	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (listener < 0)
	{
		gs_log("could not create a socket: %s", strerror(errno));
		return false;
	}
	if (!remove_stale_socket(path) || !bind_private(listener, &server->address))
	{
		gs_log("could not create the socket \"%s\": %s", path, strerror(errno));
		close(listener);
		return false;
	}
	server->listener = listener;
	if (listen(listener, BACKLOG) != 0)
	{
		gs_log("could not listen on \"%s\": %s", path, strerror(errno));
		return false;
	}
	server->greeter = gs_greeter_start(listener, slot);
	return server->greeter != NULL &&
		gs_service_watch(service->epoll, gs_greeter_event_fd(server->greeter), server->greeter);
}

bool
gs_server_device_was_wrong(const GsServer *server)
{
	return server->service.device_was_wrong;
}

/* ----------------------------------------------------------------- waiting */

static bool
any_is_busy(const GsServer *server)
{
	GS_LIST_FOREACH(const GsConnection, connection, active, &server->service.active)
	{
		if (gs_connection_is_busy(connection))
			return true;
	}
	return false;
}

/* Counts the time since the last call: a turn of the loop, or a wait while the device worked. */
static void
count_time(GsServer *server, bool busy, uint64_t now)
{
	if (busy && server->counted_us != 0)
		gs_device_count(&server->service.slot->counters.busy_us, now - server->counted_us);
	server->counted_us = now;
}

/*
 * Waits until there is something to do, at most until next_us.  Stores the
 * events and returns their number.  ppoll() waits for the epoll set because its
 * timeout is not limited to whole milliseconds.
 */
static int
wait_for_events(GsServer *server, bool moved, uint64_t next_us, struct epoll_event *events)
{
	_Atomic uint64_t *turn_us = &server->service.slot->turn_us;
	struct pollfd polled = {.fd = server->service.epoll,.events = POLLIN};
	uint64_t	now = gs_clock_us();
	uint64_t	wait_us = next_us == GS_NEVER ? GS_NEVER : next_us > now ? next_us - now : 0;
	const bool	busy = any_is_busy(server);
	struct timespec timeout;
	int			nevents;

	count_time(server, true, now);
	if (moved)
		server->wait_us = FIRST_WAIT_US;
	if (busy)
	{
		wait_us = Min(wait_us, server->wait_us);
		server->wait_us = Min(server->wait_us + server->wait_us / 4, LAST_WAIT_US);
	}
	timeout.tv_sec = (time_t) (wait_us / 1000000);
	timeout.tv_nsec = (long) (wait_us % 1000000) * 1000;
	atomic_store(turn_us, 0);
	nevents = ppoll(&polled, 1, wait_us == GS_NEVER ? NULL : &timeout, NULL);
	now = gs_clock_us();
	atomic_store(turn_us, now);
	count_time(server, busy, now);
	if (nevents > 0)
		nevents = epoll_wait(server->service.epoll, events, EVENTS, 0);
	return Max(nevents, 0);
}

/* --------------------------------------------------------------- connections */

/* Takes the clients of the greeter. */
static void
take_clients(GsServer *server)
{
	int			socket;

	while ((socket = gs_greeter_next(server->greeter)) >= 0)
		if (gs_connection_open(&server->service, socket) == NULL)
			close(socket);
}

/* Polls every job, beginning with another one in each turn. */
static void
poll_connections(GsServer *server)
{
	GsService  *service = &server->service;
	GsListNode *first;

	GS_LIST_FOREACH(GsConnection, connection, active, &service->active)
	{
		if (service->device_failed)
			return;
		gs_connection_poll(connection);
	}
	if (gs_list_is_empty(&service->active))
		return;
	first = service->active.next;
	gs_list_remove(first);
	gs_list_append(&service->active, first);
}

/* Frees closed connections that the device does not use any more. */
static void
remove_closed(GsServer *server)
{
	GS_LIST_FOREACH(GsConnection, connection, active, &server->service.active)
	{
		if (connection->state == STATE_CLOSED)
			gs_connection_end(connection);
	}
}

/* ----------------------------------------------------------------- memory */

/*
 * Releases memory that has been idle for too long, or that other devices are to have, and
 * sets the time of the next check.  There is no pause if these wait for more.
 */
static void
release_idle_memory(GsServer *server)
{
	GsDevicePool *pool = server->service.pool;
	uint64_t	now = gs_clock_us();

	if (gs_device_pool_owes(pool) || now >= server->idle_check_us)
	{
		bool		more = gs_device_pool_release_idle(pool, now, server->idle_us);

		server->idle_check_us = more ? now + MIN_IDLE_CHECK_US : GS_NEVER;
	}
	if (gs_device_pool_owes(pool))
		server->idle_check_us = now;
	else if (gs_device_pool_reserved(pool) <= pool->used)
		server->idle_check_us = GS_NEVER;
	else if (server->idle_check_us == GS_NEVER)
		server->idle_check_us = now + (gs_device_pool_can_lend(pool) ? MIN_IDLE_CHECK_US :
									   Max(server->idle_us / 2, MIN_IDLE_CHECK_US));
}

/* -------------------------------------------------------------------- life */

/*
 * The loop itself answers the supervisor, so that there is no answer while a call
 * of the device does not return.
 */
static void
answer_watch(GsServer *server)
{
	char		byte;

	if (recv(server->watch, &byte, 1, MSG_DONTWAIT) == 1 &&
		send(server->watch, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1)
		return;
	if (errno == EAGAIN || errno == EINTR)
		return;
	close(server->watch);		/* the supervisor has ended */
	server->watch = -1;
}

/* Handles an event; true: a signal asks for shutdown. */
static bool
handle_event(GsServer *server, void *source)
{
	if (source == &server->signals)
		return true;
	if (source == &server->watch)
		answer_watch(server);
	else if (source == server->greeter)
		take_clients(server);
	else if (!server->service.device_failed)
		gs_connection_read(source);
	return false;
}

bool
gs_server_run(GsServer *server, uint64_t idle_us)
{
	GsService  *service = &server->service;
	uint64_t	nmessages = 0;
	uint64_t	next_us = GS_NEVER;

	server->idle_us = idle_us;
	server->wait_us = FIRST_WAIT_US;

	/* with the default, the kernel turns 20 us into 70 */
	prctl(PR_SET_TIMERSLACK, 1000UL);

	while (!service->device_failed)
	{
		struct epoll_event events[EVENTS];
		int			nevents = wait_for_events(server, nmessages != service->nmessages, next_us,
											  events);

		nmessages = service->nmessages;
		for (int i = 0; i < nevents; i++)
			if (handle_event(server, events[i].data.ptr))
				return true;
		poll_connections(server);

		next_us = gs_connection_drop_idle(service, gs_clock_us(),
										  Max(server->idle_us, MIN_CLIENT_IDLE_US));

		/* before admission, because this may release memory */
		remove_closed(server);
		if (!service->device_failed)
			next_us = Min(next_us, gs_admission_run(service));
		release_idle_memory(server);
		next_us = Min(next_us, server->idle_check_us);

		/* a failure that no job reported: while one was closed, or memory was released */
		if (service->device->error[0] != '\0')
			gs_service_fail_device(service, service->device->error);
		gs_service_publish(service);
	}
	gs_log("the device failed: %s", service->device_error);
	return false;
}

/*
 * Disconnects all clients, and waits until the device has finished with their
 * memory.  False: it did not in time.
 */
static bool
end_connections(GsServer *server)
{
	uint64_t	end = gs_clock_us() + SHUTDOWN_WAIT_US;
	const struct timespec pause = {.tv_nsec = 1000 * LAST_WAIT_US};

	gs_connection_fail_all(&server->service);
	for (;;)
	{
		remove_closed(server);
		if (gs_list_is_empty(&server->service.active))
			return true;
		if (gs_clock_us() >= end)
		{
			gs_log("the device did not finish its work in time");
			return false;
		}
		nanosleep(&pause, NULL);
	}
}

bool
gs_server_destroy(GsServer *server)
{
	bool		ended = true;

	/* first, so that no more clients connect */
	if (server->listener >= 0)
		unlink(server->address.sun_path);
	if (server->greeter != NULL)
	{
		gs_greeter_stop(server->greeter);
		take_clients(server);
		gs_greeter_free(server->greeter);
		ended = end_connections(server);
	}
	if (server->listener >= 0)
		close(server->listener);
	if (server->signals >= 0)
		close(server->signals);
	if (server->watch >= 0)
		close(server->watch);
	if (server->lock >= 0)
	{
		unlink(server->lock_path);
		close(server->lock);
	}
	if (!ended)
		return false;
	if (server->service.pool != NULL)
		gs_device_pool_destroy(server->service.pool);
	if (server->service.epoll >= 0)
		close(server->service.epoll);
	free(server);
	return true;
}
