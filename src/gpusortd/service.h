/*-------------------------------------------------------------------------
 *
 * service.h
 *	  What all connections share.
 *
 * Connections that have nothing under way are in no list, and cost nothing but
 * their place in the epoll set.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SERVICE_H
#define GPUSORT_SERVICE_H

#include "device/device.h"
#include "job/park_file.h"
#include "gpusortd/service_stats.h"
#include "gpusortd/list.h"
#include "common/protocol.h"
#include "device/device_pool.h"

struct GsConnection;

typedef struct GsService
{
	GsDevice   *device;
	GsDevicePool *pool;
	GsParkFile	   *disk;			/* where jobs are parked; NULL: nowhere */
	GsServiceStats figures;
	int			epoll;			/* sockets to be read; a connection each */
	GsListNode	all;			/* connections */
	GsListNode	active;			/* those with a job of their own, or gone */
	GsListNode	idle;			/* those whose rings nobody uses, the longest first */
	GsListNode	waiting;		/* for admission, in the order of arrival */
	struct GsConnection *shared;	/* those whose jobs others may join */
	GsMemoryAccount *sessions;	/* of sessions whose memory is limited */
	bool		device_failed;			/* the device is: nothing is left but to end */
	char		device_error[GS_FAILED_TEXT_BYTES];
	uint32_t	njobs;			/* open */
	uint32_t	nwaiting;		/* for admission */
	uint64_t	jobs_done;
	uint64_t	narrivals;		/* of jobs so far: their order in the queue */
	uint64_t	nmessages;		/* in and out so far: does anything move? */
	char		refused_build[GS_BUILD_ID_BYTES];	/* of the last client of another build */
} GsService;

/*
 * The device, the pool and the disk are the caller's, and outlive the service.
 * False: there is no epoll set to be had, errno says why.
 */
extern bool gs_service_open(GsService *service, GsDevice *device, GsDevicePool *pool, GsParkFile *disk);
extern void gs_service_close(GsService *service);

/* The device has broken. */
extern void gs_service_broke(GsService *service, const char *text);

/*
 * Has it broken where no job could report it: while one was closed, or memory
 * went back?  Then all clients are told.
 */
extern void gs_service_look(GsService *service);

/* The figures are those of now. */
extern void gs_service_publish(GsService *service);

#endif							/* GPUSORT_SERVICE_H */
