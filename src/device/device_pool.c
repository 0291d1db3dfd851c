/*-------------------------------------------------------------------------
 *
 * device_pool.c
 *	  The device's memory, shared out among the jobs.
 *
 * Slabs come in four sizes for each power of two, so that at most a fifth of
 * one (or 64 kB) is not asked for, and so that what one job gave back is likely
 * to suit the next.  A slab is never split: a size that is not idle is
 * allocated, after idle slabs of other sizes have made room if they must.
 *
 * The limit is held by one sum, of what each job was promised or has,
 * whichever is more.  Within its promise a job finds room for certain, as far
 * as the device has it; beyond, if others leave any.  Sessions have such sums,
 * too.
 *
 *-------------------------------------------------------------------------
 */
#include "device/device_pool.h"

#include <stdlib.h>

/* Slabs given back in one go: the driver may wait for all streams each time. */
#define MAX_RELEASES	16

#define MIN_BLOCK_BYTES		((uint64_t) 64 << 10)
#define SIZES_PER_DOUBLING	4

#define Min(a, b)		((a) < (b) ? (a) : (b))
#define Max(a, b)		((a) > (b) ? (a) : (b))

typedef struct GsPoolBlock GsPoolBlock;

struct GsPoolBlock
{
	GsPoolBlock	   *next;			/* of the job's, or of the idle ones */
	void	   *d_memory;
	uint64_t	nbytes;
	uint64_t	idle_since;		/* 0: release_idle() has not seen it idle */
};

struct GsDevicePool
{
	GsDevice   *device;
	GsMemoryAccount all;		/* of all jobs */
	uint64_t	used;			/* sum of what they have */
	uint64_t	idle_bytes;
	uint32_t	njobs;			/* admitted */
	GsPoolBlock	   *idle;			/* latest first */
};

GsDevicePool *
gs_device_pool_create(GsDevice *device, uint64_t limit)
{
	GsDevicePool *pool = calloc(1, sizeof(GsDevicePool));
	uint64_t	free_bytes;
	uint64_t	total_bytes;

	if (pool == NULL)
		return NULL;
	pool->device = device;
	pool->all.limit = limit;
	if (limit == 0 && device->ops->memory(device, &free_bytes, &total_bytes))
		pool->all.limit = total_bytes / 10 * 9;
	return pool;
}

/* Gives one slab, out of any list, back to the device. */
static void
free_block(GsDevicePool *pool, GsPoolBlock *slab)
{
	pool->device->ops->release(pool->device, slab->d_memory);
	free(slab);
}

/* Gives idle slabs back until no more than so many bytes are idle. */
static void
release_idle_blocks(GsDevicePool *pool, uint64_t idle_bytes)
{
	while (pool->idle_bytes > idle_bytes)
	{
		GsPoolBlock	   *slab = pool->idle;

		pool->idle = slab->next;
		pool->idle_bytes -= slab->nbytes;
		free_block(pool, slab);
	}
}

void
gs_device_pool_destroy(GsDevicePool *pool)
{
	release_idle_blocks(pool, 0);
	free(pool);
}

/* ---------------------------------------------------------------- admission */

uint64_t
gs_device_pool_commitment(const GsJobMemory *memory)
{
	return Max(memory->admitted_bytes, memory->used);
}

uint64_t
gs_device_pool_committed(const GsDevicePool *pool)
{
	return pool->all.committed;
}

/* What is left of an account for new jobs. */
static uint64_t
uncommitted(const GsMemoryAccount *account)
{
	return account->limit - Min(account->limit, account->committed);
}

uint64_t
gs_device_pool_promise(const GsDevicePool *pool, const GsMemoryAccount *session, uint64_t expected_bytes)
{
	uint64_t	promise = Min(expected_bytes, pool->all.limit);

	return session == NULL ? promise : Min(promise, uncommitted(session));
}

/* A job's memory is not what it was: the sums follow. */
static void
recommit(GsJobMemory *memory, uint64_t before)
{
	uint64_t	now = gs_device_pool_commitment(memory);

	memory->pool->all.committed += now - before;
	if (memory->session != NULL)
		memory->session->committed += now - before;
}

bool
gs_device_pool_admit(GsDevicePool *pool, GsMemoryAccount *session, uint64_t expected_bytes,
			  GsJobMemory *memory)
{
	uint64_t	admitted_bytes = gs_device_pool_promise(pool, session, expected_bytes);

	if (admitted_bytes > uncommitted(&pool->all) ||
		(admitted_bytes == pool->all.limit && expected_bytes > admitted_bytes && pool->njobs > 0))
		return false;
	*memory = (GsJobMemory)
	{
		.pool = pool,.session = session,.admitted_bytes = admitted_bytes
	};
	recommit(memory, 0);
	pool->njobs++;
	return true;
}

/* -------------------------------------------------------------------- slabs */

uint64_t
gs_device_pool_block_bytes(uint64_t nbytes)
{
	uint64_t	step = MIN_BLOCK_BYTES;

	while (step * 2 * SIZES_PER_DOUBLING <= nbytes)
		step *= 2;
	return (Max(nbytes, 1) + step - 1) / step * step;
}

