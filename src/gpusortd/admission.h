/*-------------------------------------------------------------------------
 *
 * admission.h
 *	  Which jobs get device memory, which wait, and which give theirs back.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ADMISSION_H
#define GPUSORT_ADMISSION_H

#include "gpusortd/service.h"

#define GS_NEVER	UINT64_MAX

/* What the last look at the queue was at.  Zero it before the first one. */
typedef struct GsAdmission
{
	uint64_t	committed;
	uint64_t	narrivals;
	uint64_t	next_us;		/* when it is time again */
} GsAdmission;

/*
 * Lets jobs in, has those parked whose memory is waited for, and sends away
 * those that have waited long enough; says when to come again at the latest.
 * Cheap where nobody waits, or nothing has happened.
 */
extern uint64_t gs_admission_run(GsAdmission *admission, GsService *service);

/* The account of a session, made if need be; one reference more.  NULL: out of memory. */
extern GsMemoryAccount *gs_admission_session(GsService *service, int session);
extern void gs_admission_leave(GsService *service, GsMemoryAccount *account);

#endif							/* GPUSORT_ADMISSION_H */
