/*-------------------------------------------------------------------------
 *
 * test_faults.c
 *	  Devices that fail, and clients that die, at every point of a job.
 *
 *-------------------------------------------------------------------------
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "service_driver.h"
#include "unit_cmocka.h"

#define BUFFER_BYTES	((uint32_t) 64 << 10)
#define NBUFFERS		4
#define NROWS		4000

/*
 * Runs a job as far as possible.  Returns the last message: FAILED, 0 if the
 * connection ended, or BATCH_READY with the last row.
 */
static int
run_job(Client *client, GsAnyMessage *message, bool keys_only)
{
	Table		table = table_make(1, NROWS, keys_only);
	GsFetch		fetch = {.stream = 1};
	int			type;

	job_open(client, &table, 0, 0);
	for (;;)
	{
		type = client_receive(client, message, PATIENCE_MS);
		switch (type)
		{
			case GS_MESSAGE_JOB_READY:
				job_load(client, &table, 2000);
				job_send_sort(client, &table, GS_ALGORITHM_RADIX);
				break;
			case GS_MESSAGE_BATCH_FREE:
				client->free_buffers |= UINT64_C(1) << message->buffer.buffer;
				break;
			case GS_MESSAGE_SORTED:
				job_release_buffers(client);
				client_send(client, &fetch, GS_MESSAGE_FETCH, sizeof(fetch));
				break;
			case GS_MESSAGE_BATCH_READY:
				if (message->ready.position + message->ready.nrows == table.nloaded)
					return type;
				client_send_buffer(client, GS_MESSAGE_BATCH_RELEASED, message->ready.buffer);
				break;
			default:
				return type;
		}
	}
}

/* ------------------------------------------------------------- the device */

/* Checks that gpusortd ended because the device failed. */
static void
check_ended(Service *service, int exit_code)
{
	int			status = service_wait(service);

	CHECK_MSG(WIFEXITED(status) && WEXITSTATUS(status) == exit_code, "wait status %#x: see %s",
			  (unsigned) status, service->log);
	CHECK(service_logged(service, "the device failed"));
	CHECK(access(service->socket, F_OK) != 0);
	service_remove(service);
}

static void
check_ended_broken(Service *service)
{
	check_ended(service, 1);
}

/* The device fails: all clients get an error, and gpusortd exits with code 1. */
static void
check_broken(const char *op, bool keys_only)
{
	char		spec[60];
	Service		service;
	Client		worker;
	Client		bystander;
	GsAnyMessage message;
	int			type;

	unit_case("%s", op);
	snprintf(spec, sizeof(spec), "%s:1:fail", op);
	service = service_start((const char *[]) {"--fault", spec, NULL});
	bystander = client_open(&service, BUFFER_BYTES, NBUFFERS);
	worker = client_open(&service, BUFFER_BYTES, NBUFFERS);
	type = run_job(&worker, &message, keys_only);
	CHECK_MSG(type == GS_MESSAGE_FAILED, "message %d came", type);
	CHECK_MSG(message.failed.failure == GS_FAILED_DEVICE, "failure %u: %s",
			  message.failed.failure, message.failed.text);
	CHECK_MSG(strncmp(message.failed.text, op, strlen(op)) == 0, "%s", message.failed.text);
	client_expect_dropped(&bystander, GS_FAILED_DEVICE);
	client_close(&worker);
	client_close(&bystander);
	check_ended_broken(&service);
	unit_case("%s", "");
}

static void
test_broken_device(void **unused)
{
	static const char *const ops[] = {
		"stream_open", "record_fence", "passed_fence", "copy_in", "copy_out", "pack", "sort_words",
		"same_words", "count_ties", "list_ties", "tie_keys", "sort_ties", "place_ties", "check_order",
		"row_end_offsets", "find_boundaries", "gather"
	};

	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		check_broken(ops[i], false);
	check_broken("gather_keys", true);
}

