/*-------------------------------------------------------------------------
 *
 * test_producers.c
 *	  Several engines that send rows to one sort (engine.h), down to the host
 *	  device: order, memory that runs out for some, and disconnects.
 *
 * Each participant has a segment of the rows of a random table.  The numbers of
 * participants ascend with the segments, so the order of the table is the input order
 * of the sort, in whatever order the participants push.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit_cmocka.h"
#include "unit_driver.h"
#include "unit_link.h"

#define BUFFER_BYTES			((uint32_t) 64 << 10)
#define MEMORY				((uint64_t) 1 << 30)
#define MAX_PARTICIPANTS	6

typedef struct Participant
{
	Driver		driver;
	UnitLink   *link;
	bool		waits;			/* the service takes its time */
	uint32_t	number;
	size_t		first;			/* of its rows */
	size_t		end;
	bool		full;			/* it can push no more rows */
	bool		producer_done;
	size_t		ntaken;			/* rows that the device has, after the end of the producer or the sort */
} Participant;

typedef struct Sharing
{
	const TestTable *table;
	Dice	   *dice;
	UnitHost	host;
	int			nparticipants;
	int			consumer;			/* which of them */
	Participant participants[MAX_PARTICIPANTS];
} Sharing;

/* ---------------------------------------------------------------- begin, end */

static void
share_out_rows(Sharing *sharing)
{
	Dice	   *dice = sharing->dice;
	size_t		next = 0;
	uint32_t	number = 0;

	for (int i = 0; i < sharing->nparticipants; i++)
	{
		Participant *participant = &sharing->participants[i];
		size_t		left = sharing->table->nrows - next;

		participant->first = next;
		next += i + 1 == sharing->nparticipants ? left :
			dice_one_in(dice, 5) ? 0 : dice_below(dice, left + 1);
		participant->end = next;
		number += (uint32_t) dice_below(dice, 150);
		participant->number = number++;
	}
}

static void
begin_driver(Sharing *sharing, Participant *participant, GsEngineRequest *request)
{
	Driver	   *driver = &participant->driver;

	memset(driver, 0, sizeof(*driver));
	driver->table = sharing->table;
	driver->host = &sharing->host;
	driver->npushed = participant->first;
	table_layout(sharing->table, &driver->layout);
	*request = (GsEngineRequest)
	{
		.layout = &driver->layout,.runtime = sharing->host.callbacks
	};
}

static void
open_consumer(Sharing *sharing, uint64_t memory)
{
	Participant *consumer = &sharing->participants[sharing->consumer];
	GsGpuOptions options = {
		.algorithm = (int) dice_below(sharing->dice, 3),
		.shared = true,
		.participant = consumer->number
	};
	GsEngineRequest request;

	consumer->link = unit_link_open(2 * BUFFER_BYTES, 3 + (uint32_t) dice_below(sharing->dice, 6),
								 memory);
	begin_driver(sharing, consumer, &request);
	CHECK(gs_engine_gpu_open(&request, &consumer->link->base, &options,
								 &consumer->driver.engine) == GS_STATUS_OK);
}

static GsStatus
open_producer(Sharing *sharing, Participant *producer)
{
	Participant *consumer = &sharing->participants[sharing->consumer];
	GsEngineRequest request;

	producer->link = unit_link_open_other(consumer->link, BUFFER_BYTES,
										 1 + (uint32_t) dice_below(sharing->dice, 6));
	producer->link->slow = producer->waits;
	begin_driver(sharing, producer, &request);
	return gs_engine_gpu_join(&request, &producer->link->base,
								  gs_engine_gpu_token(consumer->driver.engine),
								  producer->number, &producer->driver.engine);
}

static void
begin(Sharing *sharing, const TestTable *table, Dice *dice, uint64_t memory)
{
	memset(sharing, 0, sizeof(*sharing));
	sharing->table = table;
	sharing->dice = dice;
	unit_host_init(&sharing->host);
	sharing->nparticipants = 1 + (int) dice_below(dice, MAX_PARTICIPANTS);
	sharing->consumer = (int) dice_below(dice, (uint64_t) sharing->nparticipants);
	share_out_rows(sharing);
	open_consumer(sharing, memory);
	for (int i = 0; i < sharing->nparticipants; i++)
		if (i != sharing->consumer)
			CHECK(open_producer(sharing, &sharing->participants[i]) == GS_STATUS_OK);
}

static Participant *
consumer_of(Sharing *sharing)
{
	return &sharing->participants[sharing->consumer];
}

