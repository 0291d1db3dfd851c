/*-------------------------------------------------------------------------
 *
 * service_driver.c
 *	  Runs gpusortd, and communicates with it.
 *
 *-------------------------------------------------------------------------
 */
#include "service_driver.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/key_codec.h"
#include "unit_random.h"

uint64_t
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t) now.tv_sec * 1000 + (uint64_t) now.tv_nsec / 1000000;
}

void
sleep_ms(int ms)
{
	struct timespec time = {.tv_sec = ms / 1000,.tv_nsec = (ms % 1000) * 1000000L};

	nanosleep(&time, NULL);
}

/* ------------------------------------------------------------- the service */

#define MAX_ARGUMENTS	20

int			service_descriptor_limit = 0;

static const char *
program_path(void)
{
	const char *path = getenv("GPUSORTD");

	CHECK_MSG(path != NULL, "GPUSORTD does not say where gpusortd is");
	return path;
}

static const char *
device_name(void)
{
	const char *name = getenv("GPUSORTD_DEVICE");

	return name == NULL ? "host" : name;
}

/* Forks and executes the program; descriptors of -1 are not replaced. */
static pid_t
execute(const char *const *arguments, int out, int err, int fd3)
{
	const char *argv[MAX_ARGUMENTS + 2] = {program_path()};
	pid_t		pid;

	for (int i = 0; i < MAX_ARGUMENTS && arguments[i] != NULL; i++)
		argv[i + 1] = arguments[i];
	pid = fork();
	CHECK(pid >= 0);
	if (pid > 0)
		return pid;

	/* so that a failed test leaves none behind */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (service_descriptor_limit > 0)
	{
		rlim_t		limit = (rlim_t) service_descriptor_limit;

		setrlimit(RLIMIT_NOFILE, &(struct rlimit) {limit, limit});
	}
	if (out >= 0)
		dup2(out, STDOUT_FILENO);
	if (err >= 0)
		dup2(err, STDERR_FILENO);
	if (fd3 >= 0)
		dup2(fd3, 3);
	for (int fd = fd3 >= 0 ? 4 : 3; fd < 1000; fd++)
		close(fd);
	execv(argv[0], (char *const *) argv);
	_exit(127);
}

/* Reads up to the end of the file; closes the descriptor. */
static void
read_all(int fd, char *text, size_t size)
{
	size_t		nread = 0;
	ssize_t		n;

	while (nread < size - 1 && (n = read(fd, text + nread, size - 1 - nread)) > 0)
		nread += (size_t) n;
	text[nread] = '\0';
	close(fd);
}

int
program_run(const char *const *arguments, char *output, size_t size)
{
	int			ends[2];
	int			status;
	pid_t		pid;

	CHECK(pipe(ends) == 0);
	pid = execute(arguments, ends[1], ends[1], -1);
	close(ends[1]);
	read_all(ends[0], output, size);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK_MSG(WIFEXITED(status), "gpusortd was ended by signal %d: %s", WTERMSIG(status), output);
	return WEXITSTATUS(status);
}

/* The arguments of all tests, and further ones. */
static void
make_arguments(const char **arguments, const Service *service, const char *const *options)
{
	int			n = 0;

	arguments[n++] = "--socket";
	arguments[n++] = service->socket;
	arguments[n++] = "--device";
	arguments[n++] = device_name();
	for (; options != NULL && *options != NULL; options++)
		arguments[n++] = *options;
	arguments[n] = NULL;
}

