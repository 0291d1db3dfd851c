/*-------------------------------------------------------------------------
 *
 * index_blocks.h
 *	  Numbers the pages of an index, and writes them to its file.
 *
 * One process writes all pages; or several write the leaf pages of a range each, and one of
 * them those above the leaves.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INDEX_BLOCKS_H
#define GPUSORT_INDEX_BLOCKS_H

#include "storage/bufpage.h"

#include "index/index_ranges.h"

typedef struct GsIndexBlocks GsIndexBlocks;

/*
 * For all pages of an index, whose file is empty.  Allocates in the current memory context, like
 * the others.
 */
extern GsIndexBlocks *gs_index_blocks_begin(Relation index);

/* For the leaf pages of a range. */
extern GsIndexBlocks *gs_index_blocks_begin_range(Relation index, GsIndexRanges *ranges, int range);

/* For the metapage and the pages above the leaves, when all ranges have been written. */
extern GsIndexBlocks *gs_index_blocks_begin_upper(Relation index, GsIndexRanges *ranges);

/*
 * The number of the next page.  In a range, pages have to be written in the order of their numbers.
 */
extern BlockNumber gs_index_blocks_next(GsIndexBlocks *blocks);

/* The number of the first page of the next range. */
extern BlockNumber gs_index_blocks_next_range(const GsIndexBlocks *blocks);

/* Logs, writes and frees a page, which gs_page_alloc() has allocated, maybe later. */
extern void gs_index_blocks_write(GsIndexBlocks *blocks, BlockNumber block, Page page);

/*
 * Writes what has not been written yet.  In a range, waits for the previous range to link the first
 * page to its last one; otherwise makes sure that no crash after the end of the transaction loses
 * the pages.
 */
extern void gs_index_blocks_end(GsIndexBlocks *blocks);

#endif							/* GPUSORT_INDEX_BLOCKS_H */