/* Closes all engines, in any order. */
static void
end(Sharing *sharing)
{
	int			first = (int) dice_below(sharing->dice, (uint64_t) sharing->nparticipants);

	for (int i = 0; i < sharing->nparticipants; i++)
	{
		int			n = (first + i) % sharing->nparticipants;

		if (sharing->participants[n].driver.engine != NULL)
			driver_close(&sharing->participants[n].driver);
	}
	for (int i = 0; i < sharing->nparticipants; i++)
		if (i != sharing->consumer)
			unit_link_close(sharing->participants[i].link);
	unit_link_close(consumer_of(sharing)->link);
	unit_host_end(&sharing->host);
}

/* ---------------------------------------------------------------------- load */

/* Ends a producer, however many tries it takes. */
static void
end_feed(Participant *producer)
{
	uint64_t	nrows;
	GsStatus	status = gs_engine_end_producer(producer->driver.engine, &nrows);

	if (status == GS_STATUS_FULL)
	{
		CHECK(nrows == 0);
		status = gs_engine_end_producer(producer->driver.engine, &nrows);
	}
	CHECK_MSG(status == GS_STATUS_OK, "status %d", (int) status);
	CHECK(nrows <= producer->driver.npushed - producer->first);
	producer->ntaken = (size_t) nrows;
	producer->producer_done = true;
}

/* Pushes some rows of any participant; false if nobody has any left. */
static bool
push_some(Sharing *sharing)
{
	int			first = (int) dice_below(sharing->dice, (uint64_t) sharing->nparticipants);

	for (int i = 0; i < sharing->nparticipants; i++)
	{
		int			n = (first + i) % sharing->nparticipants;
		Participant *participant = &sharing->participants[n];
		Driver	   *driver = &participant->driver;

		if (participant->producer_done || participant->full)
			continue;
		for (uint64_t k = 1 + dice_below(sharing->dice, 300);
			 k > 0 && driver->npushed < participant->end && !participant->full; k--)
		{
			GsStatus	status = driver_push(driver);

			CHECK(status == GS_STATUS_OK || status == GS_STATUS_FULL);
			participant->full = status == GS_STATUS_FULL;
		}
		participant->full |= driver->npushed == participant->end;
		if (participant->full && n != sharing->consumer)
			end_feed(participant);
		return true;
	}
	return false;
}

/* All that the node does up to the sort. */
static void
load(Sharing *sharing)
{
	Participant *consumer = consumer_of(sharing);
	uint64_t	nrows = 0;

	while (push_some(sharing))
		;
	for (int i = 0; i < sharing->nparticipants; i++)
	{
		const Participant *producer = &sharing->participants[i];

		if (i == sharing->consumer)
			continue;
		gs_key_layout_merge(&consumer->driver.layout, &producer->driver.layout);
		nrows += producer->ntaken;
	}
	gs_engine_gpu_expect(consumer->driver.engine, nrows);
}

/* --------------------------------------------------------------------- order */

static void
check_table(const TestTable *table, Dice *dice)
{
	Sharing		sharing;
	Driver	   *consumer;

	begin(&sharing, table, dice, MEMORY);
	load(&sharing);
	consumer = &consumer_of(&sharing)->driver;
	CHECK(consumer->layout.nrows == table->nrows);
	CHECK(gs_engine_sort(consumer->engine) == GS_STATUS_OK);
	consumer->npushed = table->nrows;
	driver_check_sorted(consumer, dice);
	end(&sharing);
	for (int i = 0; i < sharing.nparticipants; i++)
		CHECK(sharing.participants[i].producer_done == (i != sharing.consumer));
}

static void
test_tables(void **unused)
{
	driver_check_tables(200000, 400, &(TableOptions) {.max_rows = 3000}, check_table);
	driver_check_tables(201000, 100, &(TableOptions) {.max_rows = 3000, .shape = SHAPE_FEW}, check_table);
	driver_check_tables(202000, 20, &(TableOptions) {.max_rows = 3000, .shape = SHAPE_EQUAL}, check_table);
}

static void
test_large_tables(void **unused)
{
	driver_check_tables(210000, 30, &(TableOptions) {.min_rows = 3000, .max_rows = 20000, .max_payload = 300}, check_table);
}

static void
test_keys_only(void **unused)
{
	driver_check_tables(220000, 60, &(TableOptions) {.keys_only = true, .max_rows = 60000}, check_table);
}

/* ------------------------------------------------------- memory that runs out */

/* Does the device have this row?  It has the first ones of each participant. */
static bool
is_taken(const Sharing *sharing, size_t row)
{
	for (int i = 0; i < sharing->nparticipants; i++)
	{
		const Participant *participant = &sharing->participants[i];

		if (row < participant->end)
			return row < participant->first + participant->ntaken;
	}
	return false;
}

