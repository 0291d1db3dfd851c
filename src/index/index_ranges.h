/*-------------------------------------------------------------------------
 *
 * index_ranges.h
 *	  What the writers of an index that several processes write know of each other.
 *
 * In shared memory.  Participant n of a parallel build writes the leaf pages of range n; the
 * leader is participant 0, and writes the levels above in the end.
 *
 *	  leader	init open [ { take_blocks } ( set_rows end_range leave | give_up ) wait_for_all
 *				are_given_up find_gap { take_unused } sync ]
 *	  worker	wait_for_open [ { take_blocks } ( set_rows end_range leave | give_up ) ]
 *
 * The functions that wait can be interrupted.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INDEX_RANGES_H
#define GPUSORT_INDEX_RANGES_H

#include "storage/block.h"
#include "storage/itemptr.h"
#include "utils/relcache.h"

typedef struct GsIndexRanges GsIndexRanges;

extern Size gs_index_ranges_bytes(int nparticipants);
extern void gs_index_ranges_init(GsIndexRanges *ranges);

/*
 * The leader has decided how many ranges there are; 1: it writes the index alone.  Otherwise the
 * index will have nrows, and not more than about npages, and each range gets its first blocks.
 */
extern void gs_index_ranges_open(GsIndexRanges *ranges, Relation index, int nranges,
								 BlockNumber npages, uint64 nrows);

/* Waits for that.  Returns the number of ranges. */
extern int	gs_index_ranges_wait_for_open(GsIndexRanges *ranges);

extern int	gs_index_ranges_count(const GsIndexRanges *ranges);

/* ------------------------------------------------------------------- blocks */

/* Successive blocks, from first to before end. */
typedef struct GsIndexChunk
{
	BlockNumber first;
	BlockNumber end;
} GsIndexChunk;

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

/* Waits until that is so; returns the last block of its leaf pages. */
extern BlockNumber gs_index_ranges_wait_for_last(GsIndexRanges *ranges, int range);

/*
 * Before its process leaves: the heap TIDs of the first row of a range, and of the one that it ends
 * before.  Invalid ones: there is none.
 */
extern void gs_index_ranges_set_rows(GsIndexRanges *ranges, int range, const ItemPointerData *first,
									 const ItemPointerData *next);

/* All pages of a range are written. */
extern void gs_index_ranges_leave(GsIndexRanges *ranges);

/*
 * The rows of a range are in wrong order, so that the index has to be built again; this counts as
 * leaving.
 */
extern void gs_index_ranges_give_up(GsIndexRanges *ranges, int range);

/* Waits until all participants have left. */
extern void gs_index_ranges_wait_for_all(GsIndexRanges *ranges);

/* Has a range been given up?  All know after they have waited. */
extern bool gs_index_ranges_are_given_up(const GsIndexRanges *ranges);

/*
 * The first range that does not begin with the row that the previous one ended before, which makes
 * the index wrong; 0: all do.  Known to all after they have waited.
 */
extern int	gs_index_ranges_find_gap(const GsIndexRanges *ranges);

/* At the end: makes sure that no crash after the end of the transaction loses the pages. */
extern void gs_index_ranges_sync(const GsIndexRanges *ranges, Relation index);

#endif							/* GPUSORT_INDEX_RANGES_H */
