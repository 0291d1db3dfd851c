/*-------------------------------------------------------------------------
 *
 * gin_pages.c
 *	  Writes the entry tree of a GIN index, and its metapage.
 *
 * A leaf tuple has a key and its TIDs: a compressed list, or the root of a posting tree
 * (gin_posting.c).  The TIDs of a key are collected until they are too many for a list.
 *
 * A tuple above the leaves has the greatest key of a page and its block; a page has no other bound.
 * Keys come in ascending order, so each level has one page, which is filled and written before the
 * next one begins.  A page gets a number when another page has to know it.  The root has a fixed
 * one, so a level becomes the root, or not, when all is written:
 *
 *		metapage		block 0
 *		root			block 1				  | key 2: 4 | key 4: 7 | key 5: 8 |
 *											   /		  |			 \
 *		leaves	  | key 1 | key 2 |	 ->	 | key 3 | key 4 |	->	| key 5 |
 *
 * PostgreSQL's build inserts keys, so it leaves pages half empty where it splits them.
 *
 * Pages have no left links.  In a range, all leaves but the last one are written; that one and the
 * downlinks of the others go to a file.  The process that writes the levels above reads the files
 * of the ranges one after another, and links the last leaf of a range to the first one of the next
 * range that has any:
 *
 *		range 0	  | leaf | -> | leaf | .. -> ..	  range 2  | leaf | -> | leaf |
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "gin/gin_write.h"
#include "pg_compat.h"

#include "access/gin_private.h"
#include "miscadmin.h"
#include "storage/buffile.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

/*
 * What is left free of a page, as in a btree, unless it would be less than 70 % full: as full as
 * PostgreSQL's.  Without this, an index of 100,000 tsvectors, of 200,000 lexemes, has 11 MB instead
 * of 13 MB, but 22 MB instead of 13 MB after 10 % more rows, because nearly all pages have been
 * split; PostgreSQL's has 22 MB before and after (2026-11-28).
 */
#define LEAST_SPACE		(BLCKSZ / 10)
#define MOST_SPACE		(BLCKSZ * 3 / 10)

/* TIDs that are collected: more than fit in any tuple. */
#define MAX_COLLECTED	(INDEX_SIZE_MASK + 1)

/* A difference of two TIDs takes up to 7 bytes in a list. */
#define MAX_LIST_BYTES(ntids)	(offsetof(GinPostingList, bytes) + 7 * (ntids) + 1)

/* A level of the tree, and its page being filled. */
typedef struct Level
{
	Page		page;
	BlockNumber block;			/* of the page; InvalidBlockNumber: it has no number yet */
	struct Level *parent;		/* NULL: not started */
} Level;

struct GsGinPages
{
	Relation	index;
	GsBuildBlocks *blocks;
	GinState	state;
	Level	   *leaves;
	BufFile    *downlinks;		/* of the leaves of a range; NULL: there is a level above */
	GinStatsData stats;			/* but nTotalPages and nDataPages */

	GsGinPosting *posting;
	IndexTuple	key;			/* the tuple of the key without TIDs; NULL: there is none yet */
	bool		has_tree;		/* has the key a posting tree? */
	ItemPointerData last;		/* the last TID of the key */
	int			ntids;			/* collected */
	ItemPointerData tids[MAX_COLLECTED];

	MemoryContext context;
};

/* ------------------------------------------------------------------- pages */

static void
begin_page(GsGinPages *pages, Level *level, BlockNumber block)
{
	level->page = gs_page_alloc(pages->context);
	GinInitPage(level->page, level == pages->leaves ? GIN_LEAF : 0, BLCKSZ);
	level->block = block;
}

static Level *
begin_level(GsGinPages *pages)
{
	Level	   *level = MemoryContextAllocZero(pages->context, sizeof(Level));

	if (pages->leaves == NULL)
		pages->leaves = level;
	begin_page(pages, level, InvalidBlockNumber);
	return level;
}

