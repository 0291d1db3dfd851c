/*-------------------------------------------------------------------------
 *
 * supervisor.c
 *	  The background worker that keeps gpusortd running.
 *
 * A process of its own, gpusortd, drives the device.  If a process of the server
 * crashes, PostgreSQL restarts all of them and goes through recovery, which a bug of
 * a device driver must not cause.  So this worker is only a parent process; it uses
 * no database, no shared memory of gpusort and no device.
 *
 *	  no device or no program	the worker ends; the first sort after the next
 *								reload of the settings requests a new one
 *	  gpusortd ends				it is restarted: after 0.1 s, then after twice the
 *								time, up to 30 s; from the beginning if it has run
 *								for a minute
 *	  gpusortd does not answer	it is killed, because a call of the driver may
 *								never return, and restarted
 *	  a setting, or the file	it is ended and restarted, at a reload
 *	  of the program, changes
 *	  the server stops			it is ended, by SIGKILL if it takes too long
 *	  the worker dies			the kernel kills it: PR_SET_PDEATHSIG
 *
 * So gpusortd never outlives the server: if the postmaster dies, WaitLatch() ends
 * the worker, and gpusortd ends with it.
 *
 * The worker is started with the server if shared_preload_libraries includes
 * gpusort, otherwise by the first sort that needs a device.
 *
 * The worker checks that gpusortd is alive by sending a byte over a socket, four
 * times in gpusort.service_timeout; the server loop of gpusortd sends it back.  It
 * counts unanswered bytes instead of time, because a suspended machine is no reason
 * to kill gpusortd.
 *
 * gpusortd writes its log to a pipe.  The worker copies it to the log of the server,
 * and keeps the last line as the reason if gpusortd ends.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/protocol.h"
#include "guc.h"
#include "client/supervisor.h"
#include "client/supervisor_status.h"

#include "common/file_utils.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "portability/instr_time.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* The folder for files of gpusortd, where those of the server's sorts are, too. */
#define PARK_FOLDER		"base/" PG_TEMP_FILES_DIR

#define FIRST_DELAY_MS	100
#define LAST_DELAY_MS	30000
#define GOOD_LIFE_MS	60000

/*
 * Number of bytes that are sent in gpusort.service_timeout, and the factor by which
 * the timeout is longer while gpusortd starts, which includes creating the context
 * of the device.
 */
#define PINGS			4
#define START_PATIENCE	10

/* Time to end after a signal. */
#define STOP_MS			5000

/* Minimum time between two requests of a backend. */
#define REQUEST_INTERVAL_MS	1000

/* The exit code of a failed execv(). */
#define EXIT_NO_PROGRAM	127

/* gpusortd writes a line with this prefix to this descriptor when it is ready. */
#define READY_PREFIX	"gpusortd: ready: "
#define READY_FD		3

/* The descriptor of the socket that gpusortd answers. */
#define WATCH_FD		4

/* The state of gpusortd in the worker. */
typedef struct Service
{
	char	   *command;		/* the command line; NULL before the first start */
	char	   *program;		/* the file that was started, likewise */
	pid_t		pid;			/* 0: not running */
	int			output;			/* of the pipe; -1: none */
	int			watch;			/* the socket; -1: none */
	bool		ready;			/* it has reported that */
	bool		hangs;			/* and has been killed */
	int			nmissed;		/* unanswered bytes */
	double		pinged_ms;		/* time of the last one */
	TimestampTz started;
	TimestampTz next_start;
	int			delay_ms;		/* before the next restart */
	int			line_bytes;		/* of an incomplete line */
	char		line[GS_SUPERVISOR_LINE_BYTES];
	char		last_line[GS_SUPERVISOR_LINE_BYTES];
} Service;

PGDLLEXPORT void gs_supervisor_main(Datum main_arg);

/* ------------------------------------------------------------ for backends */

/* The name of the library for a background worker; false: it is too long. */
static bool
name_library(char *name)
{
	const char *path = gs_library_path();
	const int	nbytes = strlen(pkglib_path);

	if (strncmp(path, pkglib_path, nbytes) == 0 && path[nbytes] == '/')
		return snprintf(name, BGW_MAXLEN, "$libdir%s", path + nbytes) < BGW_MAXLEN;
	return strlcpy(name, path, BGW_MAXLEN) < BGW_MAXLEN;
}

