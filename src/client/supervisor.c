/*-------------------------------------------------------------------------
 *
 * supervisor.c
 *	  The background worker that keeps gpusortd running.
 *
 * The device is driven by gpusortd, a program of its own.  When a process of
 * the server crashes, PostgreSQL ends all the others and goes through
 * recovery, and a device driver is nothing to stake that on.  So the worker
 * is only a parent: it has no database, no shared memory of ours and no device.
 *
 *	  no device, no program		the worker ends; the first sort after the next
 *								reload of the settings asks for a new one
 *	  gpusortd ends				it is started again: after 0.1 s, then twice as
 *								long each time, up to 30 s; from the beginning
 *								once it has lived for a minute
 *	  gpusortd does not answer	it is killed, as a call of the driver may never
 *								return, and started again
 *	  a setting has changed, or	it is ended and started again, at a reload
 *	  its program's file
 *	  the server stops			it is ended, by SIGKILL if it takes too long
 *	  the worker dies			the kernel kills it: PR_SET_PDEATHSIG
 *
 * So nothing stays behind, however the server ends: when the postmaster is
 * gone the worker leaves WaitLatch() for good, and gpusortd with it.
 *
 * The worker is started with the server if shared_preload_libraries has
 * gpusort, and else by the first sort that wants a device.  Only one works: it
 * holds the lock on a file, which the kernel gives back whatever happens.
 * What it knows is in another file, for the backends; a new version replaces
 * it as a whole.  It names the start of its server, so that what an earlier
 * one left tells nobody anything.
 *
 * Whether it answers is asked by a socket, four times in the time that it may
 * take, and its loop answers itself.  What counts is how often it was asked in
 * vain and not the clock: a machine that stood still is no reason.
 *
 * gpusortd writes what it has to say to a pipe; the worker passes it on to
 * the server's log, and notes the last line as the reason if gpusortd ends.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guc.h"
#include "client/supervisor.h"

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
#include "utils/ps_status.h"
#include "utils/timestamp.h"

#define LOCK_FILE		PG_STAT_TMP_DIR "/gpusort.supervisor.lock"
#define STATUS_FILE		PG_STAT_TMP_DIR "/gpusort.status"

/* Where gpusortd may write: the files of the server's own sorts are there, too. */
#define PARK_FOLDER		"base/" PG_TEMP_FILES_DIR

#define FIRST_DELAY_MS	100
#define LAST_DELAY_MS	30000
#define GOOD_LIFE_MS	60000

/*
 * So often it is asked in gpusort.service_timeout whether it is well; and so many
 * times as long it may take to start, which is to make a device's context.
 */
#define ASKS			4
#define START_PATIENCE	10

/* How long it may take to end when it is told to. */
#define STOP_MS			5000

/* A backend looks for a supervisor no more often than that. */
#define WANT_INTERVAL_MS	1000

/* gpusortd's exit status if there is no such device; and execv()'s failure. */
#define EXIT_NO_DEVICE	3
#define EXIT_NO_PROGRAM	127

/* The line that it writes to that descriptor once it listens begins so. */
#define READY_PREFIX	"gpusortd: ready: "
#define READY_FD		3

/* Where it answers. */
#define WATCH_FD		4

#define LINE_BYTES		1024

/* What backends are told. */
#define STATE_STARTING		"starting"
#define STATE_RUNNING		"running"
#define STATE_FAILED		"failed"
#define STATE_NO_DEVICE		"no device"
#define STATE_NO_PROGRAM	"no program"
#define STATE_STOPPED		"stopped"
#define STATE_NOT_STARTED	"not started"

typedef struct Status
{
	TimestampTz server_start;
	TimestampTz written;
	char		state[64];
	char		why[LINE_BYTES];
} Status;

/* gpusortd, as the worker knows it. */
typedef struct Service
{
	char	   *command;		/* as started; NULL before the first time */
	char	   *program;		/* the file that was started, likewise */
	pid_t		pid;			/* 0: it does not run */
	int			output;			/* the pipe's end; -1: none */
	int			watch;			/* the socket's, by which it is asked; -1: none */
	bool		ready;			/* it has said so */
	bool		hangs;			/* and has been killed for it */
	int			nmissed;		/* so often it was asked in vain */
	double		asked_ms;		/* when */
	TimestampTz started;
	TimestampTz next_start;
	int			delay_ms;		/* before the start after the next end */
	int			line_bytes;		/* of what is no whole line yet */
	char		line[LINE_BYTES];
	char		last_line[LINE_BYTES];
} Service;

PGDLLEXPORT void gs_supervisor_main(Datum main_arg);

/* ---------------------------------------------------------- the two files */

static struct flock
lock_of_file(void)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	return lock;
}