/* What the device took comes in order. */
static void
check_taken(Sharing *sharing)
{
	Driver	   *consumer = &consumer_of(sharing)->driver;
	uint32_t   *order = table_order(sharing->table);
	uint64_t	position = 0;

	for (size_t i = 0; i < sharing->table->nrows; i++)
	{
		const void *row;

		if (!is_taken(sharing, order[i]))
			continue;
		CHECK(driver_fetch(consumer->engine, position++, 1, &row) == 1);
		CHECK_MSG(table_row_is(sharing->table, order[i], &consumer->layout, row),
				  "row %u is another one, or damaged", order[i]);
	}
	CHECK(position == consumer->engine->stats.nrows);
	free(order);
}

/* next_batch() gives a participant's rows from there on; returns where they end. */
static size_t
check_rest(Participant *participant, size_t from)
{
	Driver	   *driver = &participant->driver;
	const GsBatch *batch;
	size_t		n = from;

	while (gs_engine_next_batch(driver->engine, &batch) == GS_STATUS_OK && batch != NULL)
		for (size_t entry = 0; entry < batch->nrows; entry++, n++)
		{
			CHECK(n < driver->npushed);
			CHECK(table_row_is(driver->table, n, &driver->layout,
							   gs_batch_pushed(batch, &driver->layout, entry)));
		}
	return n;
}

/*
 * A drain gives what the device took, in input order, and then what it did not
 * take of the consumer's.
 */
static void
check_drain(Sharing *sharing)
{
	Participant *consumer = consumer_of(sharing);
	uint32_t   *input_returned = malloc(sizeof(uint32_t) * (sharing->table->nrows + 1));
	size_t		ndrained = 0;
	size_t		at = 0;
	size_t		own = consumer->first;
	const GsBatch *batch;

	CHECK(input_returned != NULL);
	CHECK(gs_engine_return_input(consumer->driver.engine) == GS_STATUS_OK);
	while (gs_engine_next_batch(consumer->driver.engine, &batch) == GS_STATUS_OK && batch != NULL)
		for (size_t entry = 0; entry < batch->nrows; entry++)
		{
			const void *row = gs_batch_pushed(batch, &consumer->driver.layout, entry);

			CHECK(ndrained < sharing->table->nrows);
			input_returned[ndrained] = table_row_number(row);
			CHECK(table_row_is(sharing->table, input_returned[ndrained++], &consumer->driver.layout, row));
		}
	for (int i = 0; i < sharing->nparticipants; i++)
	{
		const Participant *participant = &sharing->participants[i];

		for (size_t n = 0; i != sharing->consumer && n < participant->ntaken; n++)
			CHECK(at < ndrained && input_returned[at++] == participant->first + n);
		while (i == sharing->consumer && at < ndrained && own < consumer->end && input_returned[at] == own)
			at++, own++;
	}
	while (own < consumer->driver.npushed)
		CHECK(at < ndrained && input_returned[at++] == own++);
	CHECK(at == ndrained);
	free(input_returned);
}

static struct
{
	int			of_producers;		/* producers of which a part was taken */
	int			of_consumers;
	int			input_returned;
}			parts;

static void
check_partial(const TestTable *table, Dice *dice)
{
	Sharing		sharing;
	Participant *consumer;
	GsStatus	status = GS_STATUS_FULL;
	bool		sorts = table->keys_only || dice_one_in(dice, 2);

	begin(&sharing, table, dice, 1 + dice_below(dice, UINT64_C(1) << (20 + dice_below(dice, 6))));
	load(&sharing);
	consumer = consumer_of(&sharing);
	for (int i = 0; i < 2 && sorts && status == GS_STATUS_FULL; i++)
		status = gs_engine_sort(consumer->driver.engine);
	if (status == GS_STATUS_OK)
	{
		consumer->ntaken = (size_t) consumer->driver.engine->stats.nrows;
		for (int i = 0; i < sharing.nparticipants; i++)
			if (i != sharing.consumer)
				consumer->ntaken -= sharing.participants[i].ntaken;
		check_taken(&sharing);
		parts.of_consumers += consumer->ntaken < consumer->driver.npushed - consumer->first;
	}
	else if (!table->keys_only)
	{
		CHECK(status == GS_STATUS_FULL);
		check_drain(&sharing);
		parts.input_returned++;
	}
	for (int i = 0; i < sharing.nparticipants; i++)
	{
		Participant *participant = &sharing.participants[i];
		Driver	   *driver = &participant->driver;

		if (i == sharing.consumer && status != GS_STATUS_OK)
			continue;
		parts.of_producers += i != sharing.consumer &&
			participant->ntaken < driver->npushed - participant->first;
		CHECK(check_rest(participant, participant->first + participant->ntaken) == driver->npushed);
	}
	if (status == GS_STATUS_OK)
		check_taken(&sharing);
	end(&sharing);
}

