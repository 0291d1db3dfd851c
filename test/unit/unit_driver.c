/*-------------------------------------------------------------------------
 *
 * unit_driver.c
 *	  A driver of the engine frontier (engine.h) over a random table, or over rows
 *	  that a test writes itself.
 *
 * It does what node_gpusort.c does, and a little more of what engine.h allows:
 * it asks for a batch when there is still room, or for more room than it then
 * uses, and writes rows that it does not push.
 *
 *-------------------------------------------------------------------------
 */
#include "unit_driver.h"

#include <stdlib.h>
#include <string.h>

#include "unit_check.h"

bool
driver_open(Driver *driver, const TestTable *table, UnitHost *host, size_t memory_limit)
{
	GsEngineRequest request = {0};

	memset(driver, 0, sizeof(*driver));
	driver->table = table;
	driver->host = host;
	table_layout(table, &driver->layout);
	request.layout = &driver->layout;
	request.memory_limit = memory_limit;
	request.runtime = host->callbacks;
	driver->engine = gs_engine_cpu_open(&request);
	driver->engine_bytes = host->last_bytes;
	return driver->engine != NULL;
}

GsStatus
driver_push(Driver *driver)
{
	const TestTable *table = driver->table;
	size_t		row = driver->npushed;
	size_t		row_bytes = table_row_bytes(table, row);
	uint32_t	offsets[GS_MAX_COLUMNS];
	uint64_t   *record;
	uint32_t	nulls;

	/* reserving too much space leaves empty batches */
	if (row % 97 == 96 && !table->keys_only &&
		gs_engine_reserve(driver->engine, row_bytes + 10000, &driver->batch) != GS_STATUS_OK)
		driver->batch = NULL;

	/* node_gpusort.c asks only when it must; asking always is legal too */
	if (driver->batch == NULL || (row & 1) || !gs_batch_has_space(driver->batch, row_bytes))
	{
		GsBatch    *batch = NULL;
		GsStatus	status = gs_engine_reserve(driver->engine, row_bytes, &batch);

		if (status != GS_STATUS_OK)
			return status;
		CHECK(batch != NULL && gs_batch_has_space(batch, row_bytes));
		driver->batch = batch;
	}
	record = gs_batch_next_record(driver->batch);
	CHECK(((uintptr_t) record & 7) == 0);
	if (row % 11 == 0)
	{
		memset(gs_batch_next_row(driver->batch), 0x5A, row_bytes);
		memset(record, 0x5A, gs_record_bytes(&driver->layout));
	}
	if (!table->keys_only)
		table_put_row(table, row, gs_batch_next_row(driver->batch), offsets);
	nulls = table_put_key(table, row, &driver->layout, offsets, record);
	if (!table->keys_only)
		record[driver->layout.nwords] = gs_batch_next_location(driver->batch, nulls);
	gs_batch_push(driver->batch, row_bytes);
	driver->npushed++;
	return GS_STATUS_OK;
}

GsStatus
driver_load(Driver *driver)
{
	while (driver->npushed < driver->table->nrows)
	{
		GsStatus	status = driver_push(driver);

		if (status != GS_STATUS_OK)
			return status;
	}
	return GS_STATUS_OK;
}

void
driver_open_loaded(Driver *driver, const TestTable *table, UnitHost *host)
{
	unit_host_init(host);
	CHECK(driver_open(driver, table, host, (size_t) 1 << 40));
	CHECK(driver_load(driver) == GS_STATUS_OK);
}

void
driver_open_sorted(Driver *driver, const TestTable *table, UnitHost *host)
{
	driver_open_loaded(driver, table, host);
	CHECK(gs_engine_sort(driver->engine) == GS_STATUS_OK);
}

void
driver_close(Driver *driver)
{
	gs_engine_close(driver->engine);
	driver->engine = NULL;
}

size_t
driver_fetch(GsEngine *engine, uint64_t position, size_t nrows, const void **rows)
{
	size_t		fetched = SIZE_MAX;

	CHECK(gs_engine_fetch(engine, position, nrows, rows, &fetched) == GS_STATUS_OK);
	return fetched;
}

/* Fetches from a position and compares what comes. */
static void
check_window(Driver *driver, const uint32_t *order, size_t position, size_t nwanted,
			 const void **rows)
{
	const TestTable *table = driver->table;
	size_t		nrows = driver->npushed;
	size_t		nleft = position < nrows ? nrows - position : 0;
	size_t		n;

	for (size_t i = 0; i < nwanted; i++)
		rows[i] = NULL;
	rows[nwanted] = rows;		/* must stay */
	n = driver_fetch(driver->engine, position, nwanted, rows);
	CHECK_MSG(n > 0 || nleft == 0 || nwanted == 0, "fetch(%zu, %zu) of %zu rows gave none",
			  position, nwanted, nrows);
	CHECK_MSG(n <= nwanted && n <= nleft, "fetch(%zu, %zu) of %zu rows gave %zu",
			  position, nwanted, nrows, n);
	CHECK(rows[nwanted] == (const void *) rows);
	for (size_t i = 0; i < n; i++)
	{
		uint32_t	expected = order[position + i];

		CHECK(rows[i] != NULL);
		CHECK_MSG(table->keys_only || table_row_number(rows[i]) == expected,
				  "position %zu of %zu: row %u, but row %u belongs there; they compare as %d",
				  position + i, nrows, table_row_number(rows[i]), expected,
				  table_row_number(rows[i]) < nrows ?
				  table_compare(table, table_row_number(rows[i]), expected) : 0);
		CHECK_MSG(table_row_is(table, expected, &driver->layout, rows[i]),
				  "position %zu of %zu: row %u is damaged", position + i, nrows, expected);
	}
}