static char *
path_is_too_long(void)
{
	return psprintf("the library path \"%s\" is longer than %d bytes",
					gs_library_path(), BGW_MAXLEN - 1);
}

static bool
describe_worker(BackgroundWorker *worker)
{
	memset(worker, 0, sizeof(*worker));
	strlcpy(worker->bgw_name, "gpusort supervisor", BGW_MAXLEN);
	strlcpy(worker->bgw_type, "gpusort supervisor", BGW_MAXLEN);
	strlcpy(worker->bgw_function_name, "gs_supervisor_main", BGW_MAXLEN);
	worker->bgw_flags = BGWORKER_SHMEM_ACCESS;
	worker->bgw_start_time = BgWorkerStart_PostmasterStart;
	worker->bgw_restart_time = BGW_NEVER_RESTART;	/* backends request it again */
	return name_library(worker->bgw_library_name);
}

void
gs_supervisor_register(void)
{
	BackgroundWorker worker;

	if (!process_shared_preload_libraries_in_progress ||
		gpusort_engine == GS_ENGINE_CPU)
		return;
	if (!describe_worker(&worker))
	{
		ereport(LOG, (errmsg("could not start the supervisor of gpusortd: %s", path_is_too_long())));
		return;
	}
	worker.bgw_restart_time = BGW_DEFAULT_RESTART_INTERVAL;
	RegisterBackgroundWorker(&worker);
}

void
gs_supervisor_request(void)
{
	static TimestampTz last_look = 0;
	TimestampTz now = GetCurrentTimestamp();
	BackgroundWorker worker;
	GsSupervisorStatus status;

	if (!TimestampDifferenceExceeds(last_look, now, REQUEST_INTERVAL_MS))
		return;
	last_look = now;
	if (gs_supervisor_is_locked() ||
		(gs_supervisor_read_status(&status) && gs_supervisor_gave_up(&status) && status.written >= PgReloadTime))
		return;
	if (describe_worker(&worker))
		(void) RegisterDynamicBackgroundWorker(&worker, NULL);
}

void
gs_supervisor_status(char **state, char **why)
{
	GsSupervisorStatus status;

	if (!gs_supervisor_read_status(&status))
	{
		char		name[BGW_MAXLEN];

		*state = pstrdup(GS_SUPERVISOR_NOT_STARTED);
		*why = !name_library(name) ? path_is_too_long() :
			pstrdup("the first large sort starts it, if max_worker_processes allows another worker");
	}
	else if (!gs_supervisor_gave_up(&status) && !gs_supervisor_is_locked())
	{
		*state = pstrdup(GS_SUPERVISOR_STOPPED);
		*why = pstrdup("the next large sort starts it again");
	}
	else
	{
		*state = pstrdup(status.state);
		*why = pstrdup(status.why);
	}
}

/* ------------------------------------------------------- starting gpusortd */

/*
 * The program that "make install" has installed with this library: in the folder of
 * the server's programs, or, if the library is not in the server's folder, in the
 * folder bin above or beside its own.
 */
static void
find_program(char *path)
{
	char		folder[MAXPGPATH];

	strlcpy(folder, gs_library_path(), MAXPGPATH);
	get_parent_directory(folder);
	for (int i = 0; i < 2 && strcmp(folder, pkglib_path) != 0; i++)
	{
		get_parent_directory(folder);
		join_path_components(path, folder, "bin/gpusortd");
		if (access(path, X_OK) == 0)
			return;
	}
	strlcpy(path, my_exec_path, MAXPGPATH);
	get_parent_directory(path);
	join_path_components(path, path, "gpusortd");
}

