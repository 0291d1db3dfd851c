/*-------------------------------------------------------------------------
 *
 * gpu_client.h
 *	  The connections of this backend to the gpusortd of each device.
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
 * Returns a connection for one job; NULL, with a constant or palloc'd text in
 * why_not, if there is none.  If the memory context is reset before the link is
 * released, the link is disconnected.  If no gpusortd runs, requests its start,
 * but does not wait for it.
 *
 * gs_gpu_client_link() is for a job of its own, which producers may join, and chooses
 * the device: expected_bytes is the device memory that the job will probably need.
 * gs_gpu_client_producer_link() is to join a job of a given device.  Its buffers are new
 * each time and must be pinned before the first row can be sent, so they are small.
 * gs_gpu_client_reader_link() is to read such a job; its buffers are as large as those of
 * gs_gpu_client_link().
 */
extern GsEngineLink *gs_gpu_client_link(MemoryContext context, uint64 expected_bytes,
										const char **why_not);
extern GsEngineLink *gs_gpu_client_producer_link(MemoryContext context, int device,
												 const char **why_not);
extern GsEngineLink *gs_gpu_client_reader_link(MemoryContext context, int device,
											   const char **why_not);

/* May this session have another connection in use?  If not, all of the above return NULL. */
extern bool gs_gpu_client_may_link(void);

/*
 * For planning: does a gpusortd run, with a device that gpusort.engine permits?  If none
 * runs, requests its start.
 */
extern bool gs_gpu_client_is_usable(void);

/* Timeout for the answer to HELLO, unless others have a job open there already. */
#define GS_WELCOME_MS	1000

/*
 * Asks the gpusortd of a device for its status.  *state becomes "running", "not
 * answering" or "other build"; *why_not has details unless running.
 */
extern void gs_gpu_client_status(int device, GsWelcome *welcome, int timeout_ms,
								 const char **state, const char **why_not);

/* Does gpusort.engine permit the device that WELCOME describes? */
extern bool gs_gpu_client_accepts(const GsWelcome *welcome, const char **why_not);

#endif							/* GPUSORT_GPU_CLIENT_H */
