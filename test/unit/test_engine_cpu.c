/*-------------------------------------------------------------------------
 *
 * test_engine_cpu.c
 *	  The CPU engine, from engine.h down: order, output, return of the input, ties
 *	  that the driver compares, and rows that are dropped.
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

/* --------------------------------------------------------- ties that the driver compares */

#define lengthof(array)	(sizeof(array) / sizeof((array)[0]))

/* Rows with incomplete keys; the driver compares the remaining values. */
typedef struct TiedRows
{
	size_t		nrows;
	uint64_t   *keys;
	uint32_t   *rests;
	uint64_t	ncompared;
	size_t		nwrong;			/* rows at the end of which guesses are wrong */
} TiedRows;

static size_t
number_of_tied(const void *row)
{
	return (size_t) ((const uint64_t *) row)[1];
}

/* A row is located by its number; every other row by its complement, to tell the values from the rows. */
static uint64_t
locate_tied(void *unused, const void *row)
{
	const uint64_t number = number_of_tied(row);

	return number % 2 == 0 ? number : ~number;
}

/* The number of a row, which must have been located. */
static size_t
number_of_located(GsLocatedRow row)
{
	CHECK(row.value == locate_tied(NULL, row.row));
	return number_of_tied(row.row);
}

/* Leaves it to the rows. */
static int
compare_nothing(void *unused, uint64_t a, uint64_t b)
{
	return 0;
}

static int
compare_rests(void *arg, GsLocatedRow a, GsLocatedRow b)
{
	TiedRows   *tied = arg;
	size_t		i = number_of_located(a);
	size_t		j = number_of_located(b);

	tied->ncompared++;
	CHECK_MSG(tied->keys[i] == tied->keys[j], "rows %zu and %zu have different keys", i, j);
	return (tied->rests[i] > tied->rests[j]) - (tied->rests[i] < tied->rests[j]);
}

static const GsRowCompare by_rests =
{
	.locate = locate_tied,.compare_values = compare_nothing,.compare_rows = compare_rests
};

/* Opens a sort by their keys, and pushes them. */
static void
load_tied(RawSort *sort, const TiedRows *tied)
{
	raw_open(sort);
	for (size_t i = 0; i < tied->nrows; i++)
	{
		uint64_t   *record;

		CHECK(gs_engine_reserve(sort->engine, 16, &sort->batch) == GS_STATUS_OK);
		((uint64_t *) gs_batch_next_row(sort->batch))[1] = i;
		record = gs_batch_next_record(sort->batch);
		record[0] = tied->keys[i];
		if (sort->layout.nwords > 1)
			record[1] = ~(uint64_t) tied->rests[i];
		raw_push(sort, 16);
	}
}

/* The number of the row at a position of the result. */
static size_t
tied_at(RawSort *sort, size_t position)
{
	const void *row;

	CHECK(driver_fetch(sort->engine, position, 1, &row) == 1);
	return number_of_tied(row);
}

/*
 * Sorts them; the order is (key, rest, input).  If there is a column that is not
 * decisive, records have it in the opposite order of the rests.
 */
static void
check_tied_by(TiedRows *tied, bool descending, bool undecisive)
{
	RawSort		sort;
	size_t		before = 0;

	tied->ncompared = 0;
	raw_begin(&sort);
	raw_add_number(&sort, descending);
	if (undecisive)
	{
		raw_add_number(&sort, false);
		sort.layout.ndecisive = 1;
	}
	sort.request.compare = &by_rests;
	sort.request.compare_arg = tied;
	load_tied(&sort, tied);
	CHECK(gs_engine_sort(sort.engine) == GS_STATUS_OK);
	for (size_t i = 0; i < tied->nrows; i++)
	{
		size_t		row = tied_at(&sort, i);

		if (i > 0 && tied->keys[before] != tied->keys[row])
			CHECK((tied->keys[before] < tied->keys[row]) != descending);
		else if (i > 0)
			CHECK_MSG(tied->rests[before] < tied->rests[row] ||
					  (tied->rests[before] == tied->rests[row] && before < row),
					  "row %zu comes before row %zu", before, row);
		before = row;
	}
	raw_end(&sort);
}

static void
check_tied(TiedRows *tied, bool descending)
{
	check_tied_by(tied, descending, false);
	check_tied_by(tied, descending, true);
}

