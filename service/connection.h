/*-------------------------------------------------------------------------
 *
 * connection.h
 *	  One client: its messages, their order, its ring and the job that it owns
 *	  or feeds.
 *
 * A connection trusts nothing that it reads.  A client that breaks the rules
 * of protocol.h is told so and dropped; nothing that a client sends or leaves
 * out reaches another one, but for those that share its job.
 *
 * Nothing here waits.  The server calls read() when the socket has something,
 * poll() in every turn, admit() or expire() while the client waits for memory.
 * After any of them the connection may be gone: then the server calls end()
 * until it is freed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_CONNECTION_H
#define GPUSORT_CONNECTION_H

#include "device.h"
#include "job.h"
#include "slab.h"

typedef struct GsConnection GsConnection;

/* What all connections share.  It outlives them. */
typedef struct GsService
{
	GsDevice   *device;
	GsSlabPool *pool;
	uint64_t	memory_total;	/* of the device */
	bool		broken;			/* the device is: nothing is left but to end */
	char		broken_text[GS_FAILED_TEXT_BYTES];
	uint32_t	njobs;			/* open */
	uint32_t	nwaiting;		/* for admission */
	uint64_t	jobs_done;
	uint64_t	narrivals;		/* of jobs so far: their order in the queue */
	uint64_t	nmessages;		/* in and out so far: does anything move? */
	GsConnection *shared;		/* those whose jobs others may join */
	GsConnection *first_idle;	/* those whose rings nobody uses, the longest first */
	GsConnection *last_idle;
	char		refused_build[GS_BUILD_ID_BYTES];	/* of the last client of another build */
} GsService;

/*
 * Has the device broken where no job could report it: while one was closed, or
 * memory went back?  Then all clients are told.
 */
extern void gs_service_look(GsService *service);

/* The socket, non-blocking, is the connection's from now on, unless NULL is returned. */
extern GsConnection *gs_connection_open(GsService *service, int socket);

/* What is to be polled for reading; -1: nothing now. */
extern int	gs_connection_socket(const GsConnection *connection);

/* Takes some of the messages that have come. */
extern void gs_connection_read(GsConnection *connection);

/* Lets its job go on, or end. */
extern void gs_connection_poll(GsConnection *connection);

/* Is there work on the device whose end poll() should look for soon? */
extern bool gs_connection_is_busy(const GsConnection *connection);

/* Its place in the queue for admission, which is the order of arrival; 0: not in it. */
extern uint64_t gs_connection_arrival(const GsConnection *connection);

/* When it stops waiting. */
extern uint64_t gs_connection_deadline_us(const GsConnection *connection);

/* Opens the job if there is memory for it now. */
extern bool gs_connection_admit(GsConnection *connection);

/* Its time to wait is over. */
extern void gs_connection_expire(GsConnection *connection);

/*
 * Drops the connections that have had a ring and no job for so long, and frees
 * the memory of their rings, at both sides.  Returns when to look again; UINT64_MAX:
 * not before there is another one.
 */
extern uint64_t gs_connection_drop_idle(GsService *service, uint64_t now_us, uint64_t idle_us);

/* Tells the client, and drops it. */
extern void gs_connection_fail(GsConnection *connection, GsFailure failure, const char *text);

/* Has it been dropped, or has the client gone? */
extern bool gs_connection_is_gone(const GsConnection *connection);

/*
 * Frees a connection that is gone.  False: the device still uses its ring; poll, and
 * call again later.
 */
extern bool gs_connection_end(GsConnection *connection);

#endif							/* GPUSORT_CONNECTION_H */
