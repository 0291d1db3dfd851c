/*-------------------------------------------------------------------------
 *
 * test_device_host.c
 *	  The host device, the reference of all others: streams, memory, and each
 *	  step by itself.
 *
 * test_job.c has the steps work together; here are the corners that a sound
 * job does not get to, and what hostile records may not do.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "doubles/daemon/device_host_steps.h"
#include "common/key_pack.h"
#include "unit_client.h"
#include "unit_cmocka.h"
#include "unit_random.h"

#define MB	((uint64_t) 1 << 20)

/* ------------------------------------------------------- streams and memory */

static void
test_memory(void **unused)
{
	GsDevice   *device = unit_open_device(10 * MB);
	uint64_t	nfree;
	uint64_t	total;
	void	   *d_a = device->ops->allocate(device, 6 * MB);
	void	   *d_b = device->ops->allocate(device, 4 * MB);
	char	   *host;

	assert_non_null(d_a);
	assert_non_null(d_b);
	assert_int_equal((uintptr_t) d_a % 256, 0);
	assert_null(device->ops->allocate(device, 1));
	assert_null(device->ops->allocate(device, SIZE_MAX));
	device->ops->release(device, d_a);
	assert_true(device->ops->memory(device, &nfree, &total));
	assert_int_equal(nfree, 6 * MB);
	assert_int_equal(total, 10 * MB);
	device->ops->release(device, d_b);

	/* host memory is zeroed, and not counted */
	host = device->ops->allocate_host(device, 20 * MB);
	assert_non_null(host);
	for (size_t i = 0; i < 20 * MB; i += 1000)
		assert_int_equal(host[i], 0);
	assert_true(device->ops->pin(device, host, 20 * MB));
	device->ops->unpin(device, host);
	device->ops->release_host(device, host);
	device->ops->close(device);

	device = unit_open_device(0);
	assert_true(device->ops->memory(device, &nfree, &total));
	assert_true(total >= 64 * MB && nfree == total);
	device->ops->close(device);
}

/* Nothing is done before its mark is looked for, and no more than up to it. */
static void
test_streams(void **unused)
{
	GsDevice   *device = unit_open_device(MB);
	const GsDeviceOps *ops = device->ops;
	GsStream   *a = ops->stream_open(device);
	GsStream   *b = ops->stream_open(device);
	char	   *d_memory = ops->allocate(device, 16);
	char		from[16] = "first";
	char		to[16] = "nothing";
	uint64_t	fence = 99;

	assert_true(ops->passed_fence(a, &fence));
	assert_int_equal(fence, 0);
	assert_true(ops->copy_in(a, d_memory, from, sizeof(from)));
	assert_true(ops->record_fence(a, &fence));
	assert_int_equal(fence, 1);
	assert_true(ops->copy_out(a, to, d_memory, sizeof(to)));
	assert_true(ops->record_fence(a, &fence));
	assert_int_equal(fence, 2);
	strcpy(from, "second");		/* nobody was told that it was read */

	assert_true(ops->record_fence(b, &fence));
	assert_int_equal(fence, 1);
	assert_true(ops->passed_fence(b, &fence));
	assert_int_equal(fence, 1);

	assert_true(ops->passed_fence(a, &fence));
	assert_int_equal(fence, 1);
	assert_string_equal(d_memory, "second");
	assert_string_equal(to, "nothing");
	assert_true(ops->passed_fence(a, &fence));
	assert_int_equal(fence, 2);
	assert_string_equal(to, "second");
	assert_true(ops->passed_fence(a, &fence));
	assert_int_equal(fence, 2);

	/* operations after the last fence are done at the close */
	strcpy(from, "third");
	assert_true(ops->copy_in(a, d_memory, from, sizeof(from)));
	assert_true(ops->passed_fence(a, &fence));
	assert_int_equal(fence, 2);
	assert_string_equal(d_memory, "second");
	ops->stream_close(a);
	assert_string_equal(d_memory, "third");
	ops->stream_close(b);
	ops->release(device, d_memory);
	ops->close(device);
}

