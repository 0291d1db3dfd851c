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
 * Nothing here waits for a client.  The server calls read() when the socket has
 * something, poll() in every turn as long as the connection is active, admit() or
 * refuse() while the client waits for memory.
 * After any of them the connection may be gone: then the server calls end()
 * until it is freed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_CONNECTION_H
#define GPUSORT_CONNECTION_H

#include "job/job.h"
#include "gpusortd/service.h"

typedef struct GsConnection GsConnection;

/* The socket, non-blocking, is the connection's from now on, unless NULL is returned. */
extern GsConnection *gs_connection_open(GsService *service, int socket);

/* Takes some of the messages that have come. */
extern void gs_connection_read(GsConnection *connection);

/* Those with a job of their own, or one that ends, and those that are gone. */
extern GsConnection *gs_connection_first_active(const GsService *service);
extern GsConnection *gs_connection_next_active(const GsConnection *connection);

/* The first of them becomes the last one. */
extern void gs_connection_rotate_active(GsService *service);

/* Lets its job go on, or end. */
extern void gs_connection_poll(GsConnection *connection);

/* Is there work on the device whose end poll() should look for soon? */
extern bool gs_connection_is_busy(const GsConnection *connection);

/* NULL if it owns none. */
extern GsSortJob *gs_connection_job(const GsConnection *connection);

/* Its place in the order in which jobs came. */
extern uint64_t gs_connection_arrival(const GsConnection *connection);

/* Those that wait for memory, in that order. */
extern GsConnection *gs_connection_first_waiting(const GsService *service);
extern GsConnection *gs_connection_next_waiting(const GsConnection *connection);

/* Since when it waits, and until when. */
extern uint64_t gs_connection_waits_since(const GsConnection *connection);
extern uint64_t gs_connection_deadline_us(const GsConnection *connection);

/* The memory that it waits for. */
extern uint64_t gs_connection_need(const GsConnection *connection);

/* Have other jobs of its session so much that less than half of what it wants is left? */
extern bool gs_connection_is_over_share(const GsConnection *connection);

/* Opens the job if there is memory for it now. */
extern bool gs_connection_admit(GsConnection *connection);

/* It waits no longer, for want of memory. */
extern void gs_connection_refuse(GsConnection *connection, const char *text);

/* Its job could not be parked; when to try again. */
extern uint64_t gs_connection_park_again_us(const GsConnection *connection);
extern void gs_connection_set_park_again(GsConnection *connection, uint64_t when_us);

/* Tells all clients why the service ends, and drops them. */
extern void gs_connection_fail_all(GsService *service);

/*
 * Drops the connections that have had a ring and no job for so long, and frees
 * the memory of their rings, at both sides.  Returns when to look again; UINT64_MAX:
 * not before there is another one.
 */
extern uint64_t gs_connection_drop_idle(GsService *service, uint64_t now_us, uint64_t idle_us);

/* Has it been dropped, or has the client gone? */
extern bool gs_connection_is_closed(const GsConnection *connection);

/*
 * Frees a connection that is gone.  False: the device still uses its ring; poll, and
 * call again later.
 */
extern bool gs_connection_end(GsConnection *connection);

#endif							/* GPUSORT_CONNECTION_H */
