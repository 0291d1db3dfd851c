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
 * Small sorts cannot use huge pages, and page faults are a quarter of the time of a
 * sort of 300 rows and 40 % of one of 10,000: malloc() returns the freed memory of a
 * sort to the kernel, and the next sort gets it back page by page.  So a session
 * keeps one block for its sorts.  A sort takes it with its first allocation, if no
 * other sort has it, and the reset of its memory context gives it back, after an
 * ERROR, too.  Memory that is released there is used again only when all of it is.
 * A large sort frees the block at its end: it gains nothing from it, and the next
 * one may be large, too.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/mman.h>
#include <unistd.h>

#include "sort_parts/sort_runtime.h"

#include "miscadmin.h"
#include "portability/instr_time.h"
#include "utils/memutils.h"

#define HUGE_PAGE			((uintptr_t) 2 << 20)

/* Smaller blocks seldom contain a whole huge page. */
#define HUGE_ALLOCATION		((Size) 4 << 20)

/* A huge page is slow if 512 small pages would be as fast. */
#define SLOW_HUGE_PAGE_US	400

/* How many blocks use small pages before another try, at most. */
#define MAX_BLOCKS_TO_SKIP	32

/* The block that a session keeps: for about 3,000 rows of 200 bytes. */
#define KEPT_BYTES			((Size) 1 << 20)

/* What a large sort allocates besides. */
#define LARGE_BYTES			((Size) 8 << 20)

static struct
{
	char	   *block;			/* NULL: none */
	MemoryContext user;			/* of the sort that has it; NULL: none */
	MemoryContextCallback give_back;
	Size		used;
	Size		nchunks;		/* not yet released */
	Size		besides;		/* bytes that the sort has allocated elsewhere */
}			kept;

#ifdef MADV_HUGEPAGE
/*
 * Accesses the first huge page of [start, end).  Returns whether it was fast.
 */
static bool
huge_pages_help(uintptr_t start, uintptr_t end)
{
	static int	blocks_to_skip = 0;
	static int	last_skip = 0;
	uintptr_t	page = TYPEALIGN(HUGE_PAGE, start);
	instr_time	before;
	instr_time	after;

	if (blocks_to_skip > 0)
	{
		blocks_to_skip--;
		return false;
	}
	if (page + HUGE_PAGE > end ||
		madvise((void *) page, HUGE_PAGE, MADV_HUGEPAGE) != 0)
		return false;
	INSTR_TIME_SET_CURRENT(before);
	*(volatile char *) page = 0;
	INSTR_TIME_SET_CURRENT(after);
	INSTR_TIME_SUBTRACT(after, before);
	if (INSTR_TIME_GET_MICROSEC(after) > SLOW_HUGE_PAGE_US)
	{
		last_skip = Min(2 * last_skip + 1, MAX_BLOCKS_TO_SKIP);
		blocks_to_skip = last_skip;
		return false;
	}
	last_skip = 0;
	return true;
}
#endif

/* The reset of the memory context of a sort gives the kept block back. */
static void
give_back_kept(void *arg)
{
	kept.user = NULL;
	if (kept.besides >= LARGE_BYTES)
	{
		MemoryContextDelete(GetMemoryChunkContext(kept.block));
		kept.block = NULL;
	}
}

/* Takes the kept block for the sort of a memory context.  False: another sort has it. */
static bool
take_kept(MemoryContext context)
{
	if (kept.user != NULL)
		return kept.user == context;
	if (kept.block == NULL)
		kept.block = MemoryContextAlloc(AllocSetContextCreate(TopMemoryContext, "gpusort",
															  ALLOCSET_SMALL_SIZES),
										KEPT_BYTES);
	kept.give_back.func = give_back_kept;
	MemoryContextRegisterResetCallback(context, &kept.give_back);
	kept.user = context;
	kept.used = 0;
	kept.nchunks = 0;
	kept.besides = 0;
	return true;
}

/* Allocates from the kept block; NULL: another sort has it, or there is no space. */
static void *
allocate_kept(MemoryContext context, Size nbytes)
{
	char	   *chunk;

	if (!take_kept(context))
		return NULL;
	if (nbytes > KEPT_BYTES - kept.used)
	{
		kept.besides += nbytes;
		return NULL;
	}
	chunk = kept.block + kept.used;
	kept.used += CACHELINEALIGN(nbytes);
	kept.nchunks++;
	return chunk;
}

static void *
allocate(void *arg, size_t nbytes)
{
	void	   *memory = allocate_kept(arg, nbytes);

	if (memory != NULL)
		return memory;
	memory = MemoryContextAllocExtended((MemoryContext) arg, nbytes,
										MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
#ifdef MADV_HUGEPAGE
	if (memory != NULL && nbytes >= HUGE_ALLOCATION)
	{
		uintptr_t	small_page = (uintptr_t) sysconf(_SC_PAGESIZE);
		uintptr_t	start = TYPEALIGN(small_page, (uintptr_t) memory);
		uintptr_t	end = TYPEALIGN_DOWN(small_page, (uintptr_t) memory + nbytes);

		if (huge_pages_help(start, end))
			(void) madvise((void *) start, end - start, MADV_HUGEPAGE);
	}
#endif
	return memory;
}

static void
release(void *arg, void *memory)
{
	if (kept.block == NULL || (char *) memory < kept.block ||
		(char *) memory >= kept.block + KEPT_BYTES)
		pfree(memory);
	else if (--kept.nchunks == 0)
		kept.used = 0;
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
