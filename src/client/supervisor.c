/*-------------------------------------------------------------------------
 *
 * supervisor.c
 *	  The background worker that keeps gpusortd running, one for each device.
 *
 * This worker is only the parent process of each gpusortd (service_process.c); it uses no
 * database, no shared memory of gpusort and no device.  README.md says why.
 *
 *	  all have given up			the worker ends; the first sort after the next
 *								reload of the settings requests a new one
 *	  a reload					those that have given up are tried again; those whose
 *								settings or program have changed are ended and
 *								restarted; devices are added and removed
 *	  the server stops			they are ended, by SIGKILL if it takes too long
 *	  the worker dies			the kernel kills them
 *
 * So gpusortd never outlives the server: if the postmaster dies, WaitLatch() ends
 * the worker, and gpusortd ends with it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "common/device_table.h"
#include "guc.h"
#include "client/service_process.h"
#include "client/supervisor.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/ps_status.h"
#include "utils/timestamp.h"

/* Time to end after a signal. */
#define STOP_MS			5000

/* Minimum time between two requests of a backend. */
#define REQUEST_INTERVAL_MS	1000

#define LOCK_FILE		PG_STAT_TMP_DIR "/gpusort.supervisor.lock"
#define STATUS_FILE		PG_STAT_TMP_DIR "/gpusort.status"

/* What it tells backends. */
typedef struct SupervisorStatus
{
	TimestampTz server_start;
	TimestampTz written;
	int			ndevices;
	GsDeviceStatus devices[GS_MAX_DEVICES];
} SupervisorStatus;

/* The state of the worker. */
typedef struct Supervisor
{
	GsDeviceChoice choice;		/* gpusort.device; "auto" with the devices known so far */
	int			nprocesses;
	GsServiceProcess *processes[GS_MAX_DEVICES];
	SupervisorStatus written;	/* to the file */
} Supervisor;

PGDLLEXPORT void gs_supervisor_main(Datum main_arg);

/* ------------------------------------------------------- the lock and the status */

/*
 * The lock is on a file; the kernel releases it when the process ends in any way.  The status is
 * in another file, with the start time of the server, so that that of a previous server is
 * ignored.
 */
/* Acquires the lock until this process ends; false: another process holds it. */
static bool
acquire_lock(void)
{
	int			fd = BasicOpenFile(LOCK_FILE, O_RDWR | O_CREAT);
	struct flock lock = {.l_type = F_WRLCK,.l_whence = SEEK_SET};

	if (fd < 0)
		ereport(FATAL,
				(errcode_for_file_access(),
				 errmsg("could not open file \"%s\": %m", LOCK_FILE)));

	/* the worker of a previous server may be about to exit */
	for (int tries = 0; fcntl(fd, F_SETLK, &lock) != 0; tries++)
	{
		if (tries == 20)
			return false;
		pg_usleep(10000);
	}
	return true;
}

/* Is there a supervisor? */
static bool
is_locked(void)
{
	int			fd = BasicOpenFile(LOCK_FILE, O_RDWR);
	struct flock lock = {.l_type = F_WRLCK,.l_whence = SEEK_SET};
	bool		taken;

	if (fd < 0)
		return false;
	taken = fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
	close(fd);
	return taken;
}

/* Replaces the status, of which the caller has set the devices.  An error is logged. */
static void
write_file(const SupervisorStatus *status)
{
	FILE	   *file = AllocateFile(STATUS_FILE ".new", PG_BINARY_W);

	if (file != NULL)
	{
		fprintf(file, INT64_FORMAT " " INT64_FORMAT " %d\n",
				PgStartTime, GetCurrentTimestamp(), status->ndevices);
		for (int i = 0; i < status->ndevices; i++)
			fprintf(file, "%d\n%s\n%s\n", status->devices[i].device, status->devices[i].state,
					status->devices[i].why);
		if (FreeFile(file) == 0 && rename(STATUS_FILE ".new", STATUS_FILE) == 0)
			return;
	}
	ereport(LOG,
			(errcode_for_file_access(),
			 errmsg("could not write file \"%s\": %m", STATUS_FILE)));
}

