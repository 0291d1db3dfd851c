/*-------------------------------------------------------------------------
 *
 * test_engine_memory.c
 *	  The memory of the CPU engine: limits, failed allocations, interrupts that do
 *	  not return, and the numbering of rows.
 *
 * Most tests make random tables (unit_table.h) and compare with a stable
 * reference sort; a case that fails names its seed.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/word_sort.h"
#include "unit_cmocka.h"
#include "unit_driver.h"

/* --------------------------------------------------------- failed allocations */

/*
 * Each allocation fails in turn, alone or with all that follow it, until a sort
 * needs no more allocations.  After any failure the engine can return the rows that
 * it has, or the call can be repeated.
 */
static void
check_out_of_memory(const TestTable *table, Dice *dice)
{
	bool		all_after = dice_one_in(dice, 2);
	GsStatus	status = GS_STATUS_OOM;

	for (uint64_t k = 1; status != GS_STATUS_OK; k++)
	{
		UnitHost	host;
		Driver		driver;

		CHECK(k < 1000);
		unit_host_init(&host);
		host.fail_at = k;
		host.fail_after = all_after;
		if (!driver_open(&driver, table, &host, (size_t) 1 << 40))
		{
			CHECK(k == 1);
			unit_host_end(&host);
			continue;
		}
		status = driver_load(&driver);
		CHECK(status == GS_STATUS_OK || status == GS_STATUS_OOM);
		if (status == GS_STATUS_OOM && !all_after && k % 2 == 0)
		{
			status = driver_load(&driver);	/* it may go on after all */
			CHECK(status == GS_STATUS_OK);
		}
		if (status == GS_STATUS_OK)
			status = gs_engine_sort(driver.engine);
		CHECK(status == GS_STATUS_OK || status == GS_STATUS_OOM);
		if (status == GS_STATUS_OOM)
			driver_check_drain(&driver, SIZE_MAX);
		else
		{
			driver_check_sorted(&driver, dice);
			if (k <= host.nallocations)
				status = GS_STATUS_OOM; /* the failure was repaired: go on */
		}
		driver_close(&driver);
		unit_host_end(&host);
	}
}

static void
test_out_of_memory(void **unused)
{
	driver_check_tables(90000, 160, &(TableOptions) {.max_rows = 1500, .max_payload = 400}, check_out_of_memory);
	driver_check_tables(91000, 40, &(TableOptions) {.max_rows = 1500, .keys_only = true}, check_out_of_memory);
}

/* ----------------------------------------------------------------- interrupts */

/*
 * Leaves each check_interrupts call in turn by longjmp, as a canceled query does.
 * A reset of the memory context must be enough to clean up.
 */
static void
check_interrupted(const TestTable *table, Dice *dice)
{
	uint64_t	ncalls;
	UnitHost	host;
	Driver		driver;

	driver_open_sorted(&driver, table, &host);
	ncalls = host.ninterrupts;
	CHECK(ncalls > 0);
	driver_close(&driver);
	unit_host_end(&host);

	for (uint64_t k = 1; k <= ncalls; k++)
	{
		unit_host_init(&host);
		host.jump_at = k;
		if (setjmp(host.jump) == 0)
		{
			CHECK(driver_open(&driver, table, &host, (size_t) 1 << 40));
			CHECK(driver_load(&driver) == GS_STATUS_OK);
			gs_engine_sort(driver.engine);
			unit_fail(__FILE__, __LINE__, "call %llu of %llu came back",
					  (unsigned long long) k, (unsigned long long) ncalls);
		}
		unit_host_reset(&host);
		unit_host_end(&host);
	}
}

static void
test_interrupts(void **unused)
{
	driver_check_tables(100000, 40, &(TableOptions) {.min_rows = 1, .max_rows = 10000}, check_interrupted);
	driver_check_tables(101000, 10, &(TableOptions) {.min_rows = 1, .max_rows = 10000, .keys_only = true},
						check_interrupted);
}

/* How often a sort of the table calls check_interrupts. */
static uint64_t
calls_of_table(const TestTable *table)
{
	UnitHost	host;
	Driver		driver;

	driver_open_sorted(&driver, table, &host);
	driver_close(&driver);
	unit_host_end(&host);
	return host.ninterrupts;
}

