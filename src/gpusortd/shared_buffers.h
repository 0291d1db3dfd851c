/*-------------------------------------------------------------------------
 *
 * shared_buffers.h
 *	  The shared memory that a client's rows go through.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SHARED_BUFFERS_H
#define GPUSORT_SHARED_BUFFERS_H

#include "gpusortd/job.h"

/*
 * Maps and pins the ring that a HELLO tells of.  NULL, or what is wrong; *failure
 * becomes GS_FAILED_MEMORY if that is not the client's fault.  The descriptor stays
 * the caller's.
 */
extern const char *gs_ring_map(GsRing *ring, GsDevice *device, const GsHello *hello, int memfd,
							   GsFailure *failure);

/* Does nothing if there is none.  unused: its memory is freed, at the client's side too. */
extern void gs_ring_unmap(GsRing *ring, GsDevice *device, bool unused);

#endif							/* GPUSORT_SHARED_BUFFERS_H */