/* Reads a line, without the newline, and without what does not fit. */
static bool
read_line(FILE *file, char *line, int size)
{
	size_t		nbytes;

	if (fgets(line, size, file) == NULL)
		return false;
	nbytes = strcspn(line, "\n");
	if (line[nbytes] == '\0')
		for (int c = getc(file); c != '\n' && c != EOF; c = getc(file))
			;
	line[nbytes] = '\0';
	return true;
}

static bool
read_device(FILE *file, GsDeviceStatus *status)
{
	char		number[16];

	if (!read_line(file, number, sizeof(number)) ||
		!read_line(file, status->state, sizeof(status->state)) ||
		!read_line(file, status->why, sizeof(status->why)))
		return false;
	status->device = atoi(number);
	return status->device >= 0 && status->device < GS_MAX_DEVICES;
}

/* False if no status has been written since the server started. */
static bool
read_file(SupervisorStatus *status)
{
	FILE	   *file = AllocateFile(STATUS_FILE, PG_BINARY_R);
	char		times[64];
	bool		whole;

	if (file == NULL)
		return false;
	whole = read_line(file, times, sizeof(times)) &&
		sscanf(times, INT64_FORMAT " " INT64_FORMAT " %d",
			   &status->server_start, &status->written, &status->ndevices) == 3 &&
		status->ndevices > 0 && status->ndevices <= GS_MAX_DEVICES;
	for (int i = 0; whole && i < status->ndevices; i++)
		whole = read_device(file, &status->devices[i]);
	FreeFile(file);
	return whole && status->server_start == PgStartTime;
}

/* Is a gpusortd in this state not started again before a reload? */
static bool
is_final(const GsDeviceStatus *status)
{
	return strcmp(status->state, GS_SUPERVISOR_NO_DEVICE) == 0 ||
		strcmp(status->state, GS_SUPERVISOR_NO_PROGRAM) == 0;
}

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

/* Without the path, since anyone may see the status. */
static char *
path_is_too_long(void)
{
	return psprintf("the path of the gpusort library is longer than %d bytes", BGW_MAXLEN - 1);
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
		ereport(LOG, (errmsg("could not start the supervisor of gpusortd: %s",
							 path_is_too_long())));
		return;
	}
	worker.bgw_restart_time = BGW_DEFAULT_RESTART_INTERVAL;
	RegisterBackgroundWorker(&worker);
}

/* Have all gpusortd given up? */
static bool
gave_up(const SupervisorStatus *status)
{
	for (int i = 0; i < status->ndevices; i++)
		if (!is_final(&status->devices[i]))
			return false;
	return true;
}

/*
 * Is it that of a supervisor that has ended, and whose reasons to end count no more: a reload
 * allows another try?
 */
static bool
is_outdated(const SupervisorStatus *status)
{
	return gave_up(status) ? status->written < PgReloadTime : !is_locked();
}

void
gs_supervisor_request(void)
{
	static TimestampTz last_look = 0;
	TimestampTz now = GetCurrentTimestamp();
	BackgroundWorker worker;
	SupervisorStatus status;

	if (!TimestampDifferenceExceeds(last_look, now, REQUEST_INTERVAL_MS))
		return;
	last_look = now;
	if (is_locked() ||
		(read_file(&status) && !is_outdated(&status)))
		return;
	if (describe_worker(&worker))
		(void) RegisterDynamicBackgroundWorker(&worker, NULL);
}

/* The status if there is no gpusortd. */
static void
set_all(SupervisorStatus *status, const char *state, const char *why)
{
	for (int i = 0; i < status->ndevices; i++)
	{
		strlcpy(status->devices[i].state, state, sizeof(status->devices[i].state));
		strlcpy(status->devices[i].why, why, sizeof(status->devices[i].why));
	}
}

GsDeviceStatus *
gs_supervisor_status(int *ndevices)
{
	SupervisorStatus *status = palloc0(sizeof(SupervisorStatus));

	if (!read_file(status))
	{
		char		name[BGW_MAXLEN];

		status->ndevices = 1;
		status->devices[0].device = -1;
		set_all(status, GS_SUPERVISOR_NOT_STARTED, !name_library(name) ? path_is_too_long() :
				"the first large sort starts it, if max_worker_processes allows another worker");
	}
	else if (is_outdated(status))
		set_all(status, GS_SUPERVISOR_STOPPED, "the next large sort starts it again");
	*ndevices = status->ndevices;
	return status->devices;
}