void
service_start_again(Service *service, const char *const *options)
{
	const char *arguments[MAX_ARGUMENTS];
	int			n = 0;
	int			ends[2];
	int			log;

	make_arguments(arguments, service, options);
	while (arguments[n] != NULL)
		n++;
	arguments[n++] = "--ready-fd";
	arguments[n++] = "3";
	arguments[n] = NULL;

	CHECK(pipe(ends) == 0);
	log = open(service->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	CHECK(log >= 0);
	service->pid = execute(arguments, log, log, ends[1]);
	close(log);
	close(ends[1]);
	read_all(ends[0], service->ready, sizeof(service->ready));
	CHECK_MSG(strstr(service->ready, "gpusortd: ready: ") != NULL,
			  "gpusortd did not get ready: see %s", service->log);
	service->nfds = service_count_fds(service);
}

Service
service_start(const char *const *options)
{
	Service		service = {.dir = "/tmp/gpusortd-test-XXXXXX"};

	CHECK(mkdtemp(service.dir) != NULL);
	snprintf(service.socket, sizeof(service.socket), "%s/socket", service.dir);
	snprintf(service.log, sizeof(service.log), "%s/log", service.dir);
	service_start_again(&service, options);
	return service;
}

int
service_exit_code(const Service *service, const char *const *options)
{
	const char *arguments[MAX_ARGUMENTS];
	char		output[1000];

	make_arguments(arguments, service, options);
	return program_run(arguments, output, sizeof(output));
}

int
service_wait(Service *service)
{
	uint64_t	end = now_ms() + PATIENCE_MS;
	int			status;

	while (waitpid(service->pid, &status, WNOHANG) == 0)
	{
		if (now_ms() > end)
		{
			kill(service->pid, SIGKILL);
			waitpid(service->pid, &status, 0);
			CHECK_MSG(false, "gpusortd does not end");
		}
		sleep_ms(2);
	}
	service->pid = 0;
	return status;
}

void
service_remove(Service *service)
{
	char		lock[80];

	snprintf(lock, sizeof(lock), "%s.lock", service->socket);
	unlink(lock);
	unlink(service->socket);
	unlink(service->log);
	CHECK_MSG(rmdir(service->dir) == 0, "there is more in %s than there should be", service->dir);
}

void
service_stop(Service *service)
{
	char		lock[80];
	int			status;

	kill(service->pid, SIGTERM);
	status = service_wait(service);
	CHECK_MSG(WIFEXITED(status) && WEXITSTATUS(status) == 0,
			  "gpusortd ended with wait status %#x: see %s", (unsigned) status, service->log);
	snprintf(lock, sizeof(lock), "%s.lock", service->socket);
	CHECK(access(service->socket, F_OK) != 0);
	CHECK(access(lock, F_OK) != 0);
	service_remove(service);
}

GsWelcome
service_status(const Service *service)
{
	Client		client = client_connect(service);
	HelloOptions options = {.no_buffers = true};
	GsAnyMessage message;

	client_send_hello(&client, 0, 0, &options);
	client_expect(&client, GS_MESSAGE_WELCOME, &message);
	client_close(&client);
	return message.welcome;
}

void
service_check_idle(const Service *service)
{
	uint64_t	end = now_ms() + PATIENCE_MS;
	GsWelcome	status;
	int			nfds;

	do
	{
		status = service_status(service);
		sleep_ms(1);
		nfds = service_count_fds(service);
		if (status.njobs == 0 && status.nwaiting == 0 && status.memory_used == 0 &&
			nfds == service->nfds)
			return;
	} while (now_ms() < end);
	CHECK_MSG(false, "%u jobs, %u waiting, %llu bytes, %d descriptors more are left",
			  status.njobs, status.nwaiting, (unsigned long long) status.memory_used,
			  nfds - service->nfds);
}

void
service_check_waiting(const Service *service, uint32_t nwaiting)
{
	uint64_t	end = now_ms() + PATIENCE_MS;

	while (service_status(service).nwaiting != nwaiting)
	{
		CHECK_MSG(now_ms() < end, "%u jobs wait", service_status(service).nwaiting);
		sleep_ms(1);
	}
}

bool
service_logged(const Service *service, const char *text)
{
	static char log[1 << 16];
	int			fd = open(service->log, O_RDONLY);

	CHECK(fd >= 0);
	read_all(fd, log, sizeof(log));
	return strstr(log, text) != NULL;
}

int
service_count_fds(const Service *service)
{
	char		path[40];
	DIR		   *dir;
	int			n = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int) service->pid);
	dir = opendir(path);
	CHECK(dir != NULL);
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}

/* Is its main thread asleep? */
static bool
is_asleep(const Service *service)
{
	char		path[40];
	char		text[400];
	const char *state;
	int			fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int) service->pid);
	fd = open(path, O_RDONLY);
	CHECK(fd >= 0);
	read_all(fd, text, sizeof(text));
	state = strrchr(text, ')');
	CHECK(state != NULL);
	return strncmp(state, ") S", 3) == 0;
}

void
service_check_asleep(const Service *service)
{
	uint64_t	end = now_ms() + PATIENCE_MS;

	for (int nasleep = 0; nasleep < 10; nasleep += is_asleep(service))
	{
		CHECK_MSG(now_ms() < end, "it does not sleep");
		sleep_ms(1);
	}
}

