/*-------------------------------------------------------------------------
 *
 * greeter.h
 *	  The thread that takes clients, and tells those who only ask how the
 *	  service is.
 *
 * A client that wants more is handed over to the loop, with its first message
 * unread.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GREETER_H
#define GPUSORT_GREETER_H

#include "gpusortd/service_stats.h"

typedef struct GsGreeter GsGreeter;

/*
 * Starts it.  The socket listens and does not block; it and the figures are the
 * caller's and outlive the greeter.  NULL: the log says why.
 */
extern GsGreeter *gs_greeter_start(int listener, GsServiceStats *figures);

/* Readable when sockets have been handed over. */
extern int	gs_greeter_wakes(const GsGreeter *greeter);

/* The next one that was handed over, non-blocking and the caller's; -1: none. */
extern int	gs_greeter_next(GsGreeter *greeter);

/* Ends the thread.  All its clients are handed over. */
extern void gs_greeter_stop(GsGreeter *greeter);

/* It has been stopped. */
extern void gs_greeter_free(GsGreeter *greeter);

#endif							/* GPUSORT_GREETER_H */
