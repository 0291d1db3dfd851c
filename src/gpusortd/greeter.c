/*-------------------------------------------------------------------------
 *
 * greeter.c
 *	  The thread that accepts clients and answers requests for the status.
 *
 * README.md says why this is a thread.  It never calls the device; it answers from the
 * statistics that the loop publishes.
 *
 * It peeks at the first message of a client, and answers a HELLO without buffers, any number
 * of times.  With any other message, valid or not, the client is passed to the server loop,
 * which reads the message.
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

#include "common/basics.h"
#include "gpusortd/service.h"
#include "job/log.h"

/* Per turn. */
#define ACCEPTS		64
#define EVENTS		64

/* Delay after accept() failed, for example because descriptors were exhausted. */
#define ACCEPT_AGAIN_MS	100

/* A client that has not been passed to the server. */
typedef struct NewClient
{
	GsListNode	node;
	int			socket;
} NewClient;

struct GsGreeter
{
	pthread_t	thread;
	GsDeviceSlot *slot;
	int			listener;
	int			epoll;
	int			stop_event;		/* an eventfd: the thread must end */
	bool		accept_failed;	/* the listener is not watched .. */
	uint64_t	accept_again_us; /* .. before this time */
	GsListNode	clients;

	int			event;			/* an eventfd: some are passed to the server */
	pthread_mutex_t lock;		/* protects what follows */
	GsListNode	passed;			/* oldest first */
};

/* ------------------------------------------------------- clients for the server */

/* Frees a client of any list, but not its socket. */
static void
remove_client(NewClient *client)
{
	gs_list_remove(&client->node);
	free(client);
}

static void
pass_to_server(GsGreeter *greeter, NewClient *client)
{
	const uint64_t one = 1;

	epoll_ctl(greeter->epoll, EPOLL_CTL_DEL, client->socket, NULL);
	gs_list_remove(&client->node);
	pthread_mutex_lock(&greeter->lock);
	gs_list_append(&greeter->passed, &client->node);
	pthread_mutex_unlock(&greeter->lock);
	if (write(greeter->event, &one, sizeof(one)) < 0)
		return;					/* the event is set already */
}

int
gs_greeter_next(GsGreeter *greeter)
{
	NewClient  *client;
	uint64_t	count;
	int			socket = -1;

	pthread_mutex_lock(&greeter->lock);
	client = GS_LIST_FIRST(NewClient, node, &greeter->passed);
	if (client != NULL)
	{
		socket = client->socket;
		remove_client(client);
	}
	/* under the lock, so that the event of a later client is not lost */
	else if (read(greeter->event, &count, sizeof(count)) < 0)
		socket = -1;
	pthread_mutex_unlock(&greeter->lock);
	return socket;
}

int
gs_greeter_event_fd(const GsGreeter *greeter)
{
	return greeter->event;
}

static void
drop(NewClient *client)
{
	close(client->socket);
	remove_client(client);
}

/* ---------------------------------------------------------- status requests */

static bool
is_status_request(const GsHello *hello, ssize_t nbytes)
{
	return nbytes == sizeof(GsHello) && hello->message.type == GS_MESSAGE_HELLO &&
		hello->message.nbytes == sizeof(GsHello) && hello->magic == GS_WIRE_MAGIC &&
		hello->version == GS_WIRE_VERSION && hello->buffer_pool_bytes == 0 &&
		memcmp(hello->build, gs_build_id, sizeof(hello->build)) == 0 &&
		hello->buffer_bytes == 0 && hello->nbuffers == 0;
}