/* The lock is held up to the end of this process; false if another has it. */
static bool
acquire_lock(void)
{
	int			fd = BasicOpenFile(LOCK_FILE, O_RDWR | O_CREAT);
	struct flock lock = lock_of_file();

	if (fd < 0)
		ereport(FATAL,
				(errcode_for_file_access(),
				 errmsg("could not open file \"%s\": %m", LOCK_FILE)));

	/* a worker of the server before this one may just be leaving */
	for (int tries = 0; fcntl(fd, F_SETLK, &lock) != 0; tries++)
	{
		if (tries == 20)
			return false;
		pg_usleep(10000);
	}
	return true;
}

static bool
lock_is_held(void)
{
	int			fd = BasicOpenFile(LOCK_FILE, O_RDWR);
	struct flock lock = lock_of_file();
	bool		taken;

	if (fd < 0)
		return false;
	taken = fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
	close(fd);
	return taken;
}

static void
write_status(const char *state, const char *why)
{
	FILE	   *file = AllocateFile(STATUS_FILE ".new", PG_BINARY_W);

	set_ps_display(state);
	if (file != NULL)
	{
		fprintf(file, INT64_FORMAT " " INT64_FORMAT "\n%s\n%s\n",
				PgStartTime, GetCurrentTimestamp(), state, why);
		if (FreeFile(file) == 0 && rename(STATUS_FILE ".new", STATUS_FILE) == 0)
			return;
	}
	ereport(LOG,
			(errcode_for_file_access(),
			 errmsg("could not write file \"%s\": %m", STATUS_FILE)));
}

/* A line without its end. */
static bool
read_line(FILE *file, char *line, int size)
{
	if (fgets(line, size, file) == NULL)
		return false;
	line[strcspn(line, "\n")] = '\0';
	return true;
}

/* False if nothing was written since the server started. */
static bool
read_status(Status *status)
{
	FILE	   *file = AllocateFile(STATUS_FILE, PG_BINARY_R);
	char		times[64];
	bool		whole;

	if (file == NULL)
		return false;
	whole = read_line(file, times, sizeof(times)) &&
		sscanf(times, INT64_FORMAT " " INT64_FORMAT,
			   &status->server_start, &status->written) == 2 &&
		read_line(file, status->state, sizeof(status->state)) &&
		read_line(file, status->why, sizeof(status->why));
	FreeFile(file);
	return whole && status->server_start == PgStartTime;
}

/* Did the supervisor end because it was no use to go on? */
static bool
failed_for_good(const Status *status)
{
	return strcmp(status->state, STATE_NO_DEVICE) == 0 ||
		strcmp(status->state, STATE_NO_PROGRAM) == 0;
}

/* ------------------------------------------------------------ for backends */

/*
 * The library's name, for a background worker: as short as it can be told.
 * False: it has no room for it.
 */
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
	worker->bgw_restart_time = BGW_NEVER_RESTART;	/* backends ask again */
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
gs_supervisor_want(void)
{
	static TimestampTz last_look = 0;
	TimestampTz now = GetCurrentTimestamp();
	BackgroundWorker worker;
	Status		status;

	if (!TimestampDifferenceExceeds(last_look, now, WANT_INTERVAL_MS))
		return;
	last_look = now;
	if (lock_is_held() ||
		(read_status(&status) && failed_for_good(&status) && status.written >= PgReloadTime))
		return;
	if (describe_worker(&worker))
		(void) RegisterDynamicBackgroundWorker(&worker, NULL);
}

void
gs_supervisor_status(char **state, char **why)
{
	Status		status;

	if (!read_status(&status))
	{
		char		name[BGW_MAXLEN];

		*state = pstrdup(STATE_NOT_STARTED);
		*why = !name_library(name) ? path_is_too_long() :
			pstrdup("the first large sort starts it, if max_worker_processes allows another worker");
	}
	else if (!failed_for_good(&status) && !lock_is_held())
	{
		*state = pstrdup(STATE_STOPPED);
		*why = pstrdup("the next large sort starts it again");
	}
	else
	{
		*state = pstrdup(status.state);
		*why = pstrdup(status.why);
	}
}

/* ------------------------------------------------------- starting gpusortd */

