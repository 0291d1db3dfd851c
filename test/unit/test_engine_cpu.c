/*-------------------------------------------------------------------------
 *
 * test_engine_cpu.c
 *	  The CPU engine, from engine.h down: order, output, return of the input, and rows
 *	  that are dropped.
 *
 * Most tests make random tables (unit_table.h) and compare with a stable
 * reference sort; a case that fails names its seed.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/word_sort.h"
#include "unit_cmocka.h"
#include "unit_driver.h"

/* -------------------------------------------------------------------- order */

static void
test_small_tables(void **unused)
{
	driver_check_tables(1, 8000, &(TableOptions) {0}, driver_check_table);
	driver_check_tables(10000, 8000, &(TableOptions) {.max_rows = 6}, driver_check_table);
}

/* Large enough for radix sorts of the whole and of runs of ties. */
static void
test_large_tables(void **unused)
{
	driver_check_tables(20000, 150, &(TableOptions) {.min_rows = 500, .max_rows = 12000}, driver_check_table);
}

static void
test_shapes(void **unused)
{
	driver_check_shapes(30000, 25, 2000, driver_check_table);
}

static void
test_keys_only(void **unused)
{
	driver_check_tables(40000, 1000, &(TableOptions) {.keys_only = true}, driver_check_table);
	driver_check_tables(50000, 40, &(TableOptions) {.keys_only = true, .min_rows = 1000, .max_rows = 20000}, driver_check_table);
}

static void
test_strings(void **unused)
{
	driver_check_strings(60000, 200, &(TableOptions) {.ncolumns = 1, .max_rows = 1500, .max_len = 40}, driver_check_table);
	driver_check_strings(70000, 100, &(TableOptions) {.ncolumns = 2, .max_rows = 300, .max_len = 1100}, driver_check_table);
}

/*
 * All byte strings of up to 4 of {00, 01, FF} after a prefix that ends near the
 * eighth, sixteenth or twenty-fourth byte, where an eight-byte code contains zeros
 * that are data and zeros that are padding.
 */
static void
check_all_strings(TestKind kind, uint32_t prefix_len, bool zero_prefix, bool descending)
{
	static const unsigned char alphabet[] = {0, 1, 0xFF};
	const TestKind kinds[] = {kind, TEST_INT16};
	Dice		dice = dice_of_seed(prefix_len);
	unsigned char bytes[64];
	TestTable  *table = table_make_empty(kinds, 2, 2 * 121);
	size_t		row = 0;

	memset(bytes, zero_prefix ? 0 : 'p', sizeof(bytes));
	table->columns[0].descending = descending;
	for (int copy = 0; copy < 2; copy++)
	{
		for (uint32_t len = 0; len <= 4; len++)
		{
			uint32_t	nstrings = 1;

			for (uint32_t i = 0; i < len; i++)
				nstrings *= 3;
			for (uint32_t number = 0; number < nstrings; number++)
			{
				uint32_t	rest = number;

				for (uint32_t i = 0; i < len; i++, rest /= 3)
				{
					unsigned char byte = alphabet[rest % 3];

					bytes[prefix_len + i] = kind == TEST_TEXT && byte == 0 ? 2 : byte;
				}
				table_set_bytes(table, row, 0, bytes, prefix_len + len);
				table_set_number(table, row, 1, (int64_t) dice_below(&dice, 3));
				row++;
			}
		}
	}
	CHECK(row == table->nrows);

	/* shuffled, since this order is that of a presorted input */
	for (size_t i = row - 1; i > 0; i--)
	{
		size_t		other = dice_below(&dice, i + 1);

		for (int colno = 0; colno < 2; colno++)
		{
			TestValue	swap = *table_value(table, i, colno);

			*table_value(table, i, colno) = *table_value(table, other, colno);
			*table_value(table, other, colno) = swap;
		}
	}
	driver_check_table(table, &dice);
	table_free(table);
}

