/*-------------------------------------------------------------------------
 *
 * connection.h
 *	  One client: its state, its shared buffers, and the job that it consumes or
 *	  produces rows for.
 *
 * A connection trusts nothing that it reads.  A client that violates protocol.h
 * gets an error and is disconnected.  A client can only affect others that share
 * its job.
 *
 * Nothing here waits for a client.  The server calls gs_connection_read() when the socket is
 * readable, and gs_connection_poll() in every turn while the connection is active.  Admission calls
 * gs_connection_admit() or gs_connection_refuse_job() while the client waits for memory.  Each of
 * these may close the connection; then the server calls gs_connection_end() until it returns true.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_CONNECTION_H
#define GPUSORT_CONNECTION_H

#include "gpusortd/service.h"
#include "job/job.h"

/* connection.c shows the transitions. */
typedef enum ConnectionState
{
	STATE_NEW,
	STATE_IDLE,
	STATE_WAITING,
	STATE_INPUT,
	STATE_SORTING,
	STATE_SORTED,
	STATE_FULL,
	STATE_RETURNING,
	STATE_PRODUCING,
	STATE_PRODUCER_FULL,
	STATE_ENDING,
	STATE_READING,
	STATE_FAILED,
	STATE_CLOSING,
	STATE_CLOSED
} ConnectionState;

/* Which side owns a buffer. */
typedef enum BufferOwner
{
	BUFFER_CLIENT,
	BUFFER_FILLED,				/* the daemon, with a batch of the client */
	BUFFER_RELEASED				/* the daemon, which may fill it */
} BufferOwner;

typedef struct GsConnection
{
	GsService  *service;
	int			socket;			/* -1 if closed */
	int			pid;			/* of the client */
	ConnectionState state;
	bool		is_watched;		/* in the epoll set */
	GsListNode	all;
	GsListNode	active;
	GsListNode	waiting;
	GsListNode	shared;
	GsListNode	idle;			/* in the list of unused connections */
	uint64_t	idle_since_us;	/* 0: not in that list */
	GsBufferPool buffer_pool;	/* base NULL: none */
	BufferOwner owners[GS_MAX_BUFFERS];
	bool		buffers_unused; /* when it was closed */

	/* its job: the request (of JOB_JOIN and JOB_READ: the layout and the number of the
	 * participant), and its place in the queue of admission */
	GsJobOpen	open;
	uint64_t	arrival;		/* its number in the order of arrival */
	uint64_t	waiting_since_us;
	uint64_t	deadline_us;	/* until when it may wait */
	uint64_t	park_retry_us;	/* when to try again to park it */

	GsSortJob  *job;			/* of the consumer; NULL: none */
	GsMember   *member;			/* of that job, or of the job that was joined */
	uint64_t	token;			/* for JOB_JOIN; 0: not shared */
} GsConnection;

/* ------------------------------------------------------------ for the server */

/* Takes ownership of the socket, which must not block, unless it returns NULL. */
extern GsConnection *gs_connection_open(GsService *service, int socket);

/* Reads and handles some of the messages that have arrived: connection_message.c. */
extern void gs_connection_read(GsConnection *connection);

/* Lets its job proceed, or finish closing. */
extern void gs_connection_poll(GsConnection *connection);

/* Is work on the device in progress, so that gs_connection_poll() should be called soon? */
extern bool gs_connection_is_busy(const GsConnection *connection);

/* Reports to all clients why gpusortd ends, and closes their connections. */
extern void gs_connection_fail_all(GsService *service);

/*
 * Closes connections that have had no job for idle_us, and frees the memory of
 * their buffers on both sides.  Returns when to call it again; UINT64_MAX: not
 * before another connection becomes idle.
 */
extern uint64_t gs_connection_drop_idle(GsService *service, uint64_t now_us, uint64_t idle_us);

/*
 * Frees a closed connection.  False: the device still uses its buffers; poll and
 * call it again later.
 */
extern bool gs_connection_end(GsConnection *connection);

/* ------------------------------------------------------------- for admission */

/* Opens the job if there is memory for it now; false: there is not. */
extern bool gs_connection_admit(GsConnection *connection);

/* Reports that there is no job; the connection stays open. */
extern void gs_connection_refuse_job(GsConnection *connection, GsFailure failure, const char *text);

/* -------------------------------------------------------- for its messages */

/* Changes the state, and with it the lists of the service and what epoll watches. */
extern void gs_connection_enter(GsConnection *connection, ConnectionState state);

/* Closes the socket; the server frees the connection later. */
extern void gs_connection_drop(GsConnection *connection);

/* Sends a message, whose type and length it sets; closes the connection if that fails. */
extern void gs_connection_send(GsConnection *connection, GsMessage *message,
							   GsMessageType type, size_t nbytes);

/* Reports a failure to the client and closes the connection. */
extern void gs_connection_fail(GsConnection *connection, GsFailure failure, const char *text);

/* Logs a violation of the protocol, reports it to the client, and closes the connection. */
extern void gs_connection_reject(GsConnection *connection, const char *text);

/* The client has a job: it owns all buffers and may fill them. */
extern void gs_connection_begin_job(GsConnection *connection, ConnectionState state);

/* Closes or leaves the job; enters IDLE from CLOSING once the device has finished. */
extern void gs_connection_close_job(GsConnection *connection);

/* The job of a token; NULL if it does not exist (any more). */
extern GsSortJob *gs_connection_find_job(const GsService *service, uint64_t token);

/* The connection as the participant of a job that `open` describes. */
extern GsParticipant gs_connection_participant(GsConnection *connection);

#endif							/* GPUSORT_CONNECTION_H */