static bool
is_empty(const Level *level)
{
	return PageGetMaxOffsetNumber(level->page) < FirstOffsetNumber;
}

static BlockNumber
number_page(GsGinPages *pages, Level *level)
{
	if (level->block == InvalidBlockNumber)
		level->block = gs_build_blocks_next(pages->blocks);
	return level->block;
}

static void
write_page(GsGinPages *pages, Level *level)
{
	gs_build_blocks_write(pages->blocks, level->block, level->page);
	level->page = NULL;
	pages->stats.nEntryPages++;
}

/* The tuple with the greatest key of a page. */
static IndexTuple
last_tuple(Page page)
{
	return (IndexTuple) PageGetItem(page, PageGetItemId(page, PageGetMaxOffsetNumber(page)));
}

/* Compares the keys of two tuples as the index does. */
static int
compare_tuples(GsGinPages *pages, IndexTuple a, IndexTuple b)
{
	GinState   *state = &pages->state;
	GinNullCategory category_a;
	GinNullCategory category_b;
	const Datum key_a = gintuple_get_key(state, a, &category_a);
	const Datum key_b = gintuple_get_key(state, b, &category_b);

	return ginCompareAttEntries(state, gintuple_get_attrnum(state, a), key_a, category_a,
								gintuple_get_attrnum(state, b), key_b, category_b);
}

/* The tuple for the level above: the last key of a page, without its TIDs.  palloc'd. */
static IndexTuple
form_downlink(Page page, BlockNumber block)
{
	IndexTuple	last = last_tuple(page);
	const bool	has_list = GinPageIsLeaf(page) && !GinIsPostingTree(last);
	const Size	key_bytes = has_list ? GinGetPostingOffset(last) : IndexTupleSize(last);
	IndexTuple	downlink = palloc0(MAXALIGN(key_bytes));

	memcpy(downlink, last, key_bytes);
	downlink->t_info = (last->t_info & ~INDEX_SIZE_MASK) | MAXALIGN(key_bytes);
	GinSetDownlink(downlink, block);
	return downlink;
}

static void add_downlink(GsGinPages *pages, Level *level, IndexTuple downlink);

/*
 * Completes and writes the page of a level, and begins the next one, whose block is `next`;
 * InvalidBlockNumber: the next free one.
 */
static void
finish_page(GsGinPages *pages, Level *level, BlockNumber next)
{
	IndexTuple	downlink = form_downlink(level->page, number_page(pages, level));

	if (next == InvalidBlockNumber)
		next = gs_build_blocks_next(pages->blocks);
	GinPageGetOpaque(level->page)->rightlink = next;
	write_page(pages, level);
	begin_page(pages, level, next);
	add_downlink(pages, level, downlink);
	pfree(downlink);
}

/* Is the page of a level full, if a tuple comes?  The first one may be the only one, the root. */
static bool
is_full(const Level *level, Size size)
{
	const Size	needed = size + sizeof(ItemIdData);
	const Size	space = PageGetExactFreeSpace(level->page);

	return space < needed ||
		(space < needed + LEAST_SPACE && space < MOST_SPACE && level->block != InvalidBlockNumber);
}

/* A place for a tuple, of a size that is a multiple of 8, on the page of a level. */
static char *
reserve(GsGinPages *pages, Level *level, Size size)
{
	PageHeader	header = (PageHeader) level->page;
	ItemIdData	id = {.lp_len = size,.lp_flags = LP_NORMAL};

	if (is_full(level, size))
	{
		finish_page(pages, level, InvalidBlockNumber);
		header = (PageHeader) level->page;
	}
	header->pd_upper -= size;
	id.lp_off = header->pd_upper;
	memcpy(level->page + header->pd_lower, &id, sizeof(id));
	header->pd_lower += sizeof(ItemIdData);
	return (char *) level->page + id.lp_off;
}