static void
test_partial(void **unused)
{
	driver_check_tables(230000, 200, &(TableOptions) {.max_rows = 8000, .max_payload = 1000}, check_partial);
	driver_check_tables(231000, 50, &(TableOptions) {.max_rows = 60000, .max_payload = 1000, .keys_only = true}, check_partial);
	print_message("# producers %d, consumers %d in part; drained %d\n",
				  parts.of_producers, parts.of_consumers, parts.input_returned);
	CHECK(parts.of_producers > 20 && parts.of_consumers > 20 && parts.input_returned > 20);
}

/* ------------------------------------------------------------------ disconnects */

/* A producer disconnects before its end: the consumer and the other producers fail. */
static void
check_producer_disconnects(const TestTable *table, Dice *dice)
{
	Sharing		sharing;
	Participant *consumer;
	Participant *gone;
	int			nsteps = (int) dice_below(dice, 20);

	begin(&sharing, table, dice, MEMORY);
	consumer = consumer_of(&sharing);
	gone = &sharing.participants[dice_below(dice, (uint64_t) sharing.nparticipants)];
	while (nsteps-- > 0 && push_some(&sharing))
		;
	if (gone != consumer && !gone->producer_done)
	{
		uint64_t	nrows;
		size_t		fetched;
		const void *row;

		if (dice_one_in(dice, 2))
			driver_close(&gone->driver);
		else
		{
			gone->link->break_after = 0;
			CHECK(gs_engine_end_producer(gone->driver.engine, &nrows) == GS_STATUS_FAILED);
		}
		CHECK(gone->link->released && !gone->link->reusable);
		CHECK(gs_engine_sort(consumer->driver.engine) == GS_STATUS_FAILED);
		CHECK_MSG(strstr(consumer->driver.engine->stats.detail, "disconnected") != NULL, "%s",
				  consumer->driver.engine->stats.detail);
		CHECK(gs_engine_fetch(consumer->driver.engine, 0, 1, &row, &fetched) != GS_STATUS_OK ||
			  fetched == 0);
		for (int i = 0; i < sharing.nparticipants; i++)
		{
			Participant *other = &sharing.participants[i];

			if (other != consumer && other != gone && !other->producer_done)
				CHECK(gs_engine_end_producer(other->driver.engine, &nrows) == GS_STATUS_FAILED);
		}
	}
	end(&sharing);
}

static void
test_producer_disconnects(void **unused)
{
	driver_check_tables(240000, 200, &(TableOptions) {.max_rows = 3000, .max_payload = 500}, check_producer_disconnects);
}

/* The consumer disconnects: producers that have not ended fail. */
static void
check_consumer_disconnects(const TestTable *table, Dice *dice)
{
	Sharing		sharing;
	int			nsteps = (int) dice_below(dice, 20);

	begin(&sharing, table, dice, MEMORY);
	while (nsteps-- > 0 && push_some(&sharing))
		;
	driver_close(&consumer_of(&sharing)->driver);
	for (int i = 0; i < sharing.nparticipants; i++)
	{
		Participant *producer = &sharing.participants[i];
		uint64_t	nrows;

		if (i == sharing.consumer || producer->producer_done)
			continue;
		CHECK(gs_engine_end_producer(producer->driver.engine, &nrows) == GS_STATUS_FAILED);
		CHECK(producer->driver.engine->stats.detail[0] != '\0');
	}
	end(&sharing);
}

static void
test_consumer_disconnects(void **unused)
{
	driver_check_tables(250000, 200, &(TableOptions) {.max_rows = 3000, .max_payload = 500}, check_consumer_disconnects);
}

/* ---------------------------------------------------------------------- join */

