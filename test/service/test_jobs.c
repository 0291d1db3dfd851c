/*-------------------------------------------------------------------------
 *
 * test_jobs.c
 *	  Jobs from HELLO to JOB_CLOSE: one, many in sequence, many at the same
 *	  time; lack of memory, and jobs that wait for it.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "service_driver.h"
#include "unit_cmocka.h"

#define BUFFER_BYTES	((uint32_t) 64 << 10)
#define NBUFFERS		6

static void
test_welcome(void **unused)
{
	Service		service = service_start((const char *[]) {"--memory-limit", "64", NULL});
	Client		client = client_connect(&service);
	HelloOptions options = {0};
	GsAnyMessage message;
	char		expected[GS_DEVICE_NAME_BYTES + 100];

	client_send_hello(&client, BUFFER_BYTES, NBUFFERS, &options);
	client_expect(&client, GS_MESSAGE_WELCOME, &message);
	CHECK(message.welcome.version == GS_WIRE_VERSION);
	CHECK(message.welcome.memory_limit == UINT64_C(64) << 20);
	CHECK(message.welcome.memory_total >= message.welcome.memory_limit);
	CHECK(message.welcome.memory_used == 0 && message.welcome.memory_reserved == 0);
	CHECK(message.welcome.njobs == 0 && message.welcome.jobs_done == 0);
	CHECK((pid_t) message.welcome.pid == service.pid);
	snprintf(expected, sizeof(expected), "gpusortd: ready: %s, 64 MB, ",
			 message.welcome.device_name);
	CHECK_MSG(strncmp(service.ready, expected, strlen(expected)) == 0 &&
			  strstr(service.ready, "build ") != NULL, "it said %s", service.ready);
	client_close(&client);

	/* without buffers, any number of times */
	client = client_connect(&service);
	options.no_buffers = true;
	for (int i = 0; i < 3; i++)
	{
		client_send_hello(&client, 0, 0, &options);
		client_expect(&client, GS_MESSAGE_WELCOME, &message);
	}
	client_close(&client);
	service_check_idle(&service);
	service_stop(&service);
}

static void
test_one_after_the_other(void **unused)
{
	static const uint64_t sizes[] = {1, 2, 100, 3000, 40000, 7, 5000};
	Service		service = service_start(NULL);
	Client		client = client_open(&service, BUFFER_BYTES, NBUFFERS);

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
	{
		job_run(&client, i, sizes[i], false);
		job_run(&client, i, sizes[i], true);
	}
	CHECK(service_status(&service).jobs_done >= 2 * sizeof(sizes) / sizeof(sizes[0]) - 1);
	client_close(&client);
	service_check_idle(&service);
	CHECK(service_status(&service).jobs_done == 2 * sizeof(sizes) / sizeof(sizes[0]));
	service_stop(&service);
}

/* The limits of the sizes of buffers. */
static void
test_buffer_pools(void **unused)
{
	static const uint32_t buffers[][2] = {
		{GS_MIN_BUFFER_BYTES, 2}, {GS_MIN_BUFFER_BYTES, GS_MAX_BUFFERS}, {GS_MIN_BUFFER_BYTES + 4096, 3},
		{GS_MAX_BUFFER_BYTES, 2}
	};
	Service		service = service_start(NULL);

	for (size_t i = 0; i < sizeof(buffers) / sizeof(buffers[0]); i++)
	{
		Client		client = client_open(&service, buffers[i][0], buffers[i][1]);

		job_run(&client, i, 5000, false);
		client_close(&client);
	}
	service_check_idle(&service);
	service_stop(&service);
}

