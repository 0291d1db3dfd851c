/*-------------------------------------------------------------------------
 *
 * greeter.c
 *	  The thread that takes clients, and tells those who only ask how the
 *	  service is.
 *
 * The loop calls the device, and some calls block: cudaFree() until all streams
 * are through, cudaHostRegister() as long as it takes to pin a ring.  Other
 * threads' calls wait for those, so whoever calls the device has to be counted on
 * to be late.  Planning a query must not wait for that.  So this thread never
 * calls it: it answers out of the figures, whatever the loop does.
 *
 * It looks at a client's first message without taking it.  A plain question is
 * answered here, as often as it comes; anything else, good or bad, is the
 * loop's to read, and the client with it.
 *
 *-------------------------------------------------------------------------
 */
#include "gpusortd/greeter.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gpusortd/list.h"
#include "gpusortd/log.h"

/* In one turn. */
#define ACCEPTS		64
#define EVENTS		64

/* After an accept that found no descriptor left. */
#define ACCEPT_AGAIN_MS	100

/* A client that has not been handed over. */
typedef struct Asker
{
	GsListNode	node;
	int			socket;
} Asker;

struct GsGreeter
{
	pthread_t	thread;
	GsServiceStats *figures;
	int			listener;
	int			epoll;
	int			stops;			/* an eventfd: the thread is to end */
	bool		accept_failed;	/* the listener is not looked at for now .. */
	uint64_t	accept_again_us;	/* .. but again at this time */
	GsListNode	askers;

	int			wakes;			/* an eventfd: some were handed over */
	pthread_mutex_t lock;		/* of what follows */
	int		   *sockets;		/* handed over, oldest first */
	size_t		first;
	size_t		end;
	size_t		nallocated;
};

/* ------------------------------------------------------------- handing over */

static void
hand_over(GsGreeter *greeter, int socket)
{
	const uint64_t one = 1;
	bool		has_room = true;

	pthread_mutex_lock(&greeter->lock);
	if (greeter->end == greeter->nallocated)
	{
		size_t		n = greeter->nallocated == 0 ? 64 : 2 * greeter->nallocated;
		int		   *grown = realloc(greeter->sockets, n * sizeof(int));

		has_room = grown != NULL;
		if (has_room)
		{
			greeter->sockets = grown;
			greeter->nallocated = n;
		}
	}
	if (has_room)
		greeter->sockets[greeter->end++] = socket;
	pthread_mutex_unlock(&greeter->lock);
	if (!has_room)
		close(socket);
	else if (write(greeter->wakes, &one, sizeof(one)) < 0)
		return;					/* it is awake already */
}

int
gs_greeter_next(GsGreeter *greeter)
{
	int			socket = -1;

	pthread_mutex_lock(&greeter->lock);
	if (greeter->first < greeter->end)
		socket = greeter->sockets[greeter->first++];
	else
	{
		uint64_t	count;

		/* under the lock, so that no wake of what comes later is lost */
		greeter->first = greeter->end = 0;
		if (read(greeter->wakes, &count, sizeof(count)) < 0)
			socket = -1;
	}
	pthread_mutex_unlock(&greeter->lock);
	return socket;
}

int
gs_greeter_wakes(const GsGreeter *greeter)
{
	return greeter->wakes;
}

static void
forget(Asker *asker)
{
	gs_list_remove(&asker->node);
	free(asker);
}

static void
drop(Asker *asker)
{
	close(asker->socket);
	forget(asker);
}

static void
pass_on(GsGreeter *greeter, Asker *asker)
{
	epoll_ctl(greeter->epoll, EPOLL_CTL_DEL, asker->socket, NULL);
	hand_over(greeter, asker->socket);
	forget(asker);
}

/* ---------------------------------------------------------------- questions */

static bool
is_question(const GsHello *hello, ssize_t nbytes)
{
	return nbytes == sizeof(GsHello) && hello->message.type == GS_MESSAGE_HELLO &&
		hello->message.nbytes == sizeof(GsHello) && hello->magic == GS_WIRE_MAGIC &&
		hello->version == GS_WIRE_VERSION && hello->buffer_pool_bytes == 0 &&
		memcmp(hello->build, gs_build_id, sizeof(hello->build)) == 0 &&
		hello->buffer_bytes == 0 && hello->nbuffers == 0;
}

