/*-------------------------------------------------------------------------
 *
 * test_engine_gpu.c
 *	  The GPU engine, from engine.h down to the host device: order, output,
 *	  return of the input, and links that break.
 *
 * Random tables and checks are those of test_engine_cpu.c (unit_driver.h).
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit_cmocka.h"
#include "unit_driver.h"
#include "unit_link.h"

#define BUFFER_BYTES	((uint32_t) 64 << 10)
#define MEMORY		((uint64_t) 1 << 30)

/* Opens the engine on a new link. */
static UnitLink *
open_engine(Driver *driver, const TestTable *table, UnitHost *host, Dice *dice, uint64_t memory)
{
	GsGpuOptions options = {0};
	UnitLink   *link = unit_link_open(BUFFER_BYTES, 3 + (uint32_t) dice_below(dice, 6), memory);
	GsEngineRequest request = {0};

	options.algorithm = (int) dice_below(dice, 3);
	memset(driver, 0, sizeof(*driver));
	driver->table = table;
	driver->host = host;
	table_layout(table, &driver->layout);
	request.layout = &driver->layout;
	request.memory_limit = 0;
	request.runtime = host->callbacks;
	CHECK(gs_engine_gpu_open(&request, &link->base, &options, &driver->engine) == GS_STATUS_OK);
	return link;
}

static void
check_table(const TestTable *table, Dice *dice)
{
	UnitHost	host;
	Driver		driver;
	UnitLink   *link;

	unit_host_init(&host);
	link = open_engine(&driver, table, &host, dice, MEMORY);
	CHECK(driver_load(&driver) == GS_STATUS_OK);
	CHECK(gs_engine_sort(driver.engine) == GS_STATUS_OK);
	driver_check_sorted(&driver, dice);
	driver_close(&driver);
	CHECK(link->reusable);
	unit_link_close(link);
	unit_host_end(&host);
}

static void
test_small_tables(void **unused)
{
	driver_check_tables(1, 1500, &(TableOptions) {0}, check_table);
}

static void
test_large_tables(void **unused)
{
	driver_check_tables(20000, 100, &(TableOptions) {.min_rows = 500, .max_rows = 12000}, check_table);
}

static void
test_shapes(void **unused)
{
	driver_check_shapes(30000, 20, 2000, check_table);
}

static void
test_keys_only(void **unused)
{
	driver_check_tables(40000, 150, &(TableOptions) {.keys_only = true, .max_rows = 20000}, check_table);
}

static void
test_strings(void **unused)
{
	driver_check_strings(60000, 100, &(TableOptions) {.ncolumns = 1, .max_rows = 1500, .max_len = 40}, check_table);
	driver_check_strings(70000, 50, &(TableOptions) {.ncolumns = 2, .max_rows = 300, .max_len = 1100}, check_table);
}

/* ---------------------------------------------------------------- the move */

/* As a node does after gpusort.device_min_rows rows: the CPU engine's rows move. */
static void
check_move(const TestTable *table, Dice *dice)
{
	UnitHost	host;
	Driver		cpu;
	Driver		driver;
	UnitLink   *link;
	const GsBatch *batches;
	size_t		nbatches;
	size_t		nmoved = dice_below(dice, table->nrows + 1);

	unit_host_init(&host);
	CHECK(driver_open(&cpu, table, &host, (size_t) 1 << 40));
	while (cpu.npushed < nmoved)
		CHECK(driver_push(&cpu) == GS_STATUS_OK);

	link = open_engine(&driver, table, &host, dice, MEMORY);
	driver.layout = cpu.layout;
	batches = gs_engine_cpu_batches(cpu.engine, &nbatches);
	for (size_t i = 0; i < nbatches; i++)
	{
		for (size_t entry = 0; entry < batches[i].nrows; entry++)
		{
			size_t		row_bytes = gs_batch_row_bytes(&batches[i], &cpu.layout, entry);

			CHECK(gs_engine_reserve(driver.engine, row_bytes, &driver.batch) == GS_STATUS_OK);
			gs_batch_push_copy(driver.batch, &batches[i], &cpu.layout, entry, row_bytes);
			driver.npushed++;
		}
	}
	CHECK(driver.npushed == nmoved);
	driver_close(&cpu);

	CHECK(driver_load(&driver) == GS_STATUS_OK);
	CHECK(gs_engine_sort(driver.engine) == GS_STATUS_OK);
	driver_check_sorted(&driver, dice);
	driver_close(&driver);
	unit_link_close(link);
	unit_host_end(&host);
}

static void
test_move(void **unused)
{
	driver_check_tables(80000, 200, &(TableOptions) {.max_rows = 3000}, check_move);
}

/* -------------------------------------------------------------------- drain */

/* A device that is too small: all rows are returned, in input order. */
static void
check_drain(const TestTable *table, Dice *dice)
{
	UnitHost	host;
	Driver		driver;
	UnitLink   *link;
	GsStatus	status;

	unit_host_init(&host);
	link = open_engine(&driver, table, &host, dice,
					   dice_one_in(dice, 4) ? MEMORY : 1 + dice_below(dice, (uint64_t) 40 << 20));
	status = driver_load(&driver);
	if (status == GS_STATUS_OK && dice_one_in(dice, 2))
		status = gs_engine_sort(driver.engine);
	CHECK_MSG(status == GS_STATUS_OK || status == GS_STATUS_FULL, "status %d", (int) status);
	if (status == GS_STATUS_OK && driver.engine->stats.method != GS_METHOD_NONE)
		driver_check_sorted(&driver, dice);
	else
		driver_check_drain(&driver, dice_one_in(dice, 4) ? dice_below(dice, driver.npushed + 1) : SIZE_MAX);
	driver_close(&driver);
	unit_link_close(link);
	unit_host_end(&host);
}

