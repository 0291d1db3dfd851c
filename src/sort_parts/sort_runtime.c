/*-------------------------------------------------------------------------
 *
 * sort_runtime.c
 *	  What a backend lends to an engine: memory of a context, interrupts.
 *
 * Rows are written to memory that the process has not used before.  The kernel
 * clears and maps each page at the first access, which takes 15 to 45 % of the
 * time in which PostgreSQL's sort reads its rows.  Huge pages cause 512 times
 * fewer page faults: 0.05 s a gigabyte instead of 0.35 s (Zen 5, Linux 6.18,
 * 2026-11).
 *
 * Some virtual machines are different.  They return free memory to the host in
 * blocks of the size of a huge page, and at the first access the host has to find
 * memory again: 2.2 s a gigabyte on the same machine, while small pages come from
 * memory that was not returned.  So the first huge page of each block is accessed
 * and timed.  If it is no faster than small pages, the block and some blocks
 * after it use small pages.
 *
 * Small pages that are mapped by one call take three quarters of the time: 0.56 s a
 * gigabyte instead of 0.73 s (Zen 3, Linux 6.18, 2026-11).  But then they are used
 * even if no row is ever written there, so this is only done for blocks that are a
 * small part of a sort's memory.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "sort_parts/sort_runtime.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#define HUGE_PAGE			((uintptr_t) 2 << 20)

/* Smaller blocks seldom contain a whole huge page. */
#define HUGE_ALLOCATION		((Size) 4 << 20)

/* A huge page is slow if 512 small pages would be as fast, in ns of processor time. */
#define SLOW_HUGE_PAGE_NS	1000000

/* How many blocks use small pages before another try. */
#define BLOCKS_TO_SKIP		32

/* Small pages are mapped at once for blocks of at most this part of a sort's memory. */
#define POPULATED_PART		16

#ifdef MADV_HUGEPAGE
/* Processor time, which other processes do not lengthen. */
static int64
processor_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * INT64CONST(1000000000) + now.tv_nsec;
}

/* Accesses the first huge page of [start, end).  Returns whether it was fast. */
static bool
huge_pages_help(uintptr_t start, uintptr_t end)
{
	static int	blocks_to_skip = 0;
	const uintptr_t page = TYPEALIGN(HUGE_PAGE, start);
	int64		before;

	if (blocks_to_skip > 0)
	{
		blocks_to_skip--;
		return false;
	}
	if (page + HUGE_PAGE > end ||
		madvise((void *) page, HUGE_PAGE, MADV_HUGEPAGE) != 0)
		return false;
	before = processor_ns();
	*(volatile char *) page = 0;
	if (processor_ns() - before <= SLOW_HUGE_PAGE_NS)
		return true;
	blocks_to_skip = BLOCKS_TO_SKIP;
	return false;
}
#endif

/*
 * Prepares memory that will be written: by huge pages if they are fast; otherwise small
 * pages are mapped in one call, if the memory is so small a part of the context's that
 * some of it may remain unused.
 */
static void
map_pages(MemoryContext context, void *memory, Size nbytes)
{
	const uintptr_t small_page = (uintptr_t) sysconf(_SC_PAGESIZE);
	const uintptr_t start = TYPEALIGN(small_page, (uintptr_t) memory);
	const uintptr_t end = TYPEALIGN_DOWN(small_page, (uintptr_t) memory + nbytes);

#ifdef MADV_HUGEPAGE
	if (huge_pages_help(start, end) &&
		madvise((void *) start, end - start, MADV_HUGEPAGE) == 0)
		return;
#endif
#ifdef MADV_POPULATE_WRITE
	if (nbytes <= MemoryContextMemAllocated(context, false) / POPULATED_PART)
		(void) madvise((void *) start, end - start, MADV_POPULATE_WRITE);
#endif
}

static void *
allocate(void *arg, size_t nbytes)
{
	void	   *memory = MemoryContextAllocExtended((MemoryContext) arg, nbytes,
													MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);

	if (memory != NULL && nbytes >= HUGE_ALLOCATION)
		map_pages((MemoryContext) arg, memory, nbytes);
	return memory;
}

static void
release(void *arg, void *memory)
{
	pfree(memory);
}

static void
check_interrupts(void *arg)
{
	CHECK_FOR_INTERRUPTS();
}

void
gs_sort_runtime_init(GsRuntime *runtime, MemoryContext context)
{
	runtime->arg = context;
	runtime->allocate = allocate;
	runtime->release = release;
	runtime->check_interrupts = check_interrupts;
}
