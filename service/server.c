/*-------------------------------------------------------------------------
 *
 * server.c
 *	  The socket that clients connect to, and the loop that serves them.
 *
 * One thread, one loop.  A turn of it:
 *
 *	  wait		for a message, a client, a signal, or the end of some time
 *	  accept	the clients that have come
 *	  read		some messages of each client that has sent any
 *	  poll		every job, which starts with another one in each turn
 *	  sweep		connections that are gone, or have not been used for long
 *	  admit		the jobs that wait for memory, first come, first served
 *
 * The device tells nobody when it is done; it has to be asked.  So while it
 * works for someone, waits are short: 20 us at first, longer as long as nothing
 * moves.  While it does not, the loop sleeps until something happens.
 *
 * Whose socket it is, is decided by a lock on a file beside it: the
 * kernel takes the lock off a dead process, and a socket file whose lock is
 * free is a dead one's, to be replaced.
 *
 *-------------------------------------------------------------------------
 */
#include "server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "connection.h"
#include "log.h"

#define BACKLOG				1024	/* workers connect all at once */
#define ACCEPTS				64	/* in one turn */

/* How long to wait while the device works: see above. */
#define FIRST_WAIT_US		20
#define LAST_WAIT_US		200

/* PostgreSQL has fewer backends. */
#define ENOUGH_DESCRIPTORS	((rlim_t) 1 << 16)

/* After an accept that found no descriptor left. */
#define ACCEPT_AGAIN_US		100000

/* Idle memory is looked at no more often than this. */
#define MIN_IDLE_CHECK_US	100000

/* How long the device may take to let go of clients' memory in the end. */
#define PATIENCE_US			3000000

#define NEVER				UINT64_MAX

#define Min(a, b)		((a) < (b) ? (a) : (b))
#define Max(a, b)		((a) > (b) ? (a) : (b))

/* What is polled besides connections. */
enum
{
	POLL_SIGNAL,
	POLL_WATCH,
	POLL_LISTEN,
	POLL_FIRST					/* of the connections */
};

struct GsServer
{
	GsService	service;
	struct sockaddr_un address;
	char		lock_path[sizeof(((struct sockaddr_un *) 0)->sun_path) + sizeof(".lock")];
	int			lock;
	int			signals;
	int			watch;			/* where it is asked whether it still turns; -1: by nobody */
	int			listener;		/* -1: not yet */

	GsConnection **connections;
	struct pollfd *polled;		/* POLL_FIRST more */
	size_t		nconnections;
	size_t		nallocated;
	size_t		most;			/* that can be polled */
	size_t		first;			/* that this turn begins with */

	uint64_t	wait_us;		/* while the device works */
	bool		accept_failed;	/* the last time */
	uint64_t	accept_again_us;	/* when, if so; 0: now */
	uint64_t	idle_us;
	uint64_t	idle_check_us;	/* when; NEVER: no memory is idle */
	uint64_t	drop_idle_us;	/* when to look for idle connections; NEVER: there are none */
};

/* -------------------------------------------------------------- the socket */

/*
 * Locks the file beside the socket.  A file that its owner has removed between
 * our open and our lock is not the one that others will find: try again.
 */
