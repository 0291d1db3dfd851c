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
