/*-------------------------------------------------------------------------
 *
 * test_feeders.c
 *	  Engines that feed one sort (engine.h), from there down to the host
 *	  device: order, memory that runs out for some, and some that go.
 *
 * The rows of a random table are shared out: each participant has a stretch of
 * them.  Participants' numbers ascend with the stretches, so the table's order is
 * the input order of the whole, in whatever order the participants push.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit_cmocka.h"
#include "unit_driver.h"
#include "unit_link.h"

#define SLOT_BYTES			((uint32_t) 64 << 10)
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
	bool		full;			/* it can push no more */
	bool		producer_done;
	size_t		ntaken;			/* rows that the device has, once it is fed or sorted */
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
begin_driver(Sharing *sharing, Participant *participant, GsJob *job)
{
	Driver	   *driver = &participant->driver;

	memset(driver, 0, sizeof(*driver));
	driver->table = sharing->table;
	driver->host = &sharing->host;
	driver->npushed = participant->first;
	table_layout(sharing->table, &driver->layout);
	*job = (GsJob)
	{
		.layout = &driver->layout,.host = sharing->host.callbacks
	};
}

static void
open_owner(Sharing *sharing, uint64_t memory)
{
	Participant *consumer = &sharing->participants[sharing->consumer];
	GsGpuOptions options = {
		.algorithm = (int) dice_below(sharing->dice, 3),
		.shared = true,
		.participant = consumer->number
	};
	GsJob		job;

	consumer->link = unit_link_open(2 * SLOT_BYTES, 3 + (uint32_t) dice_below(sharing->dice, 6),
								 memory);
	begin_driver(sharing, consumer, &job);
	CHECK(gs_engine_gpu_open(&job, &consumer->link->base, &options,
								 &consumer->driver.engine) == GS_STATUS_OK);
}

static GsStatus
open_feeder(Sharing *sharing, Participant *feeder)
{
	Participant *consumer = &sharing->participants[sharing->consumer];
	GsJob		job;

	feeder->link = unit_link_open_feeder(consumer->link, SLOT_BYTES,
										 1 + (uint32_t) dice_below(sharing->dice, 6));
	feeder->link->slow = feeder->waits;
	begin_driver(sharing, feeder, &job);
	return gs_engine_gpu_join(&job, &feeder->link->base,
								  gs_engine_gpu_token(consumer->driver.engine),
								  feeder->number, &feeder->driver.engine);
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
	open_owner(sharing, memory);
	for (int i = 0; i < sharing->nparticipants; i++)
		if (i != sharing->consumer)
			CHECK(open_feeder(sharing, &sharing->participants[i]) == GS_STATUS_OK);
}

static Participant *
owner_of(Sharing *sharing)
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
	unit_link_close(owner_of(sharing)->link);
	unit_host_end(&sharing->host);
}

/* ---------------------------------------------------------------------- load */