/* Temporary storage too small, or of something else, breaks the device. */
static void
test_temporary_storage(void **unused)
{
	uint64_t	words[2][4] = {{3, 2, 1, 0}};
	uint64_t   *const d_words[2] = {words[0], words[1]};
	uint8_t		same[4] = {0, 1, 0, 0};
	uint32_t	lists[3][4];
	GsTies		ties = {2, lists[0], lists[1], lists[2]};
	uint32_t	selector;
	uint64_t	temp[16] = {0};
	GsTieCount	count;
	uint64_t	fence;

	for (int mistake = 0; mistake < 5; mistake++)
	{
		GsDevice   *device = unit_open_device(MB);
		const GsDeviceOps *ops = device->ops;
		GsStream   *stream = ops->stream_open(device);
		bool		fine;

		if (mistake == 0)
			fine = ops->sort_words(stream, GS_ALGORITHM_RADIX, 4, 0, 2, d_words, &selector,
								   false, temp, 0);
		else if (mistake == 1)
			fine = ops->sort_words(stream, GS_ALGORITHM_RADIX, 4, 0, 2, d_words, &selector,
								   true, temp, sizeof(temp));
		else if (mistake == 2)
			fine = ops->sort_ties(stream, GS_ALGORITHM_RADIX, &ties, 8, d_words, temp,
								  ops->temp_bytes(device, GS_STEP_SORT_TIES,
												  GS_ALGORITHM_RADIX, 2) - 1);
		else
		{
			/* counted other flags, or for a list of another length */
			ties.nties = mistake == 3 ? 2 : 3;
			fine = ops->count_ties(stream, mistake == 3 ? 3 : 4, same, &count, temp,
								   sizeof(temp)) &&
				ops->list_ties(stream, 4, same, words[0], 2, NULL, &ties, temp, sizeof(temp));
		}
		fine = fine && ops->record_fence(stream, &fence) && ops->passed_fence(stream, &fence);
		assert_false(fine);
		assert_true(device->error[0] != '\0');
		assert_false(ops->record_fence(stream, &fence));
		assert_null(ops->stream_open(device));
		ops->stream_close(stream);
		ops->close(device);
	}
}

/* ------------------------------------------------------------------ records */

/*
 * One batch in memory of just its size: rows of 3, 1, 1 and 2 units, and their
 * records of one key word.  What is read beyond, the sanitizers see.
 */
typedef struct Fixture
{
	uint64_t   *rows;
	uint64_t   *records;		/* that of entry i is at 2 * (3 - i) */
	uint64_t	locations[4];
	GsDeviceBatch batch;
	GsKeyLayout layout;
	GsKeyPacking packing;
	GsDeviceRows all;
} Fixture;

#define NUNITS	7

static const uint32_t units[] = {0, 3, 4, 5};
static const uint32_t lengths[] = {3, 1, 1, 2};

static uint64_t *
record_of(Fixture *fixture, int entry)
{
	return &fixture->records[2 * (3 - entry)];
}

static void
fixture_start(Fixture *fixture)
{
	static const uint64_t keys[] = {30, 10, 20, 11};

	fixture->rows = malloc(NUNITS * sizeof(uint64_t));
	fixture->records = malloc(8 * sizeof(uint64_t));
	CHECK(fixture->rows != NULL && fixture->records != NULL);
	for (int i = 0; i < NUNITS; i++)
		fixture->rows[i] = (uint64_t) i;
	gs_key_layout_init(&fixture->layout);
	gs_key_layout_add_column(&fixture->layout, false, false);
	gs_key_layout_add_field(&fixture->layout, 64, GS_CANONICAL_NONE);
	fixture->layout.nrows = 4;
	for (int i = 0; i < 4; i++)
	{
		record_of(fixture, i)[0] = keys[i];
		record_of(fixture, i)[1] = (uint64_t) units[i] << 32;
		gs_key_field_update_range(&fixture->layout.fields[0], keys[i]);
	}
	gs_key_packing_init(&fixture->packing, &fixture->layout, 62);
	fixture->batch = (GsDeviceBatch)
	{
		.first_row = 0,.d_rows = (char *) fixture->rows,
		.d_records_top = (char *) (fixture->records + 8),.nrows = 4,.nunits = NUNITS
	};
	fixture->all = (GsDeviceRows)
	{
		.nrows = 4,.nbatches = 1,.record_bytes = 16,.max_row_units = 3,
		.d_batches = &fixture->batch,.d_packing = &fixture->packing,
		.d_locations = fixture->locations
	};
}

static void
fixture_end(Fixture *fixture)
{
	free(fixture->rows);
	free(fixture->records);
}

