/*-------------------------------------------------------------------------
 *
 * index_pages.c
 *	  Builds the pages of a btree from items in order, which index_tuples.c forms.
 *
 * The tree grows from the leaves.  Each level has one page being filled.  A full
 * page gets its high key and is written, and its downlink is added to the level
 * above, where it may fill a page in turn:
 *
 *		root level							 [ page being filled ]
 *											   ^ downlink
 *		level 1			   written, written, [ page being filled ]
 *											   ^ downlink
 *		leaf level		   written, written, [ page being filled ] <- items
 *
 * Pages are numbered when they are started, so those of upper levels lie between
 * the leaves, and are written after leaves of higher numbers.
 *
 * When a page is full, its last item becomes the first of the next page.  A copy of it becomes
 * the high key, truncated to as many columns as distinguish the two pages (_bt_truncate).  While
 * a page is filled, its first line pointer is kept free for that.  The last page of a level has
 * no high key, so its line pointers move down by one.  A high key is also the lower bound of the
 * next page, and as such its downlink.  The first item of a page above the leaves is truncated to
 * its downlink, as there is nothing to its left.
 *
 * When a page is full and how a key is truncated must be as in PostgreSQL: _bt_truncate() is its
 * own, is_full() follows its nbtsort.c.  The reasons are there, and in the README of nbtree.
 *
 * If several processes write the leaves, each ends its range as if the first item of the next
 * range were its own: the item completes the last page, and the page that begins with it is
 * the first one of the next range.  Blocks and high keys of its leaves go to a file, of
 * which the levels above are made:
 *
 *		range 0 | page | page | last page, high key: d |   range 1 | d ... | page | ...
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "build/build_blocks.h"
#include "index/index_row.h"
#include "index/index_write.h"
#include "pg_compat.h"

#include "access/nbtree.h"
#include "miscadmin.h"
#include "storage/buffile.h"
#include "storage/bufpage.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* A level of the tree, and its page being filled. */
typedef struct Level
{
	uint32		height;			/* 0: the leaves */
	Page		page;
	BlockNumber block;			/* of the page */
	OffsetNumber last;			/* the last item, P_HIKEY if there is none */
	Size		last_posting;	/* bytes of its posting list */
	Size		posting_before; /* bytes of the posting list of the item before */
	Size		reserve;		/* a page with less space is full */
	IndexTuple	low_key;		/* lower bound of the page, its future downlink */
	LocationIndex lowest;		/* lowest byte written so far; pd_upper may be above it */
	struct Level *parent;		/* NULL: not started */
} Level;

struct GsIndexPages
{
	Relation	heap;
	Relation	index;
	GsBuildBlocks *blocks;
	BTScanInsert key;			/* for the truncation of keys */
	Level	   *leaves;			/* NULL: no item yet */
	BufFile    *downlinks;		/* of the leaves of a range; NULL: there is a level above */
	IndexTuple	spare_tuple;	/* memory for a tuple that may not fit its page */
	Size		longest;		/* allowed size of an item */
	MemoryContext context;
};

/* ------------------------------------------------------------------- pages */

/* Starts the next page of a level. */
static void
begin_page(GsIndexPages *tree, Level *level, BlockNumber block)
{
	Page		page = gs_page_alloc(tree->context);
	BTPageOpaque opaque;

	_bt_pageinit(page, BLCKSZ);
	opaque = BTPageGetOpaque(page);
	opaque->btpo_prev = P_NONE;
	opaque->btpo_next = P_NONE;
	opaque->btpo_level = level->height;
	opaque->btpo_flags = level->height == 0 ? BTP_LEAF : 0;
	opaque->btpo_cycleid = 0;
	((PageHeader) page)->pd_lower += sizeof(ItemIdData);	/* for the high key */

	level->page = page;
	level->block = block;
	level->last = P_HIKEY;
	level->lowest = ((PageHeader) page)->pd_upper;
}

/* A level without a page. */
static Level *
create_level(GsIndexPages *tree, uint32 height)
{
	Level	   *level = MemoryContextAllocZero(tree->context, sizeof(Level));

	level->height = height;
	level->reserve = height == 0 ? BTGetTargetPageFreeSpace(tree->index) :
		BLCKSZ * (100 - BTREE_NONLEAF_FILLFACTOR) / 100;
	/* minus infinity: a key without columns */
	level->low_key = MemoryContextAllocZero(tree->context, sizeof(IndexTupleData));
	level->low_key->t_info = sizeof(IndexTupleData);
	BTreeTupleSetNAtts(level->low_key, 0, false);
	return level;
}

static Level *
begin_level(GsIndexPages *tree, uint32 height)
{
	Level	   *level = create_level(tree, height);

	begin_page(tree, level, gs_build_blocks_next(tree->blocks));
	tree->longest = gs_longest_btree_item(level->page);
	return level;
}