/* Its command line for the current settings, terminated by NULL. */
static char **
make_arguments(void)
{
	char	  **argv = palloc(20 * sizeof(char *));
	int			argc = 0;
	char		path[MAXPGPATH];

	if (gpusort_service_path[0] != '\0')
		strlcpy(path, gpusort_service_path, MAXPGPATH);
	else
		find_program(path);

	argv[argc++] = pstrdup(path);
	argv[argc++] = "--socket";
	argv[argc++] = GS_SERVICE_SOCKET;
	argv[argc++] = "--device";
	argv[argc++] = gpusort_device == GS_DEVICE_CHOICE_HOST ? "host" : "cuda";
	argv[argc++] = "--memory-limit";
	argv[argc++] = psprintf("%d", gpusort_device_memory_limit);
	if (gpusort_device_park_limit != 0)
	{
		argv[argc++] = "--park-folder";
		argv[argc++] = PARK_FOLDER;
	}
	if (gpusort_device_park_limit > 0)
	{
		argv[argc++] = "--park-limit";
		argv[argc++] = psprintf("%d", gpusort_device_park_limit);
	}
	argv[argc++] = "--idle-seconds";
	argv[argc++] = psprintf("%d", gpusort_device_idle);
	argv[argc++] = "--ready-fd";
	argv[argc++] = psprintf("%d", READY_FD);
	argv[argc++] = "--watch-fd";
	argv[argc++] = psprintf("%d", WATCH_FD);
	if (gpusort_service_fault[0] != '\0')
	{
		argv[argc++] = "--fault";
		argv[argc++] = pstrdup(gpusort_service_fault);
	}
	argv[argc] = NULL;
	return argv;
}

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
	null = fcntl(null, F_DUPFD, WATCH_FD + 1);
	output = fcntl(output, F_DUPFD, WATCH_FD + 1);
	watch = fcntl(watch, F_DUPFD, WATCH_FD + 1);
	dup2(null, STDIN_FILENO);
	dup2(output, STDOUT_FILENO);
	dup2(output, STDERR_FILENO);
	dup2(output, READY_FD);
	dup2(watch, WATCH_FD);
	close_descriptors(WATCH_FD + 1);

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

static void
start_service(Service *service)
{
	char	  **argv = make_arguments();
	MemoryContext context = MemoryContextSwitchTo(TopMemoryContext);
	pid_t		parent = getpid();
	int			ends[2];
	int			watch[2];
	sigset_t	all;
	sigset_t	before;

	if (service->command)
		pfree(service->command);
	if (service->program)
		pfree(service->program);
	service->command = join_arguments(argv);
	service->program = identify_file(argv[0]);
	MemoryContextSwitchTo(context);

	if (pipe(ends) != 0)
		ereport(FATAL, (errcode_for_socket_access(), errmsg("could not create pipe: %m")));
	if (fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0)
		ereport(FATAL, (errcode_for_socket_access(), errmsg("could not configure pipe: %m")));
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, watch) != 0)
		ereport(FATAL, (errcode_for_socket_access(), errmsg("could not create socket pair: %m")));

	/* the server creates the folder with its first temporary file */
	(void) MakePGDirectory(PARK_FOLDER);

	gs_supervisor_write_status(GS_SUPERVISOR_STARTING, "");
	service->line_bytes = 0;
	service->last_line[0] = '\0';
	service->ready = false;
	service->hangs = false;
	service->nmissed = 0;
	service->pinged_ms = 0;
	service->started = GetCurrentTimestamp();

	/* our signal handlers must not run in the child */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	service->pid = fork();
	if (service->pid == 0)
		exec_service(argv, ends[1], watch[1], parent);
	sigprocmask(SIG_SETMASK, &before, NULL);

	close(ends[1]);
	close(watch[1]);
	service->output = ends[0];
	service->watch = watch[0];
	if (service->pid < 0)
		ereport(FATAL, (errmsg("could not fork gpusortd: %m")));
}

/* ------------------------------------------------------- watching gpusortd */

static char *
skip_prefix(char *line, const char *prefix)
{
	return strncmp(line, prefix, strlen(prefix)) == 0 ? line + strlen(prefix) : line;
}

