/*-------------------------------------------------------------------------
 *
 * device_pool.c
 *	  Device memory in blocks, shared by all jobs.
 *
 * There are four block sizes for each power of two.  So at most a fifth of a
 * block (or 64 kB) is wasted, and a freed block is likely to fit the next job.
 * Blocks are never split: if no idle block has the right size, a new one is
 * allocated, after releasing idle blocks of other sizes if necessary.
 *
 * The limit applies to the sum of all commitments.  Within its reservation a job
 * can always allocate, as far as the device has the memory; beyond, only what
 * others leave.  Sessions have such sums, too.
 *
 *-------------------------------------------------------------------------
 */
#include "device/device_pool.h"

#include <stdlib.h>

#include "common/min_max.h"

/* Blocks released in one call, because the driver may wait for all streams each time. */
#define MAX_RELEASES	16

#define MIN_BLOCK_BYTES		((uint64_t) 64 << 10)
#define SIZES_PER_DOUBLING	4

typedef struct GsPoolBlock GsPoolBlock;

struct GsPoolBlock
{
	GsPoolBlock *next;			/* of the job, or of the idle blocks */
	void	   *d_memory;
	uint64_t	nbytes;
	uint64_t	idle_since;		/* 0: release_idle() has not seen it idle */
};

struct GsDevicePool
{
	GsDevice   *device;
	GsMemoryAccount all;		/* of all jobs */
	uint64_t	used;			/* in blocks of jobs */
	uint64_t	idle_bytes;
	uint32_t	njobs;			/* admitted */
	GsPoolBlock *idle;			/* latest first */
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

/* Releases a block, which is in no list any more. */
static void
free_block(GsDevicePool *pool, GsPoolBlock *block)
{
	pool->device->ops->release(pool->device, block->d_memory);
	free(block);
}

/* Releases idle blocks until at most idle_bytes are left in them. */
static void
release_idle_blocks(GsDevicePool *pool, uint64_t idle_bytes)
{
	while (pool->idle_bytes > idle_bytes)
	{
		GsPoolBlock *block = pool->idle;

		pool->idle = block->next;
		pool->idle_bytes -= block->nbytes;
		free_block(pool, block);
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

/* What an account has left for new jobs. */
static uint64_t
uncommitted(const GsMemoryAccount *account)
{
	return account->limit - Min(account->limit, account->committed);
}

uint64_t
gs_device_pool_reservation(const GsDevicePool *pool, const GsMemoryAccount *session, uint64_t expected_bytes)
{
	uint64_t	reservation = Min(expected_bytes, pool->all.limit);

	return session == NULL ? reservation : Min(reservation, uncommitted(session));
}

/* Updates the sums after a change of a job's commitment. */
static void
update_committed(GsJobMemory *memory, uint64_t before)
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
	uint64_t	admitted_bytes = gs_device_pool_reservation(pool, session, expected_bytes);

	if (admitted_bytes > uncommitted(&pool->all) ||
		(admitted_bytes == pool->all.limit && expected_bytes > admitted_bytes && pool->njobs > 0))
		return false;
	*memory = (GsJobMemory)
	{
		.pool = pool,.session = session,.admitted_bytes = admitted_bytes
	};
	update_committed(memory, 0);
	pool->njobs++;
	return true;
}

/* ------------------------------------------------------------------- blocks */

uint64_t
gs_device_pool_block_bytes(uint64_t nbytes)
{
	uint64_t	step = MIN_BLOCK_BYTES;

	while (step * 2 * SIZES_PER_DOUBLING <= nbytes)
		step *= 2;
	return (Max(nbytes, 1) + step - 1) / step * step;
}

/* Removes an idle block of exactly this size from the list; NULL: there is none. */
static GsPoolBlock *
reuse_idle(GsDevicePool *pool, uint64_t nbytes)
{
	for (GsPoolBlock **link = &pool->idle; *link != NULL; link = &(*link)->next)
	{
		GsPoolBlock *block = *link;

		if (block->nbytes == nbytes)
		{
			*link = block->next;
			pool->idle_bytes -= nbytes;
			return block;
		}
	}
	return NULL;
}

/* Allocates a block, after releasing idle ones if the limit or the device requires it. */
static GsPoolBlock *
new_block(GsDevicePool *pool, uint64_t nbytes)
{
	const GsDeviceOps *ops = pool->device->ops;
	GsPoolBlock *block = malloc(sizeof(GsPoolBlock));

	if (block == NULL)
		return NULL;
	if (pool->idle_bytes > pool->all.limit - pool->used - nbytes)
		release_idle_blocks(pool, pool->all.limit - pool->used - nbytes);
	block->nbytes = nbytes;
	block->d_memory = ops->allocate(pool->device, nbytes);
	if (block->d_memory == NULL && pool->idle != NULL)
	{
		release_idle_blocks(pool, 0);
		block->d_memory = ops->allocate(pool->device, nbytes);
	}
	if (block->d_memory == NULL)
	{
		free(block);
		return NULL;
	}
	return block;
}

/* What a job can still allocate, without the commitments of others. */
static uint64_t
left_for(const GsMemoryAccount *account, const GsJobMemory *memory)
{
	uint64_t	taken = account->committed - gs_device_pool_commitment(memory) + memory->used;

	return account->limit - Min(account->limit, taken);
}

uint64_t
gs_device_pool_available(const GsJobMemory *memory)
{
	uint64_t	left = left_for(&memory->pool->all, memory);

	return memory->session == NULL ? left : Min(left, left_for(memory->session, memory));
}

void *
gs_device_pool_allocate(GsJobMemory *memory, size_t nbytes)
{
	GsDevicePool *pool = memory->pool;
	uint64_t	before = gs_device_pool_commitment(memory);
	uint64_t	left = gs_device_pool_available(memory);
	uint64_t	wanted;
	GsPoolBlock *block;

	if (nbytes > left)
		return NULL;
	wanted = gs_device_pool_block_bytes(nbytes);
	if (wanted > left)
		return NULL;
	block = reuse_idle(pool, wanted);
	if (block == NULL)
		block = new_block(pool, wanted);
	if (block == NULL)
		return NULL;
	block->next = memory->blocks;
	memory->blocks = block;
	memory->used += wanted;
	memory->peak = Max(memory->peak, memory->used);
	pool->used += wanted;
	update_committed(memory, before);
	return block->d_memory;
}

/* Moves a block, which *link points to, from the list of its job to that of idle ones. */
static void
release_block(GsJobMemory *memory, GsPoolBlock **link)
{
	GsDevicePool *pool = memory->pool;
	uint64_t	before = gs_device_pool_commitment(memory);
	GsPoolBlock *block = *link;

	*link = block->next;
	block->next = pool->idle;
	block->idle_since = 0;
	pool->idle = block;
	pool->idle_bytes += block->nbytes;
	pool->used -= block->nbytes;
	memory->used -= block->nbytes;
	update_committed(memory, before);
}

void
gs_device_pool_free(GsJobMemory *memory, void *d_memory)
{
	GsPoolBlock **link = &memory->blocks;

	while ((*link)->d_memory != d_memory)
		link = &(*link)->next;
	release_block(memory, link);
}

void
gs_device_pool_release_reservation(GsJobMemory *memory)
{
	uint64_t	before = gs_device_pool_commitment(memory);

	memory->admitted_bytes = Min(memory->admitted_bytes, memory->used);
	update_committed(memory, before);
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
	GsPoolBlock **link = &pool->idle;
	int			nreleased = 0;

	while (*link != NULL)
	{
		GsPoolBlock *block = *link;

		if (block->idle_since == 0)
			block->idle_since = now_us;
		if (now_us - block->idle_since >= idle_us)
		{
			if (nreleased++ == MAX_RELEASES)
				return true;
			*link = block->next;
			pool->idle_bytes -= block->nbytes;
			free_block(pool, block);
		}
		else
			link = &block->next;
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
