/*-------------------------------------------------------------------------
 *
 * test_job.c
 *	  A job on the host device: order, streams, return of the input, memory, and
 *	  its end.
 *
 * Most tests make random tables (unit_table.h) and compare with a stable
 * reference sort; a case that fails names its seed.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>

#include "unit_client.h"
#include "unit_driver.h"
#include "unit_cmocka.h"

/* -------------------------------------------------------------------- order */

static void
test_small_tables(void **unused)
{
	driver_check_tables(1, 600, &(TableOptions) {0}, client_check_table);
	driver_check_tables(10000, 600, &(TableOptions) {.max_rows = 4}, client_check_table);
}

/* Enough rows for streams of many batches. */
static void
test_large_tables(void **unused)
{
	driver_check_tables(20000, 40, &(TableOptions) {.min_rows = 2000, .max_rows = 12000, .max_payload = 150}, client_check_table);
}

static void
test_shapes(void **unused)
{
	driver_check_shapes(30000, 15, 2000, client_check_table);
}

static void
test_keys_only(void **unused)
{
	driver_check_tables(40000, 200, &(TableOptions) {.keys_only = true}, client_check_table);
	driver_check_tables(50000, 10, &(TableOptions) {.keys_only = true, .min_rows = 8000, .max_rows = 50000}, client_check_table);
}

/* Tails, and rows of up to half a buffer. */
static void
test_strings(void **unused)
{
	driver_check_strings(60000, 60, &(TableOptions) {.ncolumns = 1, .max_rows = 1500, .max_len = 40}, client_check_table);
	driver_check_strings(65000, 20, &(TableOptions) {.ncolumns = 1, .max_rows = 200, .max_len = 30000}, client_check_table);
	driver_check_strings(70000, 30, &(TableOptions) {.ncolumns = 3, .max_rows = 300, .max_len = 1100}, client_check_table);
}

/*
 * Numbers that repeat, followed by the smallest or the largest bigint: so many bits and
 * 64.  Next to row numbers the first sort has 47 bits, which decide, but ties are
 * compared by the remaining bits.
 */
static void
test_statistics(void **unused)
{
	const TestKind kinds[] = {TEST_INT32, TEST_INT64};
	const int	nrows = 100000;

	for (int distinct = 1; distinct <= nrows; distinct *= 10)
	{
		TestTable  *table = table_make_empty(kinds, 2, (size_t) nrows);
		Session		session;
		Client	   *client = &session.client;

		for (int i = 0; i < nrows; i++)
		{
			table_set_number(table, (size_t) i, 0, (i * 7) % distinct);
			table_set_number(table, (size_t) i, 1, i % 2 == 0 ? INT64_MIN : INT64_MAX);
		}
		session_begin(&session, table, 2);
		CHECK(client_load(client, NULL));
		CHECK(client_sort(client, GS_ALGORITHM_RADIX));
		assert_int_equal(client->result.nrows, nrows);
		assert_int_equal(client->result.algorithm, GS_ALGORITHM_RADIX);
		assert_int_equal(client->result.key_bits, gs_bit_width((uint64_t) distinct - 1) + 64);
		assert_int_equal(client->result.key_tails, 0);
		assert_int_equal(client->result.passes, 6);
		assert_int_equal(client->result.tied_rows, distinct < nrows ? nrows : 0);

		/* memory for ties, twice 16 bytes each, has been released */
		CHECK(client->result.device_bytes >=
			  session.service.pool->used + 2 * 16 * client->result.tied_rows);
		session_end(&session);
		table_free(table);
	}
}

static void
test_no_rows(void **unused)
{
	const TestKind kinds[] = {TEST_INT32};
	TestTable  *table = table_make_empty(kinds, 1, 0);
	Session		session;
	Client	   *client = &session.client;

	session_begin(&session, table, 2);
	gs_job_sort(client->job, GS_ALGORITHM_RADIX, false, true, &client->layout);
	CHECK(client->sorted && client->result.nrows == 0);
	client_fetch(client, 0);
	CHECK(!gs_job_busy(client->job));
	gs_job_poll(client->job);
	CHECK(client->nready == 0);
	session_end(&session);
	table_free(table);
}