/* Adds an item to a page that has space for it.  Returns its place. */
static inline IndexTuple
place_item(Level *level, IndexTuple item, Size size)
{
	PageHeader	header = (PageHeader) level->page;
	IndexTupleData downlink;
	ItemIdData	id = {.lp_flags = LP_NORMAL};
	char	   *place;

	level->last = OffsetNumberNext(level->last);
	if (level->height > 0 && level->last == P_FIRSTKEY)
	{
		downlink = *item;
		downlink.t_info = sizeof(IndexTupleData);
		BTreeTupleSetNAtts(&downlink, 0, false);
		item = &downlink;
		size = sizeof(IndexTupleData);
	}
	id.lp_off = header->pd_upper - size;
	id.lp_len = size;
	place = (char *) level->page + id.lp_off;
	header->pd_lower += sizeof(ItemIdData);
	header->pd_upper = id.lp_off;
	Assert(header->pd_lower <= header->pd_upper);
	*PageGetItemId(level->page, level->last) = id;
	if (place != (const char *) item)
		gs_copy_words(place, (const char *) item, size);
	return (IndexTuple) place;
}

/* Reverses place_item(). */
static void
remove_last_item(Level *level)
{
	PageHeader	header = (PageHeader) level->page;
	ItemId		last = PageGetItemId(level->page, level->last);
	const Size	size = ItemIdGetLength(last);

	memset(last, 0, sizeof(ItemIdData));
	level->lowest = Min(level->lowest, header->pd_upper);
	header->pd_upper += size;
	header->pd_lower -= sizeof(ItemIdData);
	level->last = OffsetNumberPrev(level->last);
	level->last_posting = level->posting_before;
}

/* Clears bytes of the free space that were written. */
static void
clear_hole(Level *level)
{
	const Size	upper = ((PageHeader) level->page)->pd_upper;

	if (level->lowest < upper)
		memset((char *) level->page + level->lowest, 0, upper - level->lowest);
}

/* Makes the last item of a page its high key. */
static IndexTuple
make_high_key(GsIndexPages *tree, const Level *level)
{
	Page		page = level->page;
	ItemId		last = PageGetItemId(page, level->last);
	ItemId		before = PageGetItemId(page, OffsetNumberPrev(level->last));
	IndexTuple	high_key = (IndexTuple) PageGetItem(page, last);

	*PageGetItemId(page, P_HIKEY) = *last;
	ItemIdSetUnused(last);
	((PageHeader) page)->pd_lower -= sizeof(ItemIdData);
	if (level->height == 0)
	{
		high_key = _bt_truncate(tree->index, (IndexTuple) PageGetItem(page, before),
								high_key, tree->key);
		if (!PageIndexTupleOverwrite(page, P_HIKEY, (void *) high_key, IndexTupleSize(high_key)))
			elog(ERROR, "no space for the high key of block %u of index \"%s\"",
				 level->block, RelationGetRelationName(tree->index));
	}
	return high_key;
}

static IndexTuple add_item(GsIndexPages *tree, Level *level, IndexTuple item, Size posting);

/* Adds the downlink of a page, whose lower bound is low_key, to the level above. */
static void
add_downlink(GsIndexPages *tree, Level *level, BlockNumber block)
{
	if (level->parent == NULL)
		level->parent = begin_level(tree, level->height + 1);
	BTreeTupleSetDownLink(level->low_key, block);
	(void) add_item(tree, level->parent, level->low_key, 0);
	pfree(level->low_key);
	level->low_key = NULL;
}

/* The lower bound of the next page is the high key of the last one. */
static void
set_low_key(GsIndexPages *tree, Level *level, IndexTuple high_key)
{
	level->low_key = MemoryContextAlloc(tree->context, IndexTupleSize(high_key));
	memcpy(level->low_key, high_key, IndexTupleSize(high_key));
}

/* ------------------------------------------------------- the leaves of a range */

/* A leaf in the file of a range, followed by its high key. */
typedef struct Leaf
{
	BlockNumber block;
	uint32		high_key_bytes; /* 0: it has none, as the last leaf of all */
} Leaf;

static char *
name_downlinks(int range)
{
	return psprintf("leaves.%d", range);
}

static void
put_leaf(GsIndexPages *tree, BlockNumber block, IndexTuple high_key)
{
	Leaf		leaf = {.block = block};

	if (high_key != NULL)
		leaf.high_key_bytes = IndexTupleSize(high_key);
	BufFileWrite(tree->downlinks, &leaf, sizeof(leaf));
	if (high_key != NULL)
		BufFileWrite(tree->downlinks, high_key, leaf.high_key_bytes);
}

