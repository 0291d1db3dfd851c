/*-------------------------------------------------------------------------
 *
 * gin_walk.c
 *	  Reads a GIN index page by page, and checks all that its README says of them.
 *
 * Both trees are walked from the root, depth first and from left to right, so the pages of each
 * level come in the order of their right links, and the keys and TIDs in theirs:
 *
 *	- A page is reached once, by a downlink, and the page before it on its level links to it.
 *	- Keys ascend by the operator class's comparison.  A downlink has the last key of its page, but
 *	  for the last page of a level.
 *	- TIDs of a key ascend.  Those of a page of a posting tree are within its right bound, which is
 *	  also in its item; the last page of a level has none.
 *	- What no tree reaches is the metapage, a page of the pending list, or free.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "gin/gin_walk.h"

#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* More than any tree has. */
#define MAX_HEIGHT		40

typedef struct GinWalk
{
	Relation	index;
	GinState	state;
	GinWalkFunction function;
	void	   *arg;
	GinWalkCounts counts;
	bool	   *reached;		/* of each block */

	/* of the levels of a tree, from the root down */
	BlockNumber entry_links[MAX_HEIGHT];	/* right link of its last page so far */
	BlockNumber data_links[MAX_HEIGHT];

	IndexTuple	tuple;			/* the leaf tuple that was read last; NULL: none */
	bool		first;			/* nothing of its TIDs was given to the function */
	ItemPointerData last;		/* its last TID so far */
} GinWalk;

static void
wrong(const GinWalk *walk, BlockNumber block, const char *what)
{
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("index \"%s\", block %u: %s", RelationGetRelationName(walk->index), block, what)));
}

/* A copy of a page. */
static Page
read_page(const GinWalk *walk, BlockNumber block)
{
	Page		copy = palloc(BLCKSZ);
	Buffer		buffer;

	CHECK_FOR_INTERRUPTS();
	if (block >= walk->counts.nblocks)
		wrong(walk, block, "is not in the file");
	buffer = ReadBuffer(walk->index, block);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	memcpy(copy, BufferGetPage(buffer), BLCKSZ);
	UnlockReleaseBuffer(buffer);
	return copy;
}

/*
 * A page of a level, `depth` below the root.  links: of the levels.  last: the last page of the
 * level.
 */
static Page
reach_page(GinWalk *walk, BlockNumber block, BlockNumber *links, int depth, bool last)
{
	Page		page = read_page(walk, block);

	if (walk->reached[block])
		wrong(walk, block, "is reached twice");
	walk->reached[block] = true;
	if (PageIsNew(page) || PageGetSpecialSize(page) != MAXALIGN(sizeof(GinPageOpaqueData)))
		wrong(walk, block, "is not a page of a GIN index");
	if (depth >= MAX_HEIGHT)
		wrong(walk, block, "is too deep in the tree");
	if (links[depth] != InvalidBlockNumber && links[depth] != block)
		wrong(walk, block, "is not the one that the page before it links to");
	if (last != GinPageRightMost(page))
		wrong(walk, block, last ? "has a right link, as the last of its level" :
			  "has no right link, and is not the last of its level");
	links[depth] = GinPageGetOpaque(page)->rightlink;
	return page;
}

static void
clear_links(BlockNumber *links)
{
	for (int i = 0; i < MAX_HEIGHT; i++)
		links[i] = InvalidBlockNumber;
}

/* -------------------------------------------------------------------- TIDs */

static void
take_tids(GinWalk *walk, BlockNumber block, ItemPointerData *tids, int ntids)
{
	GinNullCategory category;
	const Datum key = gintuple_get_key(&walk->state, walk->tuple, &category);

	for (int i = 0; i < ntids; i++)
	{
		if (!ItemPointerIsValid(&tids[i]))
			wrong(walk, block, "has an invalid TID");
		if (ginCompareItemPointers(&tids[i], &walk->last) <= 0)
			wrong(walk, block, "has TIDs in wrong order");
		walk->last = tids[i];
	}
	walk->counts.ntids += ntids;
	if (walk->function)
		walk->function(walk->arg, walk->first, gintuple_get_attrnum(&walk->state, walk->tuple),
					   key, category, tids, ntids);
	walk->first = false;
}

static void
walk_data_leaf(GinWalk *walk, BlockNumber block, Page page, const ItemPointerData *bound)
{
	GinPostingList *list = GinDataLeafPageGetPostingList(page);
	const char *end = (char *) list + GinDataLeafPageGetPostingListSize(page);
	GinPostingList *next;

	if (GinPageGetOpaque(page)->maxoff != 0)
		wrong(walk, block, "has a number of items, as a leaf");
	for (; (char *) list < end; list = next)
	{
		ItemPointerData *tids;
		int			ntids;

		next = GinNextPostingListSegment(list);
		if ((char *) next > end)
			wrong(walk, block, "has a segment that is not within it");
		tids = ginPostingListDecode(list, &ntids);
		take_tids(walk, block, tids, ntids);
		pfree(tids);
	}
	if (bound && ginCompareItemPointers(&walk->last, unconstify(ItemPointerData *, bound)) > 0)
		wrong(walk, block, "has a TID beyond its right bound");
}

