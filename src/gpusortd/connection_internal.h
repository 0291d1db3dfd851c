/*-------------------------------------------------------------------------
 *
 * connection_internal.h
 *	  What connection.c and connection_message.c share; only they include it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_CONNECTION_INTERNAL_H
#define GPUSORT_CONNECTION_INTERNAL_H

#include "gpusortd/connection.h"

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

struct GsConnection
{
	GsService  *service;
	int			socket;			/* -1 if closed */
	int			pid;			/* of the client */
	ConnectionState state;
	bool		is_watched;		/* in the epoll set */
	GsListNode	all;
	GsListNode	active;
	GsListNode	waiting;
	GsListNode	idle;			/* in the list of unused connections */
	uint64_t	idle_since_us;	/* 0: not in that list */
	GsBufferPool buffer_pool;	/* base NULL: none */
	BufferOwner owners[GS_MAX_BUFFERS];
	bool		buffers_unused; /* when it was closed */

	/* its job: the request, and its place in the queue of admission */
	GsJobOpen	open;
	GsMemoryAccount *session;	/* NULL: no limit for the session */
	uint64_t	arrival;
	uint64_t	waiting_since_us;
	uint64_t	deadline_us;
	uint64_t	park_retry_us;

	GsSortJob  *job;			/* of the consumer; NULL: none */
	GsMember   *member;		/* of that job, or of the job that was joined */
	uint64_t	token;			/* for JOB_JOIN; 0: not shared */
	GsConnection *next_shared;
};

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

/* Reports that there is no job; the connection stays open. */
extern void gs_connection_refuse_job(GsConnection *connection, GsFailure failure, const char *text);

/* The client has a job: it owns all buffers and may fill them. */
extern void gs_connection_begin_job(GsConnection *connection, ConnectionState state);

/* Closes or leaves the job; enters IDLE from CLOSING once the device has finished. */
extern void gs_connection_close_job(GsConnection *connection);

/* The job of a token; NULL if it does not exist (any more). */
extern GsSortJob *gs_connection_find_job(const GsService *service, uint64_t token);

/* The connection as a participant of a job. */
extern GsParticipant gs_connection_participant(GsConnection *connection, uint32_t number);

/* Releases its reference to the memory account of the session. */
extern void gs_connection_release_session(GsConnection *connection);

#endif							/* GPUSORT_CONNECTION_INTERNAL_H */
