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
#include "gpusortd/device_pool.h"

#include <stdlib.h>

/* Slabs given back in one go: the driver may wait for all streams each time. */
#define MAX_RELEASES	16

#define MIN_SLAB_BYTES		((uint64_t) 64 << 10)
#define SIZES_PER_DOUBLING	4

#define Min(a, b)		((a) < (b) ? (a) : (b))
#define Max(a, b)		((a) > (b) ? (a) : (b))

typedef struct GsSlab GsSlab;

struct GsSlab
{
	GsSlab	   *next;			/* of the job's, or of the idle ones */
	void	   *d_memory;
	uint64_t	nbytes;
	uint64_t	idle_since;		/* 0: release_idle() has not seen it idle */
};

struct GsSlabPool
{
	GsDevice   *device;
	GsMemoryAccount all;		/* of all jobs */
	uint64_t	used;			/* sum of what they have */
	uint64_t	idle_bytes;
	uint32_t	njobs;			/* admitted */
	GsSlab	   *idle;			/* latest first */
};

GsSlabPool *
gs_slab_pool_create(GsDevice *device, uint64_t limit)
{
	GsSlabPool *pool = calloc(1, sizeof(GsSlabPool));
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
free_slab(GsSlabPool *pool, GsSlab *slab)
{
	pool->device->ops->release(pool->device, slab->d_memory);
	free(slab);
}

/* Gives idle slabs back until no more than so many bytes are idle. */
static void
trim(GsSlabPool *pool, uint64_t idle_bytes)
{
	while (pool->idle_bytes > idle_bytes)
	{
		GsSlab	   *slab = pool->idle;

		pool->idle = slab->next;
		pool->idle_bytes -= slab->nbytes;
		free_slab(pool, slab);
	}
}

void
gs_slab_pool_destroy(GsSlabPool *pool)
{
	trim(pool, 0);
	free(pool);
}

/* ---------------------------------------------------------------- admission */

uint64_t
gs_slab_commitment(const GsJobMemory *memory)
{
	return Max(memory->promised, memory->used);
}

uint64_t
gs_slab_committed(const GsSlabPool *pool)
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
gs_slab_promise(const GsSlabPool *pool, const GsMemoryAccount *session, uint64_t expected_bytes)
{
	uint64_t	promise = Min(expected_bytes, pool->all.limit);

	return session == NULL ? promise : Min(promise, uncommitted(session));
}

/* A job's memory is not what it was: the sums follow. */
static void
recommit(GsJobMemory *memory, uint64_t before)
{
	uint64_t	now = gs_slab_commitment(memory);

	memory->pool->all.committed += now - before;
	if (memory->session != NULL)
		memory->session->committed += now - before;
}

bool
gs_slab_admit(GsSlabPool *pool, GsMemoryAccount *session, uint64_t expected_bytes,
			  GsJobMemory *memory)
{
	uint64_t	promised = gs_slab_promise(pool, session, expected_bytes);

	if (promised > uncommitted(&pool->all) ||
		(promised == pool->all.limit && expected_bytes > promised && pool->njobs > 0))
		return false;
	*memory = (GsJobMemory)
	{
		.pool = pool,.session = session,.promised = promised
	};
	recommit(memory, 0);
	pool->njobs++;
	return true;
}

/* -------------------------------------------------------------------- slabs */

uint64_t
gs_slab_bytes(uint64_t nbytes)
{
	uint64_t	step = MIN_SLAB_BYTES;

	while (step * 2 * SIZES_PER_DOUBLING <= nbytes)
		step *= 2;
	return (Max(nbytes, 1) + step - 1) / step * step;
}

/* An idle slab of just that size, out of its list; or NULL. */
static GsSlab *
take_idle(GsSlabPool *pool, uint64_t nbytes)
{
	for (GsSlab **link = &pool->idle; *link != NULL; link = &(*link)->next)
	{
		GsSlab	   *slab = *link;

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
static GsSlab *
new_slab(GsSlabPool *pool, uint64_t nbytes)
{
	const GsDeviceOps *ops = pool->device->ops;
	GsSlab	   *slab = malloc(sizeof(GsSlab));

	if (slab == NULL)
		return NULL;
	if (pool->idle_bytes > pool->all.limit - pool->used - nbytes)
		trim(pool, pool->all.limit - pool->used - nbytes);
	slab->nbytes = nbytes;
	slab->d_memory = ops->allocate(pool->device, nbytes);
	if (slab->d_memory == NULL && pool->idle != NULL)
	{
		trim(pool, 0);
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
	uint64_t	taken = account->committed - gs_slab_commitment(memory) + memory->used;

	return account->limit - Min(account->limit, taken);
}

uint64_t
gs_slab_left(const GsJobMemory *memory)
{
	uint64_t	left = left_of(&memory->pool->all, memory);

	return memory->session == NULL ? left : Min(left, left_of(memory->session, memory));
}

void *
gs_slab_take(GsJobMemory *memory, size_t nbytes)
{
	GsSlabPool *pool = memory->pool;
	uint64_t	before = gs_slab_commitment(memory);
	uint64_t	left = gs_slab_left(memory);
	uint64_t	wanted;
	GsSlab	   *slab;

	if (nbytes > left)
		return NULL;
	wanted = gs_slab_bytes(nbytes);
	if (wanted > left)
		return NULL;
	slab = take_idle(pool, wanted);
	if (slab == NULL)
		slab = new_slab(pool, wanted);
	if (slab == NULL)
		return NULL;
	slab->next = memory->slabs;
	memory->slabs = slab;
	memory->used += wanted;
	memory->peak = Max(memory->peak, memory->used);
	pool->used += wanted;
	recommit(memory, before);
	return slab->d_memory;
}

/* Makes a job's slab an idle one; link is where the job's list has it. */
static void
give(GsJobMemory *memory, GsSlab **link)
{
	GsSlabPool *pool = memory->pool;
	uint64_t	before = gs_slab_commitment(memory);
	GsSlab	   *slab = *link;

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
gs_slab_give(GsJobMemory *memory, void *d_memory)
{
	GsSlab	  **link = &memory->slabs;

	while ((*link)->d_memory != d_memory)
		link = &(*link)->next;
	give(memory, link);
}

void
gs_slab_settle(GsJobMemory *memory)
{
	uint64_t	before = gs_slab_commitment(memory);

	memory->promised = Min(memory->promised, memory->used);
	recommit(memory, before);
}

void
gs_slab_give_all(GsJobMemory *memory)
{
	while (memory->slabs != NULL)
		give(memory, &memory->slabs);
	gs_slab_settle(memory);
	memory->pool->njobs--;
}

bool
gs_slab_release_idle(GsSlabPool *pool, uint64_t now_us, uint64_t idle_us)
{
	GsSlab	  **link = &pool->idle;
	int			nreleased = 0;

	while (*link != NULL)
	{
		GsSlab	   *slab = *link;

		if (slab->idle_since == 0)
			slab->idle_since = now_us;
		if (now_us - slab->idle_since >= idle_us)
		{
			if (nreleased++ == MAX_RELEASES)
				return true;
			*link = slab->next;
			pool->idle_bytes -= slab->nbytes;
			free_slab(pool, slab);
		}
		else
			link = &slab->next;
	}
	return false;
}

uint64_t
gs_slab_limit(const GsSlabPool *pool)
{
	return pool->all.limit;
}

uint64_t
gs_slab_used(const GsSlabPool *pool)
{
	return pool->used;
}

uint64_t
gs_slab_held(const GsSlabPool *pool)
{
	return pool->used + pool->idle_bytes;
}