static void
test_pack(void **unused)
{
	Fixture		fixture;
	GsPackResults results = {0};
	uint64_t	words[4];

	fixture_start(&fixture);
	gs_host_pack(&fixture.all, 0, 2, words, &results);
	assert_int_equal(results.nfaults, 0);
	assert_int_equal(results.max_row_units, 3);
	assert_int_equal(words[0], 20 << 2 | 0);
	assert_int_equal(words[1], 0 << 2 | 1);
	assert_int_equal(words[2], 10 << 2 | 2);
	assert_int_equal(words[3], 1 << 2 | 3);
	for (int i = 0; i < 4; i++)
	{
		assert_int_equal(GS_LOCATION_LENGTH(fixture.locations[i]), lengths[i]);
		assert_int_equal(GS_LOCATION_ADDRESS(fixture.locations[i]),
						 (uintptr_t) (fixture.rows + units[i]));
	}
	gs_host_pack(&fixture.all, -1, 2, words, &results);
	for (int i = 0; i < 4; i++)
		assert_int_equal(words[i], i);
	fixture_end(&fixture);
}

/* Whatever units the records say, each location is within the batch. */
static void
test_pack_faults(void **unused)
{
	Dice		dice = dice_of_seed(1);
	Fixture		fixture;

	fixture_start(&fixture);
	for (int i = 0; i < 20000; i++)
	{
		GsPackResults results = {0};
		uint32_t	expected = 0;
		uint64_t	words[4];
		uint64_t	unit[5];

		for (int entry = 0; entry < 4; entry++)
		{
			unit[entry] = dice_one_in(&dice, 3) ? dice_any_width(&dice, 32) :
				dice_one_in(&dice, 3) ? dice_below(&dice, NUNITS + 2) : units[entry];
			record_of(&fixture, entry)[1] = unit[entry] << 32;
		}
		unit[4] = NUNITS;
		fixture.all.max_row_units = 1 + (uint32_t) dice_below(&dice, 4);
		gs_host_pack(&fixture.all, 0, 2, words, &results);
		for (int entry = 0; entry < 4; entry++)
		{
			uint64_t	location = fixture.locations[entry];
			uint64_t	start = (GS_LOCATION_ADDRESS(location) - (uintptr_t) fixture.rows) / 8;
			uint64_t	length = GS_LOCATION_LENGTH(location);

			CHECK(length >= 1 && length <= fixture.all.max_row_units);
			CHECK(start < NUNITS && start + length <= NUNITS);
			if (unit[entry] < unit[entry + 1] && unit[entry + 1] <= NUNITS &&
				unit[entry + 1] - unit[entry] <= fixture.all.max_row_units)
				CHECK(start == unit[entry] && length == unit[entry + 1] - unit[entry]);
			else
				expected++;
		}
		CHECK(results.nfaults == expected);
	}
	fixture_end(&fixture);
}

/* Tails that point outside their rows are truncated. */
static void
test_tails_are_cut(void **unused)
{
	GsComponent component = {.kind = GS_COMPONENT_TAIL};
	uint32_t	places[] = {0, 1, 2, 3};
	uint32_t	groups[] = {0, 0, 0, 0};
	uint32_t	scratch[4];
	Dice		dice = dice_of_seed(1);
	GsPackResults results = {0};
	uint64_t	words[4];
	Fixture		fixture;

	fixture_start(&fixture);
	gs_host_pack(&fixture.all, -1, 2, words, &results);
	memset(fixture.rows, 'x', NUNITS * sizeof(uint64_t));
	fixture.packing.components[0] = component;
	for (int i = 0; i < 20000; i++)
	{
		uint32_t	rows[] = {0, 1, 2, 3};
		GsTies		ties = {4, places, rows, groups};
		uint32_t	len[4];
		uint8_t		same[4];

		fixture.packing.components[0].descending = i % 2;
		for (int row = 0; row < 4; row++)
		{
			uint32_t	row_bytes = lengths[row] * 8;
			uint32_t	offset = dice_one_in(&dice, 2) ? (uint32_t) dice_below(&dice, 30) :
				(uint32_t) dice_any_width(&dice, 32);

			len[row] = dice_one_in(&dice, 2) ? (uint32_t) dice_below(&dice, 30) :
				(uint32_t) dice_any_width(&dice, 32);
			record_of(&fixture, row)[0] = gs_tail_make(offset, len[row]);
			if (offset >= row_bytes)
				len[row] = 0;
			else if (len[row] > row_bytes - offset)
				len[row] = row_bytes - offset;
		}

		/* all bytes are the same: so lengths decide */
		gs_host_sort_tails(&fixture.all, &ties, 0, scratch);
		gs_host_same_tails(&fixture.all, &ties, 0, same);
		for (int k = 1; k < 4; k++)
		{
			uint32_t	before = len[rows[k - 1]];
			uint32_t	after = len[rows[k]];

			CHECK(i % 2 ? before >= after : before <= after);
			CHECK(before != after || rows[k - 1] < rows[k]);
			CHECK(same[k] == (before == after));
		}
		CHECK(same[0] == 0);
	}
	fixture_end(&fixture);
}

