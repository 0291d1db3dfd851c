/*-------------------------------------------------------------------------
 *
 * test_life.c
 *	  The program itself: options, its socket and its lock, signals, many
 *	  clients, exhausted descriptors, and the cost of being idle.
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "service_driver.h"
#include "unit_cmocka.h"

#define BUFFER_BYTES	((uint32_t) 64 << 10)
#define NBUFFERS		3

/* ------------------------------------------------------------------ options */

static void
check_run(const char *const *arguments, int code, const char *text)
{
	char		output[4000];
	int			got = program_run(arguments, output, sizeof(output));

	CHECK_MSG(got == code, "exit code %d instead of %d: %s", got, code, output);
	CHECK_MSG(strstr(output, text) != NULL, "\"%s\" is not in: %s", text, output);
}

#define RUN(code, text, ...) check_run((const char *[]) {__VA_ARGS__, NULL}, code, text)

static void
test_options(void **unused)
{
	RUN(0, "gpusortd 1", "--version");
	RUN(0, gs_build_id, "--version");
	RUN(0, "Exit codes: 0", "--help");
	RUN(0, " MB, of which ", "--check", "--device", "host");
	RUN(2, "--socket is missing", "--device", "host");
	RUN(2, "--device must be", "--socket", "x", "--device", "abacus");
	RUN(2, "unknown", "--sockets");
	RUN(2, "unknown", "--socket");
	RUN(2, "too many", "--socket", "x", "y");
	RUN(2, "--memory-limit requires", "--socket", "x", "--memory-limit", "-1");
	RUN(2, "--memory-limit requires", "--socket", "x", "--memory-limit", "1k");
	RUN(2, "--park-limit requires", "--socket", "x", "--park-limit", "-1");
	RUN(2, "--idle-seconds requires", "--socket", "x", "--idle-seconds", "");
	RUN(2, "--ready-fd requires", "--socket", "x", "--ready-fd", "99999999999");
}

