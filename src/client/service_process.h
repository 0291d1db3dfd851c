/*-------------------------------------------------------------------------
 *
 * service_process.h
 *	  The gpusortd of one device, as a child process of the supervisor.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SERVICE_PROCESS_H
#define GPUSORT_SERVICE_PROCESS_H

#include "client/supervisor_status.h"

typedef struct GsServiceProcess GsServiceProcess;

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

/* Sends it a signal, by which it ends; and logs that it has ended so. */
extern void gs_service_process_signal(GsServiceProcess *process, int signo);
extern void gs_service_process_log_stop(const GsServiceProcess *process);

/* Are its command line and the file of the program those that it was started with? */
extern bool gs_service_process_is_current(const GsServiceProcess *process);

/* Starts it in the next step, unless it runs or waits for its next start. */
extern void gs_service_process_retry(GsServiceProcess *process);

/* Starts it in the next step, unless it runs, even if it waits for its next start. */
extern void gs_service_process_restart(GsServiceProcess *process);

extern int	gs_service_process_pid(const GsServiceProcess *process);

/* The number of CUDA devices that it has found; 0: not known. */
extern int	gs_service_process_ndevices(const GsServiceProcess *process);

extern const GsDeviceStatus *gs_service_process_status(const GsServiceProcess *process);

/* A descriptor that is readable when any process has written something. */
extern int	gs_service_process_event_fd(void);

#endif							/* GPUSORT_SERVICE_PROCESS_H */
