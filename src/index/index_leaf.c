/*-------------------------------------------------------------------------
 *
 * index_leaf.c
 *	  Builds a btree from rows in order.
 *
 * Each row's index tuple is formed where it is to stand (index_pages.c), and compared with the one
 * before, by the comparators of the index: that proves the order, unless it has been
 * proven, and finds duplicates of a unique index.  Then it stays there, unless it is equal and is
 * taken in.
 *
 * Equal tuples are gathered in one with a posting list of their heap TIDs.  The first of
 * them is on its page already, as it would be if it stayed alone.  It makes way when the
 * list is complete.  Had there been no room for it on the page before, there would be none
 * for the longer one, so the pages are the same as if it had waited:
 *
 *		page	  | a | b |			  b is equal, and so is another b
 *		list			 TID of b, TID of b, TID of b
 *		page	  | a | b: TIDs | c |	when c comes
 *
 * PostgreSQL finds duplicates while it sorts, so before any tuple is too long for a page.  One that is
 * too long for a page of a unique index is an ERROR, but one that waits until all tuples behind it are
 * known to be no duplicates.
 *
 * What is gathered is as PostgreSQL has it: MOST_POSTING_BYTES is a rule of its nbtsort.c, as
 * is_added_to_posting() is of its nbtdedup.c, which has the reasons.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "index/index_leaf.h"
#include "index/index_compare.h"
#include "index/index_row.h"
#include "index/index_pages.h"

#include "access/genam.h"
#include "access/nbtree.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* What stock takes for the longest tuple with a posting list: a tenth of a page. */
#define MOST_POSTING_BYTES	(MAXALIGN_DOWN(BLCKSZ * 10 / 100) - sizeof(ItemIdData))

/* How often to do what need not be done with each tuple: a power of two. */
#define TUPLES_A_ROUND		256

struct GsIndexLeafBuilder
{
	Relation	heap;
	Relation	index;
	bool		unique;
	bool		nulls_not_distinct;
	bool		deduplicate;
	GsIndexCompare *order;
	GsIndexPages *tree;
	TupleDesc	desc;			/* the index's */

	IndexTuple	last;			/* the tuple before, or the one that took it in, on its page */
	ItemPointerData *tids;		/* of both and of those between them */
	int			ntids;			/* 0: it was not taken in */
	bool		last_alive;		/* the tuple before */
	bool		any_alive;		/* one of those of the same key? */
	int64		ntuples;		/* that came */
	IndexTuple	too_long;		/* the first that no page takes, once there is one; then no page is filled */

	MemoryContext context;
	MemoryContext scratch;		/* for a round */
};

/* ------------------------------------------------------------------- order */

static void
report_wrong_order(GsIndexLeafBuilder *load)
{
	ereport(ERROR,
			(errcode(ERRCODE_INTERNAL_ERROR),
			 errmsg("sort returned rows in wrong order"),
			 errdetail("Index tuple " INT64_FORMAT " does not sort after the previous one in index \"%s\".",
					   load->ntuples + 1, RelationGetRelationName(load->index)),
			 errhint("This is a bug in gpusort. Set gpusort.enable_create_index to off to build the index without it.")));
}

/* Two tuples that are alive have the same key: as PostgreSQL's sort reports it. */
static void
report_duplicate(GsIndexLeafBuilder *load, IndexTuple tuple)
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

/* The heap TID of the tuple before. */
static inline ItemPointer
last_tid(GsIndexLeafBuilder *load)
{
	return load->ntids > 0 ? &load->tids[load->ntids - 1] : &load->last->t_tid;
}

/* Compares a tuple with the one before.  Does it have the same key? */
static inline bool
check_tuple(GsIndexLeafBuilder *load, IndexTuple tuple, bool alive)
{
	int			order = gs_index_compare_entries(load->order, load->last, tuple);

	if (likely(order < 0))
	{
		load->any_alive = alive;
		return false;
	}
	if (order > 0 || ItemPointerCompare(last_tid(load), &tuple->t_tid) >= 0)
		report_wrong_order(load);
	if (load->unique && load->any_alive && alive &&
		(load->nulls_not_distinct || !gs_index_compare_has_null(load->order, tuple)))
		report_duplicate(load, load->last_alive ? load->last : tuple);
	load->any_alive |= alive;
	return true;
}

/* ----------------------------------------------------------- equal tuples */

/* Have the two the same columns, byte by byte? */
static inline bool
are_same(IndexTuple a, IndexTuple b)
{
	return a->t_info == b->t_info &&
		memcmp(a + 1, b + 1, IndexTupleSize(a) - sizeof(IndexTupleData)) == 0;
}

/* The same but for how a value is stored? */
static inline bool
have_same_image(const GsIndexLeafBuilder *load, IndexTuple a, IndexTuple b)
{
	return are_same(a, b) || _bt_keep_natts_fast(load->index, a, b) >
		IndexRelationGetNumberOfKeyAttributes(load->index);
}

/* Does the one before, or who took it in, take an equal tuple in? */
static inline bool
is_added_to_posting(const GsIndexLeafBuilder *load, IndexTuple tuple)
{
	const int	ntids = Max(load->ntids, 1) + 1;

	return load->deduplicate &&
		MAXALIGN(IndexTupleSize(load->last) + ntids * sizeof(ItemPointerData)) <= MOST_POSTING_BYTES &&
		have_same_image(load, load->last, tuple);
}