static void
test_fault_specs(void **unused)
{
	static const char *const wrong[] = {
		"", "pack", "pack:1", "pack:0:fail", "pack:x:fail", "stack:1:fail", "pack:1:none",
		"pack:1:fail!", "allocate:1:fail", "allocate:1:delay=5", "pack:1:delay", "pack:1:delay=",
		"pack:1:fail,", "pack:1:fail,find_boundaries:2:melt", "release:1:none",
		"pack:1:block=5", "release:1:block"
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
	{
		/* a comma at the end is accepted */
		int			code = strcmp(wrong[i], "pack:1:fail,") == 0 ? 0 : 2;

		RUN(code, "", "--check", "--device", "host", "--fault", wrong[i]);
	}
}

/* The program may support CUDA, but there is no device. */
static void
test_no_device(void **unused)
{
	CHECK(setenv("CUDA_VISIBLE_DEVICES", "", 1) == 0);
	RUN(3, "gpusortd: no device: ", "--check");
	RUN(3, "gpusortd: no device: ", "--socket", "/tmp/gpusortd-test-none", "--device", "cuda");
	CHECK(access("/tmp/gpusortd-test-none", F_OK) != 0);
	CHECK(access("/tmp/gpusortd-test-none.lock", F_OK) != 0);
	unsetenv("CUDA_VISIBLE_DEVICES");
}

/* --------------------------------------------------------- socket and lock */

static void
test_socket_paths(void **unused)
{
	char		path[200];

	memset(path, 'a', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	memcpy(path, "/tmp/", 5);
	RUN(4, "path", "--device", "host", "--socket", path);
	RUN(4, "path", "--device", "host", "--socket", "");
	RUN(4, "could not open", "--device", "host", "--socket", "/tmp/no such folder/socket");
}

/* A file that is not a socket is not replaced. */
static void
test_other_file(void **unused)
{
	char		path[] = "/tmp/gpusortd-test-file-XXXXXX";
	int			fd = mkstemp(path);

	CHECK(fd >= 0 && write(fd, "text", 4) == 4);
	close(fd);
	RUN(4, "could not create the socket", "--device", "host", "--socket", path);
	CHECK(access(path, F_OK) == 0);
	unlink(path);
}

static void
test_permissions(void **unused)
{
	mode_t		before = umask(0);
	Service		service = service_start(NULL);
	struct stat status;

	umask(before);
	CHECK(stat(service.socket, &status) == 0);
	CHECK_MSG(S_ISSOCK(status.st_mode) && (status.st_mode & 07777) == 0600,
			  "mode %o", status.st_mode);
	service_stop(&service);
}

static void
test_second_instance(void **unused)
{
	Service		service = service_start(NULL);
	Client		client = client_open(&service, BUFFER_BYTES, NBUFFERS);

	CHECK(service_exit_code(&service, NULL) == 4);
	CHECK(service_exit_code(&service, NULL) == 4);
	job_run(&client, 1, 1000, false);
	client_close(&client);
	client = client_open(&service, BUFFER_BYTES, NBUFFERS);
	client_close(&client);
	service_check_idle(&service);
	service_stop(&service);
}

/* The next gpusortd replaces the socket of one that was killed. */
static void
test_stale_socket(void **unused)
{
	Service		service = service_start(NULL);
	Client		client;

	kill(service.pid, SIGKILL);
	service_wait(&service);
	CHECK(access(service.socket, F_OK) == 0);
	CHECK(!client_try_connect(&service, &client));
	service_start_again(&service, NULL);
	client = client_open(&service, BUFFER_BYTES, NBUFFERS);
	job_run(&client, 1, 1000, false);
	client_close(&client);
	service_stop(&service);
}

static void
test_relative_path(void **unused)
{
	Service		service = service_start(NULL);
	char		absolute[sizeof(service.socket)];
	char		before[500];

	kill(service.pid, SIGKILL);
	service_wait(&service);
	CHECK(getcwd(before, sizeof(before)) != NULL && chdir(service.dir) == 0);
	strcpy(absolute, service.socket);
	strcpy(service.socket, "socket");
	service_start_again(&service, NULL);
	CHECK(chdir(before) == 0);
	strcpy(service.socket, absolute);
	CHECK(service_status(&service).njobs == 0);
	service_stop(&service);
}

/* Another user is rejected even if the file system would permit access. */
static void
test_other_user(void **unused)
{
	Service		service;
	pid_t		child;
	int			status;

	/* cmocka's skip() prints "not ok" */
	if (geteuid() != 0)
	{
		print_message("# only root can be another user: not tested\n");
		return;
	}
	service = service_start(NULL);
	CHECK(chmod(service.dir, 0755) == 0 && chmod(service.socket, 0666) == 0);
	child = fork();
	if (child == 0)
	{
		Client		client;
		GsAnyMessage message;

		if (setgid(65534) != 0 || setuid(65534) != 0)
			_exit(2);
		client = client_connect(&service);
		_exit(client_receive(&client, &message, PATIENCE_MS) == 0 ? 0 : 1);
	}
	CHECK(waitpid(child, &status, 0) == child);
	CHECK_MSG(status == 0, "the other user was served: wait status %#x", (unsigned) status);
	CHECK(service_logged(&service, "another user"));
	service_check_idle(&service);
	service_stop(&service);
}

/* ------------------------------------------------------------------ signals */

static void
check_signal(int signal_number)
{
	Service		service = service_start((const char *[]) {"--memory-limit", "50", NULL});
	Table		table = table_make(1, 5000, false);
	Client		clients[5];
	GsAnyMessage message;
	int			status;

	/* connected, after WELCOME, in the input, sorted, waiting */
	clients[0] = client_connect(&service);
	for (int i = 1; i < 5; i++)
		clients[i] = client_open(&service, BUFFER_BYTES, NBUFFERS);
	for (int i = 2; i < 4; i++)
	{
		table = table_make(1, 5000, false);
		job_open(&clients[i], &table, UINT64_C(20) << 20, 0);
		client_expect(&clients[i], GS_MESSAGE_JOB_READY, &message);
		job_load(&clients[i], &table, 5000);
	}
	job_sort(&clients[3], &table, GS_ALGORITHM_AUTO);
	job_open(&clients[4], &table, UINT64_C(30) << 20, 1000000);
	service_check_waiting(&service, 1);

	kill(service.pid, signal_number);
	for (int i = 0; i < 5; i++)
	{
		do
			CHECK(client_receive(&clients[i], &message, PATIENCE_MS) > 0);
		while (message.message.type == GS_MESSAGE_BATCH_FREE);
		CHECK(message.message.type == GS_MESSAGE_FAILED);
		CHECK(message.failed.failure == GS_FAILED_SHUTDOWN);
		CHECK(client_receive(&clients[i], &message, PATIENCE_MS) == 0);
		client_close(&clients[i]);
	}
	status = service_wait(&service);
	CHECK_MSG(WIFEXITED(status) && WEXITSTATUS(status) == 0, "wait status %#x: see %s",
			  (unsigned) status, service.log);
	CHECK(access(service.socket, F_OK) != 0);
	service_remove(&service);
}

static void
test_signals(void **unused)
{
	check_signal(SIGTERM);
	check_signal(SIGINT);
}

/* ------------------------------------------------------------------ numbers */

static void
test_many_clients(void **unused)
{
	enum
	{
		NCLIENTS = 250
	};
	static Client clients[NCLIENTS];
	Service		service = service_start(NULL);

	for (int i = 0; i < NCLIENTS; i++)
		clients[i] = client_open(&service, BUFFER_BYTES, 2);
	for (int i = 0; i < NCLIENTS; i++)
		job_run(&clients[i], (uint64_t) i, 100, i % 2 == 0);
	for (int i = 0; i < NCLIENTS; i++)
		client_close(&clients[i]);
	service_check_idle(&service);
	service_stop(&service);
}

/* Clients that connect while descriptors are exhausted are served later. */
static void
test_no_descriptors(void **unused)
{
	enum
	{
		NCLIENTS = 40,
		LIMIT = 25
	};
	Client		clients[NCLIENTS];
	HelloOptions options = {.no_buffers = true};
	Service		service;
	GsAnyMessage message;
	uint64_t	cpu_us;
	int			nserved = 0;

	service_descriptor_limit = LIMIT;
	service = service_start(NULL);
	service_descriptor_limit = 0;

	for (int i = 0; i < NCLIENTS; i++)
	{
		clients[i] = client_connect(&service);
		client_send_hello(&clients[i], 0, 0, &options);
	}
	while (nserved < NCLIENTS && client_receive(&clients[nserved], &message, 500) > 0)
		nserved++;
	CHECK_MSG(nserved > 10 && nserved < LIMIT, "%d clients were served", nserved);
	CHECK(service_logged(&service, "could not accept clients"));

	/* it uses no CPU time for those that wait */
	cpu_us = service_cpu_us(&service);
	sleep_ms(500);
	cpu_us = service_cpu_us(&service) - cpu_us;
	CHECK_MSG(cpu_us < 25000, "%llu us in half a second", (unsigned long long) cpu_us);

	for (int i = 0; i < nserved; i++)
		client_close(&clients[i]);
	for (int i = nserved; i < NCLIENTS; i++)
	{
		if (i >= 2 * nserved)
			client_close(&clients[i - nserved]);
		CHECK(client_receive(&clients[i], &message, PATIENCE_MS) == GS_MESSAGE_WELCOME);
	}
	for (int i = NCLIENTS < 2 * nserved ? nserved : NCLIENTS - nserved; i < NCLIENTS; i++)
		client_close(&clients[i]);
	service_check_idle(&service);
	service_stop(&service);
}

/* Buffers whose descriptor cannot be received any more. */
static void
test_no_descriptor_for_buffers(void **unused)
{
	enum
	{
		NCLIENTS = 40,
		LIMIT = 25
	};
	Client		clients[NCLIENTS];
	HelloOptions options = {0};
	Service		service;
	GsAnyMessage message;
	int			nclients = 0;
	int			type;

	service_descriptor_limit = LIMIT;
	service = service_start(NULL);
	service_descriptor_limit = 0;

	/* one after the other, until the last descriptor has become a socket */
	do
	{
		clients[nclients] = client_connect(&service);
		client_send_hello(&clients[nclients], BUFFER_BYTES, 1, &options);
		type = client_receive(&clients[nclients++], &message, PATIENCE_MS);
	} while (type == GS_MESSAGE_WELCOME && nclients < NCLIENTS);
	CHECK_MSG(type == GS_MESSAGE_FAILED, "message %d came to client %d", type, nclients);
	CHECK(message.failed.failure == GS_FAILED_MEMORY);
	for (int i = 0; i < nclients; i++)
		client_close(&clients[i]);
	service_check_idle(&service);
	service_stop(&service);
}

/*
 * A thousand idle clients cost nothing: a sort takes as many system calls and
 * as much CPU time as without them.  Polling each of them took ten times as
 * much CPU time.
 */
static uint64_t
cost_of_jobs(const Service *service, Client *client)
{
	uint64_t	best = UINT64_MAX;

	for (int i = 0; i < 5; i++)
	{
		uint64_t	before = service_cpu_us(service);
		uint64_t	cost;

		for (int n = 0; n < 20; n++)
			job_run(client, (uint64_t) n, 3000, false);
		cost = service_cpu_us(service) - before;
		best = cost < best ? cost : best;
	}
	return best;
}

static void
test_idle_clients(void **unused)
{
	enum
	{
		NIDLE = 1000
	};
	static Client idle[NIDLE];
	Service		service;
	Client		client;
	uint64_t	alone;
	uint64_t	together;
	struct rlimit limit;

	/* a client is a socket on either side */
	CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	limit.rlim_cur = limit.rlim_max;
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	CHECK_MSG(limit.rlim_max > NIDLE + 100, "no more than %d descriptors may be open",
			  (int) limit.rlim_max);

	service = service_start((const char *[]) {"--fault", "copy_in:1000000:fail", NULL});
	client = client_open(&service, BUFFER_BYTES, NBUFFERS);
	cost_of_jobs(&service, &client);
	alone = cost_of_jobs(&service, &client);
	for (int i = 0; i < NIDLE; i++)
	{
		idle[i] = client_open(&service, BUFFER_BYTES, 1);
		close(idle[i].memfd);
		idle[i].memfd = -1;
	}
	together = cost_of_jobs(&service, &client);
	CHECK_MSG(together < 2 * alone + 10000, "%llu us with %d idle clients, %llu us without",
			  (unsigned long long) together, NIDLE, (unsigned long long) alone);
	for (int i = 0; i < NIDLE; i++)
		client_close(&idle[i]);
	client_close(&client);
	service_check_idle(&service);
	service_stop(&service);
}

/* With idle clients and idle jobs, gpusortd does nothing. */
static void
test_idle(void **unused)
{
	Service		service = service_start((const char *[]) {"--memory-limit", "50", NULL});
	Client		clients[4];
	Table		table = table_make(1, 5000, false);
	GsAnyMessage message;
	uint64_t	cpu_us;

	for (int i = 0; i < 4; i++)
		clients[i] = client_open(&service, BUFFER_BYTES, NBUFFERS);
	job_open(&clients[1], &table, 0, 0);
	client_expect(&clients[1], GS_MESSAGE_JOB_READY, &message);
	job_load(&clients[1], &table, 5000);
	table = table_make(1, 5000, false);
	job_open(&clients[2], &table, UINT64_C(40) << 20, 0);
	client_expect(&clients[2], GS_MESSAGE_JOB_READY, &message);
	job_load(&clients[2], &table, 5000);
	job_sort(&clients[2], &table, GS_ALGORITHM_AUTO);
	job_open(&clients[3], &table, UINT64_C(50) << 20, 1000000);

	sleep_ms(300);
	cpu_us = service_cpu_us(&service);
	sleep_ms(1000);
	cpu_us = service_cpu_us(&service) - cpu_us;
	CHECK_MSG(cpu_us < 10000, "%llu us in a second", (unsigned long long) cpu_us);
	for (int i = 0; i < 4; i++)
		client_close(&clients[i]);
	service_check_idle(&service);
	service_stop(&service);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_fault_specs),
		cmocka_unit_test(test_no_device),
		cmocka_unit_test(test_socket_paths),
		cmocka_unit_test(test_other_file),
		cmocka_unit_test(test_permissions),
		cmocka_unit_test(test_second_instance),
		cmocka_unit_test(test_stale_socket),
		cmocka_unit_test(test_relative_path),
		cmocka_unit_test(test_other_user),
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_many_clients),
		cmocka_unit_test(test_no_descriptors),
		cmocka_unit_test(test_no_descriptor_for_buffers),
		cmocka_unit_test(test_idle_clients),
		cmocka_unit_test(test_idle),
	};

	return cmocka_run_group_tests_name("gpusortd", tests, NULL, NULL);
}