/* The device sorts wrongly: the same, but with code 5, so that it is not started again. */
static void
test_wrong_device(void **unused)
{
	Service		service = service_start((const char *[]) {"--fault", "sort_words:2:wrong", NULL});
	Client		bystander = client_open(&service, BUFFER_BYTES, NBUFFERS);
	Client		worker = client_open(&service, BUFFER_BYTES, NBUFFERS);
	GsAnyMessage message;
	int			type;

	CHECK(run_job(&worker, &message, false) != GS_MESSAGE_FAILED);
	client_close(&worker);
	worker = client_open(&service, BUFFER_BYTES, NBUFFERS);
	type = run_job(&worker, &message, false);
	CHECK_MSG(type == GS_MESSAGE_FAILED, "message %d came", type);
	CHECK_MSG(message.failed.failure == GS_FAILED_ORDER, "failure %u: %s",
			  message.failed.failure, message.failed.text);
	CHECK(strstr(message.failed.text, "host processor (no driver) sorted wrongly: of ") == message.failed.text);
	client_expect_dropped(&bystander, GS_FAILED_ORDER);
	client_close(&bystander);
	client_close(&worker);
	check_ended(&service, 5);
}

/*
 * The device fails while a job closes, by JOB_CLOSE or because its client
 * disconnected.  No job can report that, but all clients get the error.
 */
static void
check_broken_in_close(const char *op, bool says_close)
{
	char		spec[60];
	Service		service;
	Client		worker;
	Client		bystander;
	Table		table = table_make(1, NROWS, false);
	GsAnyMessage message;

	unit_case("%s, %s", op, says_close ? "JOB_CLOSE" : "gone");
	snprintf(spec, sizeof(spec), "%s:1:fail", op);
	service = service_start((const char *[]) {"--fault", spec, NULL});
	bystander = client_open(&service, BUFFER_BYTES, NBUFFERS);
	worker = client_open(&service, BUFFER_BYTES, NBUFFERS);

	/* without input, the first fence is that of the end */
	job_open(&worker, &table, 0, 0);
	client_expect(&worker, GS_MESSAGE_JOB_READY, &message);
	if (says_close)
	{
		job_close(&worker);
		client_expect_dropped(&worker, GS_FAILED_DEVICE);
	}
	client_close(&worker);
	client_expect_dropped(&bystander, GS_FAILED_DEVICE);
	client_close(&bystander);
	check_ended_broken(&service);
	unit_case("%s", "");
}

static void
test_broken_in_close(void **unused)
{
	static const char *const ops[] = {"record_fence", "passed_fence"};

	for (int i = 0; i < 2; i++)
	{
		check_broken_in_close(ops[i], true);
		check_broken_in_close(ops[i], false);
	}
}

/* The device has failed from the start. */
static void
test_broken_at_start(void **unused)
{
	Service		service = service_start(NULL);

	kill(service.pid, SIGKILL);
	service_wait(&service);
	CHECK(service_exit_code(&service, (const char *[]) {"--fault", "memory:1:fail", NULL}) == 1);
	CHECK(access(service.socket, F_OK) == 0);
	service_remove(&service);
}

/* Out of device memory: the input is returned. */
static void
test_no_memory(void **unused)
{
	for (int call = 1; call < 6; call++)
	{
		char		spec[40];
		Service		service;
		Client		client;
		Table		table = table_make(1, NROWS, false);
		GsAnyMessage message;
		int			type = GS_MESSAGE_FAILED;

		unit_case("call %d", call);
		snprintf(spec, sizeof(spec), "allocate:%d:none", call);
		service = service_start((const char *[]) {"--fault", spec, NULL});
		client = client_open(&service, BUFFER_BYTES, NBUFFERS);
		job_open(&client, &table, 0, 0);
		client_expect(&client, GS_MESSAGE_JOB_READY, &message);
		if (job_load(&client, &table, NROWS))
		{
			job_send_sort(&client, &table, GS_ALGORITHM_RADIX);
			while ((type = client_receive(&client, &message, PATIENCE_MS)) == GS_MESSAGE_BATCH_FREE)
				client.free_buffers |= UINT64_C(1) << message.buffer.buffer;
		}
		if (type == GS_MESSAGE_FAILED)
			job_return_input(&client, &table);
		else
			CHECK_MSG(type == GS_MESSAGE_SORTED && call > 2, "message %d came", type);
		client_close(&client);
		service_check_idle(&service);
		service_stop(&service);
		unit_case("%s", "");
	}
}