/* Without a column all rows are equal, and stay in input order. */
static void
test_no_columns(void **unused)
{
	enum
	{
		NROWS = 20000
	};
	RawSort		sort;

	raw_begin(&sort);
	raw_open(&sort);
	for (size_t i = 0; i < NROWS; i++)
	{
		CHECK(gs_engine_reserve(sort.engine, 16 + i % 40, &sort.batch) == GS_STATUS_OK);
		((uint64_t *) gs_batch_next_row(sort.batch))[1] = i;
		raw_push(&sort, 16 + i % 40);
	}
	CHECK(gs_engine_sort(sort.engine) == GS_STATUS_OK);
	CHECK(gs_engine_stats(sort.engine)->method == GS_METHOD_PRESORTED);
	CHECK(gs_engine_stats(sort.engine)->key_bits == 0);
	for (size_t i = 0; i < NROWS; i++)
		CHECK(tied_at(&sort, i) == i);
	raw_end(&sort);
}

/* Compares the rests, whatever the keys. */
static int
compare_all(void *arg, GsLocatedRow a, GsLocatedRow b)
{
	TiedRows   *tied = arg;
	uint32_t	x = tied->rests[number_of_located(a)];
	uint32_t	y = tied->rests[number_of_located(b)];

	tied->ncompared++;
	return (x > y) - (x < y);
}

static const GsRowCompare by_all =
{
	.locate = locate_tied,.compare_values = compare_nothing,.compare_rows = compare_all
};

/*
 * Approximate keys: wrong orders are corrected, with fewer comparisons if fewer rows
 * are wrong.
 */
static void
test_sort_again(void **unused)
{
	enum
	{
		NROWS = 20000
	};
	static const size_t nwrong[] = {0, 1, 100, NROWS};
	static const size_t at_most[] = {NROWS * 5 / 4, NROWS * 5 / 4 + 100, NROWS * 3 / 2, NROWS * 16};
	TiedRows	tied = {.nrows = NROWS};
	Dice		dice = dice_of_seed(18);

	tied.keys = malloc(sizeof(uint64_t) * NROWS);
	tied.rests = malloc(sizeof(uint32_t) * NROWS);
	CHECK(tied.keys != NULL && tied.rests != NULL);
	for (size_t w = 0; w < lengthof(nwrong); w++)
	{
		RawSort		sort;
		size_t		before = 0;

		unit_case("%zu wrong", nwrong[w]);
		for (size_t i = 0; i < NROWS; i++)
		{
			tied.rests[i] = (uint32_t) dice_below(&dice, UINT32_MAX) / 4 * 4;
			tied.keys[i] = tied.rests[i];
		}
		/* near its position, or anywhere */
		for (size_t i = 0; i < nwrong[w]; i++)
			tied.keys[i] = nwrong[w] == NROWS ? dice_word(&dice) : tied.keys[i] + 1000000;

		raw_begin(&sort);
		raw_add_number(&sort, false);
		load_tied(&sort, &tied);
		CHECK(gs_engine_sort(sort.engine) == GS_STATUS_OK);
		tied.ncompared = 0;
		sort.engine->request.memory_limit = 0;	/* it is not observed */
		CHECK(gs_engine_cpu_resort(sort.engine, &by_all, &tied) == GS_STATUS_OK);
		CHECK_MSG(tied.ncompared <= at_most[w], "%llu comparisons",
				  (unsigned long long) tied.ncompared);
		for (size_t i = 0; i < NROWS; i++)
		{
			size_t		row = tied_at(&sort, i);

			CHECK(i == 0 || tied.rests[before] <= tied.rests[row]);
			before = row;
		}
		raw_end(&sort);
	}
	free(tied.keys);
	free(tied.rests);
	unit_case("%s", "");
}

/*
 * Keys of no bits, of one chunk and of several, in any order; rests with few or many
 * distinct values; ties of all lengths.
 */