/* --------------------------------------------------------------- a client */

bool
client_try_connect(const Service *service, Client *client)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	*client = (Client)
	{
		.memfd = -1
	};
	strcpy(address.sun_path, service->socket);
	client->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	CHECK(client->socket >= 0);
	if (connect(client->socket, (struct sockaddr *) &address, sizeof(address)) == 0)
		return true;
	close(client->socket);
	return false;
}

Client
client_connect(const Service *service)
{
	Client		client;

	CHECK_MSG(client_try_connect(service, &client), "cannot connect: %s", strerror(errno));
	return client;
}

bool
client_send_bytes(Client *client, const void *bytes, size_t nbytes,
				  const int *descriptors, int ndescriptors)
{
	union
	{
		struct cmsghdr align;
		char		room[CMSG_SPACE(8 * sizeof(int))];
	}			control = {0};
	struct iovec piece = {.iov_base = (void *) bytes,.iov_len = nbytes};
	struct msghdr header = {.msg_iov = &piece,.msg_iovlen = 1};

	if (ndescriptors > 0)
	{
		size_t		fds_bytes = (size_t) ndescriptors * sizeof(int);
		struct cmsghdr *first;

		CHECK(ndescriptors <= 8);
		header.msg_control = &control;
		header.msg_controllen = CMSG_SPACE(fds_bytes);
		first = CMSG_FIRSTHDR(&header);
		first->cmsg_level = SOL_SOCKET;
		first->cmsg_type = SCM_RIGHTS;
		first->cmsg_len = CMSG_LEN(fds_bytes);
		memcpy(CMSG_DATA(first), descriptors, fds_bytes);
	}
	return sendmsg(client->socket, &header, MSG_NOSIGNAL) == (ssize_t) nbytes;
}

void
client_send(Client *client, void *message, GsMessageType type, size_t nbytes)
{
	GsMessage  *header = message;

	header->type = type;
	header->nbytes = (uint32_t) nbytes;

	/* a client that was disconnected gets the reason when it reads the answer */
	CHECK_MSG(client_send_bytes(client, message, nbytes, NULL, 0) ||
			  errno == EPIPE || errno == ECONNRESET,
			  "cannot send message %d: %s", type, strerror(errno));
}

void
client_send_plain(Client *client, GsMessageType type)
{
	GsMessage	message;

	client_send(client, &message, type, sizeof(message));
}

void
client_send_buffer(Client *client, GsMessageType type, uint32_t buffer)
{
	GsBufferMessage message = {.buffer = buffer};

	client_send(client, &message, type, sizeof(message));
}