static void
test_all_strings(void **unused)
{
	for (uint32_t prefix_len = 0; prefix_len <= 33; prefix_len++)
	{
		for (int descending = 0; descending < 2; descending++)
		{
			check_all_strings(TEST_TEXT, prefix_len, false, descending);
			check_all_strings(TEST_BYTEA, prefix_len, false, descending);
			check_all_strings(TEST_BYTEA, prefix_len, true, descending);
		}
	}
}

/* Strings of zeros, which differ only in length. */
static void
test_zeros(void **unused)
{
	static const unsigned char zeros[3000];
	const TestKind kinds[] = {TEST_BYTEA, TEST_BYTEA};

	for (int descending = 0; descending < 2; descending++)
	{
		Dice		dice = dice_of_seed(7);
		TestTable  *table = table_make_empty(kinds, 2, 3000);

		table->columns[0].descending = descending;
		table->columns[1].descending = !descending;
		for (size_t row = 0; row < table->nrows; row++)
		{
			uint32_t	len = (uint32_t) dice_below(&dice, dice_one_in(&dice, 2) ? 3000 : 20);

			table_set_bytes(table, row, 0, zeros, len);
			table_set_bytes(table, row, 1, zeros, (uint32_t) dice_below(&dice, 20));
		}
		driver_check_table(table, &dice);
		table_free(table);
	}
	unit_case("%s", "");
}

/*
 * Few distinct keys, of which rows with equal first bits are not sorted again; except if
 * one row has another rest: a longer tail, another last byte, or a NULL.
 */
static void
check_few_keys(int nkeys, int exception, bool descending)
{
	static const TestKind kinds[] = {TEST_TEXT, TEST_BYTEA, TEST_INT64};
	Dice		dice = dice_of_seed((uint64_t) (nkeys * 4 + exception));
	const size_t nrows = 20000;
	TestTable  *table = table_make_empty(kinds, 3, nrows);
	const size_t changed = dice_below(&dice, nrows);
	unsigned char bytes[32];

	unit_case("%d keys, exception %d, %s", nkeys, exception, descending ? "descending" : "ascending");
	memset(bytes, 'k', sizeof(bytes));
	for (int colno = 0; colno < 3; colno++)
		table->columns[colno].descending = descending;
	for (size_t row = 0; row < nrows; row++)
	{
		const uint64_t key = dice_below(&dice, (uint64_t) nkeys);
		const uint64_t mixed = mix64(key);
		uint32_t	len = 12 + (uint32_t) (mixed % 8);

		memcpy(bytes, &(uint32_t) {(uint32_t) (mixed | 0x01010101)}, 4);
		bytes[len - 1] = 'x';
		if (row == changed && exception == 1)
			bytes[len - 1] = 'w';
		if (row == changed && exception == 2)
			len++;
		table_set_bytes(table, row, 0, bytes, len);
		bytes[len - 1] = 'k';
		table_set_bytes(table, row, 1, bytes + 4, len - 5);
		if (!(row == changed && exception == 3))	/* values are NULL until they are set */
			table_set_number(table, row, 2, (int64_t) mixed);
	}
	driver_check_table(table, &dice);
	table_free(table);
}

static void
test_few_keys(void **unused)
{
	for (int exception = 0; exception <= 3; exception++)
	{
		for (int descending = 0; descending < 2; descending++)
		{
			check_few_keys(1, exception, descending);
			check_few_keys(300, exception, descending);
			check_few_keys(3000, exception, descending);
		}
	}
	unit_case("%s", "");
}

/* ------------------------------------------------------------------- statistics */

static GsMethod
method_of(size_t nrows, bool reversed, bool mixed)
{
	const TestKind kind = TEST_INT64;
	TestTable  *table = table_make_empty(&kind, 1, nrows);
	UnitHost	host;
	Driver		driver;
	GsMethod	method;

	for (size_t row = 0; row < nrows; row++)
		table_set_number(table, row, 0, mixed ? (int64_t) mix64(row) :
						 reversed ? -(int64_t) (row / 3) : (int64_t) (row / 3));
	driver_open_loaded(&driver, table, &host);
	CHECK(gs_engine_stats(driver.engine)->method == GS_METHOD_NONE);
	CHECK(strcmp(gs_engine_stats(driver.engine)->engine, "cpu") == 0);
	CHECK(gs_engine_sort(driver.engine) == GS_STATUS_OK);
	method = gs_engine_stats(driver.engine)->method;
	CHECK(gs_engine_stats(driver.engine)->detail == NULL);
	CHECK((gs_engine_stats(driver.engine)->passes > 0) == (method == GS_METHOD_RADIX));
	driver_close(&driver);
	unit_host_end(&host);
	table_free(table);
	return method;
}

