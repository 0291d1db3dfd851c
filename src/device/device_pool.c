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
 * The limit applies to the sum of all commitments and of what is lent.  Within its
 * reservation a job can always allocate, as far as the device has the memory; beyond,
 * only what others leave.
 *
 *-------------------------------------------------------------------------
 */
#include "device/device_pool.h"

#include <stdlib.h>

#include "common/basics.h"
#include "common/device_table.h"

/* Blocks released in one turn, because the driver may wait for all streams each time. */
#define MAX_RELEASES	16

#define MIN_BLOCK_BYTES		((uint64_t) 64 << 10)

/* A lender whose loop has been in a call of the driver for so long may hang. */
#define STALLED_US		100000

/* A device whose memory could not be used is asked again after this time. */
#define ASK_AGAIN_US	10000000

#define SIZES_PER_DOUBLING	4

typedef struct GsPoolBlock
{
	struct GsPoolBlock *next;	/* of the job, or of the idle blocks */
	void	   *d_memory;
	uint64_t	nbytes;
	GsDeviceSlot *lender;		/* NULL: of this device */
	uint64_t	idle_since;		/* 0: gs_device_pool_release_idle() has not seen it
								 * idle */
} GsPoolBlock;

GsDevicePool *
gs_device_pool_create(GsDevice *device, uint64_t limit)
{
	GsDevicePool *pool = calloc(1, sizeof(GsDevicePool));
	uint64_t	free_bytes;
	uint64_t	total_bytes;

	if (pool == NULL)
		return NULL;
	pool->device = device;
	pool->limit = limit;
	if (limit == 0 && device->ops->memory(device, &free_bytes, &total_bytes))
		pool->limit = total_bytes / 10 * 9;
	return pool;
}

void
gs_device_pool_join(GsDevicePool *pool, GsDeviceTable *table, uint32_t number)
{
	pool->table = table;
	pool->number = number;
	atomic_store(&table->slots[number].committed, 0);

	/* by a process that was killed */
	gs_device_return_all(table, number);
}

/* Removes the block that *link points to from its list, and releases it. */
static void
free_block(GsDevicePool *pool, GsPoolBlock **link)
{
	GsPoolBlock *block = *link;

	*link = block->next;
	pool->device->ops->release(pool->device, block->d_memory);
	if (block->lender != NULL)
		gs_device_return(block->lender, pool->number, block->nbytes);
	else
		pool->idle_bytes -= block->nbytes;
	free(block);
}

/* Releases idle blocks until at most idle_bytes are left in them. */
static void
release_idle_blocks(GsDevicePool *pool, uint64_t idle_bytes)
{
	while (pool->idle_bytes > idle_bytes)
		free_block(pool, &pool->idle);
}

void
gs_device_pool_destroy(GsDevicePool *pool)
{
	release_idle_blocks(pool, 0);
	while (pool->returned != NULL)
		free_block(pool, &pool->returned);
	free(pool);
}

/* ---------------------------------------------------------------- admission */

uint64_t
gs_device_pool_commitment(const GsJobMemory *memory)
{
	return Max(memory->admitted_bytes, memory->used);
}

uint64_t
gs_device_pool_lent(const GsDevicePool *pool)
{
	return pool->table == NULL ? 0 : gs_device_lent(&pool->table->slots[pool->number]);
}

bool
gs_device_pool_can_lend(const GsDevicePool *pool)
{
	return pool->table != NULL && gs_device_table_count(pool->table) > 1;
}

/* What of a limit is left. */
static uint64_t
left_of(uint64_t limit, uint64_t taken)
{
	return limit - Min(limit, taken);
}

uint64_t
gs_device_pool_uncommitted(const GsDevicePool *pool)
{
	return left_of(pool->limit, pool->committed + gs_device_pool_lent(pool));
}

uint64_t
gs_device_pool_reservation(const GsDevicePool *pool, uint64_t expected_bytes)
{
	return Min(expected_bytes, pool->limit);
}

/*
 * Updates the sum after a change of a job's commitment.  False: together with what is
 * lent, it is more than the limit now.
 */
static bool
update_committed(GsJobMemory *memory, uint64_t before)
{
	GsDevicePool *pool = memory->pool;
	uint64_t	now = gs_device_pool_commitment(memory);

	if (now == before)
		return true;
	pool->committed += now - before;
	return pool->table == NULL ||
		gs_device_commit(&pool->table->slots[pool->number], pool->committed);
}

