/*-------------------------------------------------------------------------
 *
 * device_placement.h
 *	  Which device does a job.
 *
 * ISO C.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_PLACEMENT_H
#define GPUSORT_DEVICE_PLACEMENT_H

#include "common/device_table.h"

typedef struct GsPlacementRequest
{
	uint64_t	expected_bytes; /* of device memory */
	GsDeviceSet kept;			/* there is a connection to these */
	GsDeviceSet excluded;		/* these are not available */
	bool		only_cuda;
	uint32_t	seed;			/* so that processes that see the same choose
								 * different devices */
} GsPlacementRequest;

/* The best device; -1: none is running. */
extern int	gs_device_place(const GsDeviceTable *table, const GsPlacementRequest *request);

#endif							/* GPUSORT_DEVICE_PLACEMENT_H */
