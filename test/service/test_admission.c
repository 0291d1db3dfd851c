/*-------------------------------------------------------------------------
 *
 * test_admission.c
 *	  Which jobs get device memory, which wait and for how long, and which are
 *	  parked while their clients are idle.
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
#define NBUFFERS		4
#define MB			(UINT64_C(1) << 20)

/* Longer than IDLE_US and RESERVE_AFTER_US (admission.c). */
#define REST_MS		400
#define AGED_MS		700

/* Shorter than IDLE_US. */
#define PAUSE_MS	200

static void
check_ready(Client *client)
{
	GsAnyMessage message;

	client_expect(client, GS_MESSAGE_JOB_READY, &message);
}

static Client
open_job(const Service *service, uint64_t expected_bytes, uint32_t wait_ms)
{
	Client		client = client_open(service, BUFFER_BYTES, NBUFFERS);
	Table		table = table_make(1, 1000, false);

	job_open(&client, &table, expected_bytes, wait_ms);
	return client;
}

/* ------------------------------------------------------------------ the queue */

/* A job that fits does not wait for one that does not, and no job waits forever. */
static void
test_queue(void **unused)
{
	Service		service = service_start((const char *[]) {"--memory-limit", "100", NULL});
	Table		table = table_make(1, 1000, false);
	Client		clients[5];
	uint64_t	start = now_ms();

	for (int i = 0; i < 5; i++)
		clients[i] = client_open(&service, BUFFER_BYTES, NBUFFERS);
	job_open(&clients[0], &table, 80 * MB, 0);
	check_ready(&clients[0]);

	/* is refused; then the connection can be used for the next job */
	job_open(&clients[1], &table, 30 * MB, 0);
	client_expect_failed(&clients[1], GS_FAILED_MEMORY);
	job_close(&clients[1]);
	job_open(&clients[1], &table, 30 * MB, 200);
	client_expect_failed(&clients[1], GS_FAILED_MEMORY);
	CHECK(now_ms() - start >= 200);
	job_close(&clients[1]);
	job_open(&clients[1], &table, 10 * MB, 0);
	check_ready(&clients[1]);

	/* 2 waits, and 3 after it; 4 fits, now and after 2 has waited for long */
	job_open(&clients[2], &table, 60 * MB, PATIENCE_MS);
	service_check_waiting(&service, 1);
	job_open(&clients[3], &table, 20 * MB, PATIENCE_MS);
	service_check_waiting(&service, 2);
	for (int i = 0; i < 2; i++)
	{
		job_open(&clients[4], &table, 1 * MB, 0);
		check_ready(&clients[4]);
		job_close(&clients[4]);
		sleep_ms(AGED_MS);
	}
	CHECK(service_status(&service).nwaiting == 2);
	job_close(&clients[0]);
	check_ready(&clients[2]);
	check_ready(&clients[3]);

	/* more than the limit: only if it is alone */
	job_open(&clients[0], &table, 200 * MB, PATIENCE_MS);
	service_check_waiting(&service, 1);
	for (int i = 1; i < 4; i++)
		client_close(&clients[i]);
	check_ready(&clients[0]);
	job_load(&clients[0], &table, 1000);
	job_sort(&clients[0], &table, GS_ALGORITHM_RADIX);
	job_fetch(&clients[0], &table, 1, 0);
	CHECK(service_status(&service).njobs == 1);
	job_close(&clients[0]);
	job_open(&clients[4], &table, 90 * MB, PATIENCE_MS);
	check_ready(&clients[4]);
	client_close(&clients[0]);
	client_close(&clients[4]);
	service_check_idle(&service);
	service_stop(&service);
}

/*
 * A job with half of the memory that works for some time, and one that waits
 * for nearly all.
 */
static Service
start_with_worker(const char *fault, Client *worker, Client *oldest)
{
	Service		service = service_start((const char *[])
										{
										"--memory-limit", "100", "--fault", fault, NULL
										});
	Table		table = table_make(1, 100, false);

	*worker = open_job(&service, 50 * MB, 0);
	check_ready(worker);
	job_load(worker, &table, 100);
	*oldest = open_job(&service, 90 * MB, PATIENCE_MS);
	service_check_waiting(&service, 1);
	return service;
}

/* Later jobs are delayed if they would take memory from the oldest, but not for long. */
static void
test_held_back(void **unused)
{
	Client		worker;
	Client		oldest;
	Service		service = start_with_worker("copy_in:1:delay=8000", &worker, &oldest);
	Client		held = open_job(&service, 20 * MB, PATIENCE_MS);
	Client		small;
	GsAnyMessage message;
	uint64_t	start;

	/* the oldest has not waited for long yet */
	check_ready(&held);
	client_close(&held);
	sleep_ms(AGED_MS);

	start = now_ms();
	held = open_job(&service, 20 * MB, PATIENCE_MS);
	service_check_waiting(&service, 2);
	small = open_job(&service, 5 * MB, 0);
	check_ready(&small);
	check_ready(&held);
	CHECK_MSG(now_ms() - start >= 500, "it was held back for %d ms", (int) (now_ms() - start));
	CHECK_MSG(client_receive(&worker, &message, 0) == -1, "it was held back until the worker had finished");
	client_close(&held);
	client_close(&small);
	client_close(&worker);
	check_ready(&oldest);
	client_close(&oldest);
	service_check_idle(&service);
	service_stop(&service);
}

