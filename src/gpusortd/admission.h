/*-------------------------------------------------------------------------
 *
 * admission.h
 *	  Which jobs get device memory, which wait, and which are parked.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ADMISSION_H
#define GPUSORT_ADMISSION_H

#include "gpusortd/service.h"

#define GS_NEVER	UINT64_MAX

/* The state at the last check of the queue.  Must be zero at first. */
typedef struct GsAdmission
{
	uint64_t	committed;
	uint64_t	narrivals;
	uint64_t	next_us;		/* of the next check */
} GsAdmission;

/*
 * Admits jobs, starts to park one if others wait for its memory, and refuses
 * those that have waited long enough.  Returns the time of the next call, or
 * GS_NEVER.  Cheap if no job waits or nothing has changed.
 */
extern uint64_t gs_admission_run(GsAdmission *admission, GsService *service);

#endif							/* GPUSORT_ADMISSION_H */
