/*-------------------------------------------------------------------------
 *
 * test_readers.c
 *	  Several engines that read the sorted rows of one (engine.h), down to the host
 *	  device: all get the rows in order, at any time and from any position, and whoever
 *	  ends does not disturb the others.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "unit_cmocka.h"
#include "unit_driver.h"
#include "unit_link.h"

#define BUFFER_BYTES	((uint32_t) 64 << 10)
#define MEMORY			((uint64_t) 1 << 30)
#define MAX_READERS		4

typedef struct Reader
{
	Driver		driver;			/* engine NULL: it has ended */
	UnitLink   *link;
	bool		reads;			/* it has begun */
} Reader;

typedef struct Sharing
{
	const TestTable *table;
	Dice	   *dice;
	UnitHost	host;
	Driver		consumer;
	UnitLink   *link;			/* of the consumer */
	int			nreaders;
	Reader		readers[MAX_READERS];
} Sharing;

static GsEngineRequest
begin_driver(Sharing *sharing, Driver *driver)
{
	memset(driver, 0, sizeof(*driver));
	driver->table = sharing->table;
	driver->host = &sharing->host;
	table_layout(sharing->table, &driver->layout);
	return (GsEngineRequest) {.layout = &driver->layout,.runtime = sharing->host.callbacks};
}

static void
begin(Sharing *sharing, const TestTable *table, Dice *dice)
{
	const GsGpuOptions options = {.algorithm = (int) dice_below(dice, 3),.shared = true};
	GsEngineRequest request;

	memset(sharing, 0, sizeof(*sharing));
	sharing->table = table;
	sharing->dice = dice;
	unit_host_init(&sharing->host);
	sharing->link = unit_link_open(BUFFER_BYTES, 3 + (uint32_t) dice_below(dice, 6), MEMORY);
	request = begin_driver(sharing, &sharing->consumer);
	CHECK(gs_engine_gpu_open(&request, &sharing->link->base, &options, &sharing->consumer.engine) == GS_STATUS_OK);
}

static GsStatus
open_reader_with(Sharing *sharing, Reader *reader, uint32_t buffer_bytes, uint64_t token, int nwords)
{
	GsEngineRequest request = begin_driver(sharing, &reader->driver);

	reader->driver.layout.nwords += nwords;
	reader->link = unit_link_open_other(sharing->link, buffer_bytes, 1 + (uint32_t) dice_below(sharing->dice, 6));
	reader->link->slow = true;	/* as if a call of the device blocked gpusortd */
	return gs_engine_gpu_read(&request, &reader->link->base, token, &reader->driver.engine);
}

/* Opens some more of them. */
static void
open_readers(Sharing *sharing)
{
	const uint64_t token = gs_engine_gpu_token(sharing->consumer.engine);

	while (sharing->nreaders < MAX_READERS && !dice_one_in(sharing->dice, 3))
		CHECK(open_reader_with(sharing, &sharing->readers[sharing->nreaders++], BUFFER_BYTES, token, 0) == GS_STATUS_OK);
}

static void
push_rows(Sharing *sharing)
{
	while (sharing->consumer.npushed < sharing->table->nrows)
	{
		CHECK(driver_push(&sharing->consumer) == GS_STATUS_OK);
		if (dice_one_in(sharing->dice, 1000))
			open_readers(sharing);
	}
}

static void
close_reader(Reader *reader)
{
	driver_close(&reader->driver);
	unit_link_close(reader->link);
}

static void
end(Sharing *sharing)
{
	for (int i = 0; i < sharing->nreaders; i++)
		if (sharing->readers[i].driver.engine != NULL)
			close_reader(&sharing->readers[i]);
	unit_link_close(sharing->link);
	unit_host_end(&sharing->host);
}

/* Some reader; it has begun to read. */
static Reader *
some_reader(Sharing *sharing)
{
	Reader	   *reader = &sharing->readers[dice_below(sharing->dice, (uint64_t) sharing->nreaders)];

	if (reader->driver.engine != NULL && !reader->reads)
	{
		CHECK(gs_engine_gpu_begin_reading(reader->driver.engine, sharing->table->nrows) == GS_STATUS_OK);
		reader->driver.npushed = sharing->table->nrows;
		reader->reads = true;
	}
	return reader;
}

/* ----------------------------------------------------------------------- rows */

/* Fetches a few rows by the consumer or a reader. */
static void
check_rows(Sharing *sharing, const Driver *driver, const uint32_t *order, uint64_t position)
{
	const void *rows[40];
	size_t		n = driver_fetch(driver->engine, position, 1 + dice_below(sharing->dice, 40), rows);

	CHECK(n > 0);
	for (size_t i = 0; i < n; i++)
		CHECK_MSG(table_row_is(sharing->table, order[position + i], &driver->layout, rows[i]),
				  "position %zu: not row %u, or damaged", (size_t) position + i, order[position + i]);
}