/* bound: of its item; NULL: it is the last page of its level. */
static void
walk_data_page(GinWalk *walk, BlockNumber block, int depth, const ItemPointerData *bound)
{
	Page		page = reach_page(walk, block, walk->data_links, depth, bound == NULL);
	const int	nitems = GinPageGetOpaque(page)->maxoff;
	ItemPointerData previous = {0};

	walk->counts.ndata_pages++;
	walk->counts.tree_height = Max(walk->counts.tree_height, depth + 1);
	if (bound && !ItemPointerEquals(GinDataPageGetRightBound(page),
									unconstify(ItemPointerData *, bound)))
		wrong(walk, block, "has another right bound than its item");
	if (GinPageGetOpaque(page)->flags == (GIN_DATA | GIN_LEAF | GIN_COMPRESSED))
	{
		walk_data_leaf(walk, block, page, bound);
		pfree(page);
		return;
	}
	if (GinPageGetOpaque(page)->flags != GIN_DATA)
		wrong(walk, block, "has wrong flags, as a page of a posting tree");
	if (nitems == 0 || ((PageHeader) page)->pd_lower !=
		GinDataPageGetData(page) + nitems * sizeof(PostingItem) - (char *) page)
		wrong(walk, block, "has a wrong number of items");
	for (int i = 1; i <= nitems; i++)
	{
		PostingItem *item = GinDataPageGetPostingItem(page, i);
		const bool	last = i == nitems && bound == NULL;

		if (last != ItemPointerIsMin(&item->key))
			wrong(walk, block, "has a TID in the last item of a level, or another without");
		if (!last && ginCompareItemPointers(&item->key, &previous) <= 0)
			wrong(walk, block, "has items in wrong order");
		if (bound && ginCompareItemPointers(&item->key, unconstify(ItemPointerData *, bound)) > 0)
			wrong(walk, block, "has an item beyond its right bound");
		previous = item->key;
		walk_data_page(walk, PostingItemGetBlockNumber(item), depth + 1, last ? NULL : &item->key);
	}
	pfree(page);
}

/* ------------------------------------------------------------------- entries */

static int
compare_keys(GinWalk *walk, IndexTuple a, IndexTuple b)
{
	GinNullCategory a_category;
	GinNullCategory b_category;
	const Datum a_key = gintuple_get_key(&walk->state, a, &a_category);
	const Datum b_key = gintuple_get_key(&walk->state, b, &b_category);

	return ginCompareAttEntries(&walk->state, gintuple_get_attrnum(&walk->state, a), a_key,
								a_category, gintuple_get_attrnum(&walk->state, b), b_key,
								b_category);
}

/* The tuple at an offset. */
static IndexTuple
tuple_at(const GinWalk *walk, BlockNumber block, Page page, OffsetNumber offset)
{
	const ItemIdData *id = PageGetItemId(page, offset);
	IndexTuple	tuple = (IndexTuple) PageGetItem(page, PageGetItemId(page, offset));

	if (!ItemIdIsNormal(id) || ItemIdGetOffset(id) < ((PageHeader) page)->pd_upper ||
		ItemIdGetOffset(id) + ItemIdGetLength(id) > ((PageHeader) page)->pd_special)
		wrong(walk, block, "has a wrong line pointer");
	if (ItemIdGetLength(id) != IndexTupleSize(tuple) || IndexTupleSize(tuple) > GinMaxItemSize ||
		IndexTupleSize(tuple) % MAXIMUM_ALIGNOF != 0)
		wrong(walk, block, "has a tuple of wrong size");
	return tuple;
}

static void
walk_list(GinWalk *walk, BlockNumber block, IndexTuple tuple)
{
	GinPostingList *list = (GinPostingList *) GinGetPosting(tuple);
	ItemPointerData *tids;
	int			ntids;

	if ((char *) list + SizeOfGinPostingList(list) > (char *) tuple + IndexTupleSize(tuple))
		wrong(walk, block, "has a list that is not within its tuple");
	tids = ginPostingListDecode(list, &ntids);
	if (ntids != GinGetNPosting(tuple))
		wrong(walk, block, "has a list of another length than its tuple says");
	take_tids(walk, block, tids, ntids);
	pfree(tids);
}

