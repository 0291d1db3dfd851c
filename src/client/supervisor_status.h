/*-------------------------------------------------------------------------
 *
 * supervisor_status.h
 *	  What the supervisor tells backends: its lock, and the status of each gpusortd.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SUPERVISOR_STATUS_H
#define GPUSORT_SUPERVISOR_STATUS_H

#include "common/device_table.h"

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

/* The gpusortd of a device. */
typedef struct GsDeviceStatus
{
	int			device;			/* its number; -1: not known yet */
	char		state[64];
	char		why[GS_SUPERVISOR_LINE_BYTES];
} GsDeviceStatus;

typedef struct GsSupervisorStatus
{
	TimestampTz server_start;
	TimestampTz written;
	int			ndevices;
	GsDeviceStatus devices[GS_MAX_DEVICES];
} GsSupervisorStatus;

/* Acquires the lock until this process ends; false: another process holds it. */
extern bool gs_supervisor_lock(void);

/* Is there a supervisor? */
extern bool gs_supervisor_is_locked(void);

/* Replaces the status, of which the caller sets the devices.  An error is logged. */
extern void gs_supervisor_write_status(GsSupervisorStatus *status);

/* False if no status has been written since the server started. */
extern bool gs_supervisor_read_status(GsSupervisorStatus *status);

/* Is a gpusortd in this state not started again before a reload? */
extern bool gs_supervisor_is_final(const GsDeviceStatus *status);

#endif							/* GPUSORT_SUPERVISOR_STATUS_H */