static void
add_downlink(GsGinPages *pages, Level *level, IndexTuple downlink)
{
	const Size	size = IndexTupleSize(downlink);

	if (pages->downlinks != NULL)
	{
		BufFileWrite(pages->downlinks, downlink, size);
		return;
	}
	if (level->parent == NULL)
		level->parent = begin_level(pages);
	memcpy(reserve(pages, level->parent, size), downlink, size);
}

/* ---------------------------------------------------------------- leaf tuples */

/* Adds the key with a list that fits. */
static void
add_list(GsGinPages *pages, const GinPostingList *list)
{
	const Size	key_bytes = GinGetPostingOffset(pages->key);
	const Size	list_bytes = SizeOfGinPostingList(list);
	const Size	size = MAXALIGN(key_bytes + list_bytes);
	char	   *place = reserve(pages, pages->leaves, size);
	IndexTuple	tuple = (IndexTuple) place;

	memcpy(place, pages->key, key_bytes);
	memcpy(place + key_bytes, list, list_bytes);
	memset(place + key_bytes + list_bytes, 0, size - key_bytes - list_bytes);
	tuple->t_info = (tuple->t_info & ~INDEX_SIZE_MASK) | size;
	GinSetNPosting(tuple, pages->ntids);
}

/* Adds the key, if all TIDs fit in its tuple. */
static bool
add_with_list(GsGinPages *pages)
{
	int			npacked;
	GinPostingList *list;
	bool		fits;

	list = ginCompressPostingList(pages->tids, pages->ntids,
								  Min(GinMaxItemSize, MAX_LIST_BYTES(pages->ntids)), &npacked);
	fits = npacked == pages->ntids &&
		GinGetPostingOffset(pages->key) + SizeOfGinPostingList(list) <= GinMaxItemSize;
	if (fits)
		add_list(pages, list);
	pfree(list);
	return fits;
}

/* Moves TIDs to the posting tree; all, if they are the last ones. */
static void
move_to_tree(GsGinPages *pages, bool last)
{
	const int	nmoved = gs_gin_posting_add(pages->posting, pages->tids, pages->ntids, last);

	pages->has_tree = true;
	pages->ntids -= nmoved;
	memmove(pages->tids, pages->tids + nmoved, pages->ntids * sizeof(ItemPointerData));
}

/* Adds the key with its posting tree. */
static void
add_with_tree(GsGinPages *pages)
{
	const Size	size = IndexTupleSize(pages->key);
	BlockNumber root;

	move_to_tree(pages, true);
	root = gs_gin_posting_end(pages->posting);
	GinSetPostingTree(pages->key, root);
	memcpy(reserve(pages, pages->leaves, size), pages->key, size);
}

/* All TIDs of the key have come: adds it to a leaf. */
static void
finish_key(GsGinPages *pages)
{
	if (pages->key == NULL)
		return;
	Assert(pages->has_tree || pages->ntids > 0);
	if (pages->has_tree || !add_with_list(pages))
		add_with_tree(pages);
	pages->stats.nEntries++;
	pfree(pages->key);
	pages->key = NULL;
}

/* ------------------------------------------------------------- the end of a tree */

static void
write_metapage(GsGinPages *pages)
{
	Page		page = gs_page_alloc(pages->context);
	GinMetaPageData *meta = GinPageGetMeta(page);
	const GinStatsData *stats = &pages->stats;
	const BlockNumber nblocks = RelationGetNumberOfBlocks(pages->index);

	GinInitPage(page, GIN_META, BLCKSZ);
	*meta = (GinMetaPageData) {
		.head = InvalidBlockNumber,.tail = InvalidBlockNumber,
		.nTotalPages = Max(nblocks, 1 + stats->nEntryPages + stats->nDataPages),
		.nEntryPages = stats->nEntryPages,.nDataPages = stats->nDataPages,
		.nEntries = stats->nEntries,.ginVersion = GIN_CURRENT_VERSION
	};
	((PageHeader) page)->pd_lower = (char *) (meta + 1) - (char *) page;
	gs_build_blocks_write(pages->blocks, GIN_METAPAGE_BLKNO, page);
}

