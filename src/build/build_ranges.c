/*-------------------------------------------------------------------------
 *
 * build_ranges.c
 *	  What the writers of an index that several processes write know of each other.
 *
 * Blocks are given out in chunks, so that most leaf pages of a range are adjacent on disk:
 *
 *	  block  0		   1 .. 8	 9 .. 16   17 .. 24	 25 .. 32  33 .. 40
 *			 metapage | range 0 | range 1 | range 2 | range 1 | range 0 | ...
 *
 * README.md says how many blocks a chunk has, and where the file is extended.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "build/build_ranges.h"
#include "pg_compat.h"

#include "commands/progress.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/rel.h"

/*
 * The first chunk of a range, the least of all, is this part of it; the others, of what is left of
 * it.
 */
#define FIRST_CHUNK_PART	512
#define CHUNK_PART			8

/* The most blocks of a chunk; all last chunks together are this part of the file. */
#define MOST_BLOCKS		512
#define UNUSED_PART		200

/*
 * An extension adds at most this part of the file, and at most CHUNK_PART of what is still
 * expected.  It has to wait for the writes of all others, and they for it: 33 processes write
 * 96 M entries in 0.92 s, and in 1.25 s if each chunk extends the file (64 cores of a Xeon, tmpfs,
 * 2026-11-26).
 */
#define EXTENSION_PART	100

/* The interval of progress reports while others write. */
#define PROGRESS_MS		100

Size
gs_build_ranges_bytes(int nparticipants)
{
	return add_size(offsetof(GsBuildRanges, ranges), mul_size(sizeof(GsBuildRange), nparticipants));
}

void
gs_build_ranges_init(GsBuildRanges *ranges, BlockNumber first_block)
{
	ranges->first_block = first_block;
	ranges->nranges = 0;
	ranges->nleft = 0;
	ranges->given_up = false;
	pg_atomic_init_u64(&ranges->nrows, 0);
	pg_atomic_init_u64(&ranges->ntuples, 0);
	ConditionVariableInit(&ranges->changed);
	SpinLockInit(&ranges->mutex);
}

static BlockNumber
chunk_blocks(double npages)
{
	return Min(Max(npages, 1), MOST_BLOCKS);
}

void
gs_build_ranges_open(GsBuildRanges *ranges, Relation index, int nranges, BlockNumber npages,
					 uint64 nrows)
{
	BlockNumber nblocks;

	if (nranges > 1)
	{
		if (RelationGetNumberOfBlocks(index) != 0)
			elog(ERROR, "index \"%s\" already contains data", RelationGetRelationName(index));
		ranges->sync_start = gs_page_sync_begin();
		ranges->nrows_expected = nrows;
		ranges->first_chunk = chunk_blocks((double) npages / nranges / FIRST_CHUNK_PART);
		nblocks = ranges->first_block + nranges * ranges->first_chunk;
		gs_extend_relation(index, nblocks);
		pg_atomic_init_u32(&ranges->nblocks, nblocks);
		pg_atomic_init_u32(&ranges->file_blocks, nblocks);
		for (int i = 0; i < nranges; i++)
			ranges->ranges[i] = (GsBuildRange) {
				.last = InvalidBlockNumber,.nblocks = ranges->first_chunk
			};
	}
	SpinLockAcquire(&ranges->mutex);
	ranges->nranges = nranges;
	SpinLockRelease(&ranges->mutex);
	ConditionVariableBroadcast(&ranges->changed);
}

/* ------------------------------------------------------------------- blocks */

GsBuildChunk
gs_build_ranges_first_blocks(const GsBuildRanges *ranges, int range)
{
	const BlockNumber first = ranges->first_block + range * ranges->first_chunk;

	return (GsBuildChunk) {.first = first,.end = first + ranges->first_chunk};
}

/*
 * A part of the blocks that are expected in addition to nblocks, with which so many of the rows
 * were written.
 */
static double
part_of_rest(double nblocks, uint64 nwritten, uint64 nexpected)
{
	const uint64 left = nexpected - Min(nwritten, nexpected);

	return nwritten == 0 ? 0 : nblocks / nwritten * left / CHUNK_PART;
}

/* Extends the file, if it has less than nblocks. */
static void
extend(GsBuildRanges *ranges, Relation index, BlockNumber nblocks)
{
	const double rest = part_of_rest(nblocks, gs_build_ranges_rows(ranges), ranges->nrows_expected);

	/* two extensions at once could write zeroes to pages of each other, at the end of a segment */
	LockRelationForExtension(index, ExclusiveLock);
	if (nblocks > pg_atomic_read_u32(&ranges->file_blocks))
	{
		nblocks += Min(rest, nblocks / EXTENSION_PART);
		gs_extend_relation(index, nblocks);
		pg_atomic_write_u32(&ranges->file_blocks, nblocks);
	}
	UnlockRelationForExtension(index, ExclusiveLock);
}

