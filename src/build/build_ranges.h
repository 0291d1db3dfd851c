/*-------------------------------------------------------------------------
 *
 * build_ranges.h
 *	  What the writers of an index that several processes write know of each other.
 *
 * In shared memory.  Participant n of a parallel build writes the leaf pages of range n; the
 * leader is participant 0, and writes the levels above in the end.
 *
 *	  leader	init open [ { take_blocks } ( end_range leave | give_up ) wait find_gap
 *				{ take_unused } ]
 *	  worker	wait [ { take_blocks } ( end_range leave | give_up ) ]
 *
 * Waiting can be interrupted.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BUILD_RANGES_H
#define GPUSORT_BUILD_RANGES_H

#include "access/xlogdefs.h"
#include "port/atomics.h"
#include "storage/block.h"
#include "storage/condition_variable.h"
#include "storage/itemptr.h"
#include "storage/sharedfileset.h"
#include "storage/spin.h"
#include "utils/relcache.h"

/* Successive blocks, from first to before end. */
typedef struct GsBuildChunk
{
	BlockNumber first;
	BlockNumber end;
} GsBuildChunk;

typedef struct GsBuildRange
{
	BlockNumber last;			/* of its leaf pages; InvalidBlockNumber: not known */
	GsBuildChunk unused;

	/* only its own process uses these before it leaves */
	/* if ranges divide rows anywhere */
	ItemPointerData first_row;	/* heap TID; invalid: none */
	ItemPointerData next_row;	/* that of the row that it ends before; invalid: none */
	uint64		nrows;			/* written */
	BlockNumber nblocks;		/* taken */
} GsBuildRange;

typedef struct GsBuildRanges
{
	/* set by the leader before the ranges are open */
	BlockNumber first_block;	/* of leaf pages */
	BlockNumber first_chunk;	/* blocks that each range begins with */
	uint64		nrows_expected; /* in all ranges */
	XLogRecPtr	sync_start;

	pg_atomic_uint32 nblocks;	/* given out */
	pg_atomic_uint32 file_blocks;	/* of the file; changed with the extension lock */
	pg_atomic_uint64 nrows;		/* written */
	pg_atomic_uint64 ntuples;	/* of the index: those of the ranges that have been written */
	ConditionVariable changed;

	slock_t		mutex;			/* protects the following fields until all have left */
	int			nranges;		/* 0: not decided */
	int			nleft;			/* participants that have written their pages or given up */
	bool		given_up;		/* one of them has rows in wrong order */
	GsBuildRange ranges[FLEXIBLE_ARRAY_MEMBER];
} GsBuildRanges;

/* The range of an index that a process writes. */
typedef struct GsBuildPart
{
	GsBuildRanges *ranges;
	int			number;			/* of its range */
	SharedFileSet *files;		/* for what the levels above need to know of the leaves */
} GsBuildPart;

extern Size gs_build_ranges_bytes(int nparticipants);

/* Blocks before first_block have a fixed use. */
extern void gs_build_ranges_init(GsBuildRanges *ranges, BlockNumber first_block);

/*
 * The leader has decided how many ranges there are; 1: it writes the index alone.  Otherwise the
 * index will have nrows, and not more than about npages, and each range gets its first blocks.
 */
extern void gs_build_ranges_open(GsBuildRanges *ranges, Relation index, int nranges,
								 BlockNumber npages, uint64 nrows);

/* ------------------------------------------------------------------- blocks */

/* The blocks that a range begins with. */
extern GsBuildChunk gs_build_ranges_first_blocks(const GsBuildRanges *ranges, int range);

/* The next blocks for a range; extends the file to have them. */
extern GsBuildChunk gs_build_ranges_take_blocks(GsBuildRanges *ranges, Relation index, int range);

/* After all have been written: one of the blocks that no range has used, or another one. */
extern BlockNumber gs_build_ranges_take_unused(GsBuildRanges *ranges, Relation index);

/* ------------------------------------------------------------------ progress */

/* Adds to the number of rows that have been written to a range.  Returns that of all ranges. */
extern uint64 gs_build_ranges_add_rows(GsBuildRanges *ranges, int range, uint64 nrows);

/*
 * Reports as progress that a writer has written nrows, *nreported of which were reported before.
 * part: to a range; NULL: to the whole index.  False: a range was given up, so all are worthless.
 */
extern bool gs_build_ranges_report(const GsBuildPart *part, uint64 nrows, uint64 *nreported);

/* The number of rows that have been written to all ranges. */
extern uint64 gs_build_ranges_rows(GsBuildRanges *ranges);

/* Before a writer leaves: adds to the number of index tuples, and returns it. */
extern uint64 gs_build_ranges_add_tuples(GsBuildRanges *ranges, uint64 ntuples);

/* All pages of a range are written but its first, if that is linked; these blocks are left over. */
extern void gs_build_ranges_end_range(GsBuildRanges *ranges, int range, BlockNumber last_block,
									  GsBuildChunk unused);

/* All pages of a range are written. */
extern void gs_build_ranges_leave(GsBuildRanges *ranges);

/*
 * The rows of a range are in wrong order, so that the index has to be built again; this counts as
 * leaving.
 */
extern void gs_build_ranges_give_up(GsBuildRanges *ranges, int range);

/*
 * The first range that does not begin with the row that the previous one ended before, which makes
 * the index wrong; 0: all do.  Known to all after they have waited.
 */
extern int	gs_build_ranges_find_gap(const GsBuildRanges *ranges);

typedef enum GsBuildRangesEvent
{
	GS_RANGES_OPEN,				/* the leader has decided; the number of ranges */
	GS_RANGE_WRITTEN,			/* all pages of this range but its first; its last block */
	GS_RANGES_LEFT				/* all participants have left */
} GsBuildRangesEvent;

/* Waits for an event.  Returns the number that it makes known. */
extern uint32 gs_build_ranges_wait(GsBuildRanges *ranges, GsBuildRangesEvent event, int range);

#endif							/* GPUSORT_BUILD_RANGES_H */