static void
test_methods(void **unused)
{
	CHECK(method_of(0, false, false) == GS_METHOD_NONE);
	CHECK(method_of(1, false, false) == GS_METHOD_PRESORTED);
	CHECK(method_of(1000, false, false) == GS_METHOD_PRESORTED);
	CHECK(method_of(1000, true, false) == GS_METHOD_REVERSED);
	CHECK(method_of(100, false, true) == GS_METHOD_MERGE);
	CHECK(method_of(1000, false, true) == GS_METHOD_RADIX);
}

/* Sorts a table and returns the statistics. */
static GsEngineStats
statistics_of(const TestTable *table)
{
	UnitHost	host;
	Driver		driver;
	GsEngineStats	stats;

	driver_open_sorted(&driver, table, &host);
	stats = *gs_engine_stats(driver.engine);
	driver_close(&driver);
	unit_host_end(&host);
	return stats;
}

static void
test_statistics(void **unused)
{
	const TestKind kinds[] = {TEST_INT64, TEST_TEXT};
	TestTable  *table = table_make_empty(kinds, 2, 1024);
	GsEngineStats	stats;

	/* 10 bits distinguish all rows; the texts are equal */
	for (size_t row = 0; row < 1024; row++)
	{
		table_set_number(table, row, 0, (int64_t) (row * 5 % 1024) - 77);
		table_set_bytes(table, row, 1, "gpu", 3);
	}
	stats = statistics_of(table);
	CHECK(stats.nrows == 1024);
	CHECK(stats.key_bits == 10 && !stats.key_tails);
	CHECK(stats.passes > 0 && stats.tied_rows == 0);
	CHECK(stats.peak_bytes > 1024 * 32);

	/* texts that differ after the eighth byte decide between equal numbers */
	for (size_t row = 0; row < 1024; row++)
	{
		char		text[] = "the same prefix, and a digit";

		table_set_number(table, row, 0, (int64_t) (row * 5 % 1024) / 2);
		text[20] = (char) ('0' + row % 10);
		table_set_bytes(table, row, 1, text, sizeof(text) - 1);
	}
	stats = statistics_of(table);
	CHECK(stats.key_bits == 9 && stats.key_tails);
	CHECK(stats.tied_rows == 1024);

	/* memory that no row reached is not reported as used */
	table->nrows = 1;
	CHECK(statistics_of(table).peak_bytes < 8192 + GS_WORD_SORT_STATE_BYTES);
	table->nrows = 1024;
	table_free(table);
}

/* ----------------------------------------------------------------- return of the input */

/* All of it, and memory comes back; or only a part, and close. */
static void
check_drain(const TestTable *table, Dice *dice)
{
	UnitHost	host;
	Driver		driver;
	size_t		held;

	driver_open_loaded(&driver, table, &host);
	held = host.held_bytes;
	if (!dice_one_in(dice, 3))
	{
		driver_check_drain(&driver, SIZE_MAX);
		CHECK(table->nrows == 0 || host.held_bytes < held);
	}
	else
		driver_check_drain(&driver, dice_below(dice, table->nrows + 1));
	driver_close(&driver);
	unit_host_end(&host);
}

static void
test_drain(void **unused)
{
	driver_check_tables(80000, 160, &(TableOptions) {.max_rows = 2000}, check_drain);
	driver_check_tables(81000, 40, &(TableOptions) {.max_rows = 2000, .keys_only = true}, check_drain);
}