/*
 * So the oldest gets the memory of the working job, which suffices for the
 * others, too.
 */
static void
test_oldest(void **unused)
{
	Client		worker;
	Client		oldest;
	Service		service = start_with_worker("copy_in:1:delay=1100", &worker, &oldest);
	Client		held;
	GsAnyMessage message;

	sleep_ms(AGED_MS);
	held = open_job(&service, 20 * MB, PATIENCE_MS);
	client_close(&worker);
	check_ready(&oldest);
	CHECK(client_receive(&held, &message, 50) == -1);
	client_close(&oldest);
	check_ready(&held);
	client_close(&held);
	service_check_idle(&service);
	service_stop(&service);
}

/*
 * Sessions of all sizes that sort repeatedly: all get their turn.  The rows of each
 * job fit in what it reserves: even a job of few rows uses up to 1.7 MB, because the
 * smallest block has 64 kB.
 */
static void
test_mixed_sizes(void **unused)
{
	enum
	{
		NSESSIONS = 64,
		NJOBS = 4
	};
	static const uint64_t sizes[] = {2, 3, 4, 30, 90};
	Service		service = service_start((const char *[]) {"--memory-limit", "96", NULL});
	pid_t		children[NSESSIONS];

	for (int i = 0; i < NSESSIONS; i++)
	{
		children[i] = fork();
		CHECK(children[i] >= 0);
		if (children[i] > 0)
			continue;
		for (int n = 0; n < NJOBS; n++)
		{
			Client		client = client_open(&service, BUFFER_BYTES, NBUFFERS);
			uint64_t	megabytes = sizes[(i + n) % 5];
			Table		table = table_make((uint64_t) i, megabytes * 200, false);

			job_open(&client, &table, megabytes * MB, PATIENCE_MS * 10);
			CHECK(client_receive(&client, &(GsAnyMessage) {0}, PATIENCE_MS * 10) == GS_MESSAGE_JOB_READY);
			CHECK(job_load(&client, &table, table.nrows));
			job_sort(&client, &table, GS_ALGORITHM_RADIX);
			job_fetch(&client, &table, 1, 0);
			client_close(&client);
		}
		_exit(0);
	}
	for (int i = 0; i < NSESSIONS; i++)
	{
		int			status;

		CHECK(waitpid(children[i], &status, 0) == children[i]);
		CHECK_MSG(status == 0, "session %d failed", i);
	}
	service_check_idle(&service);
	service_stop(&service);
}

/* ------------------------------------------------------------------- parking */

/* A sort whose client has released no batch yet, so all its buffers are full. */
static Client
open_cursor(const Service *service, Table *table)
{
	Client		client = client_open(service, BUFFER_BYTES, NBUFFERS);

	job_open(&client, table, 0, 0);
	check_ready(&client);
	CHECK(job_load(&client, table, table->nrows));
	job_sort(&client, table, GS_ALGORITHM_RADIX);
	job_send_fetch(&client, 1, 0);
	return client;
}

/*
 * Waits until this number of descriptors is open, which are closed after
 * clients disconnect.
 */
static void
check_fds(const Service *service, int nfds)
{
	uint64_t	end = now_ms() + PATIENCE_MS;

	while (service_count_fds(service) != nfds && now_ms() < end)
		sleep_ms(1);
	CHECK_MSG(service_count_fds(service) == nfds, "%d descriptors instead of %d",
			  service_count_fds(service), nfds);
}

/* Another one wants all of the device's memory; does it get that? */
static bool
gets_all(const Service *service, uint32_t wait_ms)
{
	Client		client = open_job(service, 20 * MB, wait_ms);
	GsAnyMessage message;
	bool		ready = client_receive(&client, &message, PATIENCE_MS) == GS_MESSAGE_JOB_READY;

	client_close(&client);
	return ready;
}

static Service
start_with_disk(const char *folder, const char *limit, const char *fault)
{
	return service_start((const char *[])
						 {
						 "--memory-limit", "20", "--park-folder", folder, "--park-limit", limit,
						 "--fault", fault, NULL
						 });
}

#define NO_FAULT	"copy_in:1000000:fail"