static void
walk_leaf_tuple(GinWalk *walk, BlockNumber block, IndexTuple tuple)
{
	if (walk->tuple && compare_keys(walk, walk->tuple, tuple) >= 0)
		wrong(walk, block, "has keys in wrong order");
	if (walk->tuple)
		pfree(walk->tuple);
	walk->tuple = CopyIndexTuple(tuple);
	walk->first = true;
	ItemPointerSetMin(&walk->last);
	walk->counts.nkeys++;
	if (GinIsPostingTree(tuple))
	{
		clear_links(walk->data_links);
		walk_data_page(walk, GinGetPostingTree(tuple), 0, NULL);
	}
	else if (!GinItupIsCompressed(tuple))
		wrong(walk, block, "has a tuple of an old version");
	else if (GinGetNPosting(tuple) > 0) /* VACUUM leaves keys without TIDs */
		walk_list(walk, block, walk->tuple);
}

/* downlink: NULL: it is the last page of its level. */
static void
walk_entry_page(GinWalk *walk, BlockNumber block, int depth, IndexTuple downlink)
{
	Page		page = reach_page(walk, block, walk->entry_links, depth, downlink == NULL);
	const bool	is_leaf = GinPageIsLeaf(page);
	const OffsetNumber last = PageGetMaxOffsetNumber(page);

	walk->counts.nentry_pages++;
	if (walk->counts.height == 0 && is_leaf)
		walk->counts.height = depth + 1;
	if (GinPageGetOpaque(page)->flags != (is_leaf ? GIN_LEAF : 0))
		wrong(walk, block, "has wrong flags, as a page of the entry tree");
	if (is_leaf && depth + 1 != walk->counts.height)
		wrong(walk, block, "is a leaf of another depth than others");
	if (last == 0 && depth > 0)
		wrong(walk, block, "is empty");
	if (downlink && compare_keys(walk, downlink, tuple_at(walk, block, page, last)) != 0)
		wrong(walk, block, "has another last key than its downlink");
	for (OffsetNumber i = 1; i <= last; i++)
	{
		IndexTuple	tuple = tuple_at(walk, block, page, i);
		const bool	is_last = i == last && downlink == NULL;

		if (is_leaf)
			walk_leaf_tuple(walk, block, tuple);
		else
		{
			/* what it is greater than are the keys of all pages before */
			if (i > 1 && !is_last && compare_keys(walk, walk->tuple, tuple) >= 0)
				wrong(walk, block, "has a downlink that is not greater than the keys before");
			walk_entry_page(walk, GinGetDownlink(tuple), depth + 1, is_last ? NULL : tuple);
		}
	}
	pfree(page);
}

/* ---------------------------------------------------------------- all the rest */

static void
check_metapage(GinWalk *walk)
{
	Page		page = read_page(walk, GIN_METAPAGE_BLKNO);

	walk->counts.meta = *GinPageGetMeta(page);
	if (GinPageGetOpaque(page)->flags != GIN_META || !GinPageRightMost(page))
		wrong(walk, GIN_METAPAGE_BLKNO, "is not a metapage");
	if (walk->counts.meta.ginVersion != GIN_CURRENT_VERSION)
		wrong(walk, GIN_METAPAGE_BLKNO, "has another version");
	if (((PageHeader) page)->pd_lower !=
		(char *) GinPageGetMeta(page) + sizeof(GinMetaPageData) - (char *) page)
		wrong(walk, GIN_METAPAGE_BLKNO, "has data that would be lost when the page is compressed");
	walk->reached[GIN_METAPAGE_BLKNO] = true;
	pfree(page);
}

/* Nothing refers to the block. */
static void
check_unreached(GinWalk *walk, BlockNumber block)
{
	Page		page = read_page(walk, block);

	if (PageIsNew(page) || GinPageIsDeleted(page))
		walk->counts.nfree_pages++;
	else if (GinPageIsList(page))
		walk->counts.nlist_pages++;
	else
		wrong(walk, block, "is not reached");
	pfree(page);
}

GinWalkCounts
gin_walk(Relation index, GinWalkFunction function, void *arg)
{
	GinWalk    *walk = palloc0(sizeof(GinWalk));

	walk->index = index;
	walk->function = function;
	walk->arg = arg;
	walk->counts.nblocks = RelationGetNumberOfBlocks(index);
	walk->reached = palloc0(walk->counts.nblocks * sizeof(bool));
	initGinState(&walk->state, index);
	clear_links(walk->entry_links);
	check_metapage(walk);
	walk_entry_page(walk, GIN_ROOT_BLKNO, 0, NULL);
	for (BlockNumber block = 0; block < walk->counts.nblocks; block++)
		if (!walk->reached[block])
			check_unreached(walk, block);
	return walk->counts;
}
