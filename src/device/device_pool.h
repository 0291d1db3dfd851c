/*-------------------------------------------------------------------------
 *
 * device_pool.h
 *	  The device's memory, shared out among the jobs.
 *
 * Jobs grow while rows arrive, so they take memory in *slabs* of a few sizes,
 * which are kept for the next job when they come back: asking the driver takes
 * long and may wait for all streams.  Slabs that nobody has wanted for some
 * time are given back, so that an idle service holds no memory.
 *
 * Admission: a job says what it expects to take, and is let in if that is left
 * of the limit.  What it takes counts against the limit, whatever it said; a
 * job that outgrows what it said may find nothing left.  The same holds for what
 * the jobs of one session take together, if that has a limit of its own.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_POOL_H
#define GPUSORT_DEVICE_POOL_H

#include "device/device.h"

typedef struct GsDevicePool GsDevicePool;

/* What is taken, by all jobs or by those of one session, and how much may be. */
typedef struct GsMemoryAccount
{
	struct GsMemoryAccount *next;	/* these three are admission's */
	int			session;		/* process id of its client */
	uint32_t	nusers;
	uint64_t	limit;
	uint64_t	committed;		/* sum of what jobs were promised or have */
} GsMemoryAccount;

/* What one job has: a list of slabs.  Zero it before the first use. */
typedef struct GsJobMemory
{
	GsDevicePool *pool;
	GsMemoryAccount *session;	/* NULL: no limit but the pool's */
	uint64_t	admitted_bytes;		/* admitted for so many bytes */
	uint64_t	used;			/* has so many */
	uint64_t	peak;			/* had so many at most */
	struct GsPoolBlock *blocks;
} GsJobMemory;

/* limit 0: nine tenths of the device's memory.  NULL if out of host memory. */
extern GsDevicePool *gs_device_pool_create(GsDevice *device, uint64_t limit);

/* All jobs' memory must be back. */
extern void gs_device_pool_destroy(GsDevicePool *pool);

/*
 * Lets a job in: true if the bytes are left of the limit, besides what other
 * jobs were promised or have, whichever is more.  A job that expects more than the whole limit is let in
 * only if there is no other, since its estimate may be wrong.
 */
extern bool gs_device_pool_admit(GsDevicePool *pool, GsMemoryAccount *session, uint64_t expected_bytes,
						  GsJobMemory *memory);

/* What a job that expects so much would be promised. */
extern uint64_t gs_device_pool_promise(const GsDevicePool *pool, const GsMemoryAccount *session,
								uint64_t expected_bytes);

/* What it was promised or has, whichever is more. */
extern uint64_t gs_device_pool_commitment(const GsJobMemory *memory);

/* The sum of that. */
extern uint64_t gs_device_pool_committed(const GsDevicePool *pool);

/* What a slab for so many bytes takes. */
extern uint64_t gs_device_pool_block_bytes(uint64_t nbytes);

/* Bytes that the job can take yet, if the device has them. */
extern uint64_t gs_device_pool_available(const GsJobMemory *memory);

/* NULL if there is none; idle slabs are given back to the device first. */
extern void *gs_device_pool_allocate(GsJobMemory *memory, size_t nbytes);

/* One piece back, before the job ends. */
extern void gs_device_pool_free(GsJobMemory *memory, void *d_memory);

/* The job needs no more than it has: the rest of the promise is for others. */
extern void gs_device_pool_release_reservation(GsJobMemory *memory);

/* All of it, and the promise. */
extern void gs_device_pool_free_all(GsJobMemory *memory);

/*
 * Gives back to the device what no job has wanted since idle_us before now_us,
 * some of it at a time.  True: there is more.
 */
extern bool gs_device_pool_release_idle(GsDevicePool *pool, uint64_t now_us, uint64_t idle_us);

extern uint64_t gs_device_pool_limit(const GsDevicePool *pool);
extern uint64_t gs_device_pool_used(const GsDevicePool *pool);	/* by jobs */
extern uint64_t gs_device_pool_reserved(const GsDevicePool *pool);	/* with idle slabs */

#endif							/* GPUSORT_DEVICE_POOL_H */
