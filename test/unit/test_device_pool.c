/*-------------------------------------------------------------------------
 *
 * test_device_pool.c
 *	  Slabs: who is let in, what can be taken, and when the device has its
 *	  memory back.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "device/device_pool.h"
#include "unit_client.h"
#include "unit_cmocka.h"
#include "unit_random.h"

#define MB	((uint64_t) 1 << 20)

static uint64_t
free_bytes(GsDevice *device)
{
	uint64_t	nfree;
	uint64_t	total;

	CHECK(device->ops->memory(device, &nfree, &total));
	return nfree;
}

/* The end of every test: all memory is where it was. */
static void
end(GsDevice *device, GsDevicePool *pool, uint64_t nbytes)
{
	assert_int_equal(pool->used, 0);
	gs_device_pool_destroy(pool);
	assert_int_equal(free_bytes(device), nbytes);
	device->ops->close(device);
}

static void
test_limit(void **unused)
{
	GsDevice   *device = unit_open_device(100 * MB);
	GsDevicePool *pool = gs_device_pool_create(device, 0);

	assert_int_equal(pool->limit, 90 * MB);
	gs_device_pool_destroy(pool);
	pool = gs_device_pool_create(device, 7 * MB);
	assert_int_equal(pool->limit, 7 * MB);
	end(device, pool, 100 * MB);
}

static void
test_admission(void **unused)
{
	GsDevice   *device = unit_open_device(100 * MB);
	GsDevicePool *pool = gs_device_pool_create(device, 10 * MB);
	GsJobMemory a = {0};
	GsJobMemory b = {0};
	GsJobMemory c = {0};

	assert_true(gs_device_pool_admit(pool, 6 * MB, &a));
	assert_false(gs_device_pool_admit(pool, 5 * MB, &b));
	assert_true(gs_device_pool_admit(pool, 4 * MB, &b));
	assert_false(gs_device_pool_admit(pool, 1, &c));
	assert_true(gs_device_pool_admit(pool, 0, &c));
	assert_false(gs_device_pool_admit(pool, 11 * MB, &a));
	gs_device_pool_free_all(&a);
	assert_true(gs_device_pool_admit(pool, 6 * MB, &a));
	gs_device_pool_free_all(&a);
	gs_device_pool_free_all(&b);

	/* c is there, though it was promised nothing */
	assert_false(gs_device_pool_admit(pool, 11 * MB, &a));
	gs_device_pool_free_all(&c);
	assert_true(gs_device_pool_admit(pool, 11 * MB, &a));
	assert_false(gs_device_pool_admit(pool, 1, &b));
	gs_device_pool_free_all(&a);
	assert_true(gs_device_pool_admit(pool, UINT64_MAX, &a));
	gs_device_pool_free_all(&a);
	end(device, pool, 100 * MB);
}

static void
test_promises_are_kept(void **unused)
{
	GsDevice   *device = unit_open_device(100 * MB);
	GsDevicePool *pool = gs_device_pool_create(device, 10 * MB);
	GsJobMemory a = {0};
	GsJobMemory b = {0};

	assert_true(gs_device_pool_admit(pool, 6 * MB, &a));
	assert_true(gs_device_pool_admit(pool, 1 * MB, &b));
	assert_int_equal(gs_device_pool_available(&a), 9 * MB);
	assert_int_equal(gs_device_pool_available(&b), 4 * MB);

	/* b outgrows its promise, up to that of a */
	assert_non_null(gs_device_pool_allocate(&b, 4 * MB));
	assert_null(gs_device_pool_allocate(&b, 1));
	assert_int_equal(gs_device_pool_available(&b), 0);
	assert_int_equal(gs_device_pool_available(&a), 6 * MB);
	assert_non_null(gs_device_pool_allocate(&a, 5 * MB));
	assert_non_null(gs_device_pool_allocate(&a, 1 * MB));
	assert_null(gs_device_pool_allocate(&a, 1));
	assert_int_equal(pool->used, 10 * MB);
	assert_int_equal(a.used, 6 * MB);
	assert_int_equal(b.peak, 4 * MB);

	/* and what b gives back, a may have */
	gs_device_pool_free_all(&b);
	assert_int_equal(gs_device_pool_available(&a), 4 * MB);
	assert_non_null(gs_device_pool_allocate(&a, 4 * MB));
	assert_int_equal(a.peak, 10 * MB);
	gs_device_pool_free_all(&a);
	assert_null(a.blocks);
	end(device, pool, 100 * MB);
}

