/*-------------------------------------------------------------------------
 *
 * index_load.c
 *	  Builds the pages of a btree from index tuples in order.
 *
 * The tree grows from below.  Each level has one page being filled; a page that
 * is full gets its high key and is written, and its downlink goes to the level
 * above, where it may fill a page in turn:
 *
 *		root level							 [ page being filled ]
 *											   ^ downlink
 *		level 1			   written, written, [ page being filled ]
 *											   ^ downlink
 *		leaf level		   written, written, [ page being filled ] <- tuples
 *
 * Pages are numbered as they are begun, so those of upper levels lie between the
 * leaves, and are written after leaves of higher numbers.
 *
 * When a page is full, its last item moves on: it becomes the first of the next
 * page, and what is left of it on the page is the high key, cut to as many
 * columns as tell the two pages apart (_bt_truncate).  While a page is filled its
 * first line pointer is kept free for that.  The last page of a level has no high
 * key, and its line pointers slide down by one.  A high key is also the lower
 * bound of the next page, and as such its downlink.  The first item of a page
 * above the leaves is cut to its downlink, as it has nothing to its left.
 *
 * One tuple is always pending: the one before.  So that each tuple is compared
 * with it, by the comparators of the index, which proves the order and finds
 * duplicates of a unique index; and so that equal tuples can be gathered in one
 * with a posting list of their heap TIDs.  What is gathered, when a page is full
 * and how a key is cut is as PostgreSQL has it: _bt_dedup_save_htid() and
 * _bt_truncate() are its own, is_full() and MAX_POSTING_SIZE are rules of its
 * nbtsort.c.  The reasons for them are there, and in nbtree's README.
 *
 * Pages do not pass through shared buffers.  They are logged as full images, and
 * the file is synced at the end: a checkpoint that began meanwhile knows nothing
 * of it.  A relation that needs no WAL is left to the end of the transaction.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "index_load.h"
#include "index_order.h"
#include "pgcompat.h"

#include "access/genam.h"
#include "access/nbtree.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "storage/bufpage.h"
#include "storage/smgr.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Longer than any index tuple. */
#define MAX_TUPLE_SIZE	(INDEX_SIZE_MASK + 1)

/* What stock takes for the longest tuple with a posting list: a tenth of a page. */
#define MAX_POSTING_SIZE	(MAXALIGN_DOWN(BLCKSZ * 10 / 100) - sizeof(ItemIdData))

/* A level of the tree, and its page being filled. */
typedef struct Level
{
	uint32		height;			/* 0: the leaves */
	Page		page;
	Page		spare;			/* the memory of the next one */
	BlockNumber block;			/* the page's */
	OffsetNumber last;			/* of the last item, P_HIKEY if there is none */
	Size		last_posting;	/* bytes of its posting list */
	Size		reserve;		/* a page is full with less space than that */
	IndexTuple	low_key;		/* the page's lower bound, its downlink to be */
	struct Level *parent;		/* NULL: not begun */
} Level;

struct GsIndexLoad
{
	Relation	heap;
	Relation	index;
	bool		unique;
	bool		nulls_not_distinct;
	bool		deduplicate;
	GsIndexOrder *order;
	BTScanInsert key;			/* what keys are cut by */

	Level	   *leaves;			/* NULL: no tuple yet */
	BlockNumber nbegun;			/* pages that have a number */
	BlockNumber nwritten;		/* pages of the file */
	char	   *zeroes;			/* a page of them */

	BTDedupState pending;		/* the tuple before, and those equal to it */
	ItemPointerData last_tid;	/* of them */
	bool		last_alive;
	bool		any_alive;		/* one of those of the same key? */
	int64		ntuples;		/* that came, the pending ones too */

	MemoryContext context;
	MemoryContext scratch;		/* until the next page */
};

/* ------------------------------------------------------------------- pages */

/* Writes a page, which is complete. */
static void
write_page(GsIndexLoad *load, Page page, BlockNumber block)
{
	SMgrRelation file;

	if (RelationNeedsWAL(load->index))
		gs_log_index_page(load->index, block, page);
	file = RelationGetSmgr(load->index);
	/* an upper page's place, until it is full: zeroes, which nobody reads */
	while (load->nwritten < block)
		smgrextend(file, MAIN_FORKNUM, load->nwritten++, load->zeroes, true);
	PageSetChecksumInplace(page, block);
	if (block == load->nwritten)
	{
		smgrextend(file, MAIN_FORKNUM, block, page, true);
		load->nwritten++;
	}
	else
		smgrwrite(file, MAIN_FORKNUM, block, page, true);
}