/*
 * Resolving ties takes one or more passes over them, in addition to the one that
 * makes the words of all rows: by more bits, and by the bytes of a string.
 */
static void
test_interrupts_of_ties(void **unused)
{
	const TestKind numbers[] = {TEST_INT64, TEST_INT64};
	const TestKind text = TEST_TEXT;
	size_t		nrows = (size_t) 1 << 17;
	uint64_t	each_pass = nrows >> 14;	/* at the least */
	TestTable  *table;
	uint64_t	one_pass;
	uint64_t	ncalls;

	/* in order, no ties */
	table = table_make_empty(numbers, 2, nrows);
	for (size_t row = 0; row < nrows; row++)
	{
		table_set_number(table, row, 0, (int64_t) row);
		table_set_number(table, row, 1, 0);
	}
	one_pass = calls_of_table(table);
	CHECK(one_pass >= each_pass);

	/* in order too, but the first values differ in more bits than a key chunk has */
	for (size_t row = 0; row < nrows; row++)
	{
		table_set_number(table, row, 0,
						 (int64_t) (4 * row / nrows) * INT64_C(0x1555555555555555));
		table_set_number(table, row, 1, (int64_t) row);
	}
	ncalls = calls_of_table(table);
	CHECK_MSG(ncalls >= one_pass + 2 * each_pass, "%llu calls, %llu without ties",
			  (unsigned long long) ncalls, (unsigned long long) one_pass);
	table_free(table);

	table = table_make_empty(&text, 1, nrows);
	for (size_t row = 0; row < nrows; row++)
		table_set_bytes(table, row, 0, "always the same", 15);
	ncalls = calls_of_table(table);
	CHECK_MSG(ncalls >= one_pass + each_pass, "%llu calls, %llu without ties",
			  (unsigned long long) ncalls, (unsigned long long) one_pass);
	table_free(table);
}

/*
 * A sort of one bigint column: how often it calls check_interrupts.  Reversing
 * the words is two passes over them, and each takes milliseconds where there
 * are millions.
 */
static uint64_t
calls_of_sort(size_t nrows, int64_t step)
{
	const TestKind kind = TEST_INT64;
	TestTable  *table = table_make_empty(&kind, 1, nrows);
	uint64_t	ncalls;

	table->keys_only = true;
	for (size_t row = 0; row < nrows; row++)
		table_set_number(table, row, 0, step * (int64_t) row);
	ncalls = calls_of_table(table);
	table_free(table);
	return ncalls;
}

static void
test_interrupts_of_reversal(void **unused)
{
	size_t		nrows = (size_t) 1 << 20;
	uint64_t	presorted = calls_of_sort(nrows, 1);
	uint64_t	reversed = calls_of_sort(nrows, -1);

	CHECK(presorted >= nrows >> 16);
	CHECK_MSG(reversed > presorted,
			  "%llu calls for reversed rows, as for presorted ones (%llu):"
			  " %zu rows are reversed without any",
			  (unsigned long long) reversed, (unsigned long long) presorted, nrows);
}

/*
 * Rows with a long common prefix: the comparison of all these bytes has to check
 * for interrupts, even if they are many bytes of few rows.  All rows share one copy
 * of the bytes, which the records permit.  The first row differs, so that the others
 * do not start where there is a check anyway.
 */
static void
test_interrupts_of_long_prefix(void **unused)
{
	size_t		nrows = 4000;
	uint32_t	len = UINT32_C(256) << 10;
	uint64_t	expected = (uint64_t) nrows * len >> 26;
	RawSort		sort;
	const void *rows[2];
	char	   *first_row;

	raw_begin(&sort);
	gs_key_layout_add_column(&sort.layout, false, false);
	gs_key_layout_add_bytes(&sort.layout, true);
	raw_open(&sort);

	/* one batch with space for all, and the bytes after its last row */
	CHECK(gs_engine_reserve(sort.engine, len + nrows * 32, &sort.batch) == GS_STATUS_OK);
	first_row = gs_batch_next_row(sort.batch);
	memset(first_row + 8 * nrows, 'x', len);
	for (size_t i = 0; i < nrows; i++)
	{
		char	   *this_row = gs_batch_next_row(sort.batch);
		uint64_t   *record = gs_batch_next_record(sort.batch);

		record[0] = i == 0 ? 0 : UINT64_C(0x7878787878787878);
		record[1] = gs_tail_make((uint32_t) (first_row + 8 * nrows - this_row),
								 len - (uint32_t) (i % 7));
		CHECK(gs_batch_has_space(sort.batch, 8));
		raw_push(&sort, 8);
	}
	sort.layout.columns[0].min_len = len - 6;
	sort.layout.columns[0].max_len = len;
	CHECK(gs_engine_sort(sort.engine) == GS_STATUS_OK);
	CHECK(driver_fetch(sort.engine, 0, 2, rows) == 2);
	CHECK(rows[0] == first_row && rows[1] == first_row + 8 * 6);
	raw_end(&sort);
	CHECK_MSG(sort.host.ninterrupts >= expected,
			  "%llu calls in the comparison of %zu MB; one for each 64 MB would be %llu",
			  (unsigned long long) sort.host.ninterrupts, nrows * (len >> 10) >> 10,
			  (unsigned long long) expected);
}

