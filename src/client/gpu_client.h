/*-------------------------------------------------------------------------
 *
 * gpu_client.h
 *	  The connections of this backend to gpusortd.
 *
 * Creating a connection and its buffers takes some milliseconds, so it is kept for
 * the next sort if a sort ends in good order.  Otherwise the connection is closed,
 * which ends its job in any state.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GPU_CLIENT_H
#define GPUSORT_GPU_CLIENT_H

#include "engine/engine_link.h"

/*
 * The use of a link, which determines its buffers.  Those of a producer are new each
 * time and must be pinned before the first row can be sent, so they are small.
 */
typedef enum GsLinkUse
{
	GS_LINK_SORT,				/* for a job of its own, which producers may join */
	GS_LINK_PRODUCER,				/* to join a job */
	GS_LINK_STATUS					/* only for the status; without buffers */
} GsLinkUse;

/*
 * Returns a connection for one job; NULL, with a constant or palloc'd text in
 * why_not, if there is none.  If the memory context is reset before the link is
 * released, the link is disconnected.  If gpusortd does not run, requests its start,
 * but does not wait for it.
 */
extern GsEngineLink *gs_gpu_client_link(MemoryContext context, GsLinkUse use,
										const char **why_not);

/* For planning: does gpusortd run, with a device that gpusort.engine permits? */
extern bool gs_gpu_client_is_usable(const char **why_not);

/* Timeout for the answer to HELLO. */
#define GS_WELCOME_MS	1000

/*
 * Asks gpusortd for its status.  *state becomes "running", "not answering" or
 * "other build"; *why_not has details unless running.
 */
extern void gs_gpu_client_status(GsWelcome *welcome, int timeout_ms,
								 const char **state, const char **why_not);

/* Does gpusort.engine permit the device that WELCOME describes? */
extern bool gs_gpu_client_accepts(const GsWelcome *welcome, const char **why_not);

#endif							/* GPUSORT_GPU_CLIENT_H */
