/*-------------------------------------------------------------------------
 *
 * supervisor.h
 *	  Keeps gpusortd running: the functions for backends.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SUPERVISOR_H
#define GPUSORT_SUPERVISOR_H

#include "client/supervisor_status.h"

/*
 * The socket of the gpusortd of device 0, and the table of all devices.  The paths are
 * relative to the data directory, the working directory of all processes of the server,
 * because that of a socket may have 107 bytes only.  Backups do not include this folder.
 */
#define GS_SERVICE_SOCKET	"pg_stat_tmp/gpusort.sock"
#define GS_DEVICE_TABLE		"pg_stat_tmp/gpusort.devices"

/* The socket of the gpusortd of a device, palloc'd. */
extern char *gs_supervisor_socket(int device);

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