/* -------------------------------------------------------------- the processes */

/* Waits until something happens; at most timeout_ms unless negative. */
static void
wait_for_events(long timeout_ms)
{
	int			events = WL_LATCH_SET | WL_EXIT_ON_PM_DEATH | WL_SOCKET_READABLE;

	if (timeout_ms >= 0)
		events |= WL_TIMEOUT;
	(void) WaitLatchOrSocket(MyLatch, events, gs_service_process_event_fd(), timeout_ms,
							 PG_WAIT_EXTENSION);
	ResetLatch(MyLatch);
}

/* Does any of the processes run? */
static bool
any_runs(GsServiceProcess **processes, int n)
{
	bool		any = false;

	for (int i = 0; i < n; i++)
		any |= gs_service_process_runs(processes[i]);
	return any;
}

/* Ends them, by SIGTERM first. */
static void
stop(GsServiceProcess **processes, int n)
{
	const int	signals[] = {SIGTERM, SIGKILL};
	bool		stopping[GS_MAX_DEVICES];

	/* even those that the postmaster has ended already */
	for (int k = 0; k < n; k++)
		stopping[k] = processes[k]->pid != 0;

	for (int i = 0; i < lengthof(signals) && any_runs(processes, n); i++)
	{
		TimestampTz deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), STOP_MS);
		long		left_ms;

		for (int k = 0; k < n; k++)
			if (gs_service_process_runs(processes[k]))
				kill(processes[k]->pid, signals[i]);
		while (any_runs(processes, n) &&
			   (left_ms = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), deadline)) > 0)
			wait_for_events(left_ms);
	}

	/* it ends when its call of the driver returns; the others go on */
	for (int k = 0; k < n; k++)
		if (gs_service_process_runs(processes[k]))
			ereport(LOG, (errmsg("could not kill gpusortd (PID %d)", (int) processes[k]->pid)));
		else if (stopping[k])
			ereport(LOG, (errmsg("%s stopped", processes[k]->title)));
}

static GsServiceProcess *
find_process(const Supervisor *supervisor, int device)
{
	for (int i = 0; i < supervisor->nprocesses; i++)
		if (supervisor->processes[i]->device == device)
			return supervisor->processes[i];
	return NULL;
}

/*
 * Sets the devices of "auto": those that any gpusortd has found; one that has started
 * after a device was lost finds fewer.  True: they have changed.
 */
static bool
find_devices(Supervisor *supervisor)
{
	GsDeviceChoice *choice = &supervisor->choice;
	int			ndevices = 1;

	for (int i = 0; i < supervisor->nprocesses; i++)
		ndevices = Max(ndevices, supervisor->processes[i]->ndevices);
	if (!choice->is_auto || choice->devices == GS_DEVICES_BELOW(ndevices))
		return false;
	choice->devices = GS_DEVICES_BELOW(ndevices);
	return true;
}

/* Makes the processes those of the choice, in the order of their numbers. */
static void
set_processes(Supervisor *supervisor)
{
	GsServiceProcess *chosen[GS_MAX_DEVICES];
	GsServiceProcess *removed[GS_MAX_DEVICES];
	int			nchosen = 0;
	int			nremoved = 0;

	for (int device = 0; device < GS_MAX_DEVICES; device++)
	{
		GsServiceProcess *process = find_process(supervisor, device);

		if ((supervisor->choice.devices & GS_DEVICE_BIT(device)) != 0)
			chosen[nchosen++] = process != NULL ? process : gs_service_process_create(device);
		else if (process != NULL)
			removed[nremoved++] = process;
	}
	supervisor->nprocesses = nchosen;
	memcpy(supervisor->processes, chosen, sizeof(chosen[0]) * nchosen);
	for (int i = 0; i < nchosen; i++)
		gs_service_process_set_several(chosen[i], nchosen > 1);
	stop(removed, nremoved);
	for (int i = 0; i < nremoved; i++)
		gs_service_process_free(removed[i]);
}