/* Begins a level's next page, in its spare memory. */
static void
begin_page(GsIndexLoad *load, Level *level)
{
	Page		page = level->spare;
	BTPageOpaque opaque;

	_bt_pageinit(page, BLCKSZ);
	opaque = BTPageGetOpaque(page);
	opaque->btpo_prev = P_NONE;
	opaque->btpo_next = P_NONE;
	opaque->btpo_level = level->height;
	opaque->btpo_flags = level->height == 0 ? BTP_LEAF : 0;
	opaque->btpo_cycleid = 0;
	((PageHeader) page)->pd_lower += sizeof(ItemIdData);	/* for the high key */

	level->spare = level->page;
	level->page = page;
	level->block = load->nbegun++;
	level->last = P_HIKEY;
}

static Level *
begin_level(GsIndexLoad *load, uint32 height)
{
	Level	   *level = MemoryContextAllocZero(load->context, sizeof(Level));

	level->height = height;
	level->page = MemoryContextAlloc(load->context, BLCKSZ);
	level->spare = MemoryContextAlloc(load->context, BLCKSZ);
	level->reserve = height == 0 ? BTGetTargetPageFreeSpace(load->index) :
		BLCKSZ * (100 - BTREE_NONLEAF_FILLFACTOR) / 100;
	/* below everything: a key of no columns */
	level->low_key = MemoryContextAllocZero(load->context, sizeof(IndexTupleData));
	level->low_key->t_info = sizeof(IndexTupleData);
	BTreeTupleSetNAtts(level->low_key, 0, false);
	begin_page(load, level);
	return level;
}

/* Puts an item behind the last one of a page that has room for it. */
static inline void
place_item(Level *level, IndexTuple item, Size size)
{
	PageHeader	header = (PageHeader) level->page;
	IndexTupleData downlink;

	level->last = OffsetNumberNext(level->last);
	if (level->height > 0 && level->last == P_FIRSTKEY)
	{
		downlink = *item;
		downlink.t_info = sizeof(IndexTupleData);
		BTreeTupleSetNAtts(&downlink, 0, false);
		item = &downlink;
		size = sizeof(IndexTupleData);
	}
	header->pd_lower += sizeof(ItemIdData);
	header->pd_upper -= size;
	Assert(header->pd_lower <= header->pd_upper);
	ItemIdSetNormal(PageGetItemId(level->page, level->last), header->pd_upper, size);
	memcpy((char *) level->page + header->pd_upper, item, size);
}

/* Makes the last item of a page its high key. */
static IndexTuple
make_high_key(GsIndexLoad *load, const Level *level)
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
		high_key = _bt_truncate(load->index, (IndexTuple) PageGetItem(page, before),
								high_key, load->key);
		if (!PageIndexTupleOverwrite(page, P_HIKEY, (Item) high_key, IndexTupleSize(high_key)))
			elog(ERROR, "no room for the high key of block %u of index \"%s\"",
				 level->block, RelationGetRelationName(load->index));
	}
	return high_key;
}

static void add_item(GsIndexLoad *load, Level *level, IndexTuple item, Size posting);

/* Links a page into the level above. */
static void
add_downlink(GsIndexLoad *load, Level *level, BlockNumber block)
{
	if (level->parent == NULL)
		level->parent = begin_level(load, level->height + 1);
	BTreeTupleSetDownLink(level->low_key, block);
	add_item(load, level->parent, level->low_key, 0);
	pfree(level->low_key);
	level->low_key = NULL;
}

/* Completes and writes the page of a level, and begins the next one. */
static void
finish_page(GsIndexLoad *load, Level *level)
{
	Level		full = *level;
	ItemId		last = PageGetItemId(full.page, full.last);
	IndexTuple	high_key;

	Assert(full.last > P_FIRSTKEY);
	begin_page(load, level);
	place_item(level, (IndexTuple) PageGetItem(full.page, last), ItemIdGetLength(last));
	BTPageGetOpaque(full.page)->btpo_next = level->block;
	BTPageGetOpaque(level->page)->btpo_prev = full.block;

	high_key = make_high_key(load, &full);
	add_downlink(load, level, full.block);
	level->low_key = MemoryContextAlloc(load->context, IndexTupleSize(high_key));
	memcpy(level->low_key, high_key, IndexTupleSize(high_key));
	write_page(load, full.page, full.block);
}