/* --------------------------------------------------------------------- ties */

static void
test_ties(void **unused)
{
	const uint64_t words[] = {1 << 3 | 4, 1 << 3 | 6, 2 << 3 | 0, 3 << 3 | 1, 3 << 3 | 2,
	3 << 3 | 5, 4 << 3 | 3};
	const uint32_t expected_places[] = {0, 1, 3, 4, 5};
	const uint32_t expected_rows[] = {4, 6, 1, 2, 5};
	const uint32_t expected_groups[] = {0, 0, 1, 1, 1};
	uint64_t	keys[2][5] = {{7, 2, 9 | 1 << 4, 8 | 1 << 4, 8 | 1 << 4}};
	uint64_t   *const d_keys[2] = {keys[0], keys[1]};
	uint32_t	lists[2][3][5];
	GsTies		ties = {5, lists[0][0], lists[0][1], lists[0][2]};
	GsTies		rest = {2, lists[1][0], lists[1][1], lists[1][2]};
	uint64_t	order[] = {99, 99, 0, 99, 99, 99, 3};
	const uint64_t expected_order[] = {6, 4, 0, 2, 5, 1, 3};
	uint8_t		same[7];
	uint32_t	scratch[5];
	GsTieCount	count;

	gs_host_same_words(7, words, 3, same);
	gs_host_count_ties(7, same, &count);
	assert_int_equal(count.nties, 5);
	assert_int_equal(count.ngroups, 2);
	gs_host_list_ties(7, same, words, 3, NULL, &ties);
	assert_memory_equal(ties.d_places, expected_places, sizeof(expected_places));
	assert_memory_equal(ties.d_rows, expected_rows, sizeof(expected_rows));
	assert_memory_equal(ties.d_groups, expected_groups, sizeof(expected_groups));

	gs_host_sort_ties(&ties, 5, d_keys, scratch);
	gs_host_place_ties(&ties, order);
	assert_memory_equal(order, expected_order, sizeof(order));
	assert_memory_equal(ties.d_places, expected_places, sizeof(expected_places));

	/* rows 2 and 5 are tied still */
	gs_host_same_words(5, keys[0], 0, same);
	gs_host_count_ties(5, same, &count);
	assert_int_equal(count.nties, 2);
	assert_int_equal(count.ngroups, 1);
	gs_host_list_ties(5, same, NULL, 0, &ties, &rest);
	assert_int_equal(rest.d_places[0], 3);
	assert_int_equal(rest.d_places[1], 4);
	assert_int_equal(rest.d_rows[0], 2);
	assert_int_equal(rest.d_rows[1], 5);
	assert_int_equal(rest.d_groups[0], 0);
	assert_int_equal(rest.d_groups[1], 0);
}

/* Keys of any width, as an insertion sort has them. */
static void
test_sort_ties(void **unused)
{
	enum
	{
		N = 60
	};
	Dice		dice = dice_of_seed(1);

	for (int nbits = 1; nbits <= 64; nbits++)
	{
		uint64_t	keys[2][N];
		uint64_t   *const d_keys[2] = {keys[0], keys[1]};
		uint64_t	sorted[N];
		uint32_t	rows[N];
		uint32_t	expected[N];
		uint32_t	scratch[N];
		uint32_t	unused_list[N];
		GsTies		ties = {N, unused_list, rows, unused_list};

		for (uint32_t i = 0; i < N; i++)
		{
			uint64_t	key = dice_word(&dice) >> (64 - nbits);
			uint32_t	at = i;

			if (dice_one_in(&dice, 2) && i > 0)
				key = keys[0][dice_below(&dice, i)];
			keys[0][i] = key;
			rows[i] = 1000 + i;
			for (; at > 0 && sorted[at - 1] > key; at--)
			{
				sorted[at] = sorted[at - 1];
				expected[at] = expected[at - 1];
			}
			sorted[at] = key;
			expected[at] = rows[i];
		}
		gs_host_sort_ties(&ties, nbits, d_keys, scratch);
		assert_memory_equal(keys[0], sorted, sizeof(sorted));
		assert_memory_equal(rows, expected, sizeof(expected));
	}
}

/* ----------------------------------------------------------- sorted rows */