/* A stream that is not read to its end, and the next one. */
static void
test_streams(void **unused)
{
	Service		service = service_start(NULL);
	Client		client = client_open(&service, BUFFER_BYTES, NBUFFERS);
	Table		table = table_make(5, 20000, false);
	GsFetch		fetch = {.stream = 7,.position = 11};
	GsAnyMessage message;

	job_open(&client, &table, 0, 0);
	client_expect(&client, GS_MESSAGE_JOB_READY, &message);
	job_load(&client, &table, 20000);
	job_sort(&client, &table, GS_ALGORITHM_RADIX);
	job_release_buffers(&client);
	client_send(&client, &fetch, GS_MESSAGE_FETCH, sizeof(fetch));
	client_expect(&client, GS_MESSAGE_BATCH_READY, &message);
	CHECK(message.ready.stream == 7 && message.ready.position <= 11);
	client_send_buffer(&client, GS_MESSAGE_BATCH_RELEASED, message.ready.buffer);
	job_fetch(&client, &table, 8, 19999);
	job_fetch(&client, &table, 9, 0);
	job_close(&client);
	job_run(&client, 1, 100, false);
	client_close(&client);
	service_check_idle(&service);
	service_stop(&service);
}

/* Released buffers are not filled before FETCH. */
static void
test_no_fetch(void **unused)
{
	Service		service = service_start(NULL);
	Client		client = client_open(&service, BUFFER_BYTES, NBUFFERS);
	GsAnyMessage message;

	for (int keys_only = 0; keys_only < 2; keys_only++)
	{
		Table		table = table_make(1, 20000, keys_only);

		job_open(&client, &table, 0, 0);
		client_expect(&client, GS_MESSAGE_JOB_READY, &message);
		job_load(&client, &table, 20000);

		/* some before SORT, all others once it is SORTED */
		job_release_buffers(&client);
		job_sort(&client, &table, GS_ALGORITHM_RADIX);
		job_release_buffers(&client);
		CHECK_MSG(client_receive(&client, &message, 200) == -1,
				  "message %u came, and nobody has asked", message.message.type);
		job_fetch(&client, &table, 1, 0);
		job_close(&client);
	}
	client_close(&client);
	service_check_idle(&service);
	service_stop(&service);
}

static void
run_at_once(int nclients, uint64_t nrows)
{
	Service		service = service_start(NULL);
	pid_t		children[64];

	for (int i = 0; i < nclients; i++)
	{
		children[i] = fork();
		CHECK(children[i] >= 0);
		if (children[i] == 0)
		{
			Client		client = client_open(&service, BUFFER_BYTES, NBUFFERS);

			for (uint64_t job = 0; job < 3; job++)
				job_run(&client, (uint64_t) i * 10 + job, nrows, job == 1);
			client_close(&client);
			_exit(0);
		}
	}
	for (int i = 0; i < nclients; i++)
	{
		int			status;

		CHECK(waitpid(children[i], &status, 0) == children[i]);
		CHECK_MSG(status == 0, "client %d failed", i);
	}
	service_check_idle(&service);
	CHECK(service_status(&service).jobs_done == 3 * (uint64_t) nclients);
	service_stop(&service);
}

static void
test_three_at_once(void **unused)
{
	run_at_once(3, 50000);
}

static void
test_many_at_once(void **unused)
{
	run_at_once(32, 5000);
}

/* ------------------------------------------------------------------ memory */

/* Too many rows for the device: the input is returned. */
static void
test_return_input(void **unused)
{
	Service		service = service_start((const char *[]) {"--memory-limit", "8", NULL});
	Client		client = client_open(&service, BUFFER_BYTES, NBUFFERS);
	GsAnyMessage message;

	for (int keys_only = 0; keys_only < 2; keys_only++)
	{
		Table		table = table_make(1, 10000000, keys_only);

		job_open(&client, &table, 0, 0);
		do
			CHECK(client_receive(&client, &message, PATIENCE_MS) > 0);
		while (message.message.type != GS_MESSAGE_JOB_READY);
		CHECK_MSG(!job_load(&client, &table, table.nrows), "there was no end to 8 MB");
		job_return_input(&client, &table);
		job_close(&client);
	}
	job_run(&client, 3, 1000, false);
	client_close(&client);
	service_check_idle(&service);
	service_stop(&service);
}

static void
check_ready(Client *client)
{
	GsAnyMessage message;

	client_expect(client, GS_MESSAGE_JOB_READY, &message);
}