/* Reads exactly nbytes.  False: the file has ended before them. */
static bool
get_bytes(BufFile *file, void *to, Size nbytes, bool may_end)
{
	const Size	nread = BufFileRead(file, to, nbytes);

	if (nread != nbytes && !(may_end && nread == 0))
		elog(ERROR, "unexpected end of the file of leaf pages");
	return nread == nbytes;
}

/* Adds the downlinks of the leaves of a range to the level above. */
static void
add_downlinks(GsIndexPages *tree, Level *leaves, BufFile *file)
{
	IndexTuple	high_key = palloc(INDEX_SIZE_MASK + 1);
	Leaf		leaf;

	while (get_bytes(file, &leaf, sizeof(leaf), true))
	{
		CHECK_FOR_INTERRUPTS();
		add_downlink(tree, leaves, leaf.block);
		if (leaf.high_key_bytes == 0)
			break;
		(void) get_bytes(file, high_key, leaf.high_key_bytes, false);
		set_low_key(tree, leaves, high_key);
	}
	pfree(high_key);
}

/* ----------------------------------------------------------------- full pages */

/* Completes and writes the page of a level, and begins the next one, which is in block `next`. */
static void
finish_page(GsIndexPages *tree, Level *level, BlockNumber next)
{
	Level		full = *level;
	ItemId		last = PageGetItemId(full.page, full.last);
	IndexTuple	high_key;

	Assert(full.last > P_FIRSTKEY);
	clear_hole(level);
	begin_page(tree, level, next);
	(void) place_item(level, (IndexTuple) PageGetItem(full.page, last), ItemIdGetLength(last));
	BTPageGetOpaque(full.page)->btpo_next = level->block;
	BTPageGetOpaque(level->page)->btpo_prev = full.block;

	high_key = make_high_key(tree, &full);
	if (tree->downlinks != NULL)
		put_leaf(tree, full.block, high_key);
	else
	{
		add_downlink(tree, level, full.block);
		set_low_key(tree, level, high_key);
	}
	gs_build_blocks_write(tree->blocks, full.block, full.page);
}

/* Is there no space for an item of the size, or is the fill factor reached? */
static inline bool
is_full(const Level *level, Size size)
{
	const PageHeaderData *header = (const PageHeaderData *) level->page;
	Size		space = header->pd_upper - header->pd_lower;

	/* an item needs a line pointer, too */
	if (space < sizeof(ItemIdData))
		return true;
	space -= sizeof(ItemIdData);

	/* the high key of a leaf may need a heap TID */
	if (level->height == 0 && space < size + MAXALIGN(sizeof(ItemPointerData)))
		return true;
	return space < size ||
		(space + level->last_posting < level->reserve && level->last > P_FIRSTKEY);
}

/*
 * Starts a page for an item that does not fit.  Returns the item, which moves if it was formed on
 * the page.
 */
static pg_noinline IndexTuple
begin_page_for(GsIndexPages *tree, Level *level, IndexTuple item, Size size)
{
	if ((char *) item == (char *) level->page + ((PageHeader) level->page)->pd_upper - size)
	{
		memcpy(tree->spare_tuple, item, size);
		item = tree->spare_tuple;
	}
	finish_page(tree, level, gs_build_blocks_next(tree->blocks));
	return item;
}

/* Adds an item, whose last `posting` bytes are a posting list, to a level.  Returns its place. */
static IndexTuple
add_item(GsIndexPages *tree, Level *level, IndexTuple item, Size posting)
{
	Size		size = MAXALIGN(IndexTupleSize(item));

	if (unlikely(size > tree->longest))
		_bt_check_third_page(tree->index, tree->heap, level->height == 0, level->page, item);
	if (unlikely(is_full(level, size)))
		item = begin_page_for(tree, level, item, size);
	level->posting_before = level->last_posting;
	level->last_posting = posting;
	return place_item(level, item, size);
}

/* The last page of a level has no high key: removes its line pointer. */
static void
remove_high_key_pointer(Page page)
{
	OffsetNumber last = PageGetMaxOffsetNumber(page);

	for (OffsetNumber offset = P_FIRSTKEY; offset <= last; offset = OffsetNumberNext(offset))
		*PageGetItemId(page, OffsetNumberPrev(offset)) = *PageGetItemId(page, offset);
	((PageHeader) page)->pd_lower -= sizeof(ItemIdData);
}

/* Completes the last page of a level. */
static void
finish_last_page(GsIndexPages *tree, Level *level)
{
	clear_hole(level);
	remove_high_key_pointer(level->page);
	gs_build_blocks_write(tree->blocks, level->block, level->page);
}

