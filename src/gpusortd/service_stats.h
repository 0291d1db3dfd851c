/*-------------------------------------------------------------------------
 *
 * service_stats.h
 *	  How the service is, as WELCOME says it.
 *
 * The thread that serves the jobs writes the figures, before each message that
 * it sends, so that no client knows more than they say; the greeter's thread
 * reads them at any time.  Each is right, but they may be of different moments.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SERVICE_STATS_H
#define GPUSORT_SERVICE_STATS_H

#include <stdatomic.h>
#include <stdint.h>

#include "device/device.h"
#include "common/protocol.h"

typedef struct GsServiceStats
{
	/* once and for all, before there is another thread */
	uint32_t	device_kind;
	char		device_name[GS_DEVICE_NAME_BYTES];
	uint64_t	memory_total;
	uint64_t	memory_limit;

	_Atomic uint64_t memory_used;
	_Atomic uint64_t memory_reserved;
	_Atomic uint64_t jobs_done;
	_Atomic uint32_t njobs;
	_Atomic uint32_t nwaiting;
	_Atomic uint64_t turn_us;	/* since when the loop has been in this turn; 0:
								 * it sleeps */
} GsServiceStats;

extern GsWelcome gs_service_stats_welcome(GsServiceStats *figures);

#endif							/* GPUSORT_SERVICE_STATS_H */