/* An idle slab of just that size, out of its list; or NULL. */
static GsPoolBlock *
reuse_idle(GsDevicePool *pool, uint64_t nbytes)
{
	for (GsPoolBlock **link = &pool->idle; *link != NULL; link = &(*link)->next)
	{
		GsPoolBlock	   *slab = *link;

		if (slab->nbytes == nbytes)
		{
			*link = slab->next;
			pool->idle_bytes -= nbytes;
			return slab;
		}
	}
	return NULL;
}

/* A new one; idle ones make room under the limit, and on the device. */
static GsPoolBlock *
new_block(GsDevicePool *pool, uint64_t nbytes)
{
	const GsDeviceOps *ops = pool->device->ops;
	GsPoolBlock	   *slab = malloc(sizeof(GsPoolBlock));

	if (slab == NULL)
		return NULL;
	if (pool->idle_bytes > pool->all.limit - pool->used - nbytes)
		release_idle_blocks(pool, pool->all.limit - pool->used - nbytes);
	slab->nbytes = nbytes;
	slab->d_memory = ops->allocate(pool->device, nbytes);
	if (slab->d_memory == NULL && pool->idle != NULL)
	{
		release_idle_blocks(pool, 0);
		slab->d_memory = ops->allocate(pool->device, nbytes);
	}
	if (slab->d_memory == NULL)
	{
		free(slab);
		return NULL;
	}
	return slab;
}

/* What others have and were promised stays theirs. */
static uint64_t
left_of(const GsMemoryAccount *account, const GsJobMemory *memory)
{
	uint64_t	taken = account->committed - gs_device_pool_commitment(memory) + memory->used;

	return account->limit - Min(account->limit, taken);
}

uint64_t
gs_device_pool_available(const GsJobMemory *memory)
{
	uint64_t	left = left_of(&memory->pool->all, memory);

	return memory->session == NULL ? left : Min(left, left_of(memory->session, memory));
}

void *
gs_device_pool_allocate(GsJobMemory *memory, size_t nbytes)
{
	GsDevicePool *pool = memory->pool;
	uint64_t	before = gs_device_pool_commitment(memory);
	uint64_t	left = gs_device_pool_available(memory);
	uint64_t	wanted;
	GsPoolBlock	   *slab;

	if (nbytes > left)
		return NULL;
	wanted = gs_device_pool_block_bytes(nbytes);
	if (wanted > left)
		return NULL;
	slab = reuse_idle(pool, wanted);
	if (slab == NULL)
		slab = new_block(pool, wanted);
	if (slab == NULL)
		return NULL;
	slab->next = memory->blocks;
	memory->blocks = slab;
	memory->used += wanted;
	memory->peak = Max(memory->peak, memory->used);
	pool->used += wanted;
	recommit(memory, before);
	return slab->d_memory;
}

/* Makes a job's slab an idle one; link is where the job's list has it. */
static void
release_block(GsJobMemory *memory, GsPoolBlock **link)
{
	GsDevicePool *pool = memory->pool;
	uint64_t	before = gs_device_pool_commitment(memory);
	GsPoolBlock	   *slab = *link;

	*link = slab->next;
	slab->next = pool->idle;
	slab->idle_since = 0;
	pool->idle = slab;
	pool->idle_bytes += slab->nbytes;
	pool->used -= slab->nbytes;
	memory->used -= slab->nbytes;
	recommit(memory, before);
}

void
gs_device_pool_free(GsJobMemory *memory, void *d_memory)
{
	GsPoolBlock	  **link = &memory->blocks;

	while ((*link)->d_memory != d_memory)
		link = &(*link)->next;
	release_block(memory, link);
}

void
gs_device_pool_release_reservation(GsJobMemory *memory)
{
	uint64_t	before = gs_device_pool_commitment(memory);

	memory->admitted_bytes = Min(memory->admitted_bytes, memory->used);
	recommit(memory, before);
}

void
gs_device_pool_free_all(GsJobMemory *memory)
{
	while (memory->blocks != NULL)
		release_block(memory, &memory->blocks);
	gs_device_pool_release_reservation(memory);
	memory->pool->njobs--;
}

bool
gs_device_pool_release_idle(GsDevicePool *pool, uint64_t now_us, uint64_t idle_us)
{
	GsPoolBlock	  **link = &pool->idle;
	int			nreleased = 0;

	while (*link != NULL)
	{
		GsPoolBlock	   *slab = *link;

		if (slab->idle_since == 0)
			slab->idle_since = now_us;
		if (now_us - slab->idle_since >= idle_us)
		{
			if (nreleased++ == MAX_RELEASES)
				return true;
			*link = slab->next;
			pool->idle_bytes -= slab->nbytes;
			free_block(pool, slab);
		}
		else
			link = &slab->next;
	}
	return false;
}

uint64_t
gs_device_pool_limit(const GsDevicePool *pool)
{
	return pool->all.limit;
}

uint64_t
gs_device_pool_used(const GsDevicePool *pool)
{
	return pool->used;
}

uint64_t
gs_device_pool_reserved(const GsDevicePool *pool)
{
	return pool->used + pool->idle_bytes;
}