/* Writes the last page of each level, the last of which is the root. */
static void
finish_levels(GsGinPages *pages)
{
	Level	   *level = pages->leaves;

	for (; level->parent != NULL; level = level->parent)
	{
		IndexTuple	downlink = form_downlink(level->page, number_page(pages, level));

		add_downlink(pages, level, downlink);
		pfree(downlink);
		write_page(pages, level);
	}
	level->block = GIN_ROOT_BLKNO;
	write_page(pages, level);
}

/* ------------------------------------------------------------------ the file of a range */

/*
 * The file has the first key, if there is one, the downlinks, a RangeEnd, and the last leaf.  All
 * but the last two are tuples.
 */
typedef struct RangeEnd
{
	IndexTupleData no_downlink; /* of size 0 */
	BlockNumber last_block;		/* of the last leaf; InvalidBlockNumber: it has no number */
	GinStatsData stats;			/* without the last leaf */
} RangeEnd;

static char *
name_downlinks(int range)
{
	return psprintf("entries.%d", range);
}

/* Leaves the last leaf, and closes the file. */
static void
finish_range(GsGinPages *pages)
{
	RangeEnd	end = {.last_block = pages->leaves->block,.stats = pages->stats};

	BufFileWrite(pages->downlinks, &end, sizeof(end));
	BufFileWrite(pages->downlinks, pages->leaves->page, BLCKSZ);
	BufFileExportFileSet(pages->downlinks);
	BufFileClose(pages->downlinks);
}

static void
get_bytes(BufFile *file, void *to, Size nbytes)
{
	if (BufFileRead(file, to, nbytes) != nbytes)
		elog(ERROR, "unexpected end of the file of leaf pages");
}

/* Reads the next tuple.  False: there is none. */
static bool
get_tuple(BufFile *file, IndexTuple tuple)
{
	CHECK_FOR_INTERRUPTS();
	get_bytes(file, tuple, sizeof(IndexTupleData));
	if (IndexTupleSize(tuple) == 0)
		return false;
	get_bytes(file, tuple + 1, IndexTupleSize(tuple) - sizeof(IndexTupleData));
	return true;
}

/* Is the key of a tuple greater than all that the ranges before have? */
static bool
follows(GsGinPages *pages, IndexTuple tuple)
{
	return is_empty(pages->leaves) ||
		compare_tuples(pages, tuple, last_tuple(pages->leaves->page)) > 0;
}

/* Adds the downlinks of a range to the level above.  False: it does not follow those before. */
static bool
append_downlinks(GsGinPages *pages, BufFile *file)
{
	Level	   *leaves = pages->leaves;
	IndexTuple	tuple = palloc(INDEX_SIZE_MASK + 1);
	bool		right = true;

	if (get_tuple(file, tuple))
	{
		right = follows(pages, tuple);
		while (right && get_tuple(file, tuple))
		{
			if (!is_empty(leaves))
				finish_page(pages, leaves, GinGetDownlink(tuple));
			add_downlink(pages, leaves, tuple);
		}
	}
	pfree(tuple);
	return right;
}

/*
 * Adds a range to the level above; its last leaf, if it has any, becomes the page of the leaves.
 * False: it does not follow those before.
 */
static bool
append_range(GsGinPages *pages, BufFile *file)
{
	Level	   *leaves = pages->leaves;
	Level		last = {.page = gs_page_alloc(CurrentMemoryContext)};
	RangeEnd	end;

	if (!append_downlinks(pages, file))
		return false;
	get_bytes(file, &end.last_block, sizeof(end) - offsetof(RangeEnd, last_block));
	get_bytes(file, last.page, BLCKSZ);
	pages->stats.nEntries += end.stats.nEntries;
	pages->stats.nEntryPages += end.stats.nEntryPages;
	pages->stats.nDataPages += end.stats.nDataPages;
	if (!is_empty(&last))
	{
		if (is_empty(leaves))
			leaves->block = end.last_block;
		else
			finish_page(pages, leaves, end.last_block);
		memcpy(leaves->page, last.page, BLCKSZ);
	}
	pfree(last.page);
	return true;
}