/* Completes the last page of each level from `lowest` on, the last of which is the root. */
static void
finish_levels(GsIndexPages *tree, Level *lowest)
{
	Page		metapage = gs_page_alloc(tree->context);
	BlockNumber root = P_NONE;
	uint32		height = 0;

	for (Level *level = lowest; level != NULL; level = level->parent)
	{
		if (level->parent != NULL)
			add_downlink(tree, level, level->block);
		else
		{
			BTPageGetOpaque(level->page)->btpo_flags |= BTP_ROOT;
			root = level->block;
			height = level->height;
		}
		finish_last_page(tree, level);
	}
	_bt_initmetapage(metapage, root, height, tree->key->allequalimage);
	gs_build_blocks_write(tree->blocks, BTREE_METAPAGE, metapage);
}

/* Ends a range with the first item of the next one, or at the end of all. */
static void
finish_range(GsIndexPages *tree, IndexTuple next)
{
	Level	   *leaves = tree->leaves;

	if (next != NULL)
	{
		(void) add_item(tree, leaves, next, 0);
		finish_page(tree, leaves, gs_build_blocks_next_range(tree->blocks));
		pfree(leaves->page);	/* the process of the next range writes it */
	}
	else
	{
		put_leaf(tree, leaves->block, NULL);
		finish_last_page(tree, leaves);
	}
	BufFileExportFileSet(tree->downlinks);
	BufFileClose(tree->downlinks);
}

/* ------------------------------------------------------------ the interface */

static void
link_to_previous(Page first, BlockNumber previous)
{
	BTPageGetOpaque(first)->btpo_prev = previous;
}

static GsIndexPages *
create_tree(Relation heap, Relation index, bool allequalimage)
{
	GsIndexPages *tree = palloc0(sizeof(GsIndexPages));

	tree->heap = heap;
	tree->index = index;
	tree->key = _bt_mkscankey(index, NULL);
	tree->key->allequalimage = allequalimage;
	tree->spare_tuple = palloc(INDEX_SIZE_MASK + 1);
	tree->context = CurrentMemoryContext;
	return tree;
}

GsIndexPages *
gs_index_pages_begin(Relation heap, Relation index, bool allequalimage, const GsBuildPart *part)
{
	GsIndexPages *tree = create_tree(heap, index, allequalimage);

	if (part == NULL)
	{
		tree->blocks = gs_build_blocks_begin(index, BTREE_METAPAGE + 1, NULL, 0);
		return tree;
	}
	tree->blocks = gs_build_blocks_begin(index, BTREE_METAPAGE + 1, part->ranges, part->number);
	gs_build_blocks_set_link(tree->blocks, link_to_previous);
	tree->downlinks = BufFileCreateFileSet(&part->files->fs, name_downlinks(part->number));
	return tree;
}

IndexTuple
gs_index_pages_reserve(GsIndexPages *tree, Size nbytes, bool last_may_grow)
{
	Level	   *leaves = tree->leaves;
	PageHeader	header;

	if (unlikely(leaves == NULL))
		leaves = tree->leaves = begin_level(tree, 0);
	header = (PageHeader) leaves->page;
	if (unlikely(last_may_grow ||
				 header->pd_upper < header->pd_lower + sizeof(ItemIdData) + nbytes))
		return tree->spare_tuple;
	leaves->lowest = Min(leaves->lowest, header->pd_upper - nbytes);
	return (IndexTuple) ((char *) leaves->page + header->pd_upper - nbytes);
}

IndexTuple
gs_index_pages_add(GsIndexPages *tree, IndexTuple item)
{
	return add_item(tree, tree->leaves, item, 0);
}

IndexTuple
gs_index_pages_replace_last(GsIndexPages *tree, IndexTuple item)
{
	remove_last_item(tree->leaves);
	return add_item(tree, tree->leaves, item,
					IndexTupleSize(item) - BTreeTupleGetPostingOffset(item));
}

void
gs_index_pages_end(GsIndexPages *tree, IndexTuple next)
{
	if (tree->downlinks != NULL)
		finish_range(tree, next);
	else
		finish_levels(tree, tree->leaves);
	gs_build_blocks_end(tree->blocks);
}

void
gs_index_pages_abandon(GsIndexPages *tree)
{
	if (tree->downlinks != NULL)
		BufFileClose(tree->downlinks);
}

void
gs_index_pages_write_upper(Relation heap, Relation index, const GsBuildPart *part)
{
	GsIndexPages *tree = create_tree(heap, index, _bt_allequalimage(index, false));
	Level	   *leaves = create_level(tree, 0);

	tree->blocks = gs_build_blocks_begin(index, BTREE_METAPAGE + 1, part->ranges, GS_ABOVE_LEAVES);
	for (int range = 0; range < part->ranges->nranges; range++)
	{
		BufFile    *file = BufFileOpenFileSet(&part->files->fs, name_downlinks(range), O_RDONLY,
											  false);

		add_downlinks(tree, leaves, file);
		BufFileClose(file);
	}
	finish_levels(tree, leaves->parent);
	gs_build_blocks_end(tree->blocks);
}
