/*-------------------------------------------------------------------------
 *
 * service_process.c
 *	  The gpusortd of one device, as a child process of the supervisor.
 *
 *	  no device or no program	it is not started again before the next reload of the
 *								settings; nor if the device sorted wrongly.  A reload
 *								while it starts counts
 *	  it ends by itself			it is restarted: after 0.1 s, then after twice the
 *								time, up to 30 s; from the beginning if it has run
 *								for a minute
 *	  it does not answer		it is killed, because a call of the driver may never
 *								return, and restarted
 *	  the supervisor dies		the kernel kills it: PR_SET_PDEATHSIG
 *
 * gpusortd writes its log to a pipe, whose lines are copied to the log of the server;
 * the last one is the reason if gpusortd ends.  Two lines are for the supervisor: one
 * has the number of devices, and one says that gpusortd is ready.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/basics.h"
#include "guc.h"
#include "client/service_process.h"
#include "client/supervisor.h"

#include "common/file_utils.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#define FIRST_DELAY_MS	100
#define LAST_DELAY_MS	30000
#define GOOD_LIFE_MS	60000

/*
 * Number of bytes that are sent in gpusort.service_timeout, to check that it is alive, and the
 * factor by which the timeout is longer while gpusortd starts, which includes creating the
 * context of the device.
 */
#define PINGS			4
#define START_PATIENCE	10

/* The exit code of a failed execv(). */
#define EXIT_NO_PROGRAM	127

/* The lines for the supervisor have these prefixes. */
#define DEVICES_PREFIX	"gpusortd: devices: "
#define READY_PREFIX	"gpusortd: ready: "

/* An epoll set of all outputs; the kernel removes those that are closed. */
static int	outputs = -1;

/* The table of devices, for what a gpusortd that ends leaves behind; NULL: none. */
static GsDeviceTable *device_table = NULL;

static void
set_status(GsServiceProcess *process, const char *state, const char *why)
{
	strlcpy(process->status.state, state, sizeof(process->status.state));
	strlcpy(process->status.why, why, sizeof(process->status.why));
}

/* -------------------------------------------------------- the command line */

/* The command line as one string, for comparison. */
static char *
join_arguments(char *const *argv)
{
	StringInfoData command;

	initStringInfo(&command);
	for (; *argv != NULL; argv++)
		appendStringInfo(&command, "%s\n", *argv);
	return command.data;
}

/*
 * Identifies a file and its version, because installing a program creates a new file
 * or changes it.  NULL: there is none.
 */
static char *
identify_file(const char *path)
{
	struct stat file;

	if (stat(path, &file) != 0)
		return NULL;
	return psprintf("%llu %llu %lld %lld.%09ld", (unsigned long long) file.st_dev,
					(unsigned long long) file.st_ino, (long long) file.st_size,
					(long long) file.st_mtim.tv_sec, file.st_mtim.tv_nsec);
}

/* Closes all descriptors from first on. */
static void
close_descriptors(int first)
{
	long		nfds = sysconf(_SC_OPEN_MAX);

#ifdef SYS_close_range
	/* by its number, because glibc has it from 2.34 on, and Linux from 5.9 on */
	if (syscall(SYS_close_range, (unsigned) first, ~0U, 0) == 0)
		return;
#endif
	if (nfds < 0 || nfds > 65536)
		nfds = 65536;
	for (int fd = first; fd < nfds; fd++)
		close(fd);
}

/* The child, up to execv().  Only system calls are safe after fork(). */
static void
exec_service(char *const *argv, int output, int watch, pid_t parent)
{
	struct sigaction action = {.sa_handler = SIG_DFL};
	sigset_t	none;
	int			null = open("/dev/null", O_RDONLY);
	const char *error;

	for (int signo = 1; signo < NSIG; signo++)
		(void) sigaction(signo, &action, NULL);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
		_exit(EXIT_FAILURE);	/* the parent has ended already */

	/* away from the descriptors that it will have */
	null = fcntl(null, F_DUPFD, GS_SERVICE_WATCH_FD + 1);
	output = fcntl(output, F_DUPFD, GS_SERVICE_WATCH_FD + 1);
	watch = fcntl(watch, F_DUPFD, GS_SERVICE_WATCH_FD + 1);
	dup2(null, STDIN_FILENO);
	dup2(output, STDOUT_FILENO);
	dup2(output, STDERR_FILENO);
	dup2(output, GS_SERVICE_READY_FD);
	dup2(watch, GS_SERVICE_WATCH_FD);
	close_descriptors(GS_SERVICE_WATCH_FD + 1);

	sigemptyset(&none);
	(void) sigprocmask(SIG_SETMASK, &none, NULL);
	execv(argv[0], argv);

	error = strerror(errno);
	if (write(STDERR_FILENO, argv[0], strlen(argv[0])) < 0 ||
		write(STDERR_FILENO, ": ", 2) < 0 ||
		write(STDERR_FILENO, error, strlen(error)) < 0)
		_exit(EXIT_FAILURE);
	_exit(EXIT_NO_PROGRAM);
}