/* --------------------------------------------------------------------- memory */

/* How wide the rows of a memory test are. */
typedef size_t (*WidthFunction) (size_t row);

static size_t
narrow_rows(size_t row)
{
	return 8;
}

static size_t
usual_rows(size_t row)
{
	return 100 + row % 64;
}

static size_t
wide_rows(size_t row)
{
	return 3000 + mix64(row) % 5000;
}

/* One row in ten is wide, and most new batches are needed for such a row. */
static size_t
uneven_rows(size_t row)
{
	return mix64(row) % 10 == 0 ? 2000 : 24;
}

static size_t
huge_rows(size_t row)
{
	return (size_t) 100 << 10;
}

static size_t
no_rows(size_t row)
{
	return 0;					/* keys_only */
}

/* The result of a load that reached its limit. */
typedef struct LimitResult
{
	size_t		nrows;
	size_t		used_bytes;		/* of rows, records and words */
	size_t		peak;			/* most ever held */
	size_t		reported_peak;	/* as the engine has it */
	GsStatus	load_status;
	GsStatus	sort_status;
} LimitResult;

/* Opens an engine for such rows. */
static void
open_limited(RawSort *sort, size_t limit, bool keys_only)
{
	raw_begin(sort);
	raw_add_number(sort, false);
	sort->layout.keys_only = keys_only;
	sort->request.memory_limit = limit;
	raw_open(sort);
}

/* Loads rows of the given widths until the engine is full, or 3 M of them. */
static LimitResult
load(RawSort *sort, WidthFunction width)
{
	LimitResult stats = {0};

	sort->batch = NULL;
	while (stats.nrows < 3000000)
	{
		const size_t row_bytes = width(stats.nrows);

		if (sort->batch == NULL || !gs_batch_has_space(sort->batch, row_bytes))
			stats.load_status = gs_engine_reserve(sort->engine, row_bytes, &sort->batch);
		if (stats.load_status != GS_STATUS_OK)
			break;
		*gs_batch_next_record(sort->batch) = mix64(stats.nrows);
		raw_push(sort, row_bytes);
		stats.nrows++;
		stats.used_bytes += row_bytes + gs_record_bytes(&sort->layout) + gs_word_sort_row_bytes(false);
	}
	return stats;
}

