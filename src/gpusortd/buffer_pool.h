/*-------------------------------------------------------------------------
 *
 * buffer_pool.h
 *	  The memory that gpusortd shares with a client, for batches of rows.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BUFFER_POOL_H
#define GPUSORT_BUFFER_POOL_H

#include "job/job.h"

/*
 * Maps and pins the buffers that HELLO describes.  Returns NULL, or an error
 * text; then *failure becomes GS_FAILED_MEMORY if the client is not to blame.
 * The caller keeps the descriptor.
 */
extern const char *gs_buffer_pool_map(GsBufferPool *buffer_pool, GsDevice *device,
									  const GsHello *hello, int memfd,
									  GsFailure *failure);

/*
 * Unpins and unmaps the buffers, if there are any.  unused: frees the memory,
 * too, although the client still maps it.
 */
extern void gs_buffer_pool_unmap(GsBufferPool *buffer_pool, GsDevice *device, bool unused);

#endif							/* GPUSORT_BUFFER_POOL_H */
