/*-------------------------------------------------------------------------
 *
 * device_pool.h
 *	  Device memory in blocks, shared by all jobs.
 *
 * Jobs grow while rows arrive, so they allocate *blocks* of a few sizes.  Freed blocks are kept
 * for the next job, because calls of the driver may wait for all streams, and released when they
 * have not been used for some time.
 *
 * A job is admitted, with a reservation of what it expects to need, if the limit permits.  All
 * its allocations count against the limit; beyond its reservation it may run out of memory.
 *
 * A job that outgrows the device *borrows* blocks of other devices of the table for its
 * rows; this process does not keep them when they are freed (README.md).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_POOL_H
#define GPUSORT_DEVICE_POOL_H

#include "common/device_table.h"
#include "device/device.h"

/* A device whose memory this one can use. */
typedef struct GsPoolPeer
{
	GsDeviceIdentity identity;	/* zeros: not known */
	int			number;			/* for allocate_at() */
} GsPoolPeer;

/* Only device_pool.c changes it. */
typedef struct GsDevicePool
{
	GsDevice   *device;
	uint64_t	limit;			/* of the memory of this device, in bytes */
	uint64_t	committed;		/* sum of the commitments of all jobs */
	uint64_t	used;			/* in blocks of jobs */
	uint64_t	idle_bytes;		/* in idle blocks of this device */
	uint64_t	borrowed;		/* by jobs */
	uint32_t	njobs;			/* admitted */
	GsDeviceTable *table;		/* NULL: there are no other devices */
	uint32_t	number;			/* in the table */
	GsPoolPeer	peers[GS_MAX_DEVICES];	/* by their numbers in the table */
	GsDeviceSet refused;		/* those whose memory it cannot use .. */
	uint64_t	refused_us;		/* .. when it was last asked for */
	struct GsPoolBlock *idle;	/* latest first */
	struct GsPoolBlock *returned;	/* borrowed, of jobs that have ended; still counted as lent */
} GsDevicePool;

/* The memory of a job.  gs_device_pool_admit() initializes it. */
typedef struct GsJobMemory
{
	GsDevicePool *pool;
	uint64_t	expected_bytes; /* its estimate */
	uint64_t	admitted_bytes; /* its reservation */
	uint64_t	used;			/* bytes in blocks of this device */
	uint64_t	borrowed;		/* bytes in blocks of others */
	uint64_t	peak;			/* maximum of both together */
	struct GsPoolBlock *blocks;
} GsJobMemory;

/* limit 0: nine tenths of the device memory.  NULL if out of host memory. */
extern GsDevicePool *gs_device_pool_create(GsDevice *device, uint64_t limit);

/*
 * Joins the table, before the first job: commitments are published in the slot of this
 * number, and blocks are borrowed of devices of the others.  The slot has the limit of
 * the pool.
 */
extern void gs_device_pool_join(GsDevicePool *pool, GsDeviceTable *table, uint32_t number);

/* All jobs must have freed their memory. */
extern void gs_device_pool_destroy(GsDevicePool *pool);

/*
 * Admits a job if its reservation fits the limit in addition to the commitments
 * of all other jobs.  A job that expects more than the limit itself is admitted
 * only if it is the only one, because its estimate may be wrong.  False: not
 * admitted.
 */
extern bool gs_device_pool_admit(GsDevicePool *pool, uint64_t expected_bytes,
								 GsJobMemory *memory);

/* The reservation that a job would get, in bytes. */
extern uint64_t gs_device_pool_reservation(const GsDevicePool *pool, uint64_t expected_bytes);

/* The commitment of a job: its reservation or its memory, whichever is larger. */
extern uint64_t gs_device_pool_commitment(const GsJobMemory *memory);

/* Bytes that other devices have borrowed, and what is left for new jobs. */
extern uint64_t gs_device_pool_lent(const GsDevicePool *pool);
extern uint64_t gs_device_pool_uncommitted(const GsDevicePool *pool);

/* Can other devices borrow?  Then gs_device_pool_release_idle() should be called often. */
extern bool gs_device_pool_can_lend(const GsDevicePool *pool);

/* The size of a block for nbytes. */
extern uint64_t gs_device_pool_block_bytes(uint64_t nbytes);

/* Bytes that the job can still allocate on this device, if it has them. */
extern uint64_t gs_device_pool_available(const GsJobMemory *memory);

/* NULL if out of memory, even after all idle blocks have been released. */
extern void *gs_device_pool_allocate(GsJobMemory *memory, size_t nbytes);

/*
 * Allocates memory of this device, or borrows it from the one that has the most left, if the
 * job can still allocate keep_bytes on this device then.  NULL: it cannot, or out of memory.
 */
extern void *gs_device_pool_allocate_rows(GsJobMemory *memory, size_t nbytes, uint64_t keep_bytes);
extern void *gs_device_pool_borrow_rows(GsJobMemory *memory, size_t nbytes, uint64_t keep_bytes);

/* Do jobs wait at a device where this one has borrowed memory? */
extern bool gs_device_pool_is_wanted(const GsJobMemory *memory);

/* Frees one allocation. */
extern void gs_device_pool_free(GsJobMemory *memory, void *d_memory);

/* Reduces the reservation to what the job has, since it needs no more. */
extern void gs_device_pool_release_reservation(GsJobMemory *memory);

/* Frees all memory and the reservation. */
extern void gs_device_pool_free_all(GsJobMemory *memory);

/*
 * Releases a limited number of blocks: borrowed ones that were freed, idle ones that take
 * memory that has been lent, and those that have been idle for idle_us.  True: there are
 * more.
 */
extern bool gs_device_pool_release_idle(GsDevicePool *pool, uint64_t now_us, uint64_t idle_us);

/* Are there any of the first two kinds?  Others wait for them. */
extern bool gs_device_pool_owes(const GsDevicePool *pool);

/* Bytes in blocks of this device, with idle ones. */
static inline uint64_t
gs_device_pool_reserved(const GsDevicePool *pool)
{
	return pool->used + pool->idle_bytes;
}

#endif							/* GPUSORT_DEVICE_POOL_H */