void
driver_check_sorted(Driver *driver, Dice *dice)
{
	size_t		nrows = driver->npushed;
	size_t		window = 1 + dice_below(dice, dice_one_in(dice, 2) ? 4 : 300);
	uint32_t   *order;
	const void **rows = malloc(sizeof(void *) * (nrows + 302));

	CHECK(rows != NULL);
	CHECK(nrows == driver->table->nrows);
	CHECK(gs_engine_stats(driver->engine)->nrows == nrows);
	order = table_order(driver->table);

	/* all at once, and more than there are */
	check_window(driver, order, 0, nrows + 1, rows);

	/* forward and backward, as the node does */
	for (size_t at = 0; at < nrows; at += window)
		check_window(driver, order, at, window, rows);
	for (size_t end = nrows; end > 0;)
	{
		size_t		start = end > window ? end - window : 0;

		check_window(driver, order, start, end - start, rows);
		end = start;
	}

	/* here and there, and past the end */
	for (int i = 0; i < 20; i++)
		check_window(driver, order, dice_below(dice, nrows + 3),
					 dice_below(dice, window + 1), rows);
	check_window(driver, order, nrows, 5, rows);
	check_window(driver, order, SIZE_MAX, 5, rows);
	free(rows);
	free(order);
}

void
driver_check_drain(Driver *driver, size_t max_rows)
{
	const TestTable *table = driver->table;
	const GsBatch *batch = NULL;
	size_t		n = 0;

	CHECK(gs_engine_return_input(driver->engine) == GS_STATUS_OK);
	while (n < max_rows)
	{
		CHECK(gs_engine_next_batch(driver->engine, &batch) == GS_STATUS_OK);
		if (batch == NULL)
			break;
		for (size_t entry = 0; entry < batch->nrows; entry++)
		{
			CHECK_MSG(n < driver->npushed, "a row too many came out");
			CHECK_MSG(table_row_is(table, n, &driver->layout,
								   gs_batch_pushed(batch, &driver->layout, entry)),
					  "row %zu of %zu is another one, or damaged", n, driver->npushed);
			n++;
		}
	}
	CHECK_MSG(n >= max_rows || n == driver->npushed, "%zu of %zu rows came out",
			  n, driver->npushed);
	if (n < max_rows)
		CHECK(gs_engine_next_batch(driver->engine, &batch) == GS_STATUS_OK && batch == NULL);
}

void
driver_check_table(const TestTable *table, Dice *dice)
{
	UnitHost	host;
	Driver		driver;

	driver_open_loaded(&driver, table, &host);
	if (dice_one_in(dice, 4))	/* a row that never comes */
		CHECK(gs_engine_reserve(driver.engine, table->keys_only ? 0 : 30000,
								&driver.batch) == GS_STATUS_OK);
	CHECK(gs_engine_sort(driver.engine) == GS_STATUS_OK);
	driver_check_sorted(&driver, dice);
	driver_close(&driver);
	unit_host_end(&host);
}

void
driver_check_tables(uint64_t first_seed, int ntables, const TableOptions *options,
					TableCheck check)
{
	for (uint64_t seed = first_seed; seed < first_seed + (uint64_t) ntables; seed++)
	{
		Dice		dice;
		TestTable  *table = table_of_seed(seed, &dice, options);

		check(table, &dice);
		table_free(table);
	}
	unit_case("%s", "");
}

void
driver_check_shapes(uint64_t first_seed, int ntables, size_t max_rows, TableCheck check)
{
	TableOptions options = {.max_rows = max_rows};

	for (options.shape = SHAPE_ANY + 1; options.shape < SHAPES; options.shape++)
		driver_check_tables(first_seed + (uint64_t) options.shape * 100, ntables, &options, check);
}

void
driver_check_strings(uint64_t first_seed, int ntables, const TableOptions *options, TableCheck check)
{
	TableOptions strings = *options;

	for (strings.kind = TEST_TEXT; strings.kind <= TEST_BYTEA; strings.kind++)
		driver_check_tables(first_seed + (uint64_t) strings.kind * 1000, ntables, &strings, check);
}

/* ------------------------------------------------------- without a table */

void
raw_begin(RawSort *sort)
{
	memset(sort, 0, sizeof(*sort));
	unit_host_init(&sort->host);
	gs_key_layout_init(&sort->layout);
	sort->request.layout = &sort->layout;
	sort->request.memory_limit = (size_t) 1 << 40;
	sort->request.runtime = sort->host.callbacks;
}

void
raw_add_number(RawSort *sort, bool descending)
{
	gs_key_layout_add_column(&sort->layout, descending, false);
	gs_key_layout_add_field(&sort->layout, 64, GS_CANONICAL_NONE);
}

void
raw_open(RawSort *sort)
{
	sort->engine = gs_engine_cpu_open(&sort->request);
	CHECK(sort->engine != NULL);
}

void
raw_push(RawSort *sort, size_t row_bytes)
{
	uint64_t   *record = gs_batch_next_record(sort->batch);

	for (int i = 0; i < sort->layout.nfields; i++)
		gs_key_field_update_range(&sort->layout.fields[i], record[i]);
	if (!sort->layout.keys_only)
		record[sort->layout.nwords] = gs_batch_next_location(sort->batch, 0);
	sort->layout.nrows++;
	gs_batch_push(sort->batch, row_bytes);
}

void
raw_end(RawSort *sort)
{
	gs_engine_close(sort->engine);
	unit_host_end(&sort->host);
}