/* Takes up to `most` blocks. */
static GsBuildChunk
take_blocks(GsBuildRanges *ranges, Relation index, BlockNumber most)
{
	const BlockNumber nblocks = pg_atomic_read_u32(&ranges->nblocks);
	const BlockNumber bearable =
		Max(nblocks / (ranges->nranges * UNUSED_PART), ranges->first_chunk);
	GsBuildChunk chunk;

	chunk.end = pg_atomic_add_fetch_u32(&ranges->nblocks, Min(most, bearable));
	chunk.first = chunk.end - Min(most, bearable);
	if (chunk.end > pg_atomic_read_u32(&ranges->file_blocks))
		extend(ranges, index, chunk.end);
	return chunk;
}

GsBuildChunk
gs_build_ranges_take_blocks(GsBuildRanges *ranges, Relation index, int range)
{
	GsBuildRange *own = &ranges->ranges[range];
	const uint64 expected = ranges->nrows_expected / ranges->nranges;
	const BlockNumber wanted = chunk_blocks(part_of_rest(own->nblocks, own->nrows, expected));
	const GsBuildChunk chunk = take_blocks(ranges, index, Max(wanted, ranges->first_chunk));

	own->nblocks += chunk.end - chunk.first;
	return chunk;
}

BlockNumber
gs_build_ranges_take_unused(GsBuildRanges *ranges, Relation index)
{
	for (int i = 0; i < ranges->nranges; i++)
	{
		GsBuildChunk *unused = &ranges->ranges[i].unused;

		if (unused->first < unused->end)
			return unused->first++;
	}
	return take_blocks(ranges, index, 1).first;
}

/* ------------------------------------------------------------------ progress */

uint64
gs_build_ranges_add_rows(GsBuildRanges *ranges, int range, uint64 nrows)
{
	ranges->ranges[range].nrows += nrows;
	return pg_atomic_add_fetch_u64(&ranges->nrows, nrows);
}

bool
gs_build_ranges_report(const GsBuildPart *part, uint64 nrows, uint64 *nreported)
{
	const uint64 done = part == NULL ? nrows :
		gs_build_ranges_add_rows(part->ranges, part->number, nrows - *nreported);

	*nreported = nrows;
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, done);
	return part == NULL || !part->ranges->given_up;
}

uint64
gs_build_ranges_rows(GsBuildRanges *ranges)
{
	return pg_atomic_read_u64(&ranges->nrows);
}

uint64
gs_build_ranges_add_tuples(GsBuildRanges *ranges, uint64 ntuples)
{
	return pg_atomic_add_fetch_u64(&ranges->ntuples, ntuples);
}

void
gs_build_ranges_end_range(GsBuildRanges *ranges, int range, BlockNumber last_block,
						  GsBuildChunk unused)
{
	SpinLockAcquire(&ranges->mutex);
	ranges->ranges[range].last = last_block;
	ranges->ranges[range].unused = unused;
	SpinLockRelease(&ranges->mutex);
	ConditionVariableBroadcast(&ranges->changed);
}

int
gs_build_ranges_find_gap(const GsBuildRanges *ranges)
{
	for (int i = 1; i < ranges->nranges; i++)
		if (!ItemPointerEquals(unconstify(ItemPointerData *, &ranges->ranges[i - 1].next_row),
							   unconstify(ItemPointerData *, &ranges->ranges[i].first_row)))
			return i;
	return 0;
}

void
gs_build_ranges_leave(GsBuildRanges *ranges)
{
	SpinLockAcquire(&ranges->mutex);
	ranges->nleft++;
	SpinLockRelease(&ranges->mutex);
	ConditionVariableBroadcast(&ranges->changed);
}

/* -------------------------------------------------------------------- waiting */

/* The number that is waited for; 0: it is not there yet. */
static uint32
find_number(const GsBuildRanges *ranges, GsBuildRangesEvent event, int range)
{
	const BlockNumber last = ranges->ranges[range].last;

	switch (event)
	{
		case GS_RANGES_OPEN:
			return ranges->nranges;
		case GS_RANGE_WRITTEN:
			return last == InvalidBlockNumber ? 0 : last;	/* block 0 is the metapage */
		case GS_RANGES_LEFT:
			return ranges->nleft == ranges->nranges;
	}
	return 0;
}

uint32
gs_build_ranges_wait(GsBuildRanges *ranges, GsBuildRangesEvent event, int range)
{
	uint32		found;

	ConditionVariablePrepareToSleep(&ranges->changed);
	for (;;)
	{
		SpinLockAcquire(&ranges->mutex);
		found = find_number(ranges, event, range);
		SpinLockRelease(&ranges->mutex);
		if (found != 0)
			break;
		pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, gs_build_ranges_rows(ranges));
		ConditionVariableTimedSleep(&ranges->changed, PROGRESS_MS,
									gs_wait_event(GS_WAIT_PARTICIPANTS));
	}
	ConditionVariableCancelSleep();
	return found;
}

void
gs_build_ranges_give_up(GsBuildRanges *ranges, int range)
{
	SpinLockAcquire(&ranges->mutex);
	ranges->given_up = true;
	ranges->nleft++;
	ranges->ranges[range].last = ranges->first_block;	/* any block will do for whoever waits */
	SpinLockRelease(&ranges->mutex);
	ConditionVariableBroadcast(&ranges->changed);
}