/* Is there no room for an item of the size, or is the page as full as it should be? */
static inline bool
is_full(const Level *level, Size size)
{
	Size		space = PageGetFreeSpace(level->page);

	/* the high key of a leaf may need a heap TID */
	if (level->height == 0 && space < size + MAXALIGN(sizeof(ItemPointerData)))
		return true;
	return space < size ||
		(space + level->last_posting < level->reserve && level->last > P_FIRSTKEY);
}

/* Adds an item, of which the last `posting` bytes are a posting list, to a level. */
static void
add_item(GsIndexLoad *load, Level *level, IndexTuple item, Size posting)
{
	Size		size = MAXALIGN(IndexTupleSize(item));

	if (unlikely(size > BTMaxItemSize(level->page)))
		_bt_check_third_page(load->index, load->heap, level->height == 0, level->page, item);
	if (is_full(level, size))
		finish_page(load, level);
	place_item(level, item, size);
	level->last_posting = posting;
}

/* The last page of a level: no high key, so there is a line pointer too much. */
static void
slide_line_pointers(Page page)
{
	OffsetNumber last = PageGetMaxOffsetNumber(page);

	for (OffsetNumber offset = P_FIRSTKEY; offset <= last; offset = OffsetNumberNext(offset))
		*PageGetItemId(page, OffsetNumberPrev(offset)) = *PageGetItemId(page, offset);
	((PageHeader) page)->pd_lower -= sizeof(ItemIdData);
}

/* Completes the last page of each level; the last of all is the root. */
static void
finish_levels(GsIndexLoad *load)
{
	Page		metapage = MemoryContextAlloc(load->context, BLCKSZ);
	BlockNumber root = P_NONE;
	uint32		height = 0;

	for (Level *level = load->leaves; level != NULL; level = level->parent)
	{
		if (level->parent != NULL)
			add_downlink(load, level, level->block);
		else
		{
			BTPageGetOpaque(level->page)->btpo_flags |= BTP_ROOT;
			root = level->block;
			height = level->height;
		}
		slide_line_pointers(level->page);
		write_page(load, level->page, level->block);
	}
	_bt_initmetapage(metapage, root, height, load->key->allequalimage);
	write_page(load, metapage, BTREE_METAPAGE);
}

/* ------------------------------------------------------------------ tuples */

static void
report_wrong_order(GsIndexLoad *load)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("rows left a sort in the wrong order"),
			 errdetail("Index tuple " INT64_FORMAT " is not above the one before it in index \"%s\".",
					   load->ntuples + 1, RelationGetRelationName(load->index)),
			 errhint("This is a bug in gpusort. Set gpusort.index_loader to native to build the index without it.")));
}

/* Two tuples that are alive have the same key: as PostgreSQL's sort reports it. */
static void
report_duplicate(GsIndexLoad *load, IndexTuple tuple)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		nulls[INDEX_MAX_KEYS];
	char	   *key;

	index_deform_tuple(tuple, RelationGetDescr(load->index), values, nulls);
	key = BuildIndexValueDescription(load->index, values, nulls);
	ereport(ERROR,
			(errcode(ERRCODE_UNIQUE_VIOLATION),
			 errmsg("could not create unique index \"%s\"",
					RelationGetRelationName(load->index)),
			 key != NULL ? errdetail("Key %s is duplicated.", key) :
			 errdetail("Duplicate keys exist."),
			 errtableconstraint(load->heap, RelationGetRelationName(load->index))));
}

/* Compares a tuple with the pending one.  Does it have the same key? */
static inline bool
check_tuple(GsIndexLoad *load, IndexTuple tuple, bool alive)
{
	IndexTuple	before = load->pending->base;
	int			order = gs_index_order_compare(load->order, before, tuple);

	if (order < 0)
	{
		load->any_alive = alive;
		return false;
	}
	if (order > 0 || ItemPointerCompare(&load->last_tid, &tuple->t_tid) >= 0)
		report_wrong_order(load);
	if (load->unique && load->any_alive && alive &&
		(load->nulls_not_distinct || !gs_index_order_has_null(load->order, tuple)))
		report_duplicate(load, load->last_alive ? before : tuple);
	load->any_alive |= alive;
	return true;
}