bool
gs_service_process_is_current(const GsServiceProcess *process)
{
	char	  **argv = gs_service_arguments(process->device);
	char	   *program = identify_file(argv[0]);

	/* if the program does not exist now, it could not be restarted, so it continues */
	return process->command != NULL && strcmp(process->command, join_arguments(argv)) == 0 &&
		(program == NULL || (process->program != NULL && strcmp(process->program, program) == 0));
}

/* ---------------------------------------------------------------- starting */

static void
start(GsServiceProcess *process)
{
	char	  **argv = gs_service_arguments(process->device);
	MemoryContext context = MemoryContextSwitchTo(TopMemoryContext);
	struct epoll_event event = {.events = EPOLLIN};
	pid_t		parent = getpid();
	int			ends[2];
	int			watch[2];
	sigset_t	all;
	sigset_t	before;

	if (process->command)
		pfree(process->command);
	if (process->program)
		pfree(process->program);
	process->command = join_arguments(argv);
	process->program = identify_file(argv[0]);
	MemoryContextSwitchTo(context);

	if (pipe(ends) != 0)
		ereport(FATAL, (errcode_for_socket_access(), errmsg("could not create pipe: %m")));
	if (fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0 ||
		epoll_ctl(outputs, EPOLL_CTL_ADD, ends[0], &event) != 0)
		ereport(FATAL, (errcode_for_socket_access(), errmsg("could not configure pipe: %m")));
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, watch) != 0)
		ereport(FATAL, (errcode_for_socket_access(), errmsg("could not create socket pair: %m")));

	/* the server creates the folder with its first temporary file */
	(void) MakePGDirectory(GS_SERVICE_PARK_FOLDER);

	set_status(process, GS_SUPERVISOR_STARTING, "");
	process->line_bytes = 0;
	process->last_line[0] = '\0';
	process->ready = false;
	process->hangs = false;
	process->reloaded = false;
	process->nmissed = 0;
	process->pinged_us = 0;
	process->started = GetCurrentTimestamp();

	/* our signal handlers must not run in the child */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	process->pid = fork();
	if (process->pid == 0)
		exec_service(argv, ends[1], watch[1], parent);
	sigprocmask(SIG_SETMASK, &before, NULL);

	close(ends[1]);
	close(watch[1]);
	process->output = ends[0];
	process->watch = watch[0];
	if (process->pid < 0)
		ereport(FATAL, (errmsg("could not fork gpusortd: %m")));
}

/* ---------------------------------------------------------------- watching */

static char *
skip_prefix(char *line, const char *prefix)
{
	return strncmp(line, prefix, strlen(prefix)) == 0 ? line + strlen(prefix) : line;
}

static void
forward_line(GsServiceProcess *process)
{
	char	   *rest;

	process->line[process->line_bytes] = '\0';
	process->line_bytes = 0;
	if (process->line[0] == '\0')
		return;
	rest = skip_prefix(process->line, DEVICES_PREFIX);
	if (rest != process->line)
	{
		process->ndevices = Min(Max(atoi(rest), 0), GS_MAX_DEVICES);
		return;
	}
	ereport(LOG, (errmsg_internal("%s: %s", process->title,
								  skip_prefix(process->line, "gpusortd: "))));
	rest = skip_prefix(process->line, READY_PREFIX);
	if (rest != process->line)
	{
		process->ready = true;
		process->nmissed = 0;	/* the timeout is shorter from now on */
		set_status(process, GS_SUPERVISOR_RUNNING, rest);
	}
	else
		strlcpy(process->last_line, process->line, GS_SUPERVISOR_LINE_BYTES);
}