static void
test_sizes(void **unused)
{
	GsDevice   *device = unit_open_device((uint64_t) 1 << 40);
	GsDevicePool *pool = gs_device_pool_create(device, (uint64_t) 1 << 40);
	GsJobMemory memory = {0};

	assert_true(gs_device_pool_admit(pool, 0, &memory));
	for (size_t nbytes = 0; nbytes < 3000000; nbytes += nbytes / 9 + 1)
	{
		uint64_t	before = memory.used;
		char	   *d_memory = gs_device_pool_allocate(&memory, nbytes);
		uint64_t	taken = memory.used - before;

		assert_non_null(d_memory);
		assert_int_equal((uintptr_t) d_memory % 256, 0);
		memset(d_memory, 1, nbytes);
		assert_true(taken >= nbytes);
		assert_true(taken - nbytes <= (64 << 10) || taken - nbytes <= taken / 5);
		gs_device_pool_free(&memory, d_memory);
		assert_int_equal(memory.used, before);

		/* whatever of this size comes next gets the same one */
		assert_ptr_equal(gs_device_pool_allocate(&memory, (size_t) taken), d_memory);
		assert_int_equal(memory.used - before, taken);
	}
	gs_device_pool_free_all(&memory);
	end(device, pool, (uint64_t) 1 << 40);
}

static void
test_idle_slabs(void **unused)
{
	GsDevice   *device = unit_open_device(100 * MB);
	GsDevicePool *pool = gs_device_pool_create(device, 50 * MB);
	GsJobMemory memory = {0};
	void	   *d_first;

	assert_true(gs_device_pool_admit(pool, 0, &memory));
	d_first = gs_device_pool_allocate(&memory, 8 * MB);
	assert_non_null(gs_device_pool_allocate(&memory, 4 * MB));
	gs_device_pool_free(&memory, d_first);
	assert_int_equal(pool->used, 4 * MB);
	assert_int_equal(gs_device_pool_reserved(pool), 12 * MB);
	assert_int_equal(free_bytes(device), 88 * MB);

	/* idle since it is first seen so, and for so long */
	gs_device_pool_release_idle(pool, 1000, 500);
	gs_device_pool_release_idle(pool, 1499, 500);
	assert_int_equal(gs_device_pool_reserved(pool), 12 * MB);
	gs_device_pool_release_idle(pool, 1500, 500);
	assert_int_equal(gs_device_pool_reserved(pool), 4 * MB);
	assert_int_equal(free_bytes(device), 96 * MB);

	/* one that was wanted meanwhile starts anew */
	d_first = gs_device_pool_allocate(&memory, 8 * MB);
	gs_device_pool_free(&memory, d_first);
	gs_device_pool_release_idle(pool, 2000, 500);
	assert_ptr_equal(gs_device_pool_allocate(&memory, 8 * MB), d_first);
	gs_device_pool_free(&memory, d_first);
	gs_device_pool_release_idle(pool, 2600, 500);
	assert_int_equal(gs_device_pool_reserved(pool), 12 * MB);
	gs_device_pool_release_idle(pool, 3100, 500);
	assert_int_equal(gs_device_pool_reserved(pool), 4 * MB);
	gs_device_pool_free_all(&memory);
	end(device, pool, 100 * MB);
}

/* Many are given back some at a time: the driver may take long over each. */
static void
test_release_many(void **unused)
{
	GsDevice   *device = unit_open_device(100 * MB);
	GsDevicePool *pool = gs_device_pool_create(device, 100 * MB);
	GsJobMemory memory = {0};
	uint64_t	held = 40 * MB;
	int			ncalls = 1;

	assert_true(gs_device_pool_admit(pool, 0, &memory));
	for (int i = 0; i < 40; i++)
		assert_non_null(gs_device_pool_allocate(&memory, MB));
	gs_device_pool_free_all(&memory);
	assert_int_equal(gs_device_pool_reserved(pool), held);
	while (gs_device_pool_release_idle(pool, 1000, 0))
	{
		assert_true(gs_device_pool_reserved(pool) < held);
		assert_true(gs_device_pool_reserved(pool) > 0);
		held = gs_device_pool_reserved(pool);
		ncalls++;
	}
	assert_int_equal(gs_device_pool_reserved(pool), 0);
	assert_true(ncalls >= 2 && ncalls <= 20);
	end(device, pool, 100 * MB);
}