/*
 * No pinned memory: without buffers the client is disconnected; without a job
 * it is not.
 */
static void
test_no_pinned_memory(void **unused)
{
	Service		service = service_start((const char *[])
										{
										"--fault", "pin:2:none,allocate_host:1:none", NULL
										});
	Client		client = client_open(&service, BUFFER_BYTES, NBUFFERS);
	Client		other = client_connect(&service);
	HelloOptions options = {0};
	Table		table = table_make(1, NROWS, false);

	client_send_hello(&other, BUFFER_BYTES, NBUFFERS, &options);
	client_expect_dropped(&other, GS_FAILED_MEMORY);
	client_close(&other);
	for (int i = 0; i < 3; i++)
	{
		job_open(&client, &table, 1000000, 0);
		client_expect_failed(&client, GS_FAILED_MEMORY);
		job_close(&client);
	}
	client_close(&client);
	service_check_idle(&service);
	service_stop(&service);
}

static void
test_killed_service(void **unused)
{
	Service		service = service_start((const char *[]) {"--fault", "gather:1:kill", NULL});
	Client		client = client_open(&service, BUFFER_BYTES, NBUFFERS);
	GsAnyMessage message;
	int			status;

	CHECK(run_job(&client, &message, false) == 0);
	client_close(&client);
	status = service_wait(&service);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	service_start_again(&service, NULL);
	client = client_open(&service, BUFFER_BYTES, NBUFFERS);
	CHECK(run_job(&client, &message, false) == GS_MESSAGE_BATCH_READY);
	client_close(&client);
	service_stop(&service);
}

/* A slow device: only its jobs wait, and nothing is done meanwhile. */
static void
test_slow_device(void **unused)
{
	Service		service = service_start((const char *[])
										{
										"--fault", "copy_in:1:delay=5000", NULL
										});
	Client		client = client_open(&service, BUFFER_BYTES, NBUFFERS);
	Table		table = table_make(1, 100, false);
	GsAnyMessage message;
	uint64_t	start;

	job_open(&client, &table, 0, 0);
	client_expect(&client, GS_MESSAGE_JOB_READY, &message);
	start = now_ms();
	job_load(&client, &table, 100);
	CHECK(service_status(&service).njobs == 1);
	service_check_asleep(&service);
	CHECK_MSG(client_receive(&client, &message, 0) == -1, "the service is blocked or busy");
	client_expect(&client, GS_MESSAGE_BATCH_FREE, &message);
	CHECK_MSG(now_ms() - start >= 5000, "the delay was %d ms", (int) (now_ms() - start));

	/* the next job is not slow */
	job_close(&client);
	job_run(&client, 1, NROWS, false);
	client_close(&client);
	service_check_idle(&service);
	service_stop(&service);
}

/* A call of the device blocks: requests for the status are answered nevertheless. */
static void
test_blocked_device(void **unused)
{
	static const char *const specs[] = {"pin:2:block=3000", "unpin:1:block=3000",
	"release:1:block=3000", "allocate:1:block=3000"};

	for (int i = 0; i < 4; i++)
	{
		Service		service;
		Client		client;
		Client		other;
		HelloOptions options = {0};
		GsAnyMessage message;
		GsWelcome	status;
		uint64_t	start;

		unit_case("%s", specs[i]);
		service = service_start((const char *[])
								{
								"--idle-seconds", "0", "--fault", specs[i], NULL
								});
		client = client_open(&service, BUFFER_BYTES, NBUFFERS);
		other = client_connect(&service);
		if (i == 0)
			client_send_hello(&other, BUFFER_BYTES, NBUFFERS, &options);
		else if (i == 1)
			client_close(&client);
		else
		{
			Table		table = table_make(1, 100, false);

			job_open(&client, &table, 0, 0);
			client_expect(&client, GS_MESSAGE_JOB_READY, &message);
			job_load(&client, &table, 100);
			if (i == 2)
			{
				job_sort(&client, &table, GS_ALGORITHM_RADIX);
				job_close(&client);
			}
		}
		start = now_ms();
		do
		{
			status = service_status(&service);
			CHECK_MSG(now_ms() - start < PATIENCE_MS, "the service is not blocked");
		} while (status.stalled_ms < 50);
		for (int n = 0; n < 3; n++)
			CHECK_MSG(service_status(&service).stalled_ms >= status.stalled_ms, "not answered while it is blocked");

		/* the job that waited for the device continues */
		if (i == 0)
			client_expect(&other, GS_MESSAGE_WELCOME, &message);
		client_close(&other);
		if (i != 1)
			client_close(&client);
		service_check_idle(&service);
		CHECK(service_status(&service).stalled_ms < 1000);
		service_stop(&service);
		unit_case("%s", "");
	}
}