/* Loads rows of the given widths until an engine with this limit is full, or 3 M; sorts them. */
static LimitResult
fill(size_t limit, WidthFunction width)
{
	LimitResult stats;
	RawSort		sort;
	size_t		allocated;
	size_t		held;

	open_limited(&sort, limit, width == no_rows);
	stats = load(&sort, width);

	/*
	 * It did not report FULL too early: one more row and its words would not have
	 * fitted, nor perhaps the longer list of batches for it.
	 */
	if (stats.load_status == GS_STATUS_FULL)
		CHECK_MSG(sort.host.held_bytes + gs_word_sort_bytes(stats.nrows + 1, false) +
				  GS_ALIGN_ROW(width(stats.nrows)) + gs_record_bytes(&sort.layout) +
				  (sort.host.nlive > 8 ? 2 * sort.host.nlive * sizeof(GsBatch) : 0) > limit,
				  "full at %zu bytes and %zu rows, with a limit of %zu",
				  sort.host.held_bytes, stats.nrows, limit);
	allocated = sort.host.nlive;
	held = sort.host.held_bytes;
	stats.sort_status = gs_engine_sort(sort.engine);
	stats.peak = sort.host.peak_bytes;
	stats.reported_peak = gs_engine_stats(sort.engine)->peak_bytes;
	if (stats.sort_status == GS_STATUS_FULL)
	{
		CHECK(sort.host.nlive == allocated && sort.host.held_bytes == held);
		CHECK(held + gs_word_sort_bytes(stats.nrows, false) > limit);
	}
	else
	{
		CHECK(stats.sort_status == GS_STATUS_OK);

		/* words have been allocated; if keys are rows, they replace the batches */
		if (sort.layout.keys_only && stats.nrows > 0)
			CHECK(sort.host.nlive <= 3);
		else
			CHECK(sort.host.nlive == allocated + (stats.nrows > 0));

		/* the engine's account is right, except for memory that was never used */
		CHECK_MSG(stats.reported_peak >= stats.used_bytes &&
				  stats.reported_peak <= stats.peak + 64,
				  "%zu bytes used, peak %zu, reported %zu", stats.used_bytes,
				  stats.peak, stats.reported_peak);
	}
	raw_end(&sort);
	return stats;
}

static void
check_limit(const char *name, WidthFunction width, bool even)
{
	for (size_t limit = (size_t) 64 << 10; limit <= (size_t) 64 << 20; limit *= 4)
	{
		LimitResult stats = fill(limit, width);

		unit_case("%s rows, limit %zu", name, limit);
		print_message("# %-7s limit %8zu: %7zu rows, %5.1f %% used, peak %5.1f %%, "
					  "reported %5.1f %%%s\n", name, limit, stats.nrows,
					  100.0 * (double) stats.used_bytes / (double) limit,
					  100.0 * (double) stats.peak / (double) limit,
					  100.0 * (double) stats.reported_peak / (double) limit,
					  stats.sort_status == GS_STATUS_FULL ? ", full in the sort" : "");
		CHECK(stats.load_status == GS_STATUS_FULL || stats.nrows == 3000000);
		CHECK(stats.sort_status == GS_STATUS_OK || !even);
		CHECK_MSG(stats.peak <= limit, "%zu bytes held", stats.peak);
	}
	unit_case("%s", "");
}

static void
test_limit(void **unused)
{
	check_limit("narrow", narrow_rows, true);
	check_limit("usual", usual_rows, true);
	check_limit("wide", wide_rows, true);
	check_limit("huge", huge_rows, true);
	check_limit("keys", no_rows, true);
}

/*
 * Rows of uneven widths.  The number of rows in a batch, and so the number of words
 * of the sort, is not known when the batch is allocated; a sort that would exceed
 * the limit has to report that.
 */
static void
test_limit_uneven(void **unused)
{
	check_limit("uneven", uneven_rows, false);
}

/* Limits too small for any row, and those at which something just fits. */
static void
test_limit_tiny(void **unused)
{
	for (size_t limit = 0; limit < 40000; limit += 61)
	{
		LimitResult stats = fill(limit, limit & 1 ? narrow_rows : no_rows);

		unit_case("limit %zu", limit);
		CHECK(stats.load_status == GS_STATUS_FULL);
		CHECK(stats.sort_status == GS_STATUS_OK);
		CHECK(stats.nrows == 0 || stats.peak <= limit);
	}
	unit_case("%s", "");
}

/* Loads rows until the engine is full, sorts them and checks their order; returns how many. */
static size_t
fill_again(RawSort *sort, WidthFunction width)
{
	const LimitResult loaded = load(sort, width);
	const size_t limit = sort->engine->request.memory_limit;
	const void *row;
	const uint64_t *record;
	uint64_t	previous = 0;
	size_t		fetched;

	CHECK(loaded.load_status == GS_STATUS_FULL);
	CHECK(gs_engine_sort(sort->engine) == GS_STATUS_OK);
	CHECK(sort->engine->stats.nrows == loaded.nrows);
	CHECK_MSG(sort->host.peak_bytes <= limit, "%zu bytes held, limit %zu", sort->host.peak_bytes, limit);
	for (size_t i = 0; i < loaded.nrows; i++)
	{
		CHECK(gs_engine_fetch_records(sort->engine, i, 1, &row, &record, &fetched) == GS_STATUS_OK);
		CHECK(fetched == 1 && *record >= previous);
		previous = *record;
	}
	return loaded.nrows;
}

