/*-------------------------------------------------------------------------
 *
 * service_stats.h
 *	  The status of gpusortd, as WELCOME reports it.
 *
 * The server loop updates the stats before each message that it sends, so they
 * are never behind what a client knows.  The greeter's thread reads them at any
 * time.  Each value is consistent; they may be of different moments.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SERVICE_STATS_H
#define GPUSORT_SERVICE_STATS_H

#include <stdatomic.h>
#include <stdint.h>

#include "common/protocol.h"
#include "device/device.h"

typedef struct GsServiceStats
{
	/* constant; set before the greeter starts */
	uint32_t	device_kind;
	char		device_name[GS_DEVICE_NAME_BYTES];
	uint64_t	memory_total;
	uint64_t	memory_limit;

	_Atomic uint64_t memory_used;
	_Atomic uint64_t memory_reserved;
	_Atomic uint64_t jobs_done;
	_Atomic uint32_t njobs;
	_Atomic uint32_t nwaiting;
	_Atomic uint64_t turn_us;	/* when the turn of the loop began; 0: the loop
								 * waits */
} GsServiceStats;

extern GsWelcome gs_service_stats_welcome(GsServiceStats *stats);

#endif							/* GPUSORT_SERVICE_STATS_H */
