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

#include "common/basics.h"
#include "common/device_table.h"
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
	RUN(2, "--device requires", "--socket", "x", "--device", "abacus");
	RUN(2, "--device requires", "--socket", "x", "--device", "cuda");
	RUN(2, "--device requires", "--socket", "x", "--device", "cuda:16");
	RUN(2, "--device requires", "--socket", "x", "--device", "cuda:1 ");
	RUN(2, "--device requires", "--socket", "x", "--device", "hosts");
	RUN(2, "--device requires", "--socket", "x", "--device", "host:1");
	RUN(2, "--device requires", "--socket", "x", "--device", "host:4/4");
	RUN(2, "--device requires", "--socket", "x", "--device", "host:0/17");
	RUN(0, "device 3: host processor, ", "--check", "--device", "host:3/4");
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
		"pack:1:block=5", "release:1:block", ":pack:1:fail", "x:pack:1:fail", "1:1:pack:1:fail"
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
	RUN(3, "gpusortd: no device: ", "--socket", "/tmp/gpusortd-test-none", "--device", "cuda:0");
	CHECK(access("/tmp/gpusortd-test-none", F_OK) != 0);
	CHECK(access("/tmp/gpusortd-test-none.lock", F_OK) != 0);
	unsetenv("CUDA_VISIBLE_DEVICES");
}

/* ---------------------------------------------------------- the device table */

