/*-------------------------------------------------------------------------
 *
 * gpu_client.h
 *	  This backend's connections to gpusortd.
 *
 * A connection with its ring takes some milliseconds to make, so it is kept
 * for the next sort when one ends in good order.  One that does not is cut,
 * which ends its job at the other side, whatever state that is in.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GPU_CLIENT_H
#define GPUSORT_GPU_CLIENT_H

#include "engine/engine_link.h"

/*
 * What a link is for, which decides on its ring.  A worker's is new each time:
 * the service has to pin it before the first row can go up, so it is small.
 */
typedef enum GsLinkUse
{
	GS_LINK_SORT,				/* a job of its own, that others may feed */
	GS_LINK_PRODUCER,				/* somebody else's job, to be fed */
	GS_LINK_ASK					/* none: it only asks, and has no ring */
} GsLinkUse;

/*
 * A connection for one job; NULL, and why_not a constant or palloc'd text, if
 * there is none.  When the memory context goes before the link was released,
 * it is cut.  Asks for the service to be started where it does not run, but
 * does not wait for it.
 */
extern GsEngineLink *gs_gpu_client_link(MemoryContext context, GsLinkUse use,
										const char **why_not);

/*
 * The same question, for planning: is there a service, and is it one that the
 * setting gpusort.engine would have sort?
 */
extern bool gs_gpu_client_is_usable(const char **why_not);

/* How long the service may take to answer HELLO, where rows can go without it. */
#define GS_WELCOME_MS	1000

/*
 * Asks the service how it is, and nothing else: *state is "running", or
 * "not answering" or "other build", and why_not says more.
 */
extern void gs_gpu_client_status(GsWelcome *welcome, int timeout_ms,
								 const char **state, const char **why_not);

/* Of the service at the other end: would gpusort.engine have it sort? */
extern bool gs_gpu_client_accepts(const GsWelcome *welcome, const char **why_not);

#endif							/* GPUSORT_GPU_CLIENT_H */
