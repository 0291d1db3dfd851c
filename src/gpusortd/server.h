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

#include "device/device.h"
#include "job/park_file.h"

typedef struct GsServer GsServer;

/*
 * Takes the socket's name, so that no other service can listen there as long
 * as this one lives.  Blocks SIGTERM and SIGINT from now on, which are the
 * server's to wait for.  NULL: the log says why.
 */
extern GsServer *gs_server_create(const char *path);

/*
 * Opens the socket.  The device and the disk are the caller's and outlive the
 * server; without a disk no job is parked.  A limit of 0: most of the device's
 * memory.  False: the log says why.
 */
extern bool gs_server_listen(GsServer *server, GsDevice *device, uint64_t memory_limit,
							 GsParkFile *disk);

/*
 * Has the loop answer whoever wants to know whether it still turns: each byte
 * that comes by this socket goes back.  The descriptor is the server's from now on.
 */
extern void gs_server_watch(GsServer *server, int fd);

/* Bytes of device memory that jobs may take. */
extern uint64_t gs_server_memory_limit(const GsServer *server);

/*
 * Serves until SIGTERM or SIGINT, then returns true; or until the device
 * breaks, then false.  Device memory that nobody has wanted for idle_us is
 * given back.
 */
extern bool gs_server_run(GsServer *server, uint64_t idle_us);

/*
 * Takes leave of the clients, frees everything, removes the socket.  False:
 * the device still uses memory after all patience, and the process can only exit.
 */
extern bool gs_server_destroy(GsServer *server);

#endif							/* GPUSORT_SERVER_H */