/* All read by turns, some from position to position, others in order; some end before others. */
static void
check_table(const TestTable *table, Dice *dice)
{
	Sharing		sharing;
	uint32_t   *order = table_order(table);
	uint64_t	next[MAX_READERS] = {0};

	begin(&sharing, table, dice);
	open_readers(&sharing);
	push_rows(&sharing);
	CHECK(gs_engine_sort(sharing.consumer.engine) == GS_STATUS_OK);
	open_readers(&sharing);
	for (int i = 0; i < 200 && table->nrows > 0 && sharing.nreaders > 0; i++)
	{
		Reader	   *reader = some_reader(&sharing);
		uint64_t   *at = &next[reader - sharing.readers];

		if (dice_one_in(dice, 5))
			check_rows(&sharing, &sharing.consumer, order, dice_below(dice, table->nrows));
		if (reader->driver.engine == NULL)
			continue;
		if (*at >= table->nrows || dice_one_in(dice, 30))
			*at = dice_below(dice, table->nrows);
		check_rows(&sharing, &reader->driver, order, *at);
		*at += 20;
		if (dice_one_in(dice, 80))
			close_reader(reader);
	}
	driver_check_sorted(&sharing.consumer, dice);
	for (int i = 0; i < sharing.nreaders; i++)
	{
		Reader	   *reader = some_reader(&sharing);

		if (reader->driver.engine == NULL)
			continue;
		driver_check_sorted(&reader->driver, dice);
		close_reader(reader);
	}
	driver_close(&sharing.consumer);
	end(&sharing);
	free(order);
}

static void
test_tables(void **unused)
{
	driver_check_tables(300000, 150, &(TableOptions) {.max_rows = 3000}, check_table);
	driver_check_tables(301000, 30, &(TableOptions) {.max_rows = 20000,.max_payload = 300}, check_table);
	driver_check_tables(302000, 30, &(TableOptions) {.keys_only = true,.max_rows = 60000}, check_table);
}

/* ------------------------------------------------------------------------ ends */

static int	nended;				/* readers that got the error */

/* The consumer ends: the readers get its error, whatever they were doing, and even if gpusortd closes their connections. */
static void
check_consumer_ends(const TestTable *table, Dice *dice)
{
	Sharing		sharing;
	uint32_t   *order = table_order(table);
	const void *row;
	size_t		fetched;

	begin(&sharing, table, dice);
	open_readers(&sharing);
	push_rows(&sharing);
	if (!dice_one_in(dice, 3))
		CHECK(gs_engine_sort(sharing.consumer.engine) == GS_STATUS_OK);
	for (int i = 0; i < sharing.nreaders && sharing.consumer.engine->stats.nrows > 0; i++)
		(void) driver_fetch(some_reader(&sharing)->driver.engine, 0, 1, &row);
	driver_close(&sharing.consumer);
	for (int i = 0; i < sharing.nreaders; i++)
	{
		Reader	   *reader = &sharing.readers[i];
		GsEngine   *engine = reader->driver.engine;
		uint64_t	position = 0;

		reader->link->is_closed = dice_one_in(dice, 2);

		/* rows that are ready can still be read; then comes the error */
		while (reader->reads && position < table->nrows &&
			   gs_engine_fetch(engine, position, 1, &row, &fetched) == GS_STATUS_OK)
		{
			CHECK(fetched == 1 && table_row_is(table, order[position], &reader->driver.layout, row));
			position++;
		}
		if (!reader->reads || position == table->nrows)
			continue;
		CHECK_MSG(strstr(engine->stats.detail, "the consumer has ended") != NULL, "%s", engine->stats.detail);
		nended++;
	}
	end(&sharing);
	free(order);
}

static void
test_consumer_ends(void **unused)
{
	driver_check_tables(310000, 200, &(TableOptions) {.max_rows = 3000,.max_payload = 500}, check_consumer_ends);
	print_message("# %d readers had rows left\n", nended);
	CHECK(nended > 20);
}

/* ------------------------------------------------------------------------ open */

/* What cannot be read; and nobody waits for readers, nor is disturbed by them. */
static void
check_refusals(const TestTable *table, Dice *dice)
{
	Sharing		sharing;
	Reader		reader = {0};

	begin(&sharing, table, dice);
	for (int i = 0; i < 4; i++)
	{
		const uint64_t token = gs_engine_gpu_token(sharing.consumer.engine) + (i == 0);
		const uint32_t buffer_bytes = i == 1 ? BUFFER_BYTES / 2 : i == 2 ? 2 * BUFFER_BYTES : BUFFER_BYTES;

		CHECK(open_reader_with(&sharing, &reader, buffer_bytes, token, i == 3) == GS_STATUS_REFUSED);
		CHECK(reader.driver.engine->stats.full != NULL);
		driver_close(&reader.driver);
		CHECK(reader.link->reusable);
		unit_link_close(reader.link);
	}
	open_readers(&sharing);
	push_rows(&sharing);
	CHECK(gs_engine_return_input(sharing.consumer.engine) == GS_STATUS_OK);
	CHECK(open_reader_with(&sharing, &reader, BUFFER_BYTES, gs_engine_gpu_token(sharing.consumer.engine), 0) ==
		  GS_STATUS_REFUSED);
	close_reader(&reader);
	driver_close(&sharing.consumer);
	end(&sharing);
}

static void
test_refusals(void **unused)
{
	driver_check_tables(320000, 20, &(TableOptions) {.max_rows = 500}, check_refusals);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_consumer_ends),
		cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests_name("readers", tests, NULL, NULL);
}