/* Looks at what the client says. */
static void
listen_to(GsGreeter *greeter, Asker *asker)
{
	GsHello		hello;
	struct iovec piece = {.iov_base = &hello,.iov_len = sizeof(hello)};
	struct msghdr header = {.msg_iov = &piece,.msg_iovlen = 1};
	ssize_t		nbytes = recvmsg(asker->socket, &header, MSG_PEEK | MSG_DONTWAIT);
	GsWelcome	welcome;

	if (nbytes < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (nbytes <= 0)
	{
		drop(asker);
		return;
	}

	/* MSG_CTRUNC: with a descriptor; MSG_TRUNC: it is longer */
	if ((header.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) != 0 || !is_question(&hello, nbytes))
	{
		pass_on(greeter, asker);
		return;
	}
	welcome = gs_service_stats_welcome(greeter->figures);
	if (recv(asker->socket, &hello, sizeof(hello), MSG_DONTWAIT) == sizeof(hello) &&
		send(asker->socket, &welcome, sizeof(welcome), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return;
	if (errno == EAGAIN)
		gs_log_limited("a client does not read its reply, disconnecting it");
	drop(asker);
}

/* ------------------------------------------------------------------- clients */

/* Who connects is the user that runs the service, or nobody. */
static bool
is_same_user(int socket)
{
	struct ucred peer;
	socklen_t	nbytes = sizeof(peer);

	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &nbytes) == 0 &&
		peer.uid == geteuid())
		return true;
	gs_log_limited("connection of another user rejected");
	return false;
}

/* Looks at a descriptor; what is found there comes with its events. */
static bool
watch(GsGreeter *greeter, int fd, void *what)
{
	struct epoll_event event = {.events = EPOLLIN,.data.ptr = what};

	return epoll_ctl(greeter->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

static void
add_asker(GsGreeter *greeter, int socket)
{
	Asker	   *asker = is_same_user(socket) ? calloc(1, sizeof(Asker)) : NULL;

	if (asker == NULL)
	{
		close(socket);
		return;
	}
	asker->socket = socket;
	gs_list_append(&greeter->askers, &asker->node);
	if (!watch(greeter, socket, asker))
	{
		drop(asker);
		return;
	}
	listen_to(greeter, asker);
}

/* Where no descriptor is left the listener stays readable: it is left alone for a while. */
static void
pause_accepting(GsGreeter *greeter)
{
	if (!greeter->accept_failed)
		gs_log_limited("could not accept a connection: %s", strerror(errno));
	greeter->accept_failed = true;
	greeter->accept_again_us = gs_clock_us() + ACCEPT_AGAIN_MS * 1000;
	epoll_ctl(greeter->epoll, EPOLL_CTL_DEL, greeter->listener, NULL);
}

static void
accept_clients(GsGreeter *greeter)
{
	for (int i = 0; i < ACCEPTS; i++)
	{
		int			socket = accept4(greeter->listener, NULL, NULL,
									 SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (socket >= 0)
			add_asker(greeter, socket);
		else if (errno == EAGAIN)
			break;
		else if (errno != ECONNABORTED && errno != EINTR)
		{
			pause_accepting(greeter);
			return;
		}
	}
	greeter->accept_failed = false;
}

static void *
greeter_main(void *arg)
{
	GsGreeter  *greeter = arg;
	struct epoll_event events[EVENTS];

	for (;;)
	{
		int			nevents = epoll_wait(greeter->epoll, events, EVENTS,
										 greeter->accept_failed ? ACCEPT_AGAIN_MS : -1);

		for (int i = 0; i < nevents; i++)
		{
			void	   *what = events[i].data.ptr;

			if (what == &greeter->stops)
				return NULL;
			if (what == &greeter->listener)
				accept_clients(greeter);
			else
				listen_to(greeter, what);
		}
		if (greeter->accept_failed && gs_clock_us() >= greeter->accept_again_us &&
			watch(greeter, greeter->listener, &greeter->listener))
			accept_clients(greeter);
	}
}

/* -------------------------------------------------------------------- life */

GsGreeter *
gs_greeter_start(int listener, GsServiceStats *figures)
{
	GsGreeter  *greeter = calloc(1, sizeof(GsGreeter));

	if (greeter == NULL)
	{
		gs_log("out of memory");
		return NULL;
	}
	greeter->figures = figures;
	greeter->listener = listener;
	gs_list_init(&greeter->askers);
	pthread_mutex_init(&greeter->lock, NULL);
	greeter->epoll = epoll_create1(EPOLL_CLOEXEC);
	greeter->stops = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	greeter->wakes = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (greeter->epoll >= 0 && greeter->stops >= 0 && greeter->wakes >= 0 &&
		watch(greeter, greeter->stops, &greeter->stops) &&
		watch(greeter, listener, &greeter->listener))
	{
		errno = pthread_create(&greeter->thread, NULL, greeter_main, greeter);
		if (errno == 0)
			return greeter;
	}
	gs_log("could not create the thread that accepts connections: %s", strerror(errno));
	gs_greeter_free(greeter);
	return NULL;
}

void
gs_greeter_stop(GsGreeter *greeter)
{
	const uint64_t one = 1;

	/* a counter at its end cannot be: this is its only write */
	if (write(greeter->stops, &one, sizeof(one)) < 0)
		gs_log("could not join the thread that accepts connections: %s", strerror(errno));
	pthread_join(greeter->thread, NULL);
	for (GsListNode *node = greeter->askers.next, *next; node != &greeter->askers; node = next)
	{
		next = node->next;
		pass_on(greeter, GS_LIST_OWNER(Asker, node, node));
	}
}

void
gs_greeter_free(GsGreeter *greeter)
{
	int			socket;

	while (greeter->wakes >= 0 && (socket = gs_greeter_next(greeter)) >= 0)
		close(socket);
	if (greeter->epoll >= 0)
		close(greeter->epoll);
	if (greeter->stops >= 0)
		close(greeter->stops);
	if (greeter->wakes >= 0)
		close(greeter->wakes);
	pthread_mutex_destroy(&greeter->lock);
	free(greeter->sockets);
	free(greeter);
}