/*
 * Many short strings of zeros, and a long one: the work must be proportional to the
 * bytes of the input, 16 MB, which takes a few ms, and not to the rows times the longest
 * of them, 128 GB, which takes many seconds.
 */
static void
test_work_of_zeros(void **unused)
{
	uint32_t	longest = UINT32_C(16) << 20;
	unsigned char *zeros = calloc(longest, 1);
	const TestKind kind = TEST_BYTEA;
	TestTable  *table = table_make_empty(&kind, 1, 8193);
	UnitHost	host;
	Driver		driver;
	const void *rows[8193];
	clock_t		start;
	double		seconds;

	CHECK(zeros != NULL);
	for (size_t row = 0; row < table->nrows; row++)
		table_set_bytes(table, row, 0, zeros, row == 100 ? longest : 9);
	driver_open_loaded(&driver, table, &host);
	start = clock();
	CHECK(gs_engine_sort(driver.engine) == GS_STATUS_OK);
	seconds = (double) (clock() - start) / CLOCKS_PER_SEC;
	CHECK(driver_fetch(driver.engine, 0, 8193, rows) == 8193);
	for (size_t i = 0; i < 8193; i++)
		CHECK(table_row_number(rows[i]) == (i == 8192 ? 100 : i < 100 ? i : i + 1));
	driver_close(&driver);
	unit_host_end(&host);
	table_free(table);
	free(zeros);
	CHECK_MSG(seconds < 3, "%.1f s to sort 8,193 rows of 16 MB in all", seconds);
}

/* --------------------------------------------------------------- keep_first */

/* The row at a place in the order of those pushed so far. */
static uint32_t
row_in_order(const Driver *driver, const uint32_t *order, size_t place)
{
	size_t		i = 0;

	for (;; i++)
	{
		if (order[i] < driver->npushed && place-- == 0)
			return order[i];
	}
}

/* Has the engine keep the first rows only, and checks which one it says is their last. */
static void
keep_first(Driver *driver, const uint32_t *order, size_t bound)
{
	const GsBatch *batch = NULL;
	size_t		entry = SIZE_MAX;
	uint32_t	last = row_in_order(driver, order, bound - 1);

	CHECK(gs_engine_cpu_keep_first(driver->engine, bound, &batch, &entry) == GS_STATUS_OK);
	CHECK(entry < batch->nrows);
	CHECK(table_row_is(driver->table, last, &driver->layout,
					   gs_batch_pushed(batch, &driver->layout, entry)));
	CHECK(driver->table->keys_only ||
		  table_row_number(gs_batch_pushed(batch, &driver->layout, entry)) == last);
	driver->batch = NULL;
}

/* The first rows are there, and the engine has no more than nrows. */
static void
check_first(Driver *driver, const uint32_t *order, size_t bound, size_t nrows)
{
	const TestTable *table = driver->table;

	CHECK(gs_engine_sort(driver->engine) == GS_STATUS_OK);
	CHECK(gs_engine_stats(driver->engine)->nrows == nrows);
	for (size_t i = 0; i < bound && i < nrows; i++)
	{
		const void *row;

		CHECK(driver_fetch(driver->engine, i, 1, &row) == 1);
		CHECK(table->keys_only || table_row_number(row) == order[i]);
		CHECK(table_row_is(table, order[i], &driver->layout, row));
	}
}

/* Rows returned after it are still in input order, each once. */
static void
check_rest(Driver *driver, size_t nrows)
{
	const GsBatch *batch;
	int64_t		last = -1;

	CHECK(gs_engine_return_input(driver->engine) == GS_STATUS_OK);
	for (;;)
	{
		CHECK(gs_engine_next_batch(driver->engine, &batch) == GS_STATUS_OK);
		if (batch == NULL)
			break;
		nrows -= batch->nrows;
		for (size_t i = 0; i < batch->nrows && !driver->table->keys_only; i++)
		{
			const char *row = gs_batch_pushed(batch, &driver->layout, i);

			CHECK((int64_t) table_row_number(row) > last);
			CHECK(table_row_is(driver->table, table_row_number(row), &driver->layout, row));
			last = table_row_number(row);
		}
	}
	CHECK(nrows == 0);
}