/* The next rows get the memory of those before, and no more than the limit. */
static void
check_restart(WidthFunction first, WidthFunction second, size_t limit)
{
	RawSort		sort;
	uint64_t	nallocations;

	unit_case("limit %zu", limit);
	open_limited(&sort, limit, first == no_rows);
	(void) fill_again(&sort, first);
	gs_engine_cpu_restart(sort.engine, limit);
	nallocations = sort.host.nallocations;
	(void) fill_again(&sort, second);
	if (second == first && first != no_rows)
		CHECK(sort.host.nallocations == nallocations + 3);	/* words, as much for sorting, its state */

	/* when rows are returned, no memory is kept for more of them */
	gs_engine_cpu_restart(sort.engine, limit);
	CHECK(gs_engine_reserve(sort.engine, second(0), &sort.batch) == GS_STATUS_OK);
	*gs_batch_next_record(sort.batch) = 0;
	raw_push(&sort, second(0));
	CHECK(gs_engine_return_input(sort.engine) == GS_STATUS_OK);
	CHECK(sort.host.held_bytes <= limit / 4);
	raw_end(&sort);
	unit_case("%s", "");
}

static void
test_restart(void **unused)
{
	for (size_t limit = (size_t) 1 << 20; limit <= (size_t) 16 << 20; limit *= 4)
	{
		check_restart(usual_rows, usual_rows, limit);
		check_restart(narrow_rows, narrow_rows, limit);
		check_restart(no_rows, no_rows, limit);
		check_restart(wide_rows, narrow_rows, limit);	/* more words */
		check_restart(narrow_rows, wide_rows, limit);
		check_restart(usual_rows, huge_rows, limit);	/* the first batches are too small */
	}
}

/*
 * After FULL the rows are all there, returned or sorted, and a shorter row may still
 * be reserved.
 */
static void
check_full(const TestTable *table, Dice *dice)
{
	TestTable	pushed = *table;
	UnitHost	host;
	Driver		driver;
	GsStatus	status;

	unit_host_init(&host);
	CHECK(driver_open(&driver, &pushed, &host, dice_below(dice, 400000)));
	status = driver_load(&driver);
	CHECK(status == GS_STATUS_OK || status == GS_STATUS_FULL);
	if (status == GS_STATUS_FULL && driver.npushed > 0)
		CHECK(driver_push(&driver) == GS_STATUS_FULL);
	pushed.nrows = driver.npushed;	/* as if there were no more */
	status = dice_one_in(dice, 2) ? GS_STATUS_FULL : gs_engine_sort(driver.engine);
	if (status == GS_STATUS_OK)
		driver_check_sorted(&driver, dice);
	else
		driver_check_drain(&driver, SIZE_MAX);
	driver_close(&driver);
	unit_host_end(&host);
}

static void
test_full(void **unused)
{
	driver_check_tables(110000, 160, &(TableOptions) {.min_rows = 300, .max_rows = 3000, .max_payload = 2000}, check_full);
	driver_check_tables(111000, 40, &(TableOptions) {.min_rows = 300, .max_rows = 3000, .keys_only = true}, check_full);
}

/*
 * Several times more batches than the engine has space for in itself: the list of
 * batches grows, and may fail to.
 */
static void
check_many_batches(size_t nrows, uint64_t fail_at)
{
	size_t		row_bytes = ((size_t) 16 << 20) - 200;
	RawSort		sort;
	const void *rows[64];

	raw_begin(&sort);
	raw_add_number(&sort, true);
	raw_open(&sort);
	CHECK(nrows <= 64);
	sort.host.fail_at = fail_at;
	for (uint32_t row = 0; row < nrows; row++)
	{
		GsStatus	status = gs_engine_reserve(sort.engine, row_bytes, &sort.batch);

		if (status == GS_STATUS_OOM && sort.host.nallocations == fail_at)
			status = gs_engine_reserve(sort.engine, row_bytes, &sort.batch);
		CHECK(status == GS_STATUS_OK);
		memcpy(gs_batch_next_row(sort.batch), &row, sizeof(row));
		*gs_batch_next_record(sort.batch) = row;
		raw_push(&sort, row_bytes);
	}
	CHECK(sort.host.nlive >= nrows);
	CHECK(gs_engine_stats(sort.engine)->peak_bytes <= sort.host.peak_bytes);
	CHECK(gs_engine_sort(sort.engine) == GS_STATUS_OK);
	CHECK(driver_fetch(sort.engine, 0, nrows, rows) == nrows);
	for (size_t i = 0; i < nrows; i++)
		CHECK(table_row_number(rows[i]) == nrows - 1 - i);
	raw_end(&sort);
}

