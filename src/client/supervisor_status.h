/*-------------------------------------------------------------------------
 *
 * supervisor_status.h
 *	  What the supervisor tells backends: its lock, and the status of gpusortd.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SUPERVISOR_STATUS_H
#define GPUSORT_SUPERVISOR_STATUS_H

#include "datatype/timestamp.h"

/* The longest line of gpusortd, and of a status. */
#define GS_SUPERVISOR_LINE_BYTES	1024

/* States of gpusortd, as backends report them. */
#define GS_SUPERVISOR_STARTING		"starting"
#define GS_SUPERVISOR_RUNNING		"running"
#define GS_SUPERVISOR_FAILED		"failed"
#define GS_SUPERVISOR_NO_DEVICE		"no device"
#define GS_SUPERVISOR_NO_PROGRAM	"no program"
#define GS_SUPERVISOR_STOPPED		"stopped"
#define GS_SUPERVISOR_NOT_STARTED	"not started"

typedef struct GsSupervisorStatus
{
	TimestampTz server_start;
	TimestampTz written;
	char		state[64];
	char		why[GS_SUPERVISOR_LINE_BYTES];
} GsSupervisorStatus;

/* Acquires the lock until this process ends; false: another process holds it. */
extern bool gs_supervisor_lock(void);

/* Is there a supervisor? */
extern bool gs_supervisor_is_locked(void);

/* Replaces the status.  An error is logged. */
extern void gs_supervisor_write_status(const char *state, const char *why);

/* False if no status has been written since the server started. */
extern bool gs_supervisor_read_status(GsSupervisorStatus *status);

/* Did the supervisor end because another attempt would be useless? */
extern bool gs_supervisor_gave_up(const GsSupervisorStatus *status);

#endif							/* GPUSORT_SUPERVISOR_STATUS_H */
