/*-------------------------------------------------------------------------
 *
 * gin_posting.c
 *	  Writes the posting trees of a GIN index: the TIDs of a key that has too many for its leaf
 *	  tuple.
 *
 * A leaf page has segments, compressed lists, and a page above items of a block and its greatest
 * TID, its right bound.  TIDs come in ascending order, so each level has one page, which is filled
 * and written before the next begins; the last page of a level has no bound and no right link, and
 * its item no TID.  The root is the page of a level that has no other, so it is written last:
 *
 *		root			  | leaf 1: 30 | leaf 2: 60 | leaf 3: - |
 *						   /			|			  \
 *		leaves	  | 10..30 |	->	| 35..60 |	->	| 61..70 |
 *
 * A page gets a number when another page has to know it: there are no holes for levels that do not
 * come to be.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "gin/gin_write.h"
#include "pg_compat.h"

#include "access/gin_private.h"

/*
 * The size of a segment, the greatest that PostgreSQL makes.  It makes smaller ones where it
 * appends to a page, which takes 1 % more space.
 */
#define SEGMENT_BYTES		384

/* A page with less space is full.  A segment of one TID takes 8 bytes. */
#define LEAST_SEGMENT_BYTES 64

/* Pages of the fewest items, 815 above the leaves, have all 2^32 blocks in fewer levels. */
#define MAX_LEVELS			8

/* A level of a tree, and its page being filled. */
typedef struct Level
{
	Page		page;			/* NULL: the tree does not have the level */
	BlockNumber block;			/* of the page; InvalidBlockNumber: it has no number yet */
	Size		nbytes;			/* of its segments or items */
	ItemPointerData last;		/* its greatest TID */
} Level;

struct GsGinPosting
{
	GsBuildBlocks *blocks;
	BlockNumber npages;
	Level		levels[MAX_LEVELS]; /* from the leaves up */
	MemoryContext context;
};

GsGinPosting *
gs_gin_posting_create(GsBuildBlocks *blocks)
{
	GsGinPosting *posting = palloc0(sizeof(GsGinPosting));

	StaticAssertStmt(GS_GIN_POSTING_REST >= SEGMENT_BYTES, "a segment can have more TIDs");
	posting->blocks = blocks;
	posting->context = CurrentMemoryContext;
	return posting;
}

static void
begin_page(GsGinPosting *posting, Level *level, BlockNumber block)
{
	const bool	is_leaf = level == posting->levels;

	level->page = gs_page_alloc(posting->context);
	GinInitPage(level->page, is_leaf ? GIN_DATA | GIN_LEAF | GIN_COMPRESSED : GIN_DATA, BLCKSZ);
	level->block = block;
	level->nbytes = 0;
}

static void
write_page(GsGinPosting *posting, Level *level)
{
	GinDataPageSetDataSize(level->page, level->nbytes);
	gs_build_blocks_write(posting->blocks, level->block, level->page);
	level->page = NULL;
	posting->npages++;
}

static void finish_page(GsGinPosting *posting, Level *level);

/* Adds the item of the page of a level to the level above. */
static void
add_item(GsGinPosting *posting, Level *level, const ItemPointerData *bound)
{
	Level	   *parent = level + 1;
	PostingItem item = {.key = *bound};

	Assert(parent < posting->levels + MAX_LEVELS);
	if (parent->page == NULL)
		begin_page(posting, parent, InvalidBlockNumber);
	else if (parent->nbytes + sizeof(PostingItem) > GinDataPageMaxDataSize)
		finish_page(posting, parent);
	if (level->block == InvalidBlockNumber)
		level->block = gs_build_blocks_next(posting->blocks);
	PostingItemSetBlockNumber(&item, level->block);
	memcpy(GinDataPageGetData(parent->page) + parent->nbytes, &item, sizeof(PostingItem));
	parent->nbytes += sizeof(PostingItem);
	parent->last = *bound;
	GinPageGetOpaque(parent->page)->maxoff++;
}

/* Completes and writes the page of a level, and begins the next one. */
static void
finish_page(GsGinPosting *posting, Level *level)
{
	BlockNumber next;

	add_item(posting, level, &level->last);
	next = gs_build_blocks_next(posting->blocks);
	*GinDataPageGetRightBound(level->page) = level->last;
	GinPageGetOpaque(level->page)->rightlink = next;
	write_page(posting, level);
	begin_page(posting, level, next);
}

/* Adds the next segment.  Returns the number of its TIDs. */
static int
add_segment(GsGinPosting *posting, ItemPointerData *tids, int ntids)
{
	Level	   *leaves = posting->levels;
	GinPostingList *segment;
	int			npacked;

	if (leaves->page == NULL)
		begin_page(posting, leaves, InvalidBlockNumber);
	else if (GinDataPageMaxDataSize - leaves->nbytes < LEAST_SEGMENT_BYTES)
		finish_page(posting, leaves);
	segment = ginCompressPostingList(tids, ntids,
									 Min(SEGMENT_BYTES, GinDataPageMaxDataSize - leaves->nbytes),
									 &npacked);
	memcpy(GinDataPageGetData(leaves->page) + leaves->nbytes, segment,
		   SizeOfGinPostingList(segment));
	leaves->nbytes += SizeOfGinPostingList(segment);
	leaves->last = tids[npacked - 1];
	pfree(segment);
	return npacked;
}

int
gs_gin_posting_add(GsGinPosting *posting, ItemPointerData *tids, int ntids, bool last)
{
	int			nadded = 0;

	while (ntids - nadded >= (last ? 1 : GS_GIN_POSTING_REST))
		nadded += add_segment(posting, tids + nadded, ntids - nadded);
	return nadded;
}

BlockNumber
gs_gin_posting_end(GsGinPosting *posting)
{
	const ItemPointerData no_bound = {0};
	Level	   *level = posting->levels;

	for (; (level + 1)->page != NULL; level++)
	{
		add_item(posting, level, &no_bound);
		write_page(posting, level);
	}
	if (level->block == InvalidBlockNumber)
		level->block = gs_build_blocks_next(posting->blocks);
	write_page(posting, level);
	return level->block;
}

BlockNumber
gs_gin_posting_npages(const GsGinPosting *posting)
{
	return posting->npages;
}
