/*-------------------------------------------------------------------------
 *
 * service.h
 *	  The state that all connections share.
 *
 * Connections are in several lists, so that the loop visits only those that
 * need it: active, idle, or waiting for admission.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SERVICE_H
#define GPUSORT_SERVICE_H

#include "common/device_table.h"
#include "device/device.h"
#include "device/device_pool.h"
#include "gpusortd/list.h"
#include "job/park_file.h"

typedef struct GsService
{
	GsDevice   *device;
	GsDevicePool *pool;
	GsParkFolder *park_folder;	/* for parked jobs; NULL: none */
	GsDeviceSlot *slot;			/* its statistics, for the greeter and other processes */
	int			epoll;			/* of all sockets */
	GsListNode	all;			/* all connections */
	GsListNode	active;			/* that own a job, or are closing */
	GsListNode	idle;			/* with buffers but without a job, longest first */
	GsListNode	waiting;		/* for admission, in the order of arrival */
	GsListNode	shared;			/* whose jobs others may join */
	bool		device_failed;	/* gpusortd must end */
	bool		device_was_wrong;	/* and must not be used again */
	char		device_error[GS_FAILED_TEXT_BYTES];
	uint32_t	njobs;			/* open */
	uint32_t	nwaiting;		/* for admission */
	uint64_t	jobs_done;
	uint64_t	narrivals;		/* of jobs so far */
	uint64_t	nmessages;		/* sent and received so far */
	char		refused_build[GS_BUILD_ID_BYTES]; /* that was refused last */

	/* the last check of the queue for admission; zeros: none yet */
	uint64_t	checked_committed;	/* what was committed then */
	uint64_t	checked_arrivals;
	uint64_t	next_check_us;
} GsService;

/*
 * The caller owns the device, the pool, the park folder and the slot, keeps them as long as
 * there are connections, and closes the epoll set at the end.  False: errno has the error of
 * epoll_create1().
 */
extern bool gs_service_open(GsService *service, GsDevice *device, GsDevicePool *pool,
							GsParkFolder *park_folder, GsDeviceSlot *slot);

/* Records that the device failed. */
extern void gs_service_fail_device(GsService *service, const char *text);

/* Updates the statistics in the slot; device_pool.c has published the commitments. */
extern void gs_service_publish(GsService *service);

/*
 * The status for a client.  The loop publishes before each message that it sends, so the
 * status is never behind what a client knows.  Any thread may call.
 */
extern GsWelcome gs_service_welcome(const GsDeviceSlot *slot);

#define GS_NEVER	UINT64_MAX

/*
 * admission.c: admits jobs, starts to park one if others wait for its memory, and refuses
 * those that have waited long enough.  Returns the time of the next call, or GS_NEVER.  Cheap
 * if no job waits or nothing has changed.
 */
extern uint64_t gs_admission_run(GsService *service);

/* Adds a descriptor to an epoll set; its events carry data.  False: errno has the error. */
extern bool gs_service_watch(int epoll, int fd, void *data);

#endif							/* GPUSORT_SERVICE_H */
