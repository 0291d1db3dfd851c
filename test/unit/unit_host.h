/*-------------------------------------------------------------------------
 *
 * unit_host.h
 *	  A GsRuntime that keeps books and can fail on demand.
 *
 * It stands for the memory context of a backend: it knows every allocation
 * that was not released, so that a test can reset it as an ERROR would, or
 * insist that nothing is left.  Memory comes filled with rubbish and is filled
 * with other rubbish when released, so that uses before and after show.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_UNIT_HOST_H
#define GPUSORT_UNIT_HOST_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/engine.h"

typedef struct UnitAllocation
{
	void	   *memory;
	size_t		nbytes;
} UnitAllocation;

typedef struct UnitHost
{
	UnitAllocation *live;
	size_t		nlive;
	size_t		live_capacity;
	size_t		held_bytes;		/* of all live allocations */
	size_t		peak_bytes;
	size_t		last_bytes;		/* size of the latest request */
	uint64_t	nallocations;	/* requests, failed ones too */
	uint64_t	fail_at;		/* the request that fails, from 1; 0 for none */
	bool		fail_after;		/* and all after it fail too */
	uint64_t	ninterrupts;	/* calls of check_interrupts */
	uint64_t	jump_at;		/* the call that leaves, from 1; 0 for none */
	jmp_buf		jump;			/* where to */
	GsRuntime	callbacks;		/* what the engine gets */
} UnitHost;

extern void unit_host_init(UnitHost *host);

/* Frees whatever is left, as the reset of a memory context would. */
extern void unit_host_reset(UnitHost *host);

/* Insists that nothing is left, and frees the books. */
extern void unit_host_end(UnitHost *host);

#endif							/* GPUSORT_UNIT_HOST_H */