static void
test_row_ends_and_gather(void **unused)
{
	const uint64_t words[] = {5 << 2 | 1, 6 << 2 | 3, 7 << 2 | 2, 8 << 2 | 0};
	const uint64_t expected_ends[] = {3, 8, 11, 18};
	const uint64_t expected_cuts[] = {0, 1, 2, 3, 3, 4, 4};
	const uint64_t expected_rows[] = {5, 6, 4};
	uint64_t	ends[4];
	uint64_t	boundaries[7];
	uint64_t	packed[4];
	GsPackResults results = {0};
	uint64_t	keys[2];
	Fixture		fixture;

	fixture_start(&fixture);
	gs_host_pack(&fixture.all, -1, 2, packed, &results);
	gs_host_row_end_offsets(&fixture.all, words, 2, ends);
	assert_memory_equal(ends, expected_ends, sizeof(ends));

	/* at 0, 4, 8 (where a row ends), 12 .. 24 */
	gs_host_find_boundaries(4, ends, 4, 7, boundaries);
	assert_memory_equal(boundaries, expected_cuts, sizeof(boundaries));

	/* rows 3 and 2, in the smallest space, and in one word less */
	for (size_t room = 32; room >= 28; room -= 4)
	{
		char	   *to = malloc(room);
		uint32_t	offset;

		CHECK(to != NULL);
		assert_int_equal(gs_host_gather(&fixture.all, words, 2, 1, 2, to, room), room == 32);
		if (room == 32)
		{
			assert_memory_equal(to, expected_rows, sizeof(expected_rows));
			memcpy(&offset, to + 28, sizeof(offset));
			assert_int_equal(offset, 0);
			memcpy(&offset, to + 24, sizeof(offset));
			assert_int_equal(offset, 2);
		}
		free(to);
	}
	gs_host_gather_keys(&fixture.all, words, 2, 2, 2, keys);
	assert_int_equal(keys[0], 20);
	assert_int_equal(keys[1], 30);
	fixture_end(&fixture);
}

static GsOrderCheck
check_of(uint64_t n, const uint64_t *words, const uint32_t *rows)
{
	GsOrderCheck check = {0};

	gs_host_check_order(n, words, rows == NULL ? 3 : 0, rows, &check);
	return check;
}

/* Words of keys << 3 | row, and keys with their rows. */
static void
test_check_order(void **unused)
{
	const uint64_t right[] = {1 << 3 | 2, 1 << 3 | 4, 2 << 3 | 0, 7 << 3 | 1, 7 << 3 | 3};
	const uint64_t unstable[] = {1 << 3 | 4, 1 << 3 | 2, 2 << 3 | 0, 7 << 3 | 1, 7 << 3 | 3};
	const uint64_t unsorted[] = {2 << 3 | 0, 7 << 3 | 1, 1 << 3 | 2, 7 << 3 | 3, 1 << 3 | 4};
	const uint64_t twice[] = {1 << 3 | 2, 1 << 3 | 4, 2 << 3 | 0, 7 << 3 | 0, 7 << 3 | 3};
	const uint64_t too_large[] = {1 << 3 | 2, 1 << 3 | 4, 2 << 3 | 0, 7 << 3 | 1, 7 << 3 | 5};
	const uint64_t keys[] = {1, 1, 2, 2, 2};
	const uint32_t rows[] = {7, 9, 3, 4, 8};
	const uint32_t other_rows[] = {9, 7, 3, 8, 8};
	GsOrderCheck check;

	check = check_of(5, right, NULL);
	assert_int_equal(check.nmisplaced, 0);
	assert_int_equal(check.row_sum, 0);
	check = check_of(5, unstable, NULL);
	assert_int_equal(check.nmisplaced, 1);
	assert_int_equal(check.row_sum, 0);
	check = check_of(5, unsorted, NULL);
	assert_int_equal(check.nmisplaced, 2);
	assert_int_equal(check.row_sum, 0);
	check = check_of(5, twice, NULL);
	assert_int_equal(check.nmisplaced, 0);
	assert_int_not_equal(check.row_sum, 0);
	check = check_of(5, too_large, NULL);
	assert_int_not_equal(check.row_sum, 0);
	assert_int_equal(check_of(1, unsorted, NULL).nmisplaced, 0);

	assert_int_equal(check_of(5, keys, rows).nmisplaced, 0);
	assert_int_equal(check_of(5, keys, other_rows).nmisplaced, 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_streams),
		cmocka_unit_test(test_temporary_storage),
		cmocka_unit_test(test_pack),
		cmocka_unit_test(test_pack_faults),
		cmocka_unit_test(test_tails_are_cut),
		cmocka_unit_test(test_ties),
		cmocka_unit_test(test_sort_ties),
		cmocka_unit_test(test_check_order),
		cmocka_unit_test(test_row_ends_and_gather)
	};

	return cmocka_run_group_tests_name("device_host", tests, NULL, NULL);
}