/* The unused reservation of a sorted job is available to others. */
static void
test_promise(void **unused)
{
	const uint64_t limit = UINT64_C(64) << 20;
	Service		service = service_start((const char *[]) {"--memory-limit", "64", NULL});
	Client		first = client_open(&service, BUFFER_BYTES, NBUFFERS);
	Client		second = client_open(&service, BUFFER_BYTES, NBUFFERS);
	Table		table;

	/* all of the memory, and more */
	for (uint64_t expected = limit; expected <= 2 * limit; expected += limit)
	{
		table = table_make(1, 1000, false);
		job_open(&first, &table, expected, PATIENCE_MS);
		check_ready(&first);
		job_load(&first, &table, 1000);
		job_open(&second, &table, 1, 0);
		client_expect_failed(&second, GS_FAILED_MEMORY);
		job_close(&second);
		job_sort(&first, &table, GS_ALGORITHM_RADIX);
		job_open(&second, &table, limit / 2, 0);
		check_ready(&second);

		/* it still has what it needed */
		job_fetch(&first, &table, 1, 0);
		job_close(&first);
		job_close(&second);
	}

	/* exactly the rest of the limit is available */
	job_open(&first, &table, limit, PATIENCE_MS);
	check_ready(&first);
	job_open(&second, &table, 1, 0);
	client_expect_failed(&second, GS_FAILED_MEMORY);
	client_close(&first);
	client_close(&second);
	service_check_idle(&service);
	service_stop(&service);
}

/* Many jobs that only fit one after the other all complete. */
static void
test_turns(void **unused)
{
	Service		service = service_start((const char *[]) {"--memory-limit", "50", NULL});
	pid_t		children[12];

	for (int i = 0; i < 12; i++)
	{
		children[i] = fork();
		CHECK(children[i] >= 0);
		if (children[i] == 0)
		{
			Client		client = client_open(&service, BUFFER_BYTES, NBUFFERS);
			Table		table = table_make((uint64_t) i, 3000, false);

			job_open(&client, &table, UINT64_C(30) << 20, PATIENCE_MS);
			check_ready(&client);
			job_load(&client, &table, 3000);
			job_sort(&client, &table, GS_ALGORITHM_RADIX);
			job_fetch(&client, &table, 1, 0);
			_exit(0);			/* without a message */
		}
	}
	for (int i = 0; i < 12; i++)
	{
		int			status;

		CHECK(waitpid(children[i], &status, 0) == children[i]);
		CHECK_MSG(status == 0, "client %d failed", i);
	}
	service_check_idle(&service);
	service_stop(&service);
}

/* Memory that has been idle for a second is released. */
static void
test_idle_memory(void **unused)
{
	Service		service = service_start((const char *[]) {"--idle-seconds", "1", NULL});
	Client		client = client_open(&service, BUFFER_BYTES, NBUFFERS);
	uint64_t	start = now_ms();

	job_run(&client, 1, 20000, false);
	client_close(&client);
	service_check_idle(&service);
	while (service_status(&service).memory_reserved > 0)
	{
		CHECK_MSG(now_ms() - start < PATIENCE_MS, "idle memory is not given back");
		sleep_ms(10);
	}
	CHECK_MSG(now_ms() - start >= 1000, "it is kept for the next job for %d ms", (int) (now_ms() - start));
	service_stop(&service);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_welcome),
		cmocka_unit_test(test_one_after_the_other),
		cmocka_unit_test(test_buffer_pools),
		cmocka_unit_test(test_streams),
		cmocka_unit_test(test_no_fetch),
		cmocka_unit_test(test_three_at_once),
		cmocka_unit_test(test_many_at_once),
		cmocka_unit_test(test_return_input),
		cmocka_unit_test(test_promise),
		cmocka_unit_test(test_turns),
		cmocka_unit_test(test_idle_memory),
	};

	return cmocka_run_group_tests_name("jobs", tests, NULL, NULL);
}