/*
 * At the start, and after a reload of the settings: ends each gpusortd that must be
 * restarted, and tries those again that have given up.
 */
static void
apply_settings(Supervisor *supervisor)
{
	GsServiceProcess *outdated[GS_MAX_DEVICES];
	int			noutdated = 0;

	if (!gs_device_choice_parse(gpusort_device, &supervisor->choice))
		elog(FATAL, "invalid value of gpusort.device: %s", gpusort_device);
	(void) find_devices(supervisor);
	set_processes(supervisor);
	for (int i = 0; i < supervisor->nprocesses; i++)
	{
		gs_service_process_retry(supervisor->processes[i]);
		if (!gs_service_process_is_current(supervisor->processes[i]))
			outdated[noutdated++] = supervisor->processes[i];
	}
	stop(outdated, noutdated);
	for (int i = 0; i < noutdated; i++)
		gs_service_process_restart(outdated[i]);
}

/* ------------------------------------------------------------------ the worker */

/* The state of all of them, for ps. */
static void
display_status(const SupervisorStatus *status)
{
	int			nsame = 0;
	int			nrunning = 0;

	for (int i = 0; i < status->ndevices; i++)
	{
		nsame += strcmp(status->devices[i].state, status->devices[0].state) == 0;
		nrunning += strcmp(status->devices[i].state, GS_SUPERVISOR_RUNNING) == 0;
	}
	set_ps_display(nsame == status->ndevices ? status->devices[0].state :
				   psprintf("%d of %d running", nrunning, status->ndevices));
}

/* Writes the status of all processes if it has changed. */
static void
write_status(Supervisor *supervisor)
{
	SupervisorStatus *written = &supervisor->written;
	bool		changed = written->ndevices != supervisor->nprocesses;

	written->ndevices = supervisor->nprocesses;
	for (int i = 0; i < supervisor->nprocesses; i++)
	{
		const GsDeviceStatus *status = &supervisor->processes[i]->status;

		changed |= memcmp(&written->devices[i], status, sizeof(*status)) != 0;
		written->devices[i] = *status;
	}
	if (!changed)
		return;
	display_status(written);
	write_file(written);
}

static void
handle_sigchld(SIGNAL_ARGS)
{
	int			save_errno = errno;

	SetLatch(MyLatch);
	errno = save_errno;
}

/* Lets each process proceed.  Returns the milliseconds until the next call; -1: any. */
static long
step(Supervisor *supervisor)
{
	long		wait_ms = -1;

	for (int i = 0; i < supervisor->nprocesses; i++)
	{
		long		next_ms = gs_service_process_step(supervisor->processes[i]);

		if (wait_ms < 0 || (next_ms >= 0 && next_ms < wait_ms))
			wait_ms = next_ms;
	}
	return wait_ms;
}

void
gs_supervisor_main(Datum main_arg)
{
	Supervisor *supervisor = MemoryContextAllocZero(TopMemoryContext, sizeof(Supervisor));
	MemoryContext loop_context;

	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGCHLD, handle_sigchld);
	BackgroundWorkerUnblockSignals();

	if (!acquire_lock())
		proc_exit(0);			/* there is another supervisor */

	loop_context = AllocSetContextCreate(TopMemoryContext, "GpuSort supervisor",
										 ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(loop_context);
	gs_service_process_init();
	apply_settings(supervisor);
	while (!ShutdownRequestPending)
	{
		long		wait_ms;

		MemoryContextReset(loop_context);
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
			apply_settings(supervisor);
		}
		wait_ms = step(supervisor);
		if (find_devices(supervisor))
		{
			set_processes(supervisor);
			wait_ms = step(supervisor);
		}
		write_status(supervisor);
		if (gave_up(&supervisor->written))
			proc_exit(0);

		/* a signal may have arrived while processes were stopped, and its latch been reset */
		if (!ShutdownRequestPending && !ConfigReloadPending)
			wait_for_events(wait_ms);
	}
	stop(supervisor->processes, supervisor->nprocesses);
	set_all(&supervisor->written, GS_SUPERVISOR_STOPPED, "the server is stopping");
	write_file(&supervisor->written);
	proc_exit(0);
}