/* Idle slabs are in nobody's way: neither under the limit nor on the device. */
static void
test_idle_slabs_make_room(void **unused)
{
	GsDevice   *device = unit_open_device(40 * MB);
	GsDevicePool *pool = gs_device_pool_create(device, 30 * MB);
	GsJobMemory memory = {0};

	assert_true(gs_device_pool_admit(pool, 0, &memory));
	for (int i = 0; i < 3; i++)
		assert_non_null(gs_device_pool_allocate(&memory, 10 * MB));
	assert_null(gs_device_pool_allocate(&memory, 1));
	gs_device_pool_free_all(&memory);
	assert_int_equal(gs_device_pool_reserved(pool), 30 * MB);
	assert_true(gs_device_pool_admit(pool, 0, &memory));
	assert_non_null(gs_device_pool_allocate(&memory, 16 * MB));
	assert_true(gs_device_pool_reserved(pool) <= 30 * MB);
	gs_device_pool_free_all(&memory);
	gs_device_pool_release_idle(pool, 1, 0);
	end(device, pool, 40 * MB);

	/* a device that has less than the limit */
	device = unit_open_device(20 * MB);
	pool = gs_device_pool_create(device, 100 * MB);
	assert_true(gs_device_pool_admit(pool, 0, &memory));
	assert_non_null(gs_device_pool_allocate(&memory, 10 * MB));
	assert_null(gs_device_pool_allocate(&memory, 12 * MB));
	gs_device_pool_free_all(&memory);
	assert_true(gs_device_pool_admit(pool, 0, &memory));
	assert_non_null(gs_device_pool_allocate(&memory, 12 * MB));
	assert_int_equal(gs_device_pool_reserved(pool), 12 * MB);
	gs_device_pool_free_all(&memory);
	end(device, pool, 20 * MB);
}

/* Any calls in any order: the sums stay right, and no two slabs overlap. */
static void
test_random(void **unused)
{
	enum
	{
		NJOBS = 5,
		NPIECES = 20
	};
	const uint64_t limit = 20 * MB;
	GsDevice   *device = unit_open_device(30 * MB);
	GsDevicePool *pool = gs_device_pool_create(device, limit);
	GsJobMemory memories[NJOBS] = {{0}};
	struct
	{
		unsigned char *d_memory;
		size_t		nbytes;
	}			pieces[NJOBS][NPIECES] = {{{0}}};
	Dice		dice = dice_of_seed(1);

	for (int i = 0; i < 20000; i++)
	{
		int			job = (int) dice_below(&dice, NJOBS);
		int			piece = (int) dice_below(&dice, NPIECES);
		GsJobMemory *memory = &memories[job];
		uint64_t	used = 0;

		unit_case("step %d", i);
		if (memory->pool == NULL)
			gs_device_pool_admit(pool, dice_below(&dice, 12 * MB), memory);
		else if (dice_one_in(&dice, 60))
		{
			gs_device_pool_free_all(memory);
			memset(memory, 0, sizeof(*memory));
			memset(pieces[job], 0, sizeof(pieces[job]));
		}
		else if (pieces[job][piece].d_memory == NULL)
		{
			size_t		nbytes = dice_any_width(&dice, 22);
			uint64_t	left = gs_device_pool_available(memory);
			unsigned char *d_memory = gs_device_pool_allocate(memory, nbytes);

			CHECK(d_memory == NULL || nbytes <= left);
			CHECK(d_memory != NULL || left < 2 * (uint64_t) nbytes + (64 << 10));
			if (d_memory != NULL)
				memset(d_memory, job * NPIECES + piece, nbytes);
			pieces[job][piece].d_memory = d_memory;
			pieces[job][piece].nbytes = nbytes;
		}
		else
		{
			for (size_t at = 0; at < pieces[job][piece].nbytes; at += 4099)
				CHECK(pieces[job][piece].d_memory[at] == job * NPIECES + piece);
			gs_device_pool_free(memory, pieces[job][piece].d_memory);
			pieces[job][piece].d_memory = NULL;
		}
		for (int k = 0; k < NJOBS; k++)
		{
			used += memories[k].used;
			CHECK(memories[k].peak >= memories[k].used);
		}
		CHECK(pool->used == used && used <= limit);
		CHECK(gs_device_pool_reserved(pool) <= limit);
		CHECK(free_bytes(device) == 30 * MB - gs_device_pool_reserved(pool));
	}
	unit_case("%s", "");
	for (int job = 0; job < NJOBS; job++)
	{
		if (memories[job].pool != NULL)
			gs_device_pool_free_all(&memories[job]);
	}
	end(device, pool, 30 * MB);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_admission),
		cmocka_unit_test(test_promises_are_kept),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_idle_slabs),
		cmocka_unit_test(test_release_many),
		cmocka_unit_test(test_idle_slabs_make_room),
		cmocka_unit_test(test_random)
	};

	return cmocka_run_group_tests_name("slab", tests, NULL, NULL);
}
