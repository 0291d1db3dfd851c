/*-------------------------------------------------------------------------
 *
 * index_blocks.c
 *	  Numbers the pages of an index, and writes them to its file.
 *
 * Pages do not go through shared buffers, but are logged as full images and written at once.
 * A single writer numbers them from 1 on, and leaves the writing to GsPageWriter
 * (pg_compat.h).  That extends the file, so several processes cannot use it.  They get
 * blocks that exist (index_ranges.c), and write some at a time.
 *
 * The first page of a range has to name the last page of the previous range, so it is kept
 * until that one is known.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "index/index_blocks.h"
#include "pg_compat.h"

#include "access/nbtree.h"
#include "utils/rel.h"

/* Pages that are written, and logged in one record, at a time. */
#define MOST_PENDING	GS_MAX_LOGGED_PAGES

struct GsIndexBlocks
{
	Relation	index;
	MemoryContext context;
	GsPageWriter *writer;		/* of a single writer; NULL: there are several */
	BlockNumber nblocks;		/* then: numbers that were given out */

	GsIndexRanges *ranges;		/* of several */
	int			range;			/* -1: above the leaves */
	GsIndexChunk chunk;			/* blocks of the range that have no page yet */
	BlockNumber first;
	Page		first_page;		/* until it can be written; NULL: there is none */
	BlockNumber last;			/* the last leaf page so far */
	int			npending;
	BlockNumber pending[MOST_PENDING];
	Page		pages[MOST_PENDING];
};

static GsIndexBlocks *
create(Relation index)
{
	GsIndexBlocks *blocks = palloc0(sizeof(GsIndexBlocks));

	blocks->index = index;
	blocks->context = CurrentMemoryContext;
	return blocks;
}

GsIndexBlocks *
gs_index_blocks_begin(Relation index)
{
	GsIndexBlocks *blocks = create(index);

	if (RelationGetNumberOfBlocks(index) != 0)
		elog(ERROR, "index \"%s\" already contains data", RelationGetRelationName(index));
	blocks->writer = gs_page_writer_begin(index);
	blocks->nblocks = BTREE_METAPAGE + 1;
	return blocks;
}

GsIndexBlocks *
gs_index_blocks_begin_range(Relation index, GsIndexRanges *ranges, int range)
{
	GsIndexBlocks *blocks = create(index);

	blocks->ranges = ranges;
	blocks->range = range;
	blocks->chunk = gs_index_ranges_first_blocks(ranges, range);
	blocks->first = blocks->chunk.first;
	return blocks;
}

GsIndexBlocks *
gs_index_blocks_begin_upper(Relation index, GsIndexRanges *ranges)
{
	GsIndexBlocks *blocks = create(index);

	blocks->ranges = ranges;
	blocks->range = -1;
	return blocks;
}

/* ------------------------------------------------------------------ numbers */

BlockNumber
gs_index_blocks_next(GsIndexBlocks *blocks)
{
	if (blocks->writer != NULL)
		return blocks->nblocks++;
	if (blocks->range < 0)
		return gs_index_ranges_take_unused(blocks->ranges, blocks->index);
	if (blocks->chunk.first == blocks->chunk.end)
		blocks->chunk = gs_index_ranges_take_blocks(blocks->ranges, blocks->index, blocks->range);
	return blocks->chunk.first++;
}

BlockNumber
gs_index_blocks_next_range(const GsIndexBlocks *blocks)
{
	return gs_index_ranges_first_blocks(blocks->ranges, blocks->range + 1).first;
}

/* ------------------------------------------------------------------- writing */

Page
gs_index_blocks_allocate(GsIndexBlocks *blocks)
{
	return blocks->writer != NULL ? gs_page_writer_alloc(blocks->writer) :
		gs_page_alloc(blocks->context);
}

static void
write_pending(GsIndexBlocks *blocks)
{
	if (blocks->npending == 0)
		return;
	gs_write_pages(blocks->index, blocks->npending, blocks->pending, blocks->pages);
	for (int i = 0; i < blocks->npending; i++)
		pfree(blocks->pages[i]);
	blocks->npending = 0;
}

static void
add_pending(GsIndexBlocks *blocks, BlockNumber block, Page page)
{
	blocks->pending[blocks->npending] = block;
	blocks->pages[blocks->npending++] = page;
	if (blocks->npending == MOST_PENDING)
		write_pending(blocks);
}

void
gs_index_blocks_write(GsIndexBlocks *blocks, BlockNumber block, Page page)
{
	if (blocks->writer != NULL)
		gs_page_writer_write(blocks->writer, block, page);
	else if (blocks->range > 0 && block == blocks->first)
		blocks->first_page = page;
	else
		add_pending(blocks, block, page);
	blocks->last = block;
}

/* Writes the first page of a range, which follows the last one of the previous range. */
static void
write_first_page(GsIndexBlocks *blocks)
{
	BTPageGetOpaque(blocks->first_page)->btpo_prev =
		gs_index_ranges_wait_for_last(blocks->ranges, blocks->range - 1);
	add_pending(blocks, blocks->first, blocks->first_page);
	write_pending(blocks);
}

void
gs_index_blocks_end(GsIndexBlocks *blocks)
{
	if (blocks->writer != NULL)
	{
		gs_page_writer_end(blocks->writer);
		return;
	}
	write_pending(blocks);
	if (blocks->range < 0)
	{
		gs_index_ranges_sync(blocks->ranges, blocks->index);
		return;
	}
	gs_index_ranges_end_range(blocks->ranges, blocks->range, blocks->last, blocks->chunk);
	if (blocks->first_page != NULL)
		write_first_page(blocks);
	gs_index_ranges_leave(blocks->ranges);
}