static void
test_comparison(void **unused)
{
	static const size_t sizes[] = {0, 1, 2, 3, 6, 7, 12, 13, 25, 100, 1000, 20000};
	static const uint64_t nkeys[] = {1, 2, 10, 300, UINT64_MAX};
	static const uint64_t nrests[] = {1, 2, 10, UINT32_MAX};
	Dice		dice = dice_of_seed(17);

	for (size_t s = 0; s < lengthof(sizes); s++)
	{
		TiedRows	tied = {.nrows = sizes[s]};

		tied.keys = malloc(sizeof(uint64_t) * (tied.nrows + 1));
		tied.rests = malloc(sizeof(uint32_t) * (tied.nrows + 1));
		CHECK(tied.keys != NULL && tied.rests != NULL);
		for (size_t shape = 0; shape < lengthof(nkeys) * lengthof(nrests) * 3; shape++)
		{
			uint64_t	k = nkeys[shape % lengthof(nkeys)];
			uint64_t	r = nrests[shape / lengthof(nkeys) % lengthof(nrests)];
			size_t		order = shape / (lengthof(nkeys) * lengthof(nrests));

			unit_case("%zu rows, shape %zu", tied.nrows, shape);
			for (size_t i = 0; i < tied.nrows; i++)
			{
				size_t		rank = order == 0 ? 0 : order == 1 ? i : tied.nrows - i;

				tied.keys[i] = order == 0 ? dice_below(&dice, k) * (UINT64_MAX / k) :
					rank / (tied.nrows / (k < tied.nrows ? k : tied.nrows) + 1);
				tied.rests[i] = (uint32_t) dice_below(&dice, r);
			}
			check_tied(&tied, shape % 2 == 1);
		}
		free(tied.keys);
		free(tied.rests);
	}

	/* rows in order take little more than one comparison each; few distinct values take few comparisons */
	{
		TiedRows	tied = {.nrows = 20000};

		tied.keys = calloc(tied.nrows, sizeof(uint64_t));
		tied.rests = calloc(tied.nrows, sizeof(uint32_t));
		CHECK(tied.keys != NULL && tied.rests != NULL);
		check_tied(&tied, false);
		CHECK(tied.ncompared < tied.nrows * 5 / 4);
		for (uint32_t nvalues = 4; nvalues <= 64; nvalues *= 4)
		{
			for (size_t i = 0; i < tied.nrows; i++)
				tied.rests[i] = (uint32_t) dice_below(&dice, nvalues);
			check_tied(&tied, false);
			CHECK_MSG(tied.ncompared < tied.nrows * (4 + gs_bit_width(nvalues)),
					  "%u values, %llu comparisons", nvalues, (unsigned long long) tied.ncompared);
		}
		free(tied.keys);
		free(tied.rests);
	}
	unit_case("%s", "");
}

/* A row is located by its rest; 0 is NULL, which sorts last. */
static uint64_t
locate_rest(void *arg, const void *row)
{
	const TiedRows *tied = arg;

	return tied->rests[number_of_tied(row)];
}

static int
compare_rest_values(void *arg, uint64_t a, uint64_t b)
{
	TiedRows   *tied = arg;

	if (a == 0 || b == 0)
		return 0;
	tied->ncompared++;
	return (a > b) - (a < b);
}

static int
compare_nulls(void *unused, GsLocatedRow a, GsLocatedRow b)
{
	return (a.value == 0) - (b.value == 0);
}

/* The first three guesses are useless, wrong, and right only for some of the sample; the last leaves ties. */
static uint64_t
guess_rest(void *arg, const void *row, int guess)
{
	const TiedRows *tied = arg;
	const size_t number = number_of_tied(row);
	const uint64_t rest = tied->rests[number];

	if (rest == 0)
		return UINT64_MAX;
	if (number >= tied->nrows - tied->nwrong)
		return number * UINT64_C(0x9E3779B97F4A7C15) | 1;
	return guess == 0 ? 1 : guess == 1 ? ~rest : guess == 2 ? rest << 40 : rest / 8 + 1;
}

static const GsRowCompare by_guess =
{
	locate_rest, compare_rest_values, compare_nulls, 4, guess_rest
};

/* Checks that they are in the order of the rests, of 0 last, and of the input. */
static void
check_guessed(TiedRows *tied)
{
	RawSort		sort;
	size_t		before = 0;

	tied->ncompared = 0;
	raw_begin(&sort);
	raw_add_number(&sort, false);
	sort.request.compare = &by_guess;
	sort.request.compare_arg = tied;
	load_tied(&sort, tied);
	CHECK(gs_engine_sort(sort.engine) == GS_STATUS_OK);
	for (size_t i = 0; i < tied->nrows; i++)
	{
		const size_t row = tied_at(&sort, i);
		const uint32_t x = tied->rests[before] - 1;	/* 0 is the greatest then */
		const uint32_t y = tied->rests[row] - 1;

		CHECK_MSG(i == 0 || x < y || (x == y && before < row), "row %zu comes before row %zu", before, row);
		before = row;
	}
	raw_end(&sort);
}