/* Answers a status request, or passes the client on. */
static void
read_hello(GsGreeter *greeter, NewClient *client)
{
	GsHello		hello;
	struct iovec piece = {.iov_base = &hello,.iov_len = sizeof(hello)};
	struct msghdr header = {.msg_iov = &piece,.msg_iovlen = 1};
	ssize_t		nbytes = recvmsg(client->socket, &header, MSG_PEEK | MSG_DONTWAIT);
	GsWelcome	welcome;

	if (nbytes < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (nbytes <= 0)
	{
		drop(client);
		return;
	}

	/* MSG_CTRUNC: there is a descriptor; MSG_TRUNC: the message is longer */
	if ((header.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) != 0 || !is_status_request(&hello, nbytes))
	{
		pass_to_server(greeter, client);
		return;
	}
	welcome = gs_service_welcome(greeter->slot);
	if (recv(client->socket, &hello, sizeof(hello), MSG_DONTWAIT) == sizeof(hello) &&
		send(client->socket, &welcome, sizeof(welcome), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return;
	if (errno == EAGAIN)
		gs_log_limited("a client does not read its messages, disconnecting it");
	drop(client);
}

/* ------------------------------------------------------------------- clients */

/* Only the user that runs gpusortd may connect. */
static bool
is_same_user(int socket)
{
	struct ucred peer;
	socklen_t	nbytes = sizeof(peer);

	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &nbytes) == 0 &&
		peer.uid == geteuid())
		return true;
	gs_log_limited("rejected a client of another user");
	return false;
}

static void
add_client(GsGreeter *greeter, int socket)
{
	NewClient  *client = is_same_user(socket) ? calloc(1, sizeof(NewClient)) : NULL;

	if (client == NULL)
	{
		close(socket);
		return;
	}
	client->socket = socket;
	gs_list_append(&greeter->clients, &client->node);
	if (!gs_service_watch(greeter->epoll, socket, client))
	{
		drop(client);
		return;
	}
	read_hello(greeter, client);
}

/* The listener stays readable without descriptors, so it is not watched for a while. */
static void
pause_accepting(GsGreeter *greeter)
{
	if (!greeter->accept_failed)
		gs_log_limited("could not accept clients: %s", strerror(errno));
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
			add_client(greeter, socket);
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

			if (what == &greeter->stop_event)
				return NULL;
			if (what == &greeter->listener)
				accept_clients(greeter);
			else
				read_hello(greeter, what);
		}
		if (greeter->accept_failed && gs_clock_us() >= greeter->accept_again_us &&
			gs_service_watch(greeter->epoll, greeter->listener, &greeter->listener))
			accept_clients(greeter);
	}
}

/* -------------------------------------------------------------------- life */

GsGreeter *
gs_greeter_start(int listener, GsDeviceSlot *slot)
{
	GsGreeter  *greeter = calloc(1, sizeof(GsGreeter));

	if (greeter == NULL)
	{
		gs_log("out of memory");
		return NULL;
	}
	greeter->slot = slot;
	greeter->listener = listener;
	gs_list_init(&greeter->clients);
	gs_list_init(&greeter->passed);
	pthread_mutex_init(&greeter->lock, NULL);
	greeter->epoll = epoll_create1(EPOLL_CLOEXEC);
	greeter->stop_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	greeter->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (greeter->epoll >= 0 && greeter->stop_event >= 0 && greeter->event >= 0 &&
		gs_service_watch(greeter->epoll, greeter->stop_event, &greeter->stop_event) &&
		gs_service_watch(greeter->epoll, listener, &greeter->listener))
	{
		errno = pthread_create(&greeter->thread, NULL, greeter_main, greeter);
		if (errno == 0)
			return greeter;
	}
	gs_log("could not start the thread that accepts clients: %s", strerror(errno));
	gs_greeter_free(greeter);
	return NULL;
}

void
gs_greeter_stop(GsGreeter *greeter)
{
	const uint64_t one = 1;

	/* the counter cannot overflow, because this is the only write */
	if (write(greeter->stop_event, &one, sizeof(one)) < 0)
		gs_log("could not stop the thread that accepts clients: %s", strerror(errno));
	pthread_join(greeter->thread, NULL);
	GS_LIST_FOREACH(NewClient, client, node, &greeter->clients)
	{
		pass_to_server(greeter, client);
	}
}

void
gs_greeter_free(GsGreeter *greeter)
{
	int			socket;

	while (greeter->event >= 0 && (socket = gs_greeter_next(greeter)) >= 0)
		close(socket);
	if (greeter->epoll >= 0)
		close(greeter->epoll);
	if (greeter->stop_event >= 0)
		close(greeter->stop_event);
	if (greeter->event >= 0)
		close(greeter->event);
	pthread_mutex_destroy(&greeter->lock);
	free(greeter);
}