/* Forwards the lines that gpusortd has written. */
static void
read_output(GsServiceProcess *process)
{
	char		buffer[GS_SUPERVISOR_LINE_BYTES];
	ssize_t		nread;

	if (process->output < 0)
		return;
	while ((nread = read(process->output, buffer, sizeof(buffer))) > 0)
	{
		for (ssize_t i = 0; i < nread; i++)
		{
			if (buffer[i] == '\n' || process->line_bytes == GS_SUPERVISOR_LINE_BYTES - 1)
				forward_line(process);
			if (buffer[i] != '\n')
				process->line[process->line_bytes++] = buffer[i];
		}
	}
	if (nread < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	forward_line(process);
	close(process->output);
	process->output = -1;
}

/* Has it ended?  True once; *exit_status is that of waitpid(). */
static bool
has_ended(GsServiceProcess *process, int *exit_status)
{
	read_output(process);
	if (process->pid == 0 || waitpid(process->pid, exit_status, WNOHANG) != process->pid)
		return false;
	read_output(process);
	if (process->output >= 0)
		close(process->output);
	process->output = -1;
	close(process->watch);
	process->watch = -1;
	process->pid = 0;
	if (device_table != NULL)
		gs_device_clear(device_table, process->device);
	return true;
}

static char *
why_killed(void)
{
	return psprintf("did not answer for %d ms and was killed", gpusort_service_timeout);
}

/*
 * Sends a byte if it is time to; kills gpusortd if too many were not answered.
 * Returns the milliseconds until the next call; -1: not before something happens.
 */
static long
ping(GsServiceProcess *process)
{
	const long	interval_ms = Max(gpusort_service_timeout / PINGS, 1);
	int64		left_us;
	char		byte = 0;

	if (process->hangs || gpusort_service_timeout == 0)
		return -1;
	left_us = (int64) (process->pinged_us - gs_clock_us()) + interval_ms * 1000;
	if (left_us > 0)
		return (long) (left_us / 1000) + 1;

	if (process->pinged_us == 0 || recv(process->watch, &byte, 1, MSG_DONTWAIT) == 1)
	{
		(void) send(process->watch, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
		process->nmissed = 0;
	}
	else
		process->nmissed++;
	process->pinged_us = gs_clock_us();
	if (process->nmissed < (process->ready ? PINGS : PINGS * START_PATIENCE))
		return interval_ms + 1;

	/* it survives in an uninterruptible call of the driver; then its clients time out */
	ereport(LOG, (errmsg("terminating %s (PID %d) because it does not answer", process->title,
						 (int) process->pid)));
	set_status(process, GS_SUPERVISOR_FAILED, why_killed());
	kill(process->pid, SIGKILL);
	process->hangs = true;
	return -1;
}

static void
give_up(GsServiceProcess *process, const char *state, const char *why)
{
	process->gave_up = true;
	set_status(process, state, why);
}

/* The device must not be used before a reload. */
static void
give_up_wrong_device(GsServiceProcess *process, char *why)
{
	why = skip_prefix(why, "the device failed: ");
	if (device_table != NULL)
		gs_device_count(&device_table->slots[process->device].counters.failures, 1);
	ereport(LOG,
			(errcode(ERRCODE_INTERNAL_ERROR),
			 strcmp(process->title, "gpusortd") == 0 ?
			 errmsg("gpusort stopped using the device: %s", why) :
			 errmsg("gpusort stopped using device %d: %s", process->device, why),
			 errdetail("Sorts continue with other devices or with the CPU engine."),
			 errhint("Check the device and its driver, "
					 "then reload the configuration to use it again.")));
	give_up(process, GS_SUPERVISOR_NO_DEVICE, why);
}

/* Plans the restart after it has ended by itself, or gives up. */
static void
plan_restart(GsServiceProcess *process, int exit_status)
{
	TimestampTz now = GetCurrentTimestamp();
	char	   *why = skip_prefix(process->last_line, "gpusortd: ");

	if (WIFEXITED(exit_status) && WEXITSTATUS(exit_status) == GS_EXIT_NO_DEVICE)
	{
		give_up(process, GS_SUPERVISOR_NO_DEVICE, skip_prefix(why, "no device: "));
		return;
	}
	if (WIFEXITED(exit_status) && WEXITSTATUS(exit_status) == GS_EXIT_WRONG_ORDER)
	{
		give_up_wrong_device(process, why);
		return;
	}
	if (WIFEXITED(exit_status) && WEXITSTATUS(exit_status) == EXIT_NO_PROGRAM)
	{
		/*
		 * not the path before the error: anyone may see the status, but only superusers
		 * gpusort.service_path
		 */
		char	   *error = strrchr(why, ':');

		give_up(process, GS_SUPERVISOR_NO_PROGRAM,
				error == NULL ? "" : error + strspn(error, ": "));
		return;
	}

	if (TimestampDifferenceExceeds(process->started, now, GOOD_LIFE_MS))
		process->delay_ms = FIRST_DELAY_MS;
	process->next_start = TimestampTzPlusMilliseconds(now, process->delay_ms);
	if (process->hangs)
		why = why_killed();
	else if (WIFSIGNALED(exit_status))
		why = psprintf("terminated by signal %d: %s", WTERMSIG(exit_status),
					   pg_strsignal(WTERMSIG(exit_status)));
	else
		why = psprintf("exited with status %d%s%s", WEXITSTATUS(exit_status),
					   *why == '\0' ? "" : ": ", why);
	if (device_table != NULL)
		gs_device_count(&device_table->slots[process->device].counters.failures, 1);
	ereport(LOG,
			(errmsg("%s %s", process->title, why),
			 errdetail("It will be restarted in %d ms.", process->delay_ms)));
	set_status(process, GS_SUPERVISOR_FAILED, why);
	process->delay_ms = Min(2 * process->delay_ms, LAST_DELAY_MS);
}

long
gs_service_process_step(GsServiceProcess *process)
{
	int			exit_status;

	if (has_ended(process, &exit_status))
	{
		plan_restart(process, exit_status);

		/* it may have failed for a reason that is gone */
		if (process->reloaded && !process->ready)
			gs_service_process_retry(process);
	}
	if (process->pid == 0 && process->gave_up)
		return -1;
	if (process->pid == 0)
	{
		long		wait_ms =
			TimestampDifferenceMilliseconds(GetCurrentTimestamp(), process->next_start);

		if (wait_ms > 0)
			return wait_ms;
		start(process);
	}
	return ping(process);
}

/* ---------------------------------------------------------- for the worker */

/* Removes the tables of this build and of others that a previous supervisor has left. */
static void
remove_tables(void)
{
	const char *slash = strrchr(GS_DEVICE_TABLE, '/');
	char	   *folder = pnstrdup(GS_DEVICE_TABLE, slash - GS_DEVICE_TABLE);
	DIR		   *dir = AllocateDir(folder);
	struct dirent *entry;

	while ((entry = ReadDirExtended(dir, folder, LOG)) != NULL)
		if (strncmp(entry->d_name, slash + 1, strlen(slash + 1)) == 0)
			(void) unlink(psprintf("%s/%s", folder, entry->d_name));
	FreeDir(dir);
}

void
gs_service_process_init(void)
{
	remove_tables();
	device_table = gs_device_table_map(GS_DEVICE_TABLE);
	if (device_table != NULL)
		device_table->counted_since = time(NULL);
	if (device_table == NULL)
		ereport(LOG, (errcode_for_file_access(),
					  errmsg("could not map file \"%s\": %m", GS_DEVICE_TABLE)));
	outputs = epoll_create1(EPOLL_CLOEXEC);
	if (outputs < 0)
		ereport(FATAL, (errcode_for_socket_access(), errmsg("could not create epoll set: %m")));
}

GsServiceProcess *
gs_service_process_create(int device)
{
	GsServiceProcess *process = MemoryContextAllocZero(TopMemoryContext, sizeof(GsServiceProcess));

	process->device = process->status.device = device;
	process->output = process->watch = -1;
	process->delay_ms = FIRST_DELAY_MS;
	set_status(process, GS_SUPERVISOR_STARTING, "");
	return process;
}

void
gs_service_process_free(GsServiceProcess *process)
{
	char	   *strings[] = {process->title, process->command, process->program};

	if (device_table != NULL)
		device_table->slots[process->device].state = GS_DEVICE_UNUSED;
	if (process->output >= 0)	/* it could not be killed */
		close(process->output);
	if (process->watch >= 0)
		close(process->watch);
	for (int i = 0; i < lengthof(strings); i++)
		if (strings[i] != NULL)
			pfree(strings[i]);
	pfree(process);
}

void
gs_service_process_set_several(GsServiceProcess *process, bool several)
{
	MemoryContext context = MemoryContextSwitchTo(TopMemoryContext);

	if (process->title)
		pfree(process->title);
	process->title = several ? psprintf("gpusortd of device %d", process->device) :
		pstrdup("gpusortd");
	MemoryContextSwitchTo(context);
}

bool
gs_service_process_runs(GsServiceProcess *process)
{
	int			exit_status;

	(void) has_ended(process, &exit_status);
	return process->pid != 0;
}

void
gs_service_process_retry(GsServiceProcess *process)
{
	process->reloaded = true;
	if (process->gave_up)
		gs_service_process_restart(process);
}

void
gs_service_process_restart(GsServiceProcess *process)
{
	process->gave_up = false;
	process->delay_ms = FIRST_DELAY_MS;
	process->next_start = 0;
}

int
gs_service_process_event_fd(void)
{
	return outputs;
}