/* A right guess takes little more than one comparison for each row; a wrong one, about as many as none. */
static void
test_guesses(void **unused)
{
	static const size_t sizes[] = {511, 512, 20000};
	static const uint32_t nrests[] = {12, 200, 1 << 20, UINT32_MAX};
	static const size_t nwrong[] = {0, 1, 300, SIZE_MAX};
	Dice		dice = dice_of_seed(23);

	for (size_t shape = 0; shape < lengthof(sizes) * lengthof(nrests) * lengthof(nwrong); shape++)
	{
		TiedRows	tied = {.nrows = sizes[shape % lengthof(sizes)]};
		const uint32_t r = nrests[shape / lengthof(sizes) % lengthof(nrests)];
		const size_t wrong = nwrong[shape / lengthof(sizes) / lengthof(nrests)];

		unit_case("%zu rows, %u rests, %zu wrong", tied.nrows, r, wrong);
		tied.nwrong = wrong < tied.nrows ? wrong : tied.nrows;
		tied.keys = calloc(tied.nrows, sizeof(uint64_t));
		tied.rests = malloc(sizeof(uint32_t) * tied.nrows);
		CHECK(tied.keys != NULL && tied.rests != NULL);
		for (size_t i = 0; i < tied.nrows; i++)
			tied.rests[i] = dice_below(&dice, 10) == 0 ? 0 : 1 + (uint32_t) dice_below(&dice, r - 1);
		check_guessed(&tied);
		CHECK_MSG(tied.ncompared < tied.nrows * (wrong == 0 && tied.nrows >= 512 ? 2 : 16), "%llu comparisons",
				  (unsigned long long) tied.ncompared);
		free(tied.keys);
		free(tied.rests);
	}
	unit_case("%s", "");
}

/* Decides about two rows of an odd number, whose values are complements. */
static int
compare_by_parity(void *unused, uint64_t a, uint64_t b)
{
	return (int64_t) a < 0 && (int64_t) b < 0 ? 1 : 0;
}

/* Answers at random. */
static int
compare_by_dice(void *arg, GsLocatedRow a, GsLocatedRow b)
{
	(void) number_of_located(a);
	(void) number_of_located(b);
	return (int) dice_below(arg, 3) - 1;
}

static const GsRowCompare by_dice =
{
	.locate = locate_tied,.compare_values = compare_by_parity,.compare_rows = compare_by_dice
};

/* A comparison function that contradicts itself: the sort ends, and returns each row once. */
static void
test_contradictions(void **unused)
{
	Dice		dice = dice_of_seed(19);

	for (size_t nrows = 1; nrows < 3000; nrows += 1 + nrows / 7)
	{
		TiedRows	tied = {.nrows = nrows};
		RawSort		sort;
		unsigned char *seen = calloc(nrows, 1);

		unit_case("%zu rows", nrows);
		tied.keys = calloc(nrows, sizeof(uint64_t));
		tied.rests = calloc(nrows, sizeof(uint32_t));
		CHECK(seen != NULL && tied.keys != NULL && tied.rests != NULL);
		raw_begin(&sort);
		raw_add_number(&sort, false);
		sort.request.compare = &by_dice;
		sort.request.compare_arg = &dice;
		load_tied(&sort, &tied);
		CHECK(gs_engine_sort(sort.engine) == GS_STATUS_OK);
		for (size_t i = 0; i < nrows; i++)
		{
			CHECK(!seen[tied_at(&sort, i)]);
			seen[tied_at(&sort, i)] = 1;
		}
		raw_end(&sort);
		free(seen);
		free(tied.keys);
		free(tied.rests);
	}
	unit_case("%s", "");
}

/*
 * Many short strings of zeros, and a long one: the work must be proportional to the
 * bytes of the input, 2 MB, which takes a few ms, and not to the rows times the longest
 * of them, 16 GB, which takes a second.  Processor time is measured, since it does not
 * depend on the load of the machine.
 */
static void
test_work_of_zeros(void **unused)
{
	uint32_t	longest = UINT32_C(2) << 20;
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
	CHECK_MSG(seconds < 0.2, "%.1f s to sort 8,193 rows of 2 MB in all", seconds);
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
		cmocka_unit_test(test_comparison),
		cmocka_unit_test(test_no_columns),
		cmocka_unit_test(test_sort_again),
		cmocka_unit_test(test_guesses),
		cmocka_unit_test(test_contradictions),
		cmocka_unit_test(test_work_of_zeros),
		cmocka_unit_test(test_keep_first),
		cmocka_unit_test(test_keep_first_in_limit)
	};

	return cmocka_run_group_tests_name("engine_cpu", tests, NULL, NULL);
}