static bool
take_lock(GsServer *server)
{
	for (;;)
	{
		struct stat locked;
		struct stat found;

		server->lock = open(server->lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (server->lock < 0)
		{
			gs_log("cannot open %s: %s", server->lock_path, strerror(errno));
			return false;
		}
		if (flock(server->lock, LOCK_EX | LOCK_NB) != 0)
		{
			if (errno == EWOULDBLOCK)
				gs_log("another gpusortd is at %s", server->address.sun_path);
			else
				gs_log("cannot lock %s: %s", server->lock_path, strerror(errno));
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

/*
 * Each client takes a descriptor, and backends may be more than the 1024 that a
 * process usually starts with.  Returns how many can be polled, which counts
 * those too that are gone and whose descriptors are closed.
 */
static size_t
raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return 1024;
	limit.rlim_cur = Max(limit.rlim_cur, Min(limit.rlim_max, ENOUGH_DESCRIPTORS));
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
		getrlimit(RLIMIT_NOFILE, &limit);
	return (size_t) limit.rlim_cur;
}

GsServer *
gs_server_create(const char *path)
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
	server->watch = -1;
	server->listener = -1;
	server->idle_check_us = NEVER;
	server->drop_idle_us = NEVER;
	server->most = Max(raise_descriptor_limit(), POLL_FIRST + 1) - POLL_FIRST;
	server->address.sun_family = AF_UNIX;
	if (path[0] == '\0' || strlen(path) >= sizeof(server->address.sun_path))
	{
		gs_log("a socket's name has 1 to %zu bytes", sizeof(server->address.sun_path) - 1);
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
		gs_log("cannot wait for signals: %s", strerror(errno));
	if (server->signals < 0 || !take_lock(server))
	{
		gs_server_destroy(server);
		return NULL;
	}
	return server;
}

/* The lock is ours, so what is there is nobody's; unless it is no socket. */
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

/* Nobody else may connect, from the first moment on. */
static bool
bind_private(int listener, const struct sockaddr_un *address)
{
	mode_t		before = umask(0177);
	bool		bound = bind(listener, (const struct sockaddr *) address, sizeof(*address)) == 0;

	umask(before);
	return bound;
}

bool
gs_server_listen(GsServer *server, GsDevice *device, uint64_t memory_limit)
{
	const char *path = server->address.sun_path;
	uint64_t	free_bytes;
	int			listener;

	server->service.device = device;
	if (!device->ops->memory(device, &free_bytes, &server->service.memory_total))
	{
		gs_log("the device is broken: %s", device->error);
		return false;
	}
	server->service.pool = gs_slab_pool_create(device, memory_limit);
	if (server->service.pool == NULL)
	{
		gs_log("out of memory");
		return false;
	}

	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (listener < 0)
	{
		gs_log("cannot make a socket: %s", strerror(errno));
		return false;
	}
	if (!remove_stale_socket(path) || !bind_private(listener, &server->address))
	{
		gs_log("cannot make the socket %s: %s", path, strerror(errno));
		close(listener);
		return false;
	}
	server->listener = listener;
	if (listen(listener, BACKLOG) != 0)
	{
		gs_log("cannot listen at %s: %s", path, strerror(errno));
		return false;
	}
	return true;
}

void
gs_server_watch(GsServer *server, int fd)
{
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	server->watch = fd;
}

uint64_t
gs_server_memory_limit(const GsServer *server)
{
	return gs_slab_limit(server->service.pool);
}

/* ----------------------------------------------------------------- waiting */

/* When the loop has to wake up, even if nothing happens. */
static uint64_t
next_time(const GsServer *server)
{
	uint64_t	next = NEVER;

	for (size_t i = 0; i < server->nconnections && server->service.nwaiting > 0; i++)
		if (gs_connection_arrival(server->connections[i]) != 0)
			next = Min(next, gs_connection_deadline_us(server->connections[i]));
	if (server->accept_again_us != 0)
		next = Min(next, server->accept_again_us);
	return Min(Min(next, server->idle_check_us), server->drop_idle_us);
}

static bool
any_is_busy(const GsServer *server)
{
	for (size_t i = 0; i < server->nconnections; i++)
		if (gs_connection_is_busy(server->connections[i]))
			return true;
	return false;
}

/* Waits until there is something to do. */
static void
wait_for_events(GsServer *server, bool moved)
{
	uint64_t	next = next_time(server);
	uint64_t	now = gs_clock_us();
	uint64_t	wait_us = next == NEVER ? NEVER : next > now ? next - now : 0;
	bool		accepts = server->accept_again_us == 0 && server->nconnections < server->most;
	struct timespec timeout;

	if (moved)
		server->wait_us = FIRST_WAIT_US;
	if (any_is_busy(server))
	{
		wait_us = Min(wait_us, server->wait_us);
		server->wait_us = Min(server->wait_us + server->wait_us / 4, LAST_WAIT_US);
	}
	timeout.tv_sec = (time_t) (wait_us / 1000000);
	timeout.tv_nsec = (long) (wait_us % 1000000) * 1000;

	server->polled[POLL_SIGNAL] = (struct pollfd)
	{
		.fd = server->signals,.events = POLLIN
	};
	server->polled[POLL_WATCH] = (struct pollfd)
	{
		.fd = server->watch,.events = POLLIN
	};
	server->polled[POLL_LISTEN] = (struct pollfd)
	{
		.fd = accepts ? server->listener : -1,.events = POLLIN
	};
	for (size_t i = 0; i < server->nconnections; i++)
		server->polled[POLL_FIRST + i] = (struct pollfd)
	{
		.fd = gs_connection_socket(server->connections[i]),.events = POLLIN
	};

	if (ppoll(server->polled, POLL_FIRST + server->nconnections,
			  wait_us == NEVER ? NULL : &timeout, NULL) < 0)
	{
		/* out of kernel memory for a moment, say: nothing has happened */
		for (size_t i = 0; i < POLL_FIRST + server->nconnections; i++)
			server->polled[i].revents = 0;
	}
}

/* --------------------------------------------------------------- connections */

/* Makes room for one more. */
static bool
make_room(GsServer *server)
{
	size_t		n = Max(2 * server->nallocated, 16);
	void	   *grown;

	if (server->nconnections < server->nallocated)
		return true;
	grown = realloc(server->connections, n * sizeof(server->connections[0]));
	if (grown == NULL)
		return false;
	server->connections = grown;
	grown = realloc(server->polled, (POLL_FIRST + n) * sizeof(server->polled[0]));
	if (grown == NULL)
		return false;
	server->polled = grown;
	server->nallocated = n;
	return true;
}

/* Who connects is the user that runs the service, or nobody. */
static bool
is_same_user(int socket)
{
	struct ucred peer;
	socklen_t	nbytes = sizeof(peer);

	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &nbytes) == 0 &&
		peer.uid == geteuid())
		return true;
	gs_log_limited("a client of another user is turned away");
	return false;
}

/* Takes one client.  False: there is none, or no room for any. */
static bool
accept_one(GsServer *server)
{
	int			socket = accept4(server->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	GsConnection *connection;

	if (socket < 0)
	{
		if (errno == EAGAIN)
			return false;
		if (errno == ECONNABORTED || errno == EINTR)
			return true;
		if (!server->accept_failed)
			gs_log_limited("cannot accept clients for now: %s", strerror(errno));
		server->accept_failed = true;
		server->accept_again_us = gs_clock_us() + ACCEPT_AGAIN_US;
		return false;
	}
	server->accept_failed = false;
	connection = is_same_user(socket) && make_room(server) ?
		gs_connection_open(&server->service, socket) : NULL;
	if (connection == NULL)
		close(socket);
	else
		server->connections[server->nconnections++] = connection;
	return true;
}

static void
accept_clients(GsServer *server)
{
	for (int i = 0; i < ACCEPTS && server->nconnections < server->most; i++)
		if (!accept_one(server))
			break;
}

/* Frees the connections that are gone, once the device has let go of them. */
static void
sweep(GsServer *server)
{
	size_t		nleft = 0;

	for (size_t i = 0; i < server->nconnections; i++)
	{
		GsConnection *connection = server->connections[i];

		if (!gs_connection_is_gone(connection) || !gs_connection_end(connection))
			server->connections[nleft++] = connection;
	}
	server->nconnections = nleft;
}

/* ----------------------------------------------------------------- memory */

static GsConnection *
first_waiting(const GsServer *server)
{
	GsConnection *first = NULL;

	for (size_t i = 0; i < server->nconnections; i++)
	{
		GsConnection *connection = server->connections[i];
		uint64_t	arrival = gs_connection_arrival(connection);

		if (arrival != 0 && (first == NULL || arrival < gs_connection_arrival(first)))
			first = connection;
	}
	return first;
}

/*
 * Strictly in the order of arrival: a large job that could be overtaken would
 * wait as long as there are small ones.
 */
static void
admit_jobs(GsServer *server)
{
	uint64_t	now;

	while (server->service.nwaiting > 0 && !server->service.broken &&
		   gs_connection_admit(first_waiting(server)))
		 /* as many as there is memory for */ ;
	if (server->service.nwaiting == 0)
		return;
	now = gs_clock_us();
	for (size_t i = 0; i < server->nconnections; i++)
		if (gs_connection_arrival(server->connections[i]) != 0 &&
			gs_connection_deadline_us(server->connections[i]) <= now)
			gs_connection_expire(server->connections[i]);
}

static void
release_idle_memory(GsServer *server)
{
	GsSlabPool *pool = server->service.pool;
	uint64_t	now = gs_clock_us();

	if (gs_slab_held(pool) > gs_slab_used(pool) && now >= server->idle_check_us)
	{
		bool		more = gs_slab_release_idle(pool, now, server->idle_us);

		server->idle_check_us = more ? now + MIN_IDLE_CHECK_US : NEVER;
	}
	if (gs_slab_held(pool) <= gs_slab_used(pool))
		server->idle_check_us = NEVER;
	else if (server->idle_check_us == NEVER)
		server->idle_check_us = now + Max(server->idle_us / 2, MIN_IDLE_CHECK_US);
}

/* -------------------------------------------------------------------- life */

/*
 * Whoever watches is answered by the loop itself, so that it hears nothing
 * while a call of the device does not return.
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
	close(server->watch);		/* nobody watches any more */
	server->watch = -1;
}

/* Polls every connection; the first one is another one in each turn. */
static void
poll_connections(GsServer *server)
{
	size_t		n = server->nconnections;

	for (size_t i = 0; i < n && !server->service.broken; i++)
		gs_connection_poll(server->connections[(server->first + i) % n]);
	server->first++;
}

bool
gs_server_run(GsServer *server, uint64_t idle_us)
{
	uint64_t	nmessages = 0;

	server->idle_us = idle_us;
	server->wait_us = FIRST_WAIT_US;

	/* the kernel else makes 20 us 70 */
	prctl(PR_SET_TIMERSLACK, 1000UL);
	if (!make_room(server))
	{
		gs_log("out of memory");
		return false;
	}

	while (!server->service.broken)
	{
		size_t		npolled = server->nconnections;

		wait_for_events(server, nmessages != server->service.nmessages);
		nmessages = server->service.nmessages;
		if (server->polled[POLL_SIGNAL].revents != 0)
			return true;
		if (server->polled[POLL_WATCH].revents != 0)
			answer_watch(server);

		for (size_t i = 0; i < npolled && !server->service.broken; i++)
			if (server->polled[POLL_FIRST + i].revents != 0)
				gs_connection_read(server->connections[i]);
		if (server->polled[POLL_LISTEN].revents != 0)
			accept_clients(server);
		if (server->accept_again_us != 0 && gs_clock_us() >= server->accept_again_us)
			server->accept_again_us = 0;

		poll_connections(server);

		server->drop_idle_us = gs_connection_drop_idle(&server->service, gs_clock_us(), server->idle_us);

		/* first those that go: they may leave memory for those that wait */
		sweep(server);
		admit_jobs(server);
		release_idle_memory(server);
		gs_service_look(&server->service);
	}
	gs_log("the device is broken: %s", server->service.broken_text);
	return false;
}

/*
 * Tells all clients, and waits until the device has let go of what is theirs.
 * False: it does not.
 */
static bool
end_connections(GsServer *server)
{
	uint64_t	end = gs_clock_us() + PATIENCE_US;
	const struct timespec pause = {.tv_nsec = 1000 * LAST_WAIT_US};

	for (size_t i = 0; i < server->nconnections; i++)
	{
		if (server->service.broken)
			gs_connection_fail(server->connections[i], GS_FAILED_DEVICE,
							   server->service.broken_text);
		else
			gs_connection_fail(server->connections[i], GS_FAILED_SHUTDOWN,
							   "the service is ending");
	}
	for (;;)
	{
		sweep(server);
		if (server->nconnections == 0)
			return true;
		if (gs_clock_us() >= end)
		{
			gs_log("the device does not let go of its work");
			return false;
		}
		nanosleep(&pause, NULL);
	}
}

bool
gs_server_destroy(GsServer *server)
{
	bool		ended;

	/* first, so that nobody connects to what is ending */
	if (server->listener >= 0)
	{
		unlink(server->address.sun_path);
		close(server->listener);
	}
	ended = end_connections(server);
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
		gs_slab_pool_destroy(server->service.pool);
	free(server->connections);
	free(server->polled);
	free(server);
	return true;
}
