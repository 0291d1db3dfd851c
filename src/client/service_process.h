/*-------------------------------------------------------------------------
 *
 * service_process.h
 *	  The gpusortd of one device, as a child process of the supervisor; its command
 *	  line, and its socket.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SERVICE_PROCESS_H
#define GPUSORT_SERVICE_PROCESS_H

#include "client/supervisor.h"
#include "common/device_table.h"

#include "datatype/timestamp.h"

/* The socket of the gpusortd of device 0: see GS_DEVICE_TABLE. */
#define GS_SERVICE_SOCKET	"pg_stat_tmp/gpusort.sock"

/* The folder for files of gpusortd, where those of the server's sorts are, too. */
#define GS_SERVICE_PARK_FOLDER	"base/" PG_TEMP_FILES_DIR

/* The descriptors of the pipe for the supervisor, and of the socket that gpusortd answers. */
#define GS_SERVICE_READY_FD		3
#define GS_SERVICE_WATCH_FD		4

/* Only service_process.c changes it. */
typedef struct GsServiceProcess
{
	int			device;			/* its number */
	char	   *title;			/* in the log of the server */
	char	   *command;		/* the command line; NULL before the first start */
	char	   *program;		/* the file that was started, likewise */
	pid_t		pid;			/* 0: not running */
	int			output;			/* of the pipe; -1: none */
	int			watch;			/* the socket; -1: none */
	bool		ready;			/* it has reported that */
	bool		hangs;			/* and has been killed */
	bool		gave_up;		/* no further start */
	bool		reloaded;		/* the settings, since it was started */
	int			nmissed;		/* unanswered bytes */
	uint64		pinged_us;		/* time of the last one; 0: none yet */
	TimestampTz started;
	TimestampTz next_start;
	int			delay_ms;		/* before the next restart */
	int			ndevices;		/* that it has found; 0: not known */
	int			line_bytes;		/* of an incomplete line */
	char		line[GS_SUPERVISOR_LINE_BYTES];
	char		last_line[GS_SUPERVISOR_LINE_BYTES];
	GsDeviceStatus status;
} GsServiceProcess;

/* The socket of the gpusortd of a device, palloc'd: service_arguments.c. */
extern char *gs_service_socket(int device);

/*
 * The program, and its options for a device and the current settings; terminated by NULL.
 * Allocated in the current memory context.
 */
extern char **gs_service_arguments(int device);

/* Before all others: creates an empty table of devices, for all processes. */
extern void gs_service_process_init(void);

/* A process for a device of the choice, which is started by the next step. */
extern GsServiceProcess *gs_service_process_create(int device);

/* It must not be running. */
extern void gs_service_process_free(GsServiceProcess *process);

/* Are there several?  Then log lines have the number of the device. */
extern void gs_service_process_set_several(GsServiceProcess *process, bool several);

/*
 * Starts it if it is time to, reads what it has written, notices that it has ended, and
 * kills it if it does not answer.  Returns the milliseconds until the next call; -1: not
 * before it writes something or SIGCHLD arrives.
 */
extern long gs_service_process_step(GsServiceProcess *process);

/* Does it run, whether it is ready or not?  Reads its output, too. */
extern bool gs_service_process_runs(GsServiceProcess *process);

/* Are its command line and the file of the program those that it was started with? */
extern bool gs_service_process_is_current(const GsServiceProcess *process);

/* Starts it in the next step, unless it runs or waits for its next start. */
extern void gs_service_process_retry(GsServiceProcess *process);

/* Starts it in the next step, unless it runs, even if it waits for its next start. */
extern void gs_service_process_restart(GsServiceProcess *process);

/* A descriptor that is readable when any process has written something. */
extern int	gs_service_process_event_fd(void);

#endif							/* GPUSORT_SERVICE_PROCESS_H */