/* JOB_OPEN after JOB_CLOSE waits until the device has finished with the buffers. */
static void
test_close_waits(void **unused)
{
	Service		service = service_start((const char *[])
										{
										"--fault", "copy_in:1:delay=300", NULL
										});
	Client		client = client_open(&service, BUFFER_BYTES, NBUFFERS);
	Table		table = table_make(1, 100, false);
	GsAnyMessage message;
	uint64_t	start;

	job_open(&client, &table, 0, 0);
	client_expect(&client, GS_MESSAGE_JOB_READY, &message);
	start = now_ms();
	job_load(&client, &table, 100);
	job_close(&client);
	job_open(&client, &table, 0, 0);
	client_expect(&client, GS_MESSAGE_JOB_READY, &message);
	CHECK_MSG(now_ms() - start >= 300, "READY came after %d ms", (int) (now_ms() - start));
	table = table_make(1, 100, false);
	job_load(&client, &table, 100);
	job_sort(&client, &table, GS_ALGORITHM_RADIX);
	job_fetch(&client, &table, 1, 0);
	client_close(&client);
	service_check_idle(&service);
	service_stop(&service);
}

/* Waits until the loop has handled all messages that were sent before: a client takes it a turn. */
static void
wait_for_turns(const Service *service)
{
	for (int i = 0; i < 2; i++)
	{
		Client		client = client_open(service, BUFFER_BYTES, 1);

		client_close(&client);
	}
}

/* A shutdown waits for the device, but not forever. */
static void
test_end_of_slow_device(void **unused)
{
	static const char *const specs[] = {"copy_in:1:delay=2000", "copy_in:1:delay=3600000"};

	for (int i = 0; i < 2; i++)
	{
		Service		service = service_start((const char *[]) {"--fault", specs[i], NULL});
		Client		client = client_open(&service, BUFFER_BYTES, NBUFFERS);
		Table		table = table_make(1, 100, false);
		GsAnyMessage message;
		int			status;

		job_open(&client, &table, 0, 0);
		client_expect(&client, GS_MESSAGE_JOB_READY, &message);
		job_load(&client, &table, 100);
		wait_for_turns(&service);
		kill(service.pid, SIGTERM);
		client_expect_dropped(&client, GS_FAILED_SHUTDOWN);
		client_close(&client);
		status = service_wait(&service);
		CHECK_MSG(WIFEXITED(status) && WEXITSTATUS(status) == i, "wait status %#x: see %s",
				  (unsigned) status, service.log);
		CHECK(access(service.socket, F_OK) != 0);
		service_remove(&service);
	}
}

/* ------------------------------------------------------------- the clients */

typedef enum Death
{
	DIES_CONNECTED,
	DIES_HELLO_SENT,
	DIES_IDLE,
	DIES_WAITING,
	DIES_READY,
	DIES_LOADING,
	DIES_SORT_SENT,
	DIES_SORTED,
	DIES_FETCHING,
	DIES_FETCHED,
	DIES_DRAINABLE,
	DIES_DRAINING,
	DIES_CLOSING,
	DIES_REOPENING,
	DEATHS
} Death;