static void
forward_line(Service *service)
{
	char	   *ready_text;

	service->line[service->line_bytes] = '\0';
	service->line_bytes = 0;
	if (service->line[0] == '\0')
		return;
	ereport(LOG, (errmsg_internal("%s", service->line)));
	ready_text = skip_prefix(service->line, READY_PREFIX);
	if (ready_text != service->line)
	{
		service->ready = true;
		service->nmissed = 0;	/* the timeout is shorter from now on */
		gs_supervisor_write_status(GS_SUPERVISOR_RUNNING, ready_text);
	}
	else
		strlcpy(service->last_line, service->line, GS_SUPERVISOR_LINE_BYTES);
}

/* Forwards the lines that gpusortd has written. */
static void
read_output(Service *service)
{
	char		buffer[GS_SUPERVISOR_LINE_BYTES];
	ssize_t		nread;

	if (service->output < 0)
		return;
	while ((nread = read(service->output, buffer, sizeof(buffer))) > 0)
	{
		for (ssize_t i = 0; i < nread; i++)
		{
			if (buffer[i] == '\n' || service->line_bytes == GS_SUPERVISOR_LINE_BYTES - 1)
				forward_line(service);
			if (buffer[i] != '\n')
				service->line[service->line_bytes++] = buffer[i];
		}
	}
	if (nread < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	forward_line(service);
	close(service->output);
	service->output = -1;
}

/* Has it ended?  True once; *exit_status is that of waitpid(). */
static bool
service_ended(Service *service, int *exit_status)
{
	if (service->pid == 0 || waitpid(service->pid, exit_status, WNOHANG) != service->pid)
		return false;
	read_output(service);
	if (service->output >= 0)
		close(service->output);
	service->output = -1;
	close(service->watch);
	service->watch = -1;
	service->pid = 0;
	return true;
}

static double
clock_ms(void)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	return INSTR_TIME_GET_MILLISEC(now);
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
watch_service(Service *service)
{
	const double interval_ms = Max(gpusort_service_timeout / PINGS, 1);
	double		left_ms;
	char		byte = 0;

	if (service->pid == 0 || service->hangs || gpusort_service_timeout == 0)
		return -1;
	left_ms = service->pinged_ms + interval_ms - clock_ms();
	if (left_ms > 0 && left_ms <= interval_ms)
		return (long) left_ms + 1;

	if (service->pinged_ms == 0 || recv(service->watch, &byte, 1, MSG_DONTWAIT) == 1)
	{
		(void) send(service->watch, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
		service->nmissed = 0;
	}
	else
		service->nmissed++;
	service->pinged_ms = clock_ms();
	if (service->nmissed < (service->ready ? PINGS : PINGS * START_PATIENCE))
		return (long) interval_ms + 1;

	/* it survives in an uninterruptible call of the driver; then its clients time out */
	ereport(LOG, (errmsg("terminating gpusortd (PID %d) because it does not answer", (int) service->pid)));
	gs_supervisor_write_status(GS_SUPERVISOR_FAILED, why_killed());
	kill(service->pid, SIGKILL);
	service->hangs = true;
	return -1;
}

/* Plans the restart after it has ended by itself; false: none. */
static bool
plan_restart(Service *service, int exit_status)
{
	TimestampTz now = GetCurrentTimestamp();
	char	   *why = skip_prefix(service->last_line, "gpusortd: ");

	if (WIFEXITED(exit_status) && WEXITSTATUS(exit_status) == GS_EXIT_NO_DEVICE)
	{
		gs_supervisor_write_status(GS_SUPERVISOR_NO_DEVICE, skip_prefix(why, "no device: "));
		return false;
	}
	if (WIFEXITED(exit_status) && WEXITSTATUS(exit_status) == GS_EXIT_WRONG_ORDER)
	{
		why = skip_prefix(why, "the device failed: ");
		ereport(LOG,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("gpusort uses no device any more: %s", why),
				 errdetail("Sorts continue with the CPU engine."),
				 errhint("Check the device and its driver, then reload the configuration to use it again.")));
		gs_supervisor_write_status(GS_SUPERVISOR_NO_DEVICE, why);
		return false;
	}
	if (WIFEXITED(exit_status) && WEXITSTATUS(exit_status) == EXIT_NO_PROGRAM)
	{
		gs_supervisor_write_status(GS_SUPERVISOR_NO_PROGRAM, why);
		return false;
	}

	if (TimestampDifferenceExceeds(service->started, now, GOOD_LIFE_MS))
		service->delay_ms = FIRST_DELAY_MS;
	service->next_start = TimestampTzPlusMilliseconds(now, service->delay_ms);
	if (service->hangs)
		why = why_killed();
	else if (WIFSIGNALED(exit_status))
		why = psprintf("terminated by signal %d: %s", WTERMSIG(exit_status),
					   pg_strsignal(WTERMSIG(exit_status)));
	else
		why = psprintf("exited with status %d%s%s", WEXITSTATUS(exit_status),
					   *why == '\0' ? "" : ": ", why);
	ereport(LOG,
			(errmsg("gpusortd %s", why),
			 errdetail("It will be restarted in %d ms.", service->delay_ms)));
	gs_supervisor_write_status(GS_SUPERVISOR_FAILED, why);
	service->delay_ms = Min(2 * service->delay_ms, LAST_DELAY_MS);
	return true;
}

/* Waits until something happens; at most timeout_ms unless negative. */
static void
wait_for_events(Service *service, long timeout_ms)
{
	int			events = WL_LATCH_SET | WL_EXIT_ON_PM_DEATH;

	if (timeout_ms >= 0)
		events |= WL_TIMEOUT;
	if (service->output >= 0)
		events |= WL_SOCKET_READABLE;
	(void) WaitLatchOrSocket(MyLatch, events, service->output, timeout_ms,
							 PG_WAIT_EXTENSION);
	ResetLatch(MyLatch);
}

/* Ends it, by SIGTERM first. */
static void
stop_service(Service *service)
{
	int			exit_status;
	const int	signals[] = {SIGTERM, SIGKILL};

	for (int i = 0; i < lengthof(signals) && service->pid != 0; i++)
	{
		TimestampTz deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), STOP_MS);
		long		left_ms;

		kill(service->pid, signals[i]);
		while (!service_ended(service, &exit_status) &&
			   (left_ms = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), deadline)) > 0)
		{
			wait_for_events(service, left_ms);
			read_output(service);
		}
	}
	if (service->pid != 0)
		ereport(FATAL, (errmsg("could not kill gpusortd (PID %d)", (int) service->pid)));
}

