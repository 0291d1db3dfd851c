/*-------------------------------------------------------------------------
 *
 * unit_host.h
 *	  A GsRuntime that tracks allocations and can fail on demand.
 *
 * It replaces the memory context of a backend: it knows every allocation that was
 * not released, so that a test can reset it as an ERROR would, or check that nothing
 * is left.  Memory is filled with garbage when allocated and when released, so that
 * uses of uninitialized or released memory are detected.
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
	GsRuntime		callbacks;		/* what the engine gets */
} UnitHost;

extern void unit_host_init(UnitHost *host);

/* Frees whatever is left, as the reset of a memory context would. */
extern void unit_host_reset(UnitHost *host);

/* Checks that nothing is left, and frees the list of allocations. */
extern void unit_host_end(UnitHost *host);

#endif							/* GPUSORT_UNIT_HOST_H */