/* A client that performs a job up to a phase. */
static void
live_until(const Service *service, Death death)
{
	bool		fills = death == DIES_DRAINABLE || death == DIES_DRAINING;
	Table		table = table_make(1, fills ? 10000000 : NROWS, false);
	GsFetch		fetch = {.stream = 1};
	HelloOptions options = {0};
	Client		client = client_connect(service);
	GsAnyMessage message;

	if (death == DIES_CONNECTED)
		return;
	client_send_hello(&client, BUFFER_BYTES, NBUFFERS, &options);
	if (death == DIES_HELLO_SENT)
		return;
	client_expect(&client, GS_MESSAGE_WELCOME, &message);
	if (death == DIES_IDLE)
		return;
	job_open(&client, &table, death == DIES_WAITING ? UINT64_C(100) << 20 : 0, 1000000);
	if (death == DIES_WAITING)
		return;
	client_expect(&client, GS_MESSAGE_JOB_READY, &message);
	if (death == DIES_READY)
		return;
	if (fills)
	{
		CHECK(!job_load(&client, &table, table.nrows));
		if (death == DIES_DRAINABLE)
			return;
		job_release_buffers(&client);
		client_send_plain(&client, GS_MESSAGE_RETURN_INPUT);
		return;
	}
	job_load(&client, &table, NROWS / 4);
	if (death == DIES_LOADING)
		return;
	if (death == DIES_CLOSING || death == DIES_REOPENING)
	{
		job_close(&client);
		if (death == DIES_REOPENING)
			job_open(&client, &table, 0, 1000000);
		return;
	}
	if (death == DIES_SORT_SENT)
	{
		job_send_sort(&client, &table, GS_ALGORITHM_RADIX);
		return;
	}
	job_sort(&client, &table, GS_ALGORITHM_RADIX);
	if (death == DIES_SORTED)
		return;
	job_release_buffers(&client);
	client_send(&client, &fetch, GS_MESSAGE_FETCH, sizeof(fetch));
	if (death == DIES_FETCHED)
		client_expect(&client, GS_MESSAGE_BATCH_READY, &message);
}