/* The first batch has space for the rows that are expected, if these are few. */
static void
check_first_batch(size_t expected_bytes, size_t memory_limit, size_t batch_bytes)
{
	RawSort		sort;

	raw_begin(&sort);
	raw_add_number(&sort, true);
	sort.request.expected_bytes = expected_bytes;
	sort.request.memory_limit = memory_limit;
	raw_open(&sort);
	CHECK(gs_engine_reserve(sort.engine, 200, &sort.batch) == GS_STATUS_OK);
	CHECK((size_t) (sort.batch->top - sort.batch->base) == batch_bytes);
	raw_end(&sort);
}

static void
test_first_batch(void **unused)
{
	check_first_batch(0, 4 << 20, 8 << 10);
	check_first_batch(100, 4 << 20, 8 << 10);
	check_first_batch(100000, 4 << 20, 100000);
	check_first_batch(4 << 20, 4 << 20, 3 << 20);	/* three quarters of the limit */
	check_first_batch(4 << 20, SIZE_MAX, 4 << 20);
	check_first_batch((4 << 20) + 1, SIZE_MAX, 8 << 10);	/* not few */
}

static void
test_many_batches(void **unused)
{
	check_many_batches(40, 0);
	for (uint64_t k = 2; k <= 40; k++)
		check_many_batches(36, k);
}

/* ------------------------------------------------------------- row numbering */

/* The numbering of so many batches and units: reversible, and in input order. */
static void
check_numbering(size_t nbatches, size_t nunits, bool expected)
{
	GsRowNumbering numbering;
	const size_t batch_numbers[] = {0, nbatches / 2, nbatches - 1};
	const size_t units[] = {0, nunits / 2, nunits - 1};
	uint64_t	numbers[9];

	CHECK_MSG(gs_row_numbering(&numbering, nbatches, nunits) == expected,
			  "%zu batches of %zu units", nbatches, nunits);
	if (!expected)
		return;
	CHECK(numbering.number_bits <= GS_MAX_NUMBER_BITS);
	CHECK(numbering.number_bits >= numbering.unit_bits);
	for (int i = 0; i < 9; i++)
	{
		size_t		batch = batch_numbers[i / 3];
		size_t		unit = units[i % 3];

		numbers[i] = gs_row_number(&numbering, batch, unit);
		CHECK(numbers[i] >> numbering.number_bits == 0);
		CHECK(gs_word_unit(&numbering, numbers[i]) == unit);

		/* the batches need not exist to have an address */
		CHECK((uintptr_t) gs_word_batch(&numbering, (const GsBatch *) 4096, numbers[i]) ==
			  4096 + batch * sizeof(GsBatch));
		for (int k = 0; k < i; k++)
			CHECK((numbers[k] == numbers[i]) ==
				  (batch_numbers[k / 3] == batch && units[k % 3] == unit));
		if (i > 0)
			CHECK((numbers[i] > numbers[i - 1]) ==
				  (batch > batch_numbers[(i - 1) / 3] || unit > units[(i - 1) % 3]));
	}
}

static void
test_numbering(void **unused)
{
	const size_t one = 1;

	CHECK(GS_MAX_NUMBER_BITS == 34);
	check_numbering(1, 1, true);
	check_numbering(1, 2, true);
	check_numbering(2, 1, true);
	check_numbering(3, 5, true);

	/* at the limit and one past it, every way to divide the bits */
	for (int unit_bits = 0; unit_bits <= GS_MAX_NUMBER_BITS; unit_bits++)
	{
		size_t		nunits = one << unit_bits;
		size_t		nbatches = one << (GS_MAX_NUMBER_BITS - unit_bits);

		check_numbering(nbatches, nunits, true);
		check_numbering(nbatches + 1, nunits, false);
		check_numbering(nbatches, nunits + 1, false);
	}

	/* more than 2^32 units in all, and in one batch */
	check_numbering((one << 12) - 1, (one << 22) - 1, true);
	check_numbering(1, (one << 32) + 1, true);
	check_numbering((one << 32) + 1, 1, true);
	check_numbering(2, one << 33, true);
	check_numbering(3, one << 33, false);

	/* and so many that the bits would not fit a word */
	check_numbering(SIZE_MAX, SIZE_MAX, false);
	check_numbering(SIZE_MAX, 1, false);
	check_numbering(1, SIZE_MAX, false);
}