/* Adds what is pending to the leaves. */
static void
add_pending(GsIndexLoad *load)
{
	BTDedupState pending = load->pending;
	Level	   *leaves = load->leaves;

	if (pending->nitems == 1)
		add_item(load, leaves, pending->base, 0);
	else
	{
		IndexTuple	tuple = _bt_form_posting(pending->base, pending->htids, pending->nhtids);

		add_item(load, leaves, tuple, IndexTupleSize(tuple) - BTreeTupleGetPostingOffset(tuple));
	}
	pending->nitems = 0;
	pending->nhtids = 0;

	/* a page is new: a good time for what need not be done with each tuple */
	if (leaves->last <= OffsetNumberNext(P_FIRSTKEY))
	{
		pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, load->ntuples);
		MemoryContextReset(load->scratch);
	}
}

/* Does the pending tuple take the next one in? */
static inline bool
take_in(GsIndexLoad *load, IndexTuple tuple)
{
	return load->deduplicate &&
		_bt_keep_natts_fast(load->index, load->pending->base, tuple) >
		IndexRelationGetNumberOfKeyAttributes(load->index) &&
		_bt_dedup_save_htid(load->pending, tuple);
}

/* ------------------------------------------------------------ the interface */

/* What _bt_dedup_save_htid() works on; without deduplication, just the tuple. */
static BTDedupState
make_pending(void)
{
	BTDedupState pending = palloc0(sizeof(BTDedupStateData));

	pending->deduplicate = true;
	pending->maxpostingsize = MAX_POSTING_SIZE;
	pending->base = palloc(MAX_TUPLE_SIZE);
	pending->htids = palloc(MAX_POSTING_SIZE);
	return pending;
}

GsIndexLoad *
gs_index_load_begin(Relation heap, Relation index, const IndexInfo *info)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpusort index load",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	GsIndexLoad *load = palloc0(sizeof(GsIndexLoad));

	if (RelationGetNumberOfBlocks(index) != 0)
		elog(ERROR, "index \"%s\" already contains data", RelationGetRelationName(index));
	load->heap = heap;
	load->index = index;
	load->unique = info->ii_Unique;
	load->nulls_not_distinct = info->ii_NullsNotDistinct;
	load->order = gs_index_order_create(index);
	load->key = _bt_mkscankey(index, NULL);
	load->key->allequalimage = _bt_allequalimage(index, true);
	load->deduplicate = load->key->allequalimage && !load->unique &&
		BTGetDeduplicateItems(index);
	load->nbegun = BTREE_METAPAGE + 1;
	load->zeroes = palloc0(BLCKSZ);
	load->pending = make_pending();
	load->context = context;
	load->scratch = AllocSetContextCreate(context, "gpusort index page", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(old);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PROGRESS_BTREE_PHASE_LEAF_LOAD);
	return load;
}

void
gs_index_load_add(GsIndexLoad *load, IndexTuple tuple, bool alive)
{
	MemoryContext old = MemoryContextSwitchTo(load->scratch);
	bool		taken = false;

	CHECK_FOR_INTERRUPTS();
	if (load->leaves == NULL)
	{
		load->leaves = begin_level(load, 0);
		load->any_alive = alive;
	}
	else
	{
		taken = check_tuple(load, tuple, alive) && take_in(load, tuple);
		if (!taken)
			add_pending(load);
	}
	if (!taken)
	{
		memcpy(load->pending->base, tuple, IndexTupleSize(tuple));
		_bt_dedup_start_pending(load->pending, load->pending->base, InvalidOffsetNumber);
	}
	load->last_tid = tuple->t_tid;
	load->last_alive = alive;
	load->ntuples++;
	MemoryContextSwitchTo(old);
}

void
gs_index_load_end(GsIndexLoad *load)
{
	MemoryContext old = MemoryContextSwitchTo(load->scratch);

	if (load->leaves != NULL)
		add_pending(load);
	finish_levels(load);
	if (RelationNeedsWAL(load->index))
		smgrimmedsync(RelationGetSmgr(load->index), MAIN_FORKNUM);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, load->ntuples);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(load->context);
}