/* gpusortd publishes its state in the slot of its device, and in no other. */
static void
test_table(void **unused)
{
	char		folder[] = "/tmp/gpusortd-test-table-XXXXXX";
	char		path[sizeof(folder) + 10];
	char		file[sizeof(path) + GS_BUILD_ID_BYTES + 1];
	GsDeviceTable *table;
	GsDeviceSlot *slot;
	Service		service;
	Client		client;
	Table		rows = table_make(1, 1000, false);
	GsAnyMessage message;

	CHECK(mkdtemp(folder) != NULL);
	snprintf(path, sizeof(path), "%s/table", folder);
	snprintf(file, sizeof(file), "%s.%s", path, gs_build_id);
	service = service_start((const char *[])
							{
							"--device", "host:2/4", "--table", path, "--memory-limit", "50",
							"--fault", "1:pack:1:fail,2:pack:2:fail", NULL
							});
	table = gs_device_table_map(path);
	CHECK(table != NULL);
	slot = &table->slots[2];
	CHECK(gs_device_table_count(table) == 1 && slot->state == GS_DEVICE_RUNNING);
	CHECK(slot->pid == (uint32_t) service.pid && strcmp(slot->name, "host processor") == 0);
	CHECK(slot->memory_limit == UINT64_C(50) << 20 && slot->committed == 0 && slot->njobs == 0);

	client = client_open(&service, BUFFER_BYTES, NBUFFERS);
	job_open(&client, &rows, UINT64_C(10) << 20, 0);
	client_expect(&client, GS_MESSAGE_JOB_READY, &message);
	CHECK(slot->committed == UINT64_C(10) << 20 && slot->njobs == 1 && slot->nwaiting == 0);
	job_close(&client);
	job_run(&client, 1, 1000, false);
	for (uint64_t until = now_ms() + PATIENCE_MS; slot->jobs_done < 2 || slot->committed > 0 || slot->njobs > 0; sleep_ms(1))
		CHECK(now_ms() < until);

	/* its second fault; that of device 1 is not its own */
	job_open(&client, &rows, 0, 0);
	client_expect(&client, GS_MESSAGE_JOB_READY, &message);
	job_load(&client, &rows, 1000);
	job_send_sort(&client, &rows, GS_ALGORITHM_RADIX);
	while (client_receive(&client, &message, PATIENCE_MS) == GS_MESSAGE_BATCH_FREE)
		;
	CHECK(message.message.type == GS_MESSAGE_FAILED && message.failed.failure == GS_FAILED_DEVICE);
	client_close(&client);
	service_wait(&service);
	CHECK(slot->state == GS_DEVICE_FAILED);

	/* the next one begins anew */
	service_start_again(&service, (const char *[]) {"--device", "host:2/4", "--table", path, NULL});
	CHECK(slot->state == GS_DEVICE_RUNNING && slot->pid == (uint32_t) service.pid && slot->jobs_done == 0);

	/* after another device was lost, device 1 is the one that this process uses */
	CHECK(slot->identity[0] != 0 && slot->identity[1] == 2);
	slot->identity[1] = 1;
	RUN(3, "no device: device 1 is the one that gpusortd of device 2 uses", "--device", "host:1/4",
		"--socket", "/tmp/gpusortd-test-none", "--table", path);
	CHECK(table->slots[1].state == GS_DEVICE_FAILED && slot->state == GS_DEVICE_RUNNING);
	table->slots[1].state = GS_DEVICE_UNUSED;
	service_stop(&service);
	CHECK(slot->state == GS_DEVICE_UNUSED && gs_device_table_count(table) == 0);
	CHECK(unlink(file) == 0);
	RUN(4, "could not map", "--device", "host", "--socket", "/tmp/gpusortd-test-none", "--table", "/tmp/no such folder/x");
	CHECK(access("/tmp/gpusortd-test-none.lock", F_OK) != 0);
	CHECK(rmdir(folder) == 0);
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
	job_sort(&clients[3], &table, GS_ALGORITHM_RADIX);
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
	int			nserved = 0;

	service_descriptor_limit = LIMIT;
	service = service_start(NULL);
	service_descriptor_limit = 0;

	for (int i = 0; i < NCLIENTS; i++)
	{
		clients[i] = client_connect(&service);
		client_send_hello(&clients[i], 0, 0, &options);
	}
	for (uint64_t until = now_ms() + PATIENCE_MS; !service_logged(&service, "could not accept clients"); sleep_ms(1))
		CHECK(now_ms() < until);
	while (nserved < NCLIENTS && client_receive(&clients[nserved], &message, 2000) > 0)
		nserved++;
	CHECK_MSG(nserved > 10 && nserved < LIMIT, "%d clients were served", nserved);

	/* it does nothing for those that wait */
	service_check_asleep(&service);

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

/* A thousand idle clients, and one that sorts. */
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
	struct rlimit limit;

	/* a client is a socket on either side */
	CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	limit.rlim_cur = limit.rlim_max;
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	CHECK_MSG(limit.rlim_max > NIDLE + 100, "no more than %d descriptors may be open",
			  (int) limit.rlim_max);

	service = service_start((const char *[]) {"--fault", "copy_in:1000000:fail", NULL});
	client = client_open(&service, BUFFER_BYTES, NBUFFERS);
	for (int i = 0; i < NIDLE; i++)
	{
		idle[i] = client_open(&service, BUFFER_BYTES, 1);
		close(idle[i].memfd);
		idle[i].memfd = -1;
	}
	job_run(&client, 1, 3000, false);
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

	for (int i = 0; i < 4; i++)
		clients[i] = client_open(&service, BUFFER_BYTES, NBUFFERS);
	job_open(&clients[1], &table, 0, 0);
	client_expect(&clients[1], GS_MESSAGE_JOB_READY, &message);
	job_load(&clients[1], &table, 5000);
	table = table_make(1, 5000, false);
	job_open(&clients[2], &table, UINT64_C(40) << 20, 0);
	client_expect(&clients[2], GS_MESSAGE_JOB_READY, &message);
	job_load(&clients[2], &table, 5000);
	job_sort(&clients[2], &table, GS_ALGORITHM_RADIX);
	job_open(&clients[3], &table, UINT64_C(50) << 20, 1000000);

	/* once it has finished what it had to do */
	service_check_asleep(&service);
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
		cmocka_unit_test(test_table),
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