/*
 * A load up to the limit of the numbering: 8,192 batches of 16 MB, of which
 * only the first and last pages are ever touched.  The row numbers then take
 * 34 bits and leave the key the fewest that it may have.
 */
static void *
map_memory(void *arg, size_t nbytes)
{
	void	   *memory;

	/* the words and the state of a sort are used as a whole */
	memory = mmap(NULL, nbytes, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return memory == MAP_FAILED ? NULL : memory;
}

static void
unmap_memory(void *arg, void *memory, size_t nbytes)
{
	CHECK(munmap(memory, nbytes) == 0);
}

static void
count_interrupts(void *arg)
{
	++*(uint64_t *) arg;
}

static void
test_numbering_limit(void **unused)
{
	size_t		wide = ((size_t) 16 << 20) - 2000;
	uint64_t	ninterrupts = 0;
	RawSort		sort;
	GsStatus	status;
	size_t		nrows = 0;
	const void **rows;

	raw_begin(&sort);
	raw_add_number(&sort, true);
	sort.request.memory_limit = SIZE_MAX;
	sort.request.runtime.arg = &ninterrupts;
	sort.request.runtime.allocate = map_memory;
	sort.request.runtime.release = unmap_memory;
	sort.request.runtime.check_interrupts = count_interrupts;
	raw_open(&sort);

	/* a wide row and narrow ones after it to a sort.batch, so that units are large */
	for (;;)
	{
		size_t		row_bytes = nrows % 40 == 0 ? wide : 8;

		status = gs_engine_reserve(sort.engine, row_bytes, &sort.batch);
		if (status != GS_STATUS_OK)
			break;
		CHECK(gs_batch_has_space(sort.batch, row_bytes));
		memcpy(gs_batch_next_row(sort.batch), &(uint32_t){(uint32_t) nrows}, 4);
		*gs_batch_next_record(sort.batch) = mix64(nrows / 4);	/* four rows tie */
		raw_push(&sort, row_bytes);
		nrows++;
		CHECK(nrows <= 400000);
	}
	if (status == GS_STATUS_OOM)
	{
		print_message("# no address space for this test: %zu rows\n", nrows);
		skip();
	}
	CHECK(status == GS_STATUS_FULL);
	CHECK_MSG(nrows >= 40 * 8170, "%zu rows", nrows);
	CHECK(gs_engine_sort(sort.engine) == GS_STATUS_OK);
	CHECK(sort.engine->stats.nrows == nrows);
	rows = malloc(sizeof(void *) * nrows);
	CHECK(rows != NULL);
	CHECK(driver_fetch(sort.engine, 0, nrows, rows) == nrows);
	for (size_t i = 0; i < nrows; i++)
	{
		uint32_t	number;
		uint32_t	before;

		memcpy(&number, rows[i], sizeof(number));
		CHECK(number < nrows);
		if (i == 0)
			continue;
		memcpy(&before, rows[i - 1], sizeof(before));
		CHECK(mix64(before / 4) >= mix64(number / 4));
		if (before / 4 == number / 4)
			CHECK(number == before + 1);
	}
	free(rows);
	raw_end(&sort);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_out_of_memory),
		cmocka_unit_test(test_interrupts),
		cmocka_unit_test(test_interrupts_of_ties),
		cmocka_unit_test(test_interrupts_of_reversal),
		cmocka_unit_test(test_interrupts_of_long_prefix),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_limit_uneven),
		cmocka_unit_test(test_limit_tiny),
		cmocka_unit_test(test_restart),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_first_batch),
		cmocka_unit_test(test_many_batches),
		cmocka_unit_test(test_numbering),
		cmocka_unit_test(test_numbering_limit)
	};

	return cmocka_run_group_tests_name("engine_memory", tests, NULL, NULL);
}
