/*-------------------------------------------------------------------------
 *
 * server.h
 *	  The socket that clients connect to, and the loop that serves them.
 *
 * Legal order: create, listen, run, destroy; destroy at any time.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SERVER_H
#define GPUSORT_SERVER_H

#include "common/device_table.h"
#include "device/device.h"
#include "job/park_file.h"

typedef struct GsServer GsServer;

/*
 * Reserves the path of the socket, so that no other gpusortd can use it.  Blocks
 * SIGTERM and SIGINT, which gs_server_run() waits for.  NULL: the log has the
 * reason.
 *
 * The loop sends back each byte that it receives from the socket `watch`, unless that is -1,
 * which shows the supervisor that it is alive.  The server owns this descriptor.
 */
extern GsServer *gs_server_create(const char *path, int watch);

/*
 * Opens the socket.  The caller owns the device, the park folder and the table, in which
 * the device has this number, and keeps them until gs_server_destroy().  Without a park
 * folder no job is parked.  memory_limit 0: nine tenths of the device memory.  False:
 * the log has the reason.
 */
extern bool gs_server_listen(GsServer *server, GsDevice *device, uint64_t memory_limit,
							 GsParkFolder *park_folder, GsDeviceTable *table, uint32_t number);

/* Did gs_server_run() end because the device sorted wrongly? */
extern bool gs_server_device_was_wrong(const GsServer *server);

/*
 * Serves clients until SIGTERM or SIGINT, then returns true; or until the device
 * fails, then false.  Device memory and connections that are unused for idle_us
 * are released.
 */
extern bool gs_server_run(GsServer *server, uint64_t idle_us);

/*
 * Disconnects all clients, removes the socket and frees everything.  False: the
 * device did not finish in time and still uses memory, so the process must exit.
 */
extern bool gs_server_destroy(GsServer *server);

#endif							/* GPUSORT_SERVER_H */