/* A link can be reused, whether its producer ended or could not join. */
static void
check_joins(const TestTable *table, Dice *dice)
{
	Sharing		sharing;
	Participant *consumer;
	Participant producer = {0};
	uint64_t	nrows;
	GsEngineRequest request;

	begin(&sharing, table, dice, MEMORY);
	consumer = consumer_of(&sharing);
	CHECK(gs_engine_gpu_token(consumer->driver.engine) != 0);

	/* a wrong job token; rows of another layout */
	for (int i = 0; i < 2; i++)
	{
		uint64_t	token = gs_engine_gpu_token(consumer->driver.engine) + (i == 0);

		producer.link = unit_link_open_other(consumer->link, BUFFER_BYTES, 2);
		begin_driver(&sharing, &producer, &request);
		if (i == 1)
			producer.driver.layout.nwords++;
		CHECK(gs_engine_gpu_join(&request, &producer.link->base, token, 1,
									 &producer.driver.engine) == GS_STATUS_REFUSED);
		CHECK(producer.driver.engine->stats.full != NULL);
		driver_close(&producer.driver);
		CHECK(producer.link->reusable);
		unit_link_close(producer.link);
	}

	/* batches that are too large to be returned */
	producer.link = unit_link_open_other(consumer->link, 3 * BUFFER_BYTES, 2);
	begin_driver(&sharing, &producer, &request);
	CHECK(gs_engine_gpu_join(&request, &producer.link->base,
								 gs_engine_gpu_token(consumer->driver.engine), 1,
								 &producer.driver.engine) == GS_STATUS_REFUSED);
	driver_close(&producer.driver);
	unit_link_close(producer.link);

	/* no rows, of a producer that had to wait; after the sort it is too late to join */
	producer.waits = true;
	CHECK(open_producer(&sharing, &producer) == GS_STATUS_OK);
	producer.waits = false;
	CHECK(gs_engine_end_producer(producer.driver.engine, &nrows) == GS_STATUS_OK && nrows == 0);
	driver_close(&producer.driver);
	CHECK(producer.link->reusable);
	unit_link_close(producer.link);
	load(&sharing);
	CHECK(gs_engine_sort(consumer->driver.engine) == GS_STATUS_OK);
	CHECK(open_producer(&sharing, &producer) == GS_STATUS_REFUSED);
	driver_close(&producer.driver);
	unit_link_close(producer.link);
	consumer->driver.npushed = table->nrows;
	driver_check_sorted(&consumer->driver, dice);
	end(&sharing);
}

static void
test_joins(void **unused)
{
	driver_check_tables(260000, 20, &(TableOptions) {.max_rows = 500}, check_joins);
}

/* ------------------------------------------------------------------- layouts */

/* The statistics of a layout, collected in parts and merged, are those of all rows. */
static void
check_merge(const TestTable *table, Dice *dice)
{
	GsKeyLayout whole;
	GsKeyLayout parts_of[3];
	char	   *row = malloc(1 << 16);

	CHECK(row != NULL);
	table_layout(table, &whole);
	for (int i = 0; i < 3; i++)
		table_layout(table, &parts_of[i]);
	for (size_t n = 0; n < table->nrows; n++)
	{
		uint32_t	offsets[GS_MAX_COLUMNS];
		uint64_t	record[GS_MAX_FIELDS + GS_MAX_COLUMNS + 1];

		if (!table->keys_only)
			table_put_row(table, n, row, offsets);
		table_put_key(table, n, &whole, offsets, record);
		table_put_key(table, n, &parts_of[dice_below(dice, 2)], offsets, record);
	}

	/* one of them has no rows */
	gs_key_layout_merge(&parts_of[2], &parts_of[0]);
	gs_key_layout_merge(&parts_of[2], &parts_of[1]);
	CHECK(parts_of[2].nrows == whole.nrows && !parts_of[2].ascending);
	for (int i = 0; i < whole.ncolumns; i++)
	{
		CHECK(parts_of[2].columns[i].nnulls == whole.columns[i].nnulls);
		CHECK(parts_of[2].columns[i].min_len == whole.columns[i].min_len);
		CHECK(parts_of[2].columns[i].max_len == whole.columns[i].max_len);
	}
	for (int i = 0; i < whole.nfields; i++)
	{
		CHECK(parts_of[2].fields[i].min == whole.fields[i].min);
		CHECK(parts_of[2].fields[i].max == whole.fields[i].max);
		CHECK(parts_of[2].fields[i].ever_set == whole.fields[i].ever_set);
		CHECK(parts_of[2].fields[i].always_set == whole.fields[i].always_set);
	}
	free(row);
}

static void
test_merge(void **unused)
{
	driver_check_tables(270000, 300, &(TableOptions) {.max_rows = 100}, check_merge);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_large_tables),
		cmocka_unit_test(test_keys_only),
		cmocka_unit_test(test_partial),
		cmocka_unit_test(test_producer_disconnects),
		cmocka_unit_test(test_consumer_disconnects),
		cmocka_unit_test(test_joins),
		cmocka_unit_test(test_merge),
	};

	return cmocka_run_group_tests_name("producers", tests, NULL, NULL);
}
