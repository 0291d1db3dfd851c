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
 * Nothing here waits for a client.  The server calls gs_connection_read()
 * (connection_message.h) when the socket is readable, poll() in every turn while
 * the connection is active, and admission calls admit() or refuse() while the
 * client waits for memory.  Each of these may close the connection; then the
 * server calls end() until it returns true.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_CONNECTION_H
#define GPUSORT_CONNECTION_H

#include "gpusortd/service.h"
#include "job/job.h"

typedef struct GsConnection GsConnection;

/* Takes ownership of the socket, which must not block, unless it returns NULL. */
extern GsConnection *gs_connection_open(GsService *service, int socket);

/* Iterates over connections that own a job, have one that is closing, or are closed. */
extern GsConnection *gs_connection_first_active(const GsService *service);
extern GsConnection *gs_connection_next_active(const GsConnection *connection);

/* Moves the first of them to the end, for fairness. */
extern void gs_connection_rotate_active(GsService *service);

/* Lets its job proceed, or finish closing. */
extern void gs_connection_poll(GsConnection *connection);

/* Is work on the device in progress, so that poll() should be called soon? */
extern bool gs_connection_is_busy(const GsConnection *connection);

/* NULL if it owns none. */
extern GsSortJob *gs_connection_job(const GsConnection *connection);

/* The number of its job in the order of arrival. */
extern uint64_t gs_connection_arrival(const GsConnection *connection);

/* Iterates over connections that wait for memory, in the order of arrival. */
extern GsConnection *gs_connection_first_waiting(const GsService *service);
extern GsConnection *gs_connection_next_waiting(const GsConnection *connection);

/* Since when it has waited, and until when it may. */
extern uint64_t gs_connection_waiting_since(const GsConnection *connection);
extern uint64_t gs_connection_deadline_us(const GsConnection *connection);

/* Bytes of device memory that it waits for. */
extern uint64_t gs_connection_need(const GsConnection *connection);

/* Do other jobs of the session leave it less than half of what it wants? */
extern bool gs_connection_is_over_share(const GsConnection *connection);

/* Opens the job if there is memory for it now; false: there is not. */
extern bool gs_connection_admit(GsConnection *connection);

/* Ends the waiting: the client gets no memory. */
extern void gs_connection_refuse(GsConnection *connection, const char *text);

/* When to try again to park its job, after a failure. */
extern uint64_t gs_connection_park_retry_us(const GsConnection *connection);
extern void gs_connection_set_park_retry(GsConnection *connection, uint64_t when_us);

/* Reports to all clients why gpusortd ends, and closes their connections. */
extern void gs_connection_fail_all(GsService *service);

/*
 * Closes connections that have had no job for idle_us, and frees the memory of
 * their buffers on both sides.  Returns when to call it again; UINT64_MAX: not
 * before another connection becomes idle.
 */
extern uint64_t gs_connection_drop_idle(GsService *service, uint64_t now_us, uint64_t idle_us);

/* Is its socket closed, by either side? */
extern bool gs_connection_is_closed(const GsConnection *connection);

/*
 * Frees a closed connection.  False: the device still uses its buffers; poll and
 * call it again later.
 */
extern bool gs_connection_end(GsConnection *connection);

#endif							/* GPUSORT_CONNECTION_H */