/* Its command line, as the settings are now; ends with NULL. */
static char **
make_arguments(void)
{
	char	  **argv = palloc(20 * sizeof(char *));
	int			argc = 0;
	char		path[MAXPGPATH];

	if (gpusort_service_path[0] != '\0')
		strlcpy(path, gpusort_service_path, MAXPGPATH);
	else
	{
		strlcpy(path, my_exec_path, MAXPGPATH);
		get_parent_directory(path);
		join_path_components(path, path, "gpusortd");
	}

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

/* The command line as one string, to tell whether it has changed. */
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
 * Tells a file from those that were under its name before, and from what it
 * was itself: whoever installs a program makes a new file.  NULL: there is none.
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

/*
 * The child, up to execv(): system calls only, since everything else in this
 * process belongs to its parent.
 */
static void
exec_service(char *const *argv, int output, int watch, pid_t parent)
{
	struct sigaction action = {.sa_handler = SIG_DFL};
	sigset_t	none;
	long		nfds = sysconf(_SC_OPEN_MAX);
	int			null = open("/dev/null", O_RDONLY);
	const char *error;

	if (nfds < 0 || nfds > 65536)
		nfds = 65536;
	for (int signo = 1; signo < NSIG; signo++)
		(void) sigaction(signo, &action, NULL);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
		_exit(EXIT_FAILURE);	/* the parent is gone already */

	/* out of the way of those that it gets */
	null = fcntl(null, F_DUPFD, WATCH_FD + 1);
	output = fcntl(output, F_DUPFD, WATCH_FD + 1);
	watch = fcntl(watch, F_DUPFD, WATCH_FD + 1);
	dup2(null, STDIN_FILENO);
	dup2(output, STDOUT_FILENO);
	dup2(output, STDERR_FILENO);
	dup2(output, READY_FD);
	dup2(watch, WATCH_FD);
	for (int fd = WATCH_FD + 1; fd < nfds; fd++)
		close(fd);

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

	/* the server makes it with its first temporary file; gpusortd needs it, too */
	(void) MakePGDirectory(PARK_FOLDER);

	write_status(STATE_STARTING, "");
	service->line_bytes = 0;
	service->last_line[0] = '\0';
	service->ready = false;
	service->hangs = false;
	service->nmissed = 0;
	service->asked_ms = 0;
	service->started = GetCurrentTimestamp();

	/* no handler of ours runs in the child */
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
		service->nmissed = 0;	/* of those that it may miss no more */
		write_status(STATE_RUNNING, ready_text);
	}
	else
		strlcpy(service->last_line, service->line, LINE_BYTES);
}

/* Takes what gpusortd has written so far, line by line. */
static void
read_output(Service *service)
{
	char		buffer[LINE_BYTES];
	ssize_t		nread;

	if (service->output < 0)
		return;
	while ((nread = read(service->output, buffer, sizeof(buffer))) > 0)
	{
		for (ssize_t i = 0; i < nread; i++)
		{
			if (buffer[i] == '\n' || service->line_bytes == LINE_BYTES - 1)
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

/* Has it ended?  True once, and *exit_status is as waitpid() has it. */
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
 * Asks it whether it is well, if it is time to; kills it if it has not said so for
 * too long.  Returns after how many milliseconds to do so again; -1: not before
 * something happens.
 */
static long
watch_service(Service *service)
{
	const double interval_ms = Max(gpusort_service_timeout / ASKS, 1);
	double		left_ms;
	char		byte = 0;

	if (service->pid == 0 || service->hangs || gpusort_service_timeout == 0)
		return -1;
	left_ms = service->asked_ms + interval_ms - clock_ms();
	if (left_ms > 0 && left_ms <= interval_ms)
		return (long) left_ms + 1;

	if (service->asked_ms == 0 || recv(service->watch, &byte, 1, MSG_DONTWAIT) == 1)
	{
		(void) send(service->watch, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
		service->nmissed = 0;
	}
	else
		service->nmissed++;
	service->asked_ms = clock_ms();
	if (service->nmissed < (service->ready ? ASKS : ASKS * START_PATIENCE))
		return (long) interval_ms + 1;

	/* in an uninterruptible call of a driver it lives on: its clients find out themselves */
	ereport(LOG, (errmsg("terminating gpusortd (PID %d) because it does not answer", (int) service->pid)));
	write_status(STATE_FAILED, why_killed());
	kill(service->pid, SIGKILL);
	service->hangs = true;
	return -1;
}

/* Decides what follows when it has ended by itself; false: nothing. */
static bool
plan_restart(Service *service, int exit_status)
{
	TimestampTz now = GetCurrentTimestamp();
	char	   *why = skip_prefix(service->last_line, "gpusortd: ");

	if (WIFEXITED(exit_status) && WEXITSTATUS(exit_status) == EXIT_NO_DEVICE)
	{
		write_status(STATE_NO_DEVICE, skip_prefix(why, "no device: "));
		return false;
	}
	if (WIFEXITED(exit_status) && WEXITSTATUS(exit_status) == EXIT_NO_PROGRAM)
	{
		write_status(STATE_NO_PROGRAM, why);
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
	write_status(STATE_FAILED, why);
	service->delay_ms = Min(2 * service->delay_ms, LAST_DELAY_MS);
	return true;
}

/* Until something happens, or timeout_ms have passed if not negative. */
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

/* Ends it, politely at first. */
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

/* The settings have been read again. */
static void
apply_settings(Service *service)
{
	char	  **argv = make_arguments();
	char	   *program = identify_file(argv[0]);

	/* a program that is not there now cannot be started: what runs may stay */
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

	if (!acquire_lock())
		proc_exit(0);			/* another is at work */

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
	write_status(STATE_STOPPED, "the server is stopping");
	proc_exit(0);
}