/* After a reload of the settings: ends gpusortd if it must be restarted. */
static void
apply_settings(Service *service)
{
	char	  **argv = make_arguments();
	char	   *program = identify_file(argv[0]);

	/* if the program does not exist now, it could not be restarted, so it continues */
	if (service->command != NULL && strcmp(service->command, join_arguments(argv)) == 0 &&
		(program == NULL ||
		 (service->program != NULL && strcmp(service->program, program) == 0)))
		return;
	stop_service(service);
	service->delay_ms = FIRST_DELAY_MS;
	service->next_start = 0;
}

static void
handle_sigchld(SIGNAL_ARGS)
{
	int			save_errno = errno;

	SetLatch(MyLatch);
	errno = save_errno;
}

void
gs_supervisor_main(Datum main_arg)
{
	Service		service = {.output = -1,.watch = -1,.delay_ms = FIRST_DELAY_MS};
	MemoryContext loop_context;

	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGCHLD, handle_sigchld);
	BackgroundWorkerUnblockSignals();

	if (!gs_supervisor_lock())
		proc_exit(0);			/* there is another supervisor */

	loop_context = AllocSetContextCreate(TopMemoryContext, "GpuSort supervisor",
										 ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(loop_context);
	while (!ShutdownRequestPending)
	{
		long		wait_ms = -1;
		int			exit_status;

		MemoryContextReset(loop_context);
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
			apply_settings(&service);
		}
		read_output(&service);
		if (service_ended(&service, &exit_status) && !plan_restart(&service, exit_status))
			proc_exit(0);
		if (service.pid == 0)
		{
			wait_ms = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), service.next_start);
			if (wait_ms == 0)
				start_service(&service);
		}
		if (service.pid != 0)
			wait_ms = watch_service(&service);
		wait_for_events(&service, wait_ms);
	}
	stop_service(&service);
	gs_supervisor_write_status(GS_SUPERVISOR_STOPPED, "the server is stopping");
	proc_exit(0);
}
