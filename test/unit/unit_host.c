/*-------------------------------------------------------------------------
 *
 * unit_host.c
 *	  A GsRuntime that tracks allocations and can fail on demand.
 *
 * The books are kept apart from the memory: every allocation is one malloc()
 * of exactly what was asked for, so that the address sanitizer sees an
 * overrun of a single byte at either end.
 *
 *-------------------------------------------------------------------------
 */
#include "unit_host.h"

#include <stdlib.h>
#include <string.h>

#include "unit_check.h"

#define GARBAGE_NEW		0xA5
#define GARBAGE_OLD		0xDB
#define GARBAGE_BYTES	((size_t) 1 << 20)	/* of an allocation: filling more
											 * would take most of the time */

static size_t
rubbish_bytes(size_t nbytes)
{
	return nbytes < GARBAGE_BYTES ? nbytes : GARBAGE_BYTES;
}

static void *
host_allocate(void *arg, size_t nbytes)
{
	UnitHost   *host = arg;
	void	   *memory;

	host->last_bytes = nbytes;
	host->nallocations++;
	if (host->fail_at != 0 &&
		(host->nallocations == host->fail_at ||
		 (host->fail_after && host->nallocations > host->fail_at)))
		return NULL;
	CHECK_MSG(nbytes > 0 && nbytes <= (size_t) 1 << 40,
			  "a request for %zu bytes", nbytes);
	memory = malloc(nbytes);
	CHECK(memory != NULL);
	memset(memory, GARBAGE_NEW, rubbish_bytes(nbytes));

	if (host->nlive == host->live_capacity)
	{
		host->live_capacity = host->live_capacity == 0 ? 64 : 2 * host->live_capacity;
		host->live = realloc(host->live, host->live_capacity * sizeof(UnitAllocation));
		CHECK(host->live != NULL);
	}
	host->live[host->nlive].memory = memory;
	host->live[host->nlive].nbytes = nbytes;
	host->nlive++;
	host->held_bytes += nbytes;
	if (host->held_bytes > host->peak_bytes)
		host->peak_bytes = host->held_bytes;
	return memory;
}

static void
host_release(void *arg, void *memory, size_t nbytes)
{
	UnitHost   *host = arg;

	for (size_t i = host->nlive; i-- > 0;)
	{
		if (host->live[i].memory != memory)
			continue;
		CHECK_MSG(host->live[i].nbytes == nbytes, "released %zu bytes of %zu", nbytes, host->live[i].nbytes);
		memset(memory, GARBAGE_OLD, rubbish_bytes(host->live[i].nbytes));
		host->held_bytes -= host->live[i].nbytes;
		host->live[i] = host->live[--host->nlive];
		free(memory);
		return;
	}
	unit_fail(__FILE__, __LINE__, "released %p, which is not allocated", memory);
}

static void
host_check_interrupts(void *arg)
{
	UnitHost   *host = arg;

	if (++host->ninterrupts == host->jump_at)
		longjmp(host->jump, 1);
}

void
unit_host_init(UnitHost *host)
{
	memset(host, 0, sizeof(*host));
	host->callbacks.arg = host;
	host->callbacks.allocate = host_allocate;
	host->callbacks.release = host_release;
	host->callbacks.check_interrupts = host_check_interrupts;
}

void
unit_host_reset(UnitHost *host)
{
	while (host->nlive > 0)
		host_release(host, host->live[host->nlive - 1].memory, host->live[host->nlive - 1].nbytes);
}

void
unit_host_end(UnitHost *host)
{
	CHECK_MSG(host->nlive == 0, "%zu allocations, %zu bytes, were not released",
			  host->nlive, host->held_bytes);
	free(host->live);
	host->live = NULL;
}
