/*-------------------------------------------------------------------------
 *
 * build_blocks.h
 *	  Numbers the pages of an index that is built, and writes them to its file.
 *
 * All functions may ereport; then memory belongs to the context that was current at the beginning,
 * and the file to the transaction.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BUILD_BLOCKS_H
#define GPUSORT_BUILD_BLOCKS_H

#include "build/build_ranges.h"

#include "storage/bufpage.h"

typedef struct GsBuildBlocks GsBuildBlocks;

/*
 * ranges NULL: for all pages of an index, whose file is empty; those before first_block have a
 * fixed use.  Otherwise for the leaf pages of a range; or, if `range` is GS_ABOVE_LEAVES, for the
 * fixed pages and those above the leaves, when all ranges have been written.  Allocates in the
 * current memory context.
 */
#define GS_ABOVE_LEAVES (-1)

extern GsBuildBlocks *gs_build_blocks_begin(Relation index, BlockNumber first_block,
											GsBuildRanges *ranges, int range);

/*
 * The first page of a range names the last one of the previous range: it is written when link has
 * been told that one.
 */
extern void gs_build_blocks_set_link(GsBuildBlocks *blocks,
									 void (*link) (Page first, BlockNumber previous));

/*
 * The number of the next page.  In a range, pages have to be written in the order of their numbers.
 */
extern BlockNumber gs_build_blocks_next(GsBuildBlocks *blocks);

/* The number of the first page of the next range. */
extern BlockNumber gs_build_blocks_next_range(const GsBuildBlocks *blocks);

/* Logs, writes and frees a page, which gs_page_alloc() has allocated, maybe later. */
extern void gs_build_blocks_write(GsBuildBlocks *blocks, BlockNumber block, Page page);

/*
 * Writes what has not been written yet.  In a range, waits for the previous range if the first page
 * is linked to its last one; otherwise makes sure that no crash after the end of the transaction
 * loses the pages.
 */
extern void gs_build_blocks_end(GsBuildBlocks *blocks);

#endif							/* GPUSORT_BUILD_BLOCKS_H */
