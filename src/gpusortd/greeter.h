/*-------------------------------------------------------------------------
 *
 * greeter.h
 *	  The thread that accepts clients and answers requests for the status.
 *
 * Clients that want more are passed to the server loop, with their first
 * message unread.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GREETER_H
#define GPUSORT_GREETER_H

#include "common/device_table.h"

typedef struct GsGreeter GsGreeter;

/*
 * Starts the thread.  The listening socket must not block.  The caller owns the
 * socket and the slot and keeps them until gs_greeter_stop().  NULL: the log has
 * the reason.
 */
extern GsGreeter *gs_greeter_start(int listener, GsDeviceSlot *slot);

/* A descriptor that is readable when gs_greeter_next() has sockets. */
extern int	gs_greeter_event_fd(const GsGreeter *greeter);

/* The next client's socket, which does not block and becomes the caller's; -1: none. */
extern int	gs_greeter_next(GsGreeter *greeter);

/* Ends the thread.  gs_greeter_next() then has all its clients. */
extern void gs_greeter_stop(GsGreeter *greeter);

/* Frees a stopped greeter, and closes the sockets it still has. */
extern void gs_greeter_free(GsGreeter *greeter);

#endif							/* GPUSORT_GREETER_H */
