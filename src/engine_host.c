/*-------------------------------------------------------------------------
 *
 * engine_host.c
 *	  What a backend offers to an engine: memory of a context, interrupts.
 *
 * Rows are written to memory that the process has never touched, and the
 * kernel clears and maps each page of it at the first touch: 15 to 45 % of the
 * time in which a stock sort takes its rows in.  With huge pages there are 512
 * times fewer such faults.  Where the kernel does not give any, nothing is
 * lost.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/mman.h>
#include <unistd.h>

#include "engine_host.h"

#include "miscadmin.h"
#include "utils/memutils.h"

/* Smaller pieces seldom hold a whole huge page. */
#define HUGE_ALLOCATION		((Size) 4 << 20)

static void *
host_allocate(void *arg, size_t nbytes)
{
	void	   *memory = MemoryContextAllocExtended((MemoryContext) arg, nbytes,
													MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);

#ifdef MADV_HUGEPAGE
	if (memory != NULL && nbytes >= HUGE_ALLOCATION)
	{
		uintptr_t	page = (uintptr_t) sysconf(_SC_PAGESIZE);
		uintptr_t	start = TYPEALIGN(page, (uintptr_t) memory);
		uintptr_t	end = TYPEALIGN_DOWN(page, (uintptr_t) memory + nbytes);

		(void) madvise((void *) start, end - start, MADV_HUGEPAGE);
	}
#endif
	return memory;
}

static void
host_release(void *arg, void *memory)
{
	pfree(memory);
}

static void
host_check_interrupts(void *arg)
{
	CHECK_FOR_INTERRUPTS();
}

void
gs_engine_host_init(GsHost *host, MemoryContext context)
{
	host->arg = context;
	host->allocate = host_allocate;
	host->release = host_release;
	host->check_interrupts = host_check_interrupts;
}