/* Several jobs of one device take turns, and take each other's memory over. */
static void
test_many_jobs(void **unused)
{
	enum
	{
		NCLIENTS = 5
	};
	Service		service;
	Client		clients[NCLIENTS];
	TestTable  *tables[NCLIENTS];
	Dice		dice;

	service_start(&service, 0, NULL);
	for (int i = 0; i < NCLIENTS; i++)
	{
		tables[i] = table_of_seed(80000 + (uint64_t) i, &dice,
								  &(TableOptions) {.min_rows = 1000, .max_rows = 4000});
		CHECK(client_open(&clients[i], &service, tables[i], GS_MIN_BUFFER_BYTES, 3));
	}
	for (int round = 0; round < 30; round++)
	{
		int			which = (int) dice_below(&dice, NCLIENTS);
		bool		waits = true;

		unit_case("round %d", round);
		for (int i = 0; i < NCLIENTS; i++)
		{
			if (clients[i].npushed == 0)
			{
				CHECK(client_load(&clients[i], &dice));
				gs_job_sort(clients[i].job, GS_ALGORITHM_RADIX, false, true, &clients[i].layout);
			}
		}
		while (waits)
		{
			waits = false;
			for (int i = 0; i < NCLIENTS; i++)
			{
				if (!clients[i].sorted)
				{
					client_poll(&clients[i]);
					waits = true;
				}
			}
		}
		client_fetch(&clients[which], 0);
		client_check_batches(&clients[which], 0, INT32_MAX);
		client_close(&clients[which]);
		CHECK(client_open(&clients[which], &service, tables[which], GS_MIN_BUFFER_BYTES, 3));
	}
	for (int i = 0; i < NCLIENTS; i++)
	{
		client_close(&clients[i]);
		table_free(tables[i]);
	}
	service_stop(&service);
	unit_case("%s", "");
}

/* -------------------------------------------------------------------- return of the input */

/* Before all rows are sent, with batches on their way. */
static void
check_drain_of_load(const TestTable *table, Dice *dice)
{
	Session		session;

	session_begin(&session, table, 2 + (uint32_t) dice_below(dice, 5));
	CHECK(client_load(&session.client, dice));
	client_check_drain(&session.client);
	session_end(&session);
}

static void
test_drain_of_load(void **unused)
{
	driver_check_tables(90000, 40, &(TableOptions) {.max_rows = 6000}, check_drain_of_load);
	driver_check_tables(91000, 20, &(TableOptions) {.max_rows = 6000, .keys_only = true}, check_drain_of_load);
}

/* A row number has 32 bits. */
static void
test_too_many_rows(void **unused)
{
	Dice		dice;
	TestTable  *table;
	Session		session;
	Client	   *client = &session.client;

	table = table_of_seed(95000, &dice, &(TableOptions) {
		.min_rows = 100, .max_rows = 100, .keys_only = true
	});
	session_begin(&session, table, 3);
	CHECK(client_load(client, NULL));
	gs_member_batch_filled(gs_job_consumer(client->job), 2, (uint32_t) (GS_MAX_JOB_ROWS - 99), 0);
	CHECK(client->failed && client->failure == GS_FAILED_MEMORY);
	client_check_drain(client);
	session_end(&session);
	table_free(table);
	unit_case("%s", "");
}

static int	limited[NOUTCOMES];

static void
check_memory_limit(const TestTable *table, Dice *dice)
{
	Service		service;

	service_start(&service, ((uint64_t) 64 << 10) + dice_below(dice, 5 << 20), NULL);
	limited[client_sort_or_drain(&service, table, dice)]++;
	service_stop(&service);
}

static void
test_memory_limits(void **unused)
{
	driver_check_tables(100000, 32, &(TableOptions) {.min_rows = 3000, .max_rows = 20000}, check_memory_limit);
	driver_check_tables(101000, 32, &(TableOptions) {
		.min_rows = 3000, .max_rows = 20000, .shape = SHAPE_FEW, .kind = TEST_BYTEA
	}, check_memory_limit);
	driver_check_tables(102000, 16, &(TableOptions) {.min_rows = 3000, .max_rows = 20000, .keys_only = true},
						check_memory_limit);
	print_message("# sorted %d, full in the load %d, in the sort %d\n",
				  limited[OUTCOME_SORTED], limited[OUTCOME_FULL_IN_LOAD],
				  limited[OUTCOME_FULL_IN_SORT]);
	for (int i = 0; i < NOUTCOMES; i++)
		CHECK(limited[i] > 0);
}

