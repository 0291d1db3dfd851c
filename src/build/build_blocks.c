/*-------------------------------------------------------------------------
 *
 * build_blocks.c
 *	  Numbers the pages of an index, and writes them to its file.
 *
 * Pages do not go through shared buffers, but are logged as full images, and written some at a
 * time: other writers of the file wait for each call.
 *
 * A single writer numbers pages in turn, and extends the file.  A page above the leaves gets
 * its number before it is full, so its block is a hole of the file until it is written.  Several
 * writers get blocks that exist (build_ranges.c).
 *
 * The first page of a range may have to name the last page of the previous range; then it is kept
 * until that one is known.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "build/build_blocks.h"
#include "pg_compat.h"

#include "storage/bufmgr.h"
#include "utils/rel.h"

struct GsBuildBlocks
{
	Relation	index;

	/* of a single writer */
	BlockNumber nblocks;		/* numbers that were given out */
	BlockNumber file_blocks;	/* of the file; of several writers: InvalidBlockNumber */
	XLogRecPtr	sync_start;

	GsBuildRanges *ranges;		/* of several; NULL: there is one */
	int			range;			/* or GS_ABOVE_LEAVES */
	GsBuildChunk chunk;			/* blocks of the range that have no page yet */
	void		(*link) (Page first, BlockNumber previous); /* or NULL */
	BlockNumber first;
	Page		first_page;		/* until it can be written; NULL: there is none */
	BlockNumber last;			/* the last leaf page so far */
	int			npending;
	BlockNumber pending[GS_MAX_LOGGED_PAGES];	/* ascending */
	Page		pages[GS_MAX_LOGGED_PAGES];
};

GsBuildBlocks *
gs_build_blocks_begin(Relation index, BlockNumber first_block, GsBuildRanges *ranges, int range)
{
	GsBuildBlocks *blocks = palloc0(sizeof(GsBuildBlocks));

	blocks->index = index;
	blocks->ranges = ranges;
	blocks->range = range;
	blocks->file_blocks = InvalidBlockNumber;
	if (ranges == NULL)
	{
		if (RelationGetNumberOfBlocks(index) != 0)
			elog(ERROR, "index \"%s\" already contains data", RelationGetRelationName(index));
		blocks->nblocks = first_block;
		blocks->file_blocks = 0;
		blocks->sync_start = gs_page_sync_begin();
	}
	else if (range != GS_ABOVE_LEAVES)
	{
		blocks->chunk = gs_build_ranges_first_blocks(ranges, range);
		blocks->first = blocks->chunk.first;
	}
	return blocks;
}

void
gs_build_blocks_set_link(GsBuildBlocks *blocks, void (*link) (Page first, BlockNumber previous))
{
	blocks->link = link;
}

/* ------------------------------------------------------------------ numbers */

BlockNumber
gs_build_blocks_next(GsBuildBlocks *blocks)
{
	if (blocks->ranges == NULL)
		return blocks->nblocks++;
	if (blocks->range == GS_ABOVE_LEAVES)
		return gs_build_ranges_take_unused(blocks->ranges, blocks->index);
	if (blocks->chunk.first == blocks->chunk.end)
		blocks->chunk = gs_build_ranges_take_blocks(blocks->ranges, blocks->index, blocks->range);
	return blocks->chunk.first++;
}

BlockNumber
gs_build_blocks_next_range(const GsBuildBlocks *blocks)
{
	return gs_build_ranges_first_blocks(blocks->ranges, blocks->range + 1).first;
}

/* ------------------------------------------------------------------- writing */

static void
write_pending(GsBuildBlocks *blocks)
{
	if (blocks->npending == 0)
		return;
	gs_write_pages(blocks->index, blocks->npending, blocks->pending, blocks->pages,
				   blocks->file_blocks);
	if (blocks->ranges == NULL)
		blocks->file_blocks = Max(blocks->file_blocks, blocks->pending[blocks->npending - 1] + 1);
	for (int i = 0; i < blocks->npending; i++)
		pfree(blocks->pages[i]);
	blocks->npending = 0;
}

static void
add_pending(GsBuildBlocks *blocks, BlockNumber block, Page page)
{
	int			i = blocks->npending++;

	for (; i > 0 && blocks->pending[i - 1] > block; i--)
	{
		blocks->pending[i] = blocks->pending[i - 1];
		blocks->pages[i] = blocks->pages[i - 1];
	}
	blocks->pending[i] = block;
	blocks->pages[i] = page;
	if (blocks->npending == GS_MAX_LOGGED_PAGES)
		write_pending(blocks);
}

void
gs_build_blocks_write(GsBuildBlocks *blocks, BlockNumber block, Page page)
{
	if (blocks->link != NULL && blocks->range > 0 && block == blocks->first)
		blocks->first_page = page;
	else
		add_pending(blocks, block, page);
	blocks->last = block;
}

/* Writes the first page of a range, which follows the last one of the previous range. */
static void
write_first_page(GsBuildBlocks *blocks)
{
	blocks->link(blocks->first_page,
				 gs_build_ranges_wait(blocks->ranges, GS_RANGE_WRITTEN, blocks->range - 1));
	add_pending(blocks, blocks->first, blocks->first_page);
	write_pending(blocks);
}

void
gs_build_blocks_end(GsBuildBlocks *blocks)
{
	write_pending(blocks);
	if (blocks->ranges == NULL)
	{
		gs_page_sync_end(blocks->index, blocks->sync_start);
		return;
	}
	if (blocks->range == GS_ABOVE_LEAVES)
	{
		gs_page_sync_end(blocks->index, blocks->ranges->sync_start);
		return;
	}
	gs_build_ranges_end_range(blocks->ranges, blocks->range, blocks->last, blocks->chunk);
	if (blocks->first_page != NULL)
		write_first_page(blocks);
	gs_build_ranges_leave(blocks->ranges);
}