/* Kills a client in a phase. */
static void
check_death(const Service *service, Death death)
{
	int			ends[2];
	pid_t		child;
	char		byte;

	unit_case("death %d", death);
	CHECK(pipe(ends) == 0);
	child = fork();
	CHECK(child >= 0);
	if (child == 0)
	{
		close(ends[0]);
		live_until(service, death);
		if (write(ends[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ends[1]);
	CHECK(read(ends[0], &byte, 1) == 1);
	close(ends[0]);
	kill(child, SIGKILL);
	CHECK(waitpid(child, NULL, 0) == child);
	service_check_idle(service);
	unit_case("%s", "");
}

static void
test_dead_clients(void **unused)
{
	Service		service = service_start((const char *[]) {"--memory-limit", "10", NULL});
	Client		client;

	for (int round = 0; round < 3; round++)
		for (Death death = DIES_CONNECTED; death < DEATHS; death++)
			if (death != DIES_WAITING)
				check_death(&service, death);
	client = client_open(&service, BUFFER_BYTES, NBUFFERS);
	job_run(&client, 1, 1000, false);
	client_close(&client);
	service_check_idle(&service);
	service_stop(&service);
}

/* A client that waits for memory is removed, and delays no other one. */
static void
test_dead_waiting_client(void **unused)
{
	Service		service = service_start((const char *[]) {"--memory-limit", "10", NULL});
	Client		first = client_open(&service, BUFFER_BYTES, NBUFFERS);
	Client		last = client_open(&service, BUFFER_BYTES, NBUFFERS);
	Table		table = table_make(1, NROWS, false);
	GsAnyMessage message;
	pid_t		child;

	job_open(&first, &table, UINT64_C(5) << 20, 0);
	client_expect(&first, GS_MESSAGE_JOB_READY, &message);
	child = fork();
	CHECK(child >= 0);
	if (child == 0)
	{
		live_until(&service, DIES_WAITING);
		for (;;)
			pause();
	}
	service_check_waiting(&service, 1);
	job_open(&last, &table, UINT64_C(5) << 20, 0);
	client_expect(&last, GS_MESSAGE_JOB_READY, &message);
	CHECK(service_status(&service).nwaiting == 1 && service_status(&service).njobs == 2);
	kill(child, SIGKILL);
	CHECK(waitpid(child, NULL, 0) == child);
	service_check_waiting(&service, 0);
	CHECK(service_status(&service).njobs == 2);
	client_close(&first);
	client_close(&last);
	service_check_idle(&service);
	service_stop(&service);
}

/*
 * A waiting client gets the memory of a dead client at once, in whichever part
 * of the turn of the loop the device finishes.
 */
static void
test_memory_of_dead_client(void **unused)
{
	Service		service = service_start((const char *[]) {"--memory-limit", "10", NULL});

	for (uint64_t nbatches = 1; nbatches < NBUFFERS; nbatches++)
	{
		Client		dead = client_open(&service, BUFFER_BYTES, NBUFFERS);
		Client		waiter = client_open(&service, BUFFER_BYTES, NBUFFERS);
		Table		table = table_make(1, NROWS, false);
		GsAnyMessage message;
		int			status;

		unit_case("%d batches", (int) nbatches);
		job_open(&dead, &table, UINT64_C(10) << 20, 0);
		client_expect(&dead, GS_MESSAGE_JOB_READY, &message);
		job_open(&waiter, &table, UINT64_C(10) << 20, PATIENCE_MS);
		service_check_waiting(&service, 1);

		/* the last batches and the end must be handled in one turn */
		kill(service.pid, SIGSTOP);
		CHECK(waitpid(service.pid, &status, WUNTRACED) == service.pid && WIFSTOPPED(status));
		for (uint64_t batch = 1; batch <= nbatches; batch++)
			job_load(&dead, &table, batch * 10);
		client_close(&dead);
		kill(service.pid, SIGCONT);

		CHECK_MSG(client_receive(&waiter, &message, PATIENCE_MS / 4) == GS_MESSAGE_JOB_READY,
				  "the memory is free, and the job waits");
		client_close(&waiter);
		service_check_idle(&service);
		unit_case("%s", "");
	}
	service_stop(&service);
}

/* Clients that die while the device uses their buffers. */
static void
test_dead_clients_of_slow_device(void **unused)
{
	static const struct
	{
		const char *spec;
		Death		death;
	}			cases[] = {
		{"copy_in:1:delay=300", DIES_LOADING},
		{"copy_in:1:delay=300", DIES_CLOSING},
		{"copy_in:1:delay=300", DIES_REOPENING},
		{"sort_words:1:delay=300", DIES_SORT_SENT},
		{"gather:1:delay=300", DIES_FETCHING},
		{"copy_out:10:delay=300", DIES_DRAINING},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		Service		service = service_start((const char *[])
											{
											"--memory-limit", "10", "--fault", cases[i].spec, NULL
											});
		Client		client;

		check_death(&service, cases[i].death);
		client = client_open(&service, BUFFER_BYTES, NBUFFERS);
		job_run(&client, 1, 1000, false);
		client_close(&client);
		service_check_idle(&service);
		service_stop(&service);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_broken_device),
		cmocka_unit_test(test_wrong_device),
		cmocka_unit_test(test_broken_in_close),
		cmocka_unit_test(test_broken_at_start),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_no_pinned_memory),
		cmocka_unit_test(test_killed_service),
		cmocka_unit_test(test_slow_device),
		cmocka_unit_test(test_blocked_device),
		cmocka_unit_test(test_close_waits),
		cmocka_unit_test(test_end_of_slow_device),
		cmocka_unit_test(test_dead_clients),
		cmocka_unit_test(test_memory_of_dead_client),
		cmocka_unit_test(test_dead_waiting_client),
		cmocka_unit_test(test_dead_clients_of_slow_device),
	};

	return cmocka_run_group_tests_name("faults", tests, NULL, NULL);
}