static void
test_drain(void **unused)
{
	driver_check_tables(90000, 150, &(TableOptions) {.max_rows = 8000, .max_payload = 1000}, check_drain);
}

/* --------------------------------------------------------- a part of the rows */

/* The first nsorted rows of the table, in order. */
static void
check_part(Driver *driver, const uint32_t *order, size_t nsorted)
{
	const TestTable *table = driver->table;
	const void *rows[16];
	size_t		position = 0;
	size_t		at = 0;
	size_t		n = 0;

	for (size_t i = 0; i < table->nrows; i++)
	{
		if (order[i] >= nsorted)
			continue;
		if (at == n)
		{
			position += n;
			n = driver_fetch(driver->engine, position, 16, rows);
			CHECK(n > 0);
			at = 0;
		}
		CHECK_MSG(table_row_is(table, order[i], &driver->layout, rows[at]),
				  "row %u is another one, or damaged", order[i]);
		at++;
	}
	CHECK(driver_fetch(driver->engine, nsorted, 16, rows) == 0);
}

/*
 * A device that is too small: it sorts the rows that it has, and the other rows are
 * returned in input order.  It may have no memory for the sort; then all rows can be
 * returned.
 */
static int	nparts = 0;			/* sorts of a part of the rows */

static void
check_partial(const TestTable *table, Dice *dice)
{
	UnitHost	host;
	Driver		driver;
	UnitLink   *link;
	GsStatus	status;
	uint32_t   *order = table_order(table);

	unit_host_init(&host);
	link = open_engine(&driver, table, &host, dice,
					   1 + dice_below(dice, UINT64_C(1) << (20 + dice_below(dice, 6))));
	status = driver_load(&driver);
	CHECK(status == GS_STATUS_OK || status == GS_STATUS_FULL);
	status = gs_engine_sort(driver.engine);
	if (status == GS_STATUS_FULL)
		status = gs_engine_sort(driver.engine);
	if (status == GS_STATUS_OK)
	{
		size_t		nsorted = (size_t) driver.engine->stats.nrows;
		size_t		n = nsorted;
		const GsBatch *batch;

		CHECK(nsorted <= driver.npushed);
		nparts += nsorted > 0 && nsorted < driver.npushed;
		check_part(&driver, order, nsorted);
		while (gs_engine_next_batch(driver.engine, &batch) == GS_STATUS_OK && batch != NULL)
		{
			for (size_t entry = 0; entry < batch->nrows; entry++)
				CHECK(table_row_is(table, n++, &driver.layout,
								   gs_batch_pushed(batch, &driver.layout, entry)));
		}
		CHECK_MSG(n == driver.npushed, "%zu of %zu rows", n, driver.npushed);
		check_part(&driver, order, nsorted);
	}
	else
	{
		CHECK(status == GS_STATUS_FULL);
		driver_check_drain(&driver, SIZE_MAX);
	}
	free(order);
	driver_close(&driver);
	unit_link_close(link);
	unit_host_end(&host);
}

static void
test_partial(void **unused)
{
	driver_check_tables(95000, 150, &(TableOptions) {.max_rows = 8000, .max_payload = 1000}, check_partial);
	driver_check_tables(96000, 50, &(TableOptions) {.max_rows = 60000, .max_payload = 1000, .keys_only = true}, check_partial);
	CHECK_MSG(nparts > 20, "only %d were", nparts);
}

/* ---------------------------------------------------------- links that break */

/* The link breaks after any number of messages: FAILED, a reason, no leak. */
static void
check_break(const TestTable *table, Dice *dice)
{
	UnitHost	host;
	Driver		driver;
	UnitLink   *link;
	GsStatus	status;

	unit_host_init(&host);
	link = open_engine(&driver, table, &host, dice, MEMORY);
	link->break_after = link->nmessages + (int) dice_below(dice, 30);
	status = driver_load(&driver);
	if (status == GS_STATUS_OK)
		status = gs_engine_sort(driver.engine);
	for (size_t at = 0; status == GS_STATUS_OK && at < driver.npushed;)
	{
		const void *rows[8];
		size_t		fetched;

		status = gs_engine_fetch(driver.engine, at, 8, rows, &fetched);
		at += fetched;
	}
	if (status != GS_STATUS_OK)
	{
		GsBatch    *batch;

		CHECK(status == GS_STATUS_FAILED);
		CHECK(driver.engine->stats.detail != NULL && driver.engine->stats.detail[0] != '\0');
		CHECK(link->released && !link->reusable);

		/* permanently */
		CHECK(gs_engine_reserve(driver.engine, 100000, &batch) != GS_STATUS_OK);
		CHECK(gs_engine_sort(driver.engine) == GS_STATUS_FAILED);
		CHECK(gs_engine_return_input(driver.engine) == GS_STATUS_FAILED);
	}
	driver_close(&driver);
	unit_link_close(link);
	unit_host_end(&host);
}

static void
test_break(void **unused)
{
	driver_check_tables(100000, 300, &(TableOptions) {.max_rows = 3000, .max_payload = 500}, check_break);
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
		cmocka_unit_test(test_move),
		cmocka_unit_test(test_drain),
		cmocka_unit_test(test_partial),
		cmocka_unit_test(test_break),
	};

	return cmocka_run_group_tests_name("engine_gpu", tests, NULL, NULL);
}