/*
 * Few ties: whether memory suffices is known while rows arrive, to within a pool
 * block.
 */
static void
test_refused_early(void **unused)
{
	int			outcomes[NOUTCOMES] = {0};

	for (uint64_t seed = 105000; seed < 105100; seed++)
	{
		Dice		dice = dice_of_seed(seed);
		TestTable  *table = table_make_untied(&dice, 5000 + dice_below(&dice, 30000));
		Service		service;

		unit_case("seed %llu", (unsigned long long) seed);
		table->keys_only = seed % 2 == 0;
		table->max_payload = (uint32_t) dice_below(&dice, 60);
		service_start(&service, ((uint64_t) 1 << 20) + dice_below(&dice, 3 << 20), NULL);
		outcomes[client_sort_or_drain(&service, table, &dice)]++;
		service_stop(&service);
		table_free(table);
	}
	unit_case("%s", "");
	CHECK(outcomes[OUTCOME_SORTED] > 10);
	CHECK(outcomes[OUTCOME_FULL_IN_LOAD] > 10);
	assert_int_equal(outcomes[OUTCOME_FULL_IN_SORT], 0);
}

/* Each allocation of one kind fails in turn; counts the outcomes. */
static void
run_out_of_memory(const TestTable *table, const char *op, int first_call, Dice *dice,
				  int outcomes[NOUTCOMES])
{
	for (int call = first_call; outcomes[OUTCOME_SORTED] == 0; call++)
	{
		Service		service;
		char		fault[40];

		snprintf(fault, sizeof(fault), "%s:%d:none", op, call);
		unit_case("%s", fault);
		service_start(&service, (uint64_t) 1 << 30, fault);
		outcomes[client_sort_or_drain(&service, table, dice)]++;
		service_stop(&service);
	}
	unit_case("%s", "");
}

/* The device has less memory than the limit, or the host has no pinned memory. */
static void
test_memory_runs_out(void **unused)
{
	Dice		dice;
	TestTable  *table;
	int			on_device[NOUTCOMES] = {0};
	int			on_host[NOUTCOMES] = {0};

	table = table_of_seed(110000, &dice, &(TableOptions) {
		.min_rows = 12000, .max_rows = 12000, .kind = TEST_BYTEA, .ncolumns = 2, .max_payload = 200
	});
	run_out_of_memory(table, "allocate", 1, &dice, on_device);
	CHECK(on_device[OUTCOME_FULL_IN_LOAD] > 0);
	CHECK(on_device[OUTCOME_FULL_IN_SORT] > 7);

	/* the first is that of the job itself, see test_open_fails(); two are the sort's */
	run_out_of_memory(table, "allocate_host", 2, &dice, on_host);
	CHECK(on_host[OUTCOME_FULL_IN_LOAD] == 0);
	CHECK(on_host[OUTCOME_FULL_IN_SORT] == 2);
	table_free(table);
}

/*
 * After a batch was rejected, none is accepted, however small, and no sort of all rows
 * is started: the client may have sent the request before it knew.
 */
static void
test_after_full(void **unused)
{
	const TestKind kinds[] = {TEST_INT64};
	TestTable  *table = table_make_empty(kinds, 1, 200000);
	Service		service;
	Client		client;
	uint32_t	buffer = 0;

	for (size_t row = 0; row < table->nrows; row++)
		table_set_number(table, row, 0, (int64_t) row);
	service_start(&service, (uint64_t) 4 << 20, NULL);
	CHECK(client_open(&client, &service, table, GS_MIN_BUFFER_BYTES, 4));
	CHECK(!client_load(&client, NULL) && client.failure == GS_FAILED_MEMORY);
	while (gs_job_busy(client.job))
		client_poll(&client);
	while (client.buffers[buffer] != BUFFER_MINE)
		buffer++;
	client.buffers[buffer] = BUFFER_FILLED;
	gs_member_batch_filled(gs_job_consumer(client.job), buffer, 1, 24);
	gs_job_sort(client.job, GS_ALGORITHM_RADIX, false, true, &client.layout);
	CHECK(!gs_job_busy(client.job));
	gs_job_poll(client.job);
	CHECK(client.buffers[buffer] == BUFFER_FILLED && !client.sorted);

	/* the accepted rows can be sorted */
	client.buffers[buffer] = BUFFER_MINE;
	client.failed = false;
	client.npushed = client.nuploaded;
	gs_job_sort(client.job, GS_ALGORITHM_RADIX, true, true, &client.layout);
	while (!client.sorted)
		client_poll(&client);
	CHECK(client.result.nrows == client.nuploaded && client.nuploaded > 0);
	client_close(&client);
	service_stop(&service);
	table_free(table);
}

