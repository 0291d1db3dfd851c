/*-------------------------------------------------------------------------
 *
 * index_ranges.h
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
#ifndef GPUSORT_INDEX_RANGES_H
#define GPUSORT_INDEX_RANGES_H

#include "access/xlogdefs.h"
#include "port/atomics.h"
#include "storage/block.h"
#include "storage/condition_variable.h"
#include "storage/itemptr.h"
#include "storage/spin.h"
#include "utils/relcache.h"

/* Successive blocks, from first to before end. */
typedef struct GsIndexChunk
{
	BlockNumber first;
	BlockNumber end;
} GsIndexChunk;

typedef struct GsIndexRange
{
	BlockNumber last;			/* of its leaf pages; InvalidBlockNumber: not known */
	GsIndexChunk unused;

	/* only its own process uses these before it leaves */
	ItemPointerData first_row;	/* heap TID; invalid: none */
	ItemPointerData next_row;	/* that of the row that it ends before; invalid: none */
	uint64		nrows;			/* written */
	BlockNumber nblocks;		/* taken */
} GsIndexRange;

typedef struct GsIndexRanges
{
	/* set by the leader before the ranges are open */
	BlockNumber first_chunk;	/* blocks that each range begins with */
	uint64		nrows_expected; /* in all ranges */
	XLogRecPtr	sync_start;

	pg_atomic_uint32 nblocks;	/* given out */
	pg_atomic_uint32 file_blocks;	/* of the file; changed with the extension lock */
	pg_atomic_uint64 nrows;		/* written */
	ConditionVariable changed;

	slock_t		mutex;			/* protects the following fields until all have left */
	int			nranges;		/* 0: not decided */
	int			nleft;			/* participants that have written their pages or given up */
	bool		given_up;		/* one of them has rows in wrong order */
	GsIndexRange ranges[FLEXIBLE_ARRAY_MEMBER];
} GsIndexRanges;

extern Size gs_index_ranges_bytes(int nparticipants);
extern void gs_index_ranges_init(GsIndexRanges *ranges);

/*
 * The leader has decided how many ranges there are; 1: it writes the index alone.  Otherwise the
 * index will have nrows, and not more than about npages, and each range gets its first blocks.
 */
extern void gs_index_ranges_open(GsIndexRanges *ranges, Relation index, int nranges,
								 BlockNumber npages, uint64 nrows);

/* ------------------------------------------------------------------- blocks */

/* The blocks that a range begins with. */
extern GsIndexChunk gs_index_ranges_first_blocks(const GsIndexRanges *ranges, int range);

/* The next blocks for a range; extends the file to have them. */
extern GsIndexChunk gs_index_ranges_take_blocks(GsIndexRanges *ranges, Relation index, int range);

/* After all have been written: one of the blocks that no range has used, or another one. */
extern BlockNumber gs_index_ranges_take_unused(GsIndexRanges *ranges, Relation index);

/* ------------------------------------------------------------------ progress */

/* Adds to the number of rows that have been written to a range.  Returns that of all ranges. */
extern uint64 gs_index_ranges_add_rows(GsIndexRanges *ranges, int range, uint64 nrows);

/* The number of rows that have been written to all ranges. */
extern uint64 gs_index_ranges_rows(GsIndexRanges *ranges);

/* All pages of a range are written but its first; these blocks are left over. */
extern void gs_index_ranges_end_range(GsIndexRanges *ranges, int range, BlockNumber last_block,
									  GsIndexChunk unused);

/* All pages of a range are written. */
extern void gs_index_ranges_leave(GsIndexRanges *ranges);

/*
 * The rows of a range are in wrong order, so that the index has to be built again; this counts as
 * leaving.
 */
extern void gs_index_ranges_give_up(GsIndexRanges *ranges, int range);

/*
 * The first range that does not begin with the row that the previous one ended before, which makes
 * the index wrong; 0: all do.  Known to all after they have waited.
 */
extern int	gs_index_ranges_find_gap(const GsIndexRanges *ranges);

typedef enum GsIndexRangesEvent
{
	GS_RANGES_OPEN,				/* the leader has decided; the number of ranges */
	GS_RANGE_WRITTEN,			/* all pages of this range but its first; its last block */
	GS_RANGES_LEFT				/* all participants have left */
} GsIndexRangesEvent;

/* Waits for an event.  Returns the number that it makes known. */
extern uint32 gs_index_ranges_wait(GsIndexRanges *ranges, GsIndexRangesEvent event, int range);

#endif							/* GPUSORT_INDEX_RANGES_H */