/* ------------------------------------------------------------ the interface */

static GsGinPages *
create_pages(Relation index, GsBuildRanges *ranges, int range)
{
	GsGinPages *pages = palloc0(sizeof(GsGinPages));

	pages->index = index;
	pages->context = CurrentMemoryContext;
	pages->blocks = gs_build_blocks_begin(index, GIN_ROOT_BLKNO + 1, ranges, range);
	pages->posting = gs_gin_posting_create(pages->blocks);
	initGinState(&pages->state, index);
	(void) begin_level(pages);
	return pages;
}

GsGinPages *
gs_gin_pages_begin(Relation index, const GsBuildPart *part)
{
	GsGinPages *pages;

	if (part == NULL)
		pages = create_pages(index, NULL, 0);
	else
	{
		pages = create_pages(index, part->ranges, part->number);
		pages->downlinks = BufFileCreateFileSet(&part->files->fs, name_downlinks(part->number));
	}
	return pages;
}

void
gs_gin_pages_add_key(GsGinPages *pages, OffsetNumber attribute, Datum key,
					 GinNullCategory category)
{
	MemoryContext caller = MemoryContextSwitchTo(pages->context);

	IndexTuple	tuple;

	CHECK_FOR_INTERRUPTS();
	tuple = GinFormTuple(&pages->state, attribute, key, category, NULL, 0, 0, true);
	Assert(pages->key == NULL || compare_tuples(pages, tuple, pages->key) > 0);
	if (pages->key == NULL && pages->downlinks != NULL)
		BufFileWrite(pages->downlinks, tuple, IndexTupleSize(tuple));
	finish_key(pages);
	pages->key = tuple;
	pages->has_tree = false;
	pages->ntids = 0;
	ItemPointerSetMin(&pages->last);
	MemoryContextSwitchTo(caller);
}

void
gs_gin_pages_add_tids(GsGinPages *pages, const ItemPointerData *tids, int ntids)
{
	if (ntids == 0)
		return;
	CHECK_FOR_INTERRUPTS();
	if (ginCompareItemPointers(unconstify(ItemPointerData *, tids), &pages->last) <= 0)
		elog(ERROR, "TIDs of a key of index \"%s\" are not in order",
			 RelationGetRelationName(pages->index));
	pages->last = tids[ntids - 1];
	while (ntids > 0)
	{
		const int	n = Min(ntids, MAX_COLLECTED - pages->ntids);

		memcpy(pages->tids + pages->ntids, tids, n * sizeof(ItemPointerData));
		pages->ntids += n;
		tids += n;
		ntids -= n;
		if (pages->ntids == MAX_COLLECTED)
			move_to_tree(pages, false);
	}
}

void
gs_gin_pages_end(GsGinPages *pages)
{
	finish_key(pages);
	pages->stats.nDataPages = gs_gin_posting_npages(pages->posting);
	if (pages->downlinks != NULL)
		finish_range(pages);
	else
	{
		finish_levels(pages);
		write_metapage(pages);
	}
	gs_build_blocks_end(pages->blocks);
}

void
gs_gin_pages_abandon(GsGinPages *pages)
{
	if (pages->downlinks != NULL)
		BufFileClose(pages->downlinks);
}

int
gs_gin_pages_write_upper(Relation index, const GsBuildPart *part)
{
	GsGinPages *pages = create_pages(index, part->ranges, GS_ABOVE_LEAVES);

	for (int range = 0; range < part->ranges->nranges; range++)
	{
		BufFile    *file = BufFileOpenFileSet(&part->files->fs, name_downlinks(range), O_RDONLY,
											  false);
		const bool	right = append_range(pages, file);

		BufFileClose(file);
		if (!right)
			return range;
	}
	finish_levels(pages);
	write_metapage(pages);
	gs_build_blocks_end(pages->blocks);
	return 0;
}