static inline void
add_to_posting(GsIndexLeafBuilder *load, IndexTuple tuple)
{
	if (load->ntids == 0)
		load->tids[load->ntids++] = load->last->t_tid;
	load->tids[load->ntids++] = tuple->t_tid;
}

/* The posting list is complete, if there is one. */
static inline void
end_posting_list(GsIndexLeafBuilder *load)
{
	if (load->ntids > 0)
		(void) gs_index_pages_replace_last(load->tree,
										  _bt_form_posting(load->last, load->tids, load->ntids));
	load->ntids = 0;
}

/* ------------------------------------------------------------ the interface */

GsIndexLeafBuilder *
gs_index_leaf_begin(Relation heap, Relation index, const IndexInfo *info, bool verified)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpusort index build",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	GsIndexLeafBuilder *load = palloc0(sizeof(GsIndexLeafBuilder));
	const bool	allequalimage = _bt_allequalimage(index, true);

	load->heap = heap;
	load->index = index;
	load->unique = info->ii_Unique;
	load->nulls_not_distinct = info->ii_NullsNotDistinct;
	load->deduplicate = allequalimage && !load->unique && BTGetDeduplicateItems(index);
	load->order = gs_index_compare_create(index, verified);
	load->tree = gs_index_pages_begin(heap, index, allequalimage);
	load->desc = RelationGetDescr(index);
	load->tids = palloc(MOST_POSTING_BYTES);
	load->context = context;
	load->scratch = AllocSetContextCreate(context, "gpusort index page", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(old);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PROGRESS_BTREE_PHASE_LEAF_LOAD);
	return load;
}

static void
end_round(GsIndexLeafBuilder *load)
{
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, load->ntuples);
	MemoryContextReset(load->scratch);
}

/* A tuple some of whose values may be compressed. */
static IndexTuple
form_long_tuple(GsIndexLeafBuilder *load, MinimalTuple row)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		nulls[INDEX_MAX_KEYS];
	HeapTupleData tuple;

	tuple.t_len = row->t_len + MINIMAL_TUPLE_OFFSET;
	tuple.t_data = (HeapTupleHeader) ((char *) row - MINIMAL_TUPLE_OFFSET);
	heap_deform_tuple(&tuple, load->desc, values, nulls);
	return index_form_tuple(load->desc, values, nulls);
}

/* The row's tuple, where there is room for it. */
static inline IndexTuple
form_tuple(GsIndexLeafBuilder *load, MinimalTuple row)
{
	const bool	separate = load->ntids > 0 || load->too_long != NULL;
	IndexTuple	tuple;

	if (likely(!gs_index_row_is_long(row)))
	{
		tuple = gs_index_pages_reserve(load->tree, gs_index_row_tuple_bytes(row), separate);
		gs_index_row_form_tuple(row, load->desc->natts, tuple);
	}
	else
	{
		IndexTuple	formed = form_long_tuple(load, row);

		tuple = gs_index_pages_reserve(load->tree, IndexTupleSize(formed), separate);
		memcpy(tuple, formed, IndexTupleSize(formed));
	}
	return tuple;
}

/* Keeps a tuple that no page takes to compare the next one with it. */
static pg_noinline void
hold_back(GsIndexLeafBuilder *load, IndexTuple tuple)
{
	if (load->too_long == NULL)
	{
		load->too_long = MemoryContextAlloc(load->context, IndexTupleSize(tuple));
		memcpy(load->too_long, tuple, IndexTupleSize(tuple));
		load->last = MemoryContextAlloc(load->context, INDEX_SIZE_MASK + 1);
	}
	memcpy(load->last, tuple, IndexTupleSize(tuple));
}

void
gs_index_leaf_add(GsIndexLeafBuilder *load, MinimalTuple row)
{
	MemoryContext old = MemoryContextSwitchTo(load->scratch);
	IndexTuple	tuple = form_tuple(load, row);
	bool		alive;

	CHECK_FOR_INTERRUPTS();
	gs_index_row_get_tid(gs_index_row_last(row), &tuple->t_tid, &alive);
	if (unlikely(load->last == NULL))
		load->any_alive = alive;
	if (load->last != NULL && check_tuple(load, tuple, alive) && is_added_to_posting(load, tuple))
		add_to_posting(load, tuple);
	else
	{
		end_posting_list(load);
		if (unlikely(load->too_long != NULL ||
					 (load->unique && gs_index_tree_is_too_long(load->tree, tuple))))
			hold_back(load, tuple);
		else
			load->last = gs_index_pages_add(load->tree, tuple);
	}
	load->last_alive = alive;
	if (unlikely(++load->ntuples % TUPLES_A_ROUND == 0))
		end_round(load);
	MemoryContextSwitchTo(old);
}

void
gs_index_leaf_end(GsIndexLeafBuilder *load)
{
	MemoryContext old = MemoryContextSwitchTo(load->scratch);

	end_posting_list(load);
	if (load->too_long != NULL)
		(void) gs_index_pages_add(load->tree, load->too_long);	/* an ERROR */
	gs_index_pages_end(load->tree);
	end_round(load);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(load->context);
}