/* -------------------------------------------------------------------- close */

/* Closes a job after npolls polls; its memory is released. */
static bool
close_after(const TestTable *table, int npolls)
{
	Service		service;
	Client		client;
	bool		ended = true;

	service_start(&service, 0, NULL);
	CHECK(client_open(&client, &service, table, GS_MIN_BUFFER_BYTES, 4));
	if (client_load(&client, NULL))
		gs_job_sort(client.job, GS_ALGORITHM_RADIX, false, true, &client.layout);
	for (int i = 0; i < npolls && ended; i++)
	{
		if (client.sorted && client.stream == 0)
			client_fetch(&client, 0);
		if (gs_job_busy(client.job))
			gs_job_poll(client.job);
		else
			ended = false;
	}
	client_close(&client);
	service_stop(&service);
	return !ended;
}

static void
check_close_in_every_phase(const TestTable *table, Dice *dice)
{
	for (int npolls = 0; !close_after(table, npolls); npolls++)
		CHECK(npolls < 1000);
}

static void
test_close_in_every_phase(void **unused)
{
	TableOptions options = {.min_rows = 1500, .max_rows = 3000, .max_payload = 100};

	driver_check_tables(120000, 4, &options, check_close_in_every_phase);
	options.shape = SHAPE_FEW;
	driver_check_tables(121000, 4, &options, check_close_in_every_phase);
	options.keys_only = true;
	driver_check_tables(122000, 1, &options, check_close_in_every_phase);
	options.shape = SHAPE_ANY;
	driver_check_tables(123000, 1, &options, check_close_in_every_phase);
}

/* While batches are being uploaded, without a poll. */
static void
test_close_of_load(void **unused)
{
	Dice		dice;
	TestTable  *table;
	Service		service;
	Client		client;

	table = table_of_seed(130000, &dice, &(TableOptions) {
		.min_rows = 3000, .max_rows = 3000, .ncolumns = 1
	});
	service_start(&service, 0, NULL);
	CHECK(client_open(&client, &service, table, GS_MIN_BUFFER_BYTES, 8));
	client_close(&client);
	CHECK(client_open(&client, &service, table, GS_MIN_BUFFER_BYTES, 8));
	CHECK(client_load(&client, NULL));
	CHECK(gs_job_busy(client.job));
	CHECK(client.npushed > client.filled[0].nrows);

	/* the device still reads the buffer pool */
	CHECK(!gs_job_close(client.job));
	client_close(&client);
	CHECK(client_open(&client, &service, table, GS_MIN_BUFFER_BYTES, 8));
	CHECK(client_load(&client, &dice));
	gs_job_return_input(client.job);
	client_poll(&client);
	client_close(&client);
	service_stop(&service);
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
		cmocka_unit_test(test_statistics),
		cmocka_unit_test(test_no_rows),
		cmocka_unit_test(test_many_jobs),
		cmocka_unit_test(test_drain_of_load),
		cmocka_unit_test(test_too_many_rows),
		cmocka_unit_test(test_memory_limits),
		cmocka_unit_test(test_refused_early),
		cmocka_unit_test(test_memory_runs_out),
		cmocka_unit_test(test_after_full),
		cmocka_unit_test(test_close_in_every_phase),
		cmocka_unit_test(test_close_of_load)
	};

	return cmocka_run_group_tests_name("job", tests, NULL, NULL);
}
