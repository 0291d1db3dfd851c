/*-------------------------------------------------------------------------
 *
 * buffer_pool.h
 *	  The shared memory that a client's rows go through.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BUFFER_POOL_H
#define GPUSORT_BUFFER_POOL_H

#include "job/job.h"

/*
 * Maps and pins the ring that a HELLO tells of.  NULL, or what is wrong; *failure
 * becomes GS_FAILED_MEMORY if that is not the client's fault.  The descriptor stays
 * the caller's.
 */
extern const char *gs_buffer_pool_map(GsBufferPool *buffer_pool, GsDevice *device, const GsHello *hello, int memfd,
							   GsFailure *failure);

/* Does nothing if there is none.  unused: its memory is freed, at the client's side too. */
extern void gs_buffer_pool_unmap(GsBufferPool *buffer_pool, GsDevice *device, bool unused);

#endif							/* GPUSORT_BUFFER_POOL_H */