/* A load during which rows are dropped now and then, and the sort or return after it. */
static void
check_keep_first(const TestTable *table, Dice *dice)
{
	uint32_t   *order = table_order(table);
	size_t		bound = 1 + dice_below(dice, table->nrows);
	size_t		every = 1 + dice_below(dice, table->nrows);
	size_t		nrows = 0;
	UnitHost	host;
	Driver		driver;

	unit_host_init(&host);
	CHECK(driver_open(&driver, table, &host, (size_t) 1 << 40));
	for (; driver.npushed < table->nrows; nrows++)
	{
		if (nrows > bound && driver.npushed % every == 0)
		{
			keep_first(&driver, order, bound);
			nrows = bound;
		}
		CHECK(driver_push(&driver) == GS_STATUS_OK);
	}
	if (dice_one_in(dice, 4))
		check_rest(&driver, nrows);
	else
		check_first(&driver, order, bound, nrows);
	driver_close(&driver);
	unit_host_end(&host);
	free(order);
}

static void
test_keep_first(void **unused)
{
	driver_check_tables(90000, 4000, &(TableOptions) {.min_rows = 1, .max_rows = 60}, check_keep_first);
	driver_check_tables(95000, 60, &(TableOptions) {.min_rows = 1, .max_rows = 6000, .max_payload = 3000}, check_keep_first);
	driver_check_tables(96000, 200, &(TableOptions) {.min_rows = 1, .max_rows = 6000, .max_payload = 3000, .keys_only = true}, check_keep_first);
}

/* Many rows in the memory of few; none is lost when memory is full. */
static void
test_keep_first_in_limit(void **unused)
{
	Dice		dice = dice_of_seed(97000);
	TestTable  *table;
	uint32_t   *order;
	size_t		nrows = 0;
	size_t		limit = (size_t) 256 << 10;
	int			nrounds = 0;
	UnitHost	host;
	Driver		driver;

	table = table_make(&dice, &(TableOptions) {
		.min_rows = 60000, .max_rows = 60000, .ncolumns = 2, .kind = TEST_INT64, .shape = SHAPE_REVERSED
	});
	order = table_order(table);
	unit_host_init(&host);
	CHECK(driver_open(&driver, table, &host, limit));
	for (; driver.npushed < table->nrows; nrows++)
	{
		GsStatus	status = driver_push(&driver);

		if (status != GS_STATUS_OK)
		{
			const GsBatch *batch;
			size_t		entry;

			CHECK(status == GS_STATUS_FULL && nrows > 100);
			host.fail_at = host.nallocations + 1 + dice_below(&dice, 3);
			if (gs_engine_cpu_keep_first(driver.engine, 100, &batch, &entry) == GS_STATUS_OOM)
			{
				host.fail_at = 0;
				keep_first(&driver, order, 100);
			}
			host.fail_at = 0;
			driver.batch = NULL;
			nrows = 100;
			nrounds++;
			CHECK(driver_push(&driver) == GS_STATUS_OK);
		}
	}
	CHECK_MSG(nrounds > 5, "%d rounds", nrounds);
	CHECK(gs_engine_stats(driver.engine)->peak_bytes <= limit);
	check_first(&driver, order, 100, nrows);
	driver_close(&driver);
	unit_host_end(&host);
	free(order);
	table_free(table);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small_tables),
		cmocka_unit_test(test_large_tables),
		cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_keys_only),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_all_strings),
		cmocka_unit_test(test_zeros),
		cmocka_unit_test(test_few_keys),
		cmocka_unit_test(test_methods),
		cmocka_unit_test(test_statistics),
		cmocka_unit_test(test_drain),
		cmocka_unit_test(test_work_of_zeros),
		cmocka_unit_test(test_keep_first),
		cmocka_unit_test(test_keep_first_in_limit)
	};

	return cmocka_run_group_tests_name("engine_cpu", tests, NULL, NULL);
}