/* Another client gets the memory of an idle one, which still gets all its rows. */
static void
test_parking(void **unused)
{
	for (int keys_only = 0; keys_only < 2; keys_only++)
	{
		Service		service = start_with_disk("/tmp", "100", NO_FAULT);
		Table		table = table_make(1, 40000, keys_only);
		Client		cursor = open_cursor(&service, &table);
		int			nfds = service_count_fds(&service);

		CHECK(service_status(&service).memory_used > 0);
		sleep_ms(REST_MS);
		CHECK_MSG(service_status(&service).memory_used > 0, "nobody wants it");
		CHECK(gets_all(&service, PATIENCE_MS));
		CHECK(service_status(&service).memory_used == 0);
		check_fds(&service, nfds + 1);	/* the file */

		/* continues, starts again, from any position */
		job_read_stream(&cursor, &table, 1, 0);
		job_fetch(&cursor, &table, 2, 0);
		job_fetch(&cursor, &table, 3, 39999);
		job_fetch(&cursor, &table, 4, 20000);
		CHECK(gets_all(&service, 0));
		job_close(&cursor);
		job_run(&cursor, 1, 1000, false);
		check_fds(&service, nfds);

		/* disconnected, with batches in transit */
		client_close(&cursor);
		table = table_make(2, 40000, keys_only);
		cursor = open_cursor(&service, &table);
		CHECK(gets_all(&service, PATIENCE_MS));
		job_send_fetch(&cursor, 5, 30000);
		client_close(&cursor);
		service_check_idle(&service);
		service_stop(&service);
	}
}

/* Several are idle; the one that fits the file limit is parked. */
static void
test_parking_of_several(void **unused)
{
	Service		service = start_with_disk("/tmp", "100", NO_FAULT);
	Table		tables[4];
	Client		cursors[4];

	for (int i = 0; i < 4; i++)
	{
		tables[i] = table_make((uint64_t) i, 15000, false);
		cursors[i] = open_cursor(&service, &tables[i]);
	}
	CHECK(gets_all(&service, PATIENCE_MS));
	for (int i = 3; i >= 0; i--)
	{
		job_read_stream(&cursors[i], &tables[i], 1, 0);
		client_close(&cursors[i]);
	}
	service_check_idle(&service);
	service_stop(&service);
}

/* If parking is not possible, nothing is lost. */
static void
test_no_parking(void **unused)
{
	static const char *const places[][2] = {
		{"/tmp", "0"},			/* turned off */
		{"/tmp", "1"},			/* too small */
		{"/proc/nowhere", "100"},
		{"/dev/null", "100"},
	};

	for (int i = 0; i < 4; i++)
	{
		Service		service = start_with_disk(places[i][0], places[i][1], NO_FAULT);
		Table		table = table_make(1, 40000, false);
		Client		cursor = open_cursor(&service, &table);
		int			nfds = service_count_fds(&service);

		unit_case("%s, %s MB", places[i][0], places[i][1]);
		CHECK(!gets_all(&service, 1500));
		CHECK(service_status(&service).memory_used > 0);
		check_fds(&service, nfds);
		job_read_stream(&cursor, &table, 1, 0);
		client_close(&cursor);
		service_check_idle(&service);
		service_stop(&service);
		unit_case("%s", "");
	}
}

/*
 * The client sends a request, or disconnects, while the job is being parked.
 * The delays are in the gathers for the file.
 */
static void
test_parking_in_vain(void **unused)
{
	for (int goes = 0; goes < 2; goes++)
	{
		Service		service = start_with_disk("/tmp", "100", "gather:6:delay=3000");
		Table		table = table_make(1, 40000, false);
		Client		cursor = open_cursor(&service, &table);
		Client		waiter;
		int			nfds = service_count_fds(&service);

		waiter = open_job(&service, 20 * MB, PATIENCE_MS);
		service_check_waiting(&service, 1);
		while (service_count_fds(&service) < nfds + 2)
			sleep_ms(1);
		sleep_ms(50);
		CHECK(service_status(&service).memory_used > 0);
		if (goes)
			client_close(&cursor);
		else
		{
			uint64_t	start;
			bool		waits;

			job_read_stream(&cursor, &table, 1, 0);
			start = now_ms();
			job_fetch(&cursor, &table, 2, 0);
			waits = service_status(&service).nwaiting == 1;
			CHECK_MSG(waits || now_ms() - start > PAUSE_MS, "it was parked although it was not idle");
		}

		/* it is idle and parked again, or it has disconnected */
		check_ready(&waiter);
		client_close(&waiter);
		if (!goes)
		{
			job_fetch(&cursor, &table, 3, 0);
			client_close(&cursor);
		}
		service_check_idle(&service);
		service_stop(&service);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_queue),
		cmocka_unit_test(test_held_back),
		cmocka_unit_test(test_oldest),
		cmocka_unit_test(test_mixed_sizes),
		cmocka_unit_test(test_parking),
		cmocka_unit_test(test_parking_of_several),
		cmocka_unit_test(test_no_parking),
		cmocka_unit_test(test_parking_in_vain),
	};

	return cmocka_run_group_tests_name("admission", tests, NULL, NULL);
}