bool
gs_device_pool_admit(GsDevicePool *pool, uint64_t expected_bytes, GsJobMemory *memory)
{
	uint64_t	admitted_bytes = gs_device_pool_reservation(pool, expected_bytes);

	if (admitted_bytes > gs_device_pool_uncommitted(pool) ||
		(admitted_bytes == pool->limit && expected_bytes > admitted_bytes && pool->njobs > 0))
		return false;
	*memory = (GsJobMemory)
	{
		.pool = pool,.expected_bytes = expected_bytes,.admitted_bytes = admitted_bytes
	};
	if (!update_committed(memory, 0))
	{
		memory->admitted_bytes = 0;
		update_committed(memory, admitted_bytes);
		return false;
	}
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

/* What idle blocks may take beside nbytes more of jobs: the rest is used or has been lent. */
static uint64_t
idle_limit(const GsDevicePool *pool, uint64_t nbytes)
{
	return left_of(pool->limit, pool->used + gs_device_pool_lent(pool) + nbytes);
}

/* Allocates a block, after releasing idle ones if the limit or the device requires it. */
static GsPoolBlock *
new_block(GsDevicePool *pool, uint64_t nbytes)
{
	const GsDeviceOps *ops = pool->device->ops;
	GsPoolBlock *block = malloc(sizeof(GsPoolBlock));

	if (block == NULL)
		return NULL;
	release_idle_blocks(pool, idle_limit(pool, nbytes));
	block->nbytes = nbytes;
	block->lender = NULL;
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

uint64_t
gs_device_pool_available(const GsJobMemory *memory)
{
	uint64_t	reserved = gs_device_pool_commitment(memory) - memory->used;

	return gs_device_pool_uncommitted(memory->pool) + reserved;
}

/* Adds a block, which the sums have, to the list of the job. */
static void *
link_block(GsJobMemory *memory, GsPoolBlock *block)
{
	block->next = memory->blocks;
	memory->blocks = block;
	memory->peak = Max(memory->peak, memory->used + memory->borrowed);
	return block->d_memory;
}

void *
gs_device_pool_allocate(GsJobMemory *memory, size_t nbytes)
{
	GsDevicePool *pool = memory->pool;
	uint64_t	before = gs_device_pool_commitment(memory);
	uint64_t	left = gs_device_pool_available(memory);
	uint64_t	wanted;
	GsPoolBlock *block = NULL;

	if (nbytes > left)
		return NULL;
	wanted = gs_device_pool_block_bytes(nbytes);
	if (wanted > left)
		return NULL;
	memory->used += wanted;
	if (update_committed(memory, before))
	{
		block = reuse_idle(pool, wanted);
		if (block == NULL)
			block = new_block(pool, wanted);
	}
	if (block == NULL)
	{
		uint64_t	tried = gs_device_pool_commitment(memory);

		memory->used -= wanted;
		update_committed(memory, tried);
		return NULL;
	}
	pool->used += wanted;
	return link_block(memory, block);
}

void *
gs_device_pool_allocate_rows(GsJobMemory *memory, size_t nbytes, uint64_t keep_bytes)
{
	uint64_t	available = gs_device_pool_available(memory);
	uint64_t	wanted = gs_device_pool_block_bytes(nbytes);

	return wanted > available || available - wanted < keep_bytes ? NULL :
		gs_device_pool_allocate(memory, nbytes);
}

/* ---------------------------------------------------------- borrowed blocks */

/*
 * The number of a lender for allocate_at(); -1: its memory cannot be used.  Asks the
 * device once if the answer is yes.  It may also be no because memory is short at the
 * moment, so it is asked again later.
 */
static int
open_peer(GsDevicePool *pool, uint32_t lender)
{
	GsPoolPeer *known = &pool->peers[lender];
	GsDeviceIdentity identity = gs_device_slot_identity(&pool->table->slots[lender]);
	GsDeviceSet bit = GS_DEVICE_BIT(lender);
	uint64_t	now = gs_clock_us();
	int			peer;

	if (gs_is_same_device(known->identity, identity))
		return known->number;
	if (now - pool->refused_us > ASK_AGAIN_US)
		pool->refused = 0;
	if ((pool->refused & bit) != 0)
		return -1;
	peer = pool->device->ops->open_peer(pool->device, identity);
	if (peer < 0)
	{
		pool->refused |= bit;
		pool->refused_us = now;
		return -1;
	}
	known->identity = identity;
	known->number = peer;
	return peer;
}

static bool
is_stalled(const GsDeviceSlot *slot)
{
	uint64_t	turn_us = slot->turn_us;
	uint64_t	now = gs_clock_us();

	return turn_us != 0 && now > turn_us && now - turn_us > STALLED_US;
}

/* The device that has the most left, at least nbytes, without those in tried; -1: none. */
static int
find_lender(GsDevicePool *pool, uint64_t nbytes, GsDeviceSet tried)
{
	int			best = -1;
	uint64_t	most = nbytes - 1;

	for (uint32_t i = 0; i < GS_MAX_DEVICES && pool->table != NULL; i++)
	{
		const GsDeviceSlot *slot = &pool->table->slots[i];
		uint64_t	left = gs_device_left(slot);

		if (i != pool->number && (tried & GS_DEVICE_BIT(i)) == 0 &&
			slot->state == GS_DEVICE_RUNNING &&
			slot->kind == pool->device->kind && slot->nwaiting == 0 && left > most &&
			!is_stalled(slot))
		{
			best = (int) i;
			most = left;
		}
	}
	return best;
}

/* NULL: the lender has no memory after all, or none that this device can use. */
static GsPoolBlock *
borrow_from(GsDevicePool *pool, uint32_t lender, uint64_t nbytes)
{
	GsDeviceSlot *slot = &pool->table->slots[lender];
	int			peer = open_peer(pool, lender);
	GsPoolBlock *block = peer < 0 ? NULL : malloc(sizeof(GsPoolBlock));

	if (block == NULL)
		return NULL;
	block->nbytes = nbytes;
	block->lender = slot;
	if (gs_device_borrow(slot, pool->number, nbytes))
	{
		block->d_memory = pool->device->ops->allocate_at(pool->device, peer, nbytes);
		if (block->d_memory != NULL)
			return block;
		gs_device_return(slot, pool->number, nbytes);
	}
	free(block);
	return NULL;
}

void *
gs_device_pool_borrow_rows(GsJobMemory *memory, size_t nbytes, uint64_t keep_bytes)
{
	uint64_t	wanted = gs_device_pool_block_bytes(nbytes);
	GsDeviceSet tried = 0;
	int			lender;

	if (gs_device_pool_available(memory) < keep_bytes)
		return NULL;
	while ((lender = find_lender(memory->pool, wanted, tried)) >= 0)
	{
		GsPoolBlock *block = borrow_from(memory->pool, (uint32_t) lender, wanted);

		if (block != NULL)
		{
			memory->borrowed += wanted;
			memory->pool->borrowed += wanted;
			return link_block(memory, block);
		}
		tried |= GS_DEVICE_BIT(lender);
	}
	return NULL;
}

bool
gs_device_pool_is_wanted(const GsJobMemory *memory)
{
	for (const GsPoolBlock *block = memory->blocks; block != NULL; block = block->next)
		if (block->lender != NULL && block->lender->nwaiting > 0)
			return true;
	return false;
}

/* ------------------------------------------------------------------ release */

/* Moves a block, which *link points to, from the list of its job to idle or returned ones. */
static void
release_block(GsJobMemory *memory, GsPoolBlock **link)
{
	GsDevicePool *pool = memory->pool;
	uint64_t	before = gs_device_pool_commitment(memory);
	GsPoolBlock *block = *link;

	*link = block->next;
	if (block->lender != NULL)
	{
		block->next = pool->returned;
		pool->returned = block;
		memory->borrowed -= block->nbytes;
		pool->borrowed -= block->nbytes;
		return;
	}
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
gs_device_pool_owes(const GsDevicePool *pool)
{
	return pool->returned != NULL || pool->idle_bytes > idle_limit(pool, 0);
}

bool
gs_device_pool_release_idle(GsDevicePool *pool, uint64_t now_us, uint64_t idle_us)
{
	uint64_t	limit = idle_limit(pool, 0);
	GsPoolBlock **link = &pool->idle;
	int			nreleased = 0;

	while (pool->returned != NULL)
	{
		if (nreleased++ == MAX_RELEASES)
			return true;
		free_block(pool, &pool->returned);
	}
	while (*link != NULL)
	{
		GsPoolBlock *block = *link;

		if (block->idle_since == 0)
			block->idle_since = now_us;
		if (pool->idle_bytes > limit || now_us - block->idle_since >= idle_us)
		{
			if (nreleased++ == MAX_RELEASES)
				return true;
			free_block(pool, link);
		}
		else
			link = &block->next;
	}
	return false;
}