/* A feeder's last word, whatever it takes. */
static void
end_feed(Participant *feeder)
{
	uint64_t	nrows;
	GsStatus	status = gs_engine_end_producer(feeder->driver.engine, &nrows);

	if (status == GS_STATUS_FULL)
	{
		CHECK(nrows == 0);
		status = gs_engine_end_producer(feeder->driver.engine, &nrows);
	}
	CHECK_MSG(status == GS_STATUS_OK, "status %d", (int) status);
	CHECK(nrows <= feeder->driver.npushed - feeder->first);
	feeder->ntaken = (size_t) nrows;
	feeder->producer_done = true;
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
	Participant *consumer = owner_of(sharing);
	uint64_t	nrows = 0;

	while (push_some(sharing))
		;
	for (int i = 0; i < sharing->nparticipants; i++)
	{
		const Participant *feeder = &sharing->participants[i];

		if (i == sharing->consumer)
			continue;
		gs_key_layout_merge(&consumer->driver.layout, &feeder->driver.layout);
		nrows += feeder->ntaken;
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
	consumer = &owner_of(&sharing)->driver;
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

/* Has the device this row?  It took the first ones of each participant. */
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
	Driver	   *consumer = &owner_of(sharing)->driver;
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
 * take of the owner's.
 */
static void
check_drain(Sharing *sharing)
{
	Participant *consumer = owner_of(sharing);
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
	int			of_feeders;		/* feeders of which a part was taken */
	int			of_owners;
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
	consumer = owner_of(&sharing);
	for (int i = 0; i < 2 && sorts && status == GS_STATUS_FULL; i++)
		status = gs_engine_sort(consumer->driver.engine);
	if (status == GS_STATUS_OK)
	{
		consumer->ntaken = (size_t) consumer->driver.engine->stats.nrows;
		for (int i = 0; i < sharing.nparticipants; i++)
			if (i != sharing.consumer)
				consumer->ntaken -= sharing.participants[i].ntaken;
		check_taken(&sharing);
		parts.of_owners += consumer->ntaken < consumer->driver.npushed - consumer->first;
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
		parts.of_feeders += i != sharing.consumer &&
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
	print_message("# feeders %d, owners %d in part; drained %d\n",
				  parts.of_feeders, parts.of_owners, parts.input_returned);
	CHECK(parts.of_feeders > 20 && parts.of_owners > 20 && parts.input_returned > 20);
}

/* ------------------------------------------------------------------ who goes */

/* A feeder goes before it is fed: the owner and the other feeders fail. */
static void
check_feeder_goes(const TestTable *table, Dice *dice)
{
	Sharing		sharing;
	Participant *consumer;
	Participant *gone;
	int			nsteps = (int) dice_below(dice, 20);

	begin(&sharing, table, dice, MEMORY);
	consumer = owner_of(&sharing);
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
		CHECK_MSG(strstr(consumer->driver.engine->stats.detail, "gone") != NULL, "%s",
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
test_feeder_goes(void **unused)
{
	driver_check_tables(240000, 200, &(TableOptions) {.max_rows = 3000, .max_payload = 500}, check_feeder_goes);
}

/* The owner goes: feeders that are not fed yet fail, the others have been. */
static void
check_owner_goes(const TestTable *table, Dice *dice)
{
	Sharing		sharing;
	int			nsteps = (int) dice_below(dice, 20);

	begin(&sharing, table, dice, MEMORY);
	while (nsteps-- > 0 && push_some(&sharing))
		;
	driver_close(&owner_of(&sharing)->driver);
	for (int i = 0; i < sharing.nparticipants; i++)
	{
		Participant *feeder = &sharing.participants[i];
		uint64_t	nrows;

		if (i == sharing.consumer || feeder->producer_done)
			continue;
		CHECK(gs_engine_end_producer(feeder->driver.engine, &nrows) == GS_STATUS_FAILED);
		CHECK(feeder->driver.engine->stats.detail[0] != '\0');
	}
	end(&sharing);
}

static void
test_owner_goes(void **unused)
{
	driver_check_tables(250000, 200, &(TableOptions) {.max_rows = 3000, .max_payload = 500}, check_owner_goes);
}

/* ---------------------------------------------------------------------- join */

/* A link is good for another job, whether one was fed or could not be joined. */
static void
check_joins(const TestTable *table, Dice *dice)
{
	Sharing		sharing;
	Participant *consumer;
	Participant feeder = {0};
	uint64_t	nrows;
	GsJob		job;

	begin(&sharing, table, dice, MEMORY);
	consumer = owner_of(&sharing);
	CHECK(gs_engine_gpu_token(consumer->driver.engine) != 0);

	/* a wrong ticket; rows of another form */
	for (int i = 0; i < 2; i++)
	{
		uint64_t	token = gs_engine_gpu_token(consumer->driver.engine) + (i == 0);

		feeder.link = unit_link_open_feeder(consumer->link, SLOT_BYTES, 2);
		begin_driver(&sharing, &feeder, &job);
		if (i == 1)
			feeder.driver.layout.nwords++;
		CHECK(gs_engine_gpu_join(&job, &feeder.link->base, token, 1,
									 &feeder.driver.engine) == GS_STATUS_FULL);
		CHECK(feeder.driver.engine->stats.full != NULL);
		driver_close(&feeder.driver);
		CHECK(feeder.link->reusable);
		unit_link_close(feeder.link);
	}

	/* batches that are too large to come back */
	feeder.link = unit_link_open_feeder(consumer->link, 3 * SLOT_BYTES, 2);
	begin_driver(&sharing, &feeder, &job);
	CHECK(gs_engine_gpu_join(&job, &feeder.link->base,
								 gs_engine_gpu_token(consumer->driver.engine), 1,
								 &feeder.driver.engine) == GS_STATUS_FULL);
	driver_close(&feeder.driver);
	unit_link_close(feeder.link);

	/* no rows at all, of a feeder that had to wait; then the sort, and it is too late */
	feeder.waits = true;
	CHECK(open_feeder(&sharing, &feeder) == GS_STATUS_OK);
	feeder.waits = false;
	CHECK(gs_engine_end_producer(feeder.driver.engine, &nrows) == GS_STATUS_OK && nrows == 0);
	driver_close(&feeder.driver);
	CHECK(feeder.link->reusable);
	unit_link_close(feeder.link);
	load(&sharing);
	CHECK(gs_engine_sort(consumer->driver.engine) == GS_STATUS_OK);
	CHECK(open_feeder(&sharing, &feeder) == GS_STATUS_FULL);
	driver_close(&feeder.driver);
	unit_link_close(feeder.link);
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

/* Observed by parts and merged, a layout is what it is observed at once. */
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

	/* one of them has seen none */
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
		cmocka_unit_test(test_feeder_goes),
		cmocka_unit_test(test_owner_goes),
		cmocka_unit_test(test_joins),
		cmocka_unit_test(test_merge),
	};

	return cmocka_run_group_tests_name("feeders", tests, NULL, NULL);
}
