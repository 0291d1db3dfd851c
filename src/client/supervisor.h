/*-------------------------------------------------------------------------
 *
 * supervisor.h
 *	  Keeps gpusortd running: the functions for backends.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SUPERVISOR_H
#define GPUSORT_SUPERVISOR_H

/*
 * The table of all devices.  This path and that of a socket are relative to the data
 * directory, the working directory of all processes of the server, because that of a socket
 * may have 107 bytes only.  Backups do not include this folder.
 */
#define GS_DEVICE_TABLE		"pg_stat_tmp/gpusort.devices"

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

/* From _PG_init(): starts the supervisor with the server, if it preloads the library. */
extern void gs_supervisor_register(void);

/*
 * Requests a supervisor if there is none, for a sort that finds no gpusortd.  Does
 * not wait; cheap enough for every sort.
 */
extern void gs_supervisor_request(void);

/*
 * The status of each gpusortd, as the supervisor has recorded it, palloc'd; at least one.
 * "running" means that it listened at that time.
 */
extern GsDeviceStatus *gs_supervisor_status(int *ndevices);

#endif							/* GPUSORT_SUPERVISOR_H */