void
client_send_hello(Client *client, uint32_t buffer_bytes, uint32_t nbuffers,
				  const HelloOptions *options)
{
	size_t		buffer_pool_bytes = (size_t) buffer_bytes * nbuffers;
	GsHello		hello = {
		.message = {.type = GS_MESSAGE_HELLO,.nbytes = sizeof(GsHello)},
		.magic = GS_WIRE_MAGIC ^ options->magic,
		.version = GS_WIRE_VERSION ^ options->version,
		.buffer_pool_bytes = buffer_pool_bytes + (uint64_t) options->buffer_pool_bytes,
		.buffer_bytes = buffer_bytes,
		.nbuffers = nbuffers
	};
	int			ndescriptors = options->no_memfd || options->no_buffers ? 0 :
		options->two_memfds ? 2 : 1;

	memcpy(hello.build, gs_build_id, sizeof(hello.build));
	hello.build[GS_BUILD_ID_BYTES - 1] ^= options->build;
	if (!options->no_buffers)
	{
		client->memfd = memfd_create("buffers", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		CHECK(client->memfd >= 0);
		CHECK(ftruncate(client->memfd, (off_t) ((int64_t) buffer_pool_bytes + options->memfd_bytes)) == 0);
		if (!options->unsealed)
			CHECK(fcntl(client->memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0);
		if (buffer_pool_bytes > 0)
			client->buffer_pool = mmap(NULL, buffer_pool_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
									   client->memfd, 0);
		CHECK(client->buffer_pool != MAP_FAILED);
		client->buffer_bytes = buffer_bytes;
		client->nbuffers = nbuffers;
	}
	CHECK(client_send_bytes(client, &hello, sizeof(hello),
							(int[]) {client->memfd, client->memfd}, ndescriptors));
}

Client
client_open(const Service *service, uint32_t buffer_bytes, uint32_t nbuffers)
{
	Client		client = client_connect(service);
	HelloOptions options = {0};
	GsAnyMessage message;

	client_send_hello(&client, buffer_bytes, nbuffers, &options);
	client_expect(&client, GS_MESSAGE_WELCOME, &message);
	CHECK(message.welcome.version == GS_WIRE_VERSION);
	return client;
}

void
client_close(Client *client)
{
	close(client->socket);
	if (client->memfd >= 0)
		close(client->memfd);
	if (client->buffer_pool != NULL)
		munmap(client->buffer_pool, (size_t) client->buffer_bytes * client->nbuffers);
}

int
client_receive(Client *client, GsAnyMessage *message, int timeout_ms)
{
	struct pollfd polled = {.fd = client->socket,.events = POLLIN};
	ssize_t		nbytes;

	if (poll(&polled, 1, timeout_ms) == 0)
		return -1;
	do
		nbytes = recv(client->socket, message, sizeof(*message), 0);
	while (nbytes < 0 && errno == ECONNRESET);	/* as in gpu_client.c */
	CHECK_MSG(nbytes >= 0, "cannot receive: %s", strerror(errno));
	if (nbytes == 0)
		return 0;
	CHECK((size_t) nbytes >= sizeof(GsMessage) && message->message.nbytes == (size_t) nbytes);
	return (int) message->message.type;
}

void
client_expect(Client *client, GsMessageType type, GsAnyMessage *message)
{
	int			received = client_receive(client, message, PATIENCE_MS);

	CHECK_MSG(received == (int) type, "message %d came instead of %d%s%s", received, type,
			  received == GS_MESSAGE_FAILED ? ": " : "",
			  received == GS_MESSAGE_FAILED ? message->failed.text : "");
}

void
client_expect_failed(Client *client, GsFailure failure)
{
	GsAnyMessage message;

	client_expect(client, GS_MESSAGE_FAILED, &message);
	CHECK_MSG(message.failed.failure == failure, "failure %u came instead of %d: %s",
			  message.failed.failure, failure, message.failed.text);
	CHECK(message.failed.text[0] != '\0');
}

void
client_expect_dropped(Client *client, GsFailure failure)
{
	GsAnyMessage message;

	client_expect_failed(client, failure);
	CHECK(client_receive(client, &message, PATIENCE_MS) == 0);
}

/* --------------------------------------------------------------------- a job */

#define ROW_HEADER_BYTES	24	/* length, buffer, key, number */
#define MAX_PADDING			5	/* words */

static int64_t
table_key(const Table *table, uint64_t i)
{
	uint64_t	number = mix64(table->seed + i) % (table->nrows / 2 + 1);

	return table->seed % 2 == 0 ? (int64_t) number - 1000 : (int64_t) mix64(number);
}

static uint32_t
row_bytes(const Table *table, uint64_t i)
{
	return ROW_HEADER_BYTES + 8 * (uint32_t) (mix64(table->seed ^ i) % (MAX_PADDING + 1));
}

static void
write_row(const Table *table, uint64_t i, char *row)
{
	uint32_t	nbytes = row_bytes(table, i);
	int64_t		key = table_key(table, i);

	memset(row, (int) (i & 0xFF), nbytes);
	memcpy(row, &nbytes, sizeof(nbytes));
	memcpy(row + 8, &key, sizeof(key));
	memcpy(row + 16, &i, sizeof(i));
}

/* Checks a row, without the bytes that the batch owns; returns its number. */
static uint64_t
check_row(const Table *table, const char *row, uint64_t nbytes)
{
	char		expected[ROW_HEADER_BYTES + 8 * MAX_PADDING];
	uint64_t	i;

	CHECK(nbytes >= ROW_HEADER_BYTES);
	memcpy(&i, row + 16, sizeof(i));
	CHECK(i < table->nrows);
	CHECK_MSG(nbytes == row_bytes(table, i), "row %llu has %llu bytes instead of %u",
			  (unsigned long long) i, (unsigned long long) nbytes, row_bytes(table, i));
	write_row(table, i, expected);
	CHECK(memcmp(row, expected, GS_ROW_ENTRY_OFFSET) == 0);
	CHECK(memcmp(row + 8, expected + 8, nbytes - 8) == 0);
	return i;
}

Table
table_make(uint64_t seed, uint64_t nrows, bool keys_only)
{
	Table		table = {.seed = seed,.nrows = nrows,.keys_only = keys_only};

	gs_key_layout_init(&table.layout);
	gs_key_layout_add_column(&table.layout, false, false);
	gs_key_layout_add_field(&table.layout, 64, GS_CANONICAL_NONE);
	table.layout.keys_only = keys_only;
	return table;
}

void
job_open(Client *client, const Table *table, uint64_t expected_bytes, uint32_t wait_ms)
{
	GsJobOpen	open = {
		.nwords = 1,
		.keys_only = table->keys_only,
		.expected_bytes = expected_bytes,
		.wait_ms = wait_ms
	};

	client->free_buffers = UINT64_MAX >> (64 - client->nbuffers);
	client_send(client, &open, GS_MESSAGE_JOB_OPEN, sizeof(open));
}

uint64_t
job_share(Client *client, const Table *table, uint32_t participant)
{
	GsJobOpen	open = {
		.nwords = 1,
		.keys_only = table->keys_only,
		.shared = 1,
		.participant = participant
	};
	GsAnyMessage message;

	client->free_buffers = UINT64_MAX >> (64 - client->nbuffers);
	client_send(client, &open, GS_MESSAGE_JOB_OPEN, sizeof(open));
	client_expect(client, GS_MESSAGE_JOB_READY, &message);
	CHECK(message.job_ready.token != 0);
	return message.job_ready.token;
}

static void
send_join(Client *client, const Table *table, GsMessageType type, uint64_t token, uint32_t participant)
{
	GsJobJoin	join = {
		.token = token,
		.nwords = 1,
		.keys_only = table->keys_only,
		.participant = participant
	};

	client->free_buffers = UINT64_MAX >> (64 - client->nbuffers);
	client_send(client, &join, type, sizeof(join));
}

static void
expect_joined(Client *client)
{
	GsAnyMessage message;

	client_expect(client, GS_MESSAGE_JOB_READY, &message);
	CHECK(message.job_ready.token == 0);
}

void
job_send_join(Client *client, const Table *table, uint64_t token, uint32_t participant)
{
	send_join(client, table, GS_MESSAGE_JOB_JOIN, token, participant);
}

void
job_join(Client *client, const Table *table, uint64_t token, uint32_t participant)
{
	job_send_join(client, table, token, participant);
	expect_joined(client);
}

void
job_read(Client *client, const Table *table, uint64_t token)
{
	send_join(client, table, GS_MESSAGE_JOB_READ, token, 0);
	expect_joined(client);
}

void
job_send_producer_end(Client *client, bool partial)
{
	GsProducerEnd end = {.partial = partial};

	client_send(client, &end, GS_MESSAGE_PRODUCER_END, sizeof(end));
}

uint64_t
job_end_producer(Client *client, bool partial)
{
	GsAnyMessage message;
	int			type;

	job_send_producer_end(client, partial);
	while ((type = client_receive(client, &message, PATIENCE_MS)) == GS_MESSAGE_BATCH_FREE)
		client->free_buffers |= UINT64_C(1) << message.buffer.buffer;
	CHECK_MSG(type == GS_MESSAGE_PRODUCER_DONE, "message %d came instead of FED: %s", type,
			  type == GS_MESSAGE_FAILED ? message.failed.text : "");
	return message.producer_done.nrows;
}

/* Fills a buffer with the next rows, and sends it. */
static void
send_batch(Client *client, Table *table, uint32_t buffer, uint64_t end)
{
	GsBatch		batch;
	GsBatchFilled filled = {.buffer = buffer};

	gs_batch_init(&batch, client->buffer_pool + (size_t) buffer * client->buffer_bytes,
				  client->buffer_bytes, gs_record_bytes(&table->layout));
	while (table->nloaded < end)
	{
		uint64_t	i = table->nloaded;
		size_t		nbytes = table->keys_only ? 0 : row_bytes(table, i);
		uint64_t	code = gs_encode_int64(table_key(table, i));
		uint64_t   *record = gs_batch_next_record(&batch);

		if (!gs_batch_has_space(&batch, nbytes))
			break;
		record[0] = code;
		if (!table->keys_only)
		{
			record[1] = gs_batch_next_location(&batch, 0);
			write_row(table, i, gs_batch_next_row(&batch));
		}
		gs_batch_push(&batch, nbytes);
		gs_key_field_update_range(&table->layout.fields[0], code);
		table->layout.nrows++;
		table->nloaded++;
	}
	filled.nrows = (uint32_t) batch.nrows;
	filled.rows_bytes = (uint32_t) (batch.rows_end - batch.base);
	client->free_buffers &= ~(UINT64_C(1) << buffer);
	client_send(client, &filled, GS_MESSAGE_BATCH_FILLED, sizeof(filled));
}

/* Waits for BATCH_FREE; false: out of memory. */
static bool
take_free(Client *client, int timeout_ms)
{
	GsAnyMessage message;
	int			type = client_receive(client, &message, timeout_ms);

	if (type == -1)
		return true;
	if (type == GS_MESSAGE_FAILED)
	{
		CHECK_MSG(message.failed.failure == GS_FAILED_MEMORY, "%s", message.failed.text);
		return false;
	}
	CHECK_MSG(type == GS_MESSAGE_BATCH_FREE, "message %d came while loading", type);
	CHECK(message.buffer.buffer < client->nbuffers);
	CHECK(!(client->free_buffers >> message.buffer.buffer & 1));
	client->free_buffers |= UINT64_C(1) << message.buffer.buffer;
	return true;
}

bool
job_load(Client *client, Table *table, uint64_t end)
{
	while (table->nloaded < end)
	{
		/* one is kept, to return the input */
		while ((client->free_buffers & (client->free_buffers - 1)) == 0)
			if (!take_free(client, PATIENCE_MS))
				return false;
		send_batch(client, table, (uint32_t) __builtin_ctzll(client->free_buffers), end);
	}
	return true;
}

void
job_send_sort(Client *client, Table *table, GsAlgorithm algorithm)
{
	GsSortRequest request = {.algorithm = algorithm,.layout = table->layout};

	client_send(client, &request, GS_MESSAGE_SORT, sizeof(request));
}

void
job_sort(Client *client, Table *table, GsAlgorithm algorithm)
{
	GsAnyMessage message;
	int			type;

	job_send_sort(client, table, algorithm);
	while ((type = client_receive(client, &message, PATIENCE_MS)) == GS_MESSAGE_BATCH_FREE)
		client->free_buffers |= UINT64_C(1) << message.buffer.buffer;
	CHECK_MSG(type == GS_MESSAGE_SORTED, "message %d came instead of SORTED: %s", type,
			  type == GS_MESSAGE_FAILED ? message.failed.text : "");
	CHECK(message.sorted.nrows == table->nloaded);
	CHECK(message.sorted.device_bytes > 0);
}

void
job_release_buffers(Client *client)
{
	for (; client->free_buffers != 0; client->free_buffers &= client->free_buffers - 1)
		client_send_buffer(client, GS_MESSAGE_BATCH_RELEASED,
						   (uint32_t) __builtin_ctzll(client->free_buffers));
}

/* What has been returned so far. */
typedef struct Order
{
	bool		any;
	int64_t		key;
	uint64_t	number;
	uint64_t	sum;			/* a hash of row numbers: which rows there were */
} Order;

static void
check_next(Order *order, int64_t key, uint64_t number, bool keys_only)
{
	if (order->any)
	{
		CHECK(key >= order->key);
		if (!keys_only && key == order->key)
			CHECK_MSG(number > order->number, "rows of equal keys are not in input order");
	}
	order->any = true;
	order->key = key;
	order->number = number;
	order->sum += mix64(keys_only ? (uint64_t) key : number);
}

static void
check_sorted_batch(const Client *client, const Table *table, const GsBatchReady *ready, Order *order)
{
	const char *buffer = client->buffer_pool + (size_t) ready->buffer * client->buffer_bytes;
	const uint32_t *begins = (const uint32_t *) (buffer + client->buffer_bytes);

	for (uint32_t i = 0; i < ready->nrows; i++)
	{
		if (table->keys_only)
			check_next(order, gs_decode_int64(((const uint64_t *) buffer)[i]), i, true);
		else
		{
			uint64_t	begin = (uint64_t) begins[-1 - (int64_t) i] * 8;
			uint64_t	end = i + 1 < ready->nrows ?
				(uint64_t) begins[-2 - (int64_t) i] * 8 : ready->rows_bytes;
			uint64_t	number;

			CHECK(begin <= end && end <= client->buffer_bytes);
			number = check_row(table, buffer + begin, end - begin);
			check_next(order, table_key(table, number), number, false);
		}
	}
}

void
job_send_fetch(Client *client, uint32_t stream, uint64_t position)
{
	GsFetch		fetch = {.position = position,.stream = stream};

	job_release_buffers(client);
	client_send(client, &fetch, GS_MESSAGE_FETCH, sizeof(fetch));
}

void
job_fetch(Client *client, Table *table, uint32_t stream, uint64_t position)
{
	job_send_fetch(client, stream, position);
	job_read_stream(client, table, stream, position);
}

void
job_read_stream(Client *client, Table *table, uint32_t stream, uint64_t position)
{
	uint64_t	next = UINT64_MAX;
	uint64_t	sum = 0;
	Order		order = {0};
	GsAnyMessage message;

	while (next != table->nloaded)
	{
		client_expect(client, GS_MESSAGE_BATCH_READY, &message);
		CHECK(message.ready.buffer < client->nbuffers);
		if (message.ready.stream == stream)
		{
			if (next == UINT64_MAX)
				CHECK(message.ready.position <= position &&
					  position < message.ready.position + message.ready.nrows);
			else
				CHECK(message.ready.position == next);
			next = message.ready.position + message.ready.nrows;
			check_sorted_batch(client, table, &message.ready, &order);
		}
		client_send_buffer(client, GS_MESSAGE_BATCH_RELEASED, message.ready.buffer);
	}
	if (position > 0)
		return;
	for (uint64_t i = 0; i < table->nloaded; i++)
		sum += mix64(table->keys_only ? (uint64_t) table_key(table, i) : i);
	CHECK_MSG(sum == order.sum, "the rows that came out are not those that went in");
}

void
job_return_input(Client *client, Table *table)
{
	uint64_t	next = 0;
	uint64_t	kept = 0;
	GsAnyMessage message;
	uint32_t	record_bytes = (uint32_t) gs_record_bytes(&table->layout);

	job_release_buffers(client);
	client_send_plain(client, GS_MESSAGE_RETURN_INPUT);
	for (;;)
	{
		int			type = client_receive(client, &message, PATIENCE_MS);
		GsBatch		batch;

		if (type == GS_MESSAGE_BATCH_FREE)
		{
			client_send_buffer(client, GS_MESSAGE_BATCH_RELEASED, message.buffer.buffer);
			continue;
		}
		CHECK_MSG(type == GS_MESSAGE_BATCH_READY, "message %d came while returning the input", type);
		if (message.ready.nrows == 0)
			break;
		CHECK(message.ready.position == next);
		gs_batch_init(&batch, client->buffer_pool + (size_t) message.ready.buffer * client->buffer_bytes,
					  client->buffer_bytes, record_bytes);
		for (uint32_t i = 0; i < message.ready.nrows; i++, next++)
		{
			const uint64_t *record = gs_batch_record(&batch, i);

			CHECK(gs_decode_int64(record[0]) == table_key(table, next));
			if (!table->keys_only)
				CHECK(check_row(table, gs_batch_row(&batch, gs_record_unit(record, 1)),
								row_bytes(table, next)) == next);
		}
		client_send_buffer(client, GS_MESSAGE_BATCH_RELEASED, message.ready.buffer);
	}

	/* rows that were not returned were never taken; they are still in the buffers */
	CHECK(next <= table->nloaded);
	kept = table->nloaded - next;
	CHECK(kept * record_bytes <= (uint64_t) client->buffer_bytes * client->nbuffers);
}

void
job_close(Client *client)
{
	client_send_plain(client, GS_MESSAGE_JOB_CLOSE);
}

void
job_run(Client *client, uint64_t seed, uint64_t nrows, bool keys_only)
{
	Table		table = table_make(seed, nrows, keys_only);
	GsAnyMessage message;

	job_open(client, &table, 0, 1000);

	/* buffers of the previous job may still be reported */
	do
		CHECK(client_receive(client, &message, PATIENCE_MS) > 0);
	while (message.message.type == GS_MESSAGE_BATCH_READY ||
		   message.message.type == GS_MESSAGE_BATCH_FREE);
	CHECK_MSG(message.message.type == GS_MESSAGE_JOB_READY, "message %u came instead of JOB_READY",
			  message.message.type);
	CHECK(job_load(client, &table, nrows));
	job_sort(client, &table, GS_ALGORITHM_RADIX);
	job_fetch(client, &table, 1, 0);
	if (nrows > 1)
		job_fetch(client, &table, 2, nrows / 2);
	job_close(client);
}
