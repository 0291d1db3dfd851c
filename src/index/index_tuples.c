/*-------------------------------------------------------------------------
 *
 * index_tuples.c
 *	  Writes the leaf pages of a btree from rows in order.
 *
 * The index tuple of each row is formed at its place on the page (index_pages.c), and compared with
 * the previous one by the comparators of the index.  That checks the order, and finds duplicates of
 * a unique index.  Then the tuple stays there, unless it is equal and becomes part of a posting
 * list.
 *
 * Equal tuples are collected in one tuple with a posting list of their heap TIDs.  The first of
 * them is on its page already, as if it stayed alone.  It is replaced when the list is complete.
 * If the page before had had no space for it, it would have none for the longer tuple, so the pages
 * are the same as if it had waited:
 *
 *		page	  | a | b |			  b is equal to the next b
 *		list			 TID of b, TID of b, TID of b
 *		page	  | a | b: TIDs | c |	when c comes
 *
 * The first tuple of the next range ends the pages of a range (index_pages.c), and is compared with
 * the last tuple.  The leader checks that the next range begins with it (build_ranges.h).  In a
 * unique index the last tuple is compared with all tuples that are equal to it, as any two of these
 * may be the live ones:
 *
 *		range 0	  | a | b, live |		range 1	  | b, dead | b, live | c |
 *
 * Posting lists must have the same contents as PostgreSQL's: MAX_POSTING_BYTES is a rule of its
 * nbtsort.c, is_added_to_posting() one of its nbtdedup.c, which give the reasons.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "build/build_row.h"
#include "build/build_sort.h"
#include "index/index_row.h"
#include "index/index_write.h"

#include "access/genam.h"
#include "access/nbtree.h"
#include "access/parallel.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* The longest tuple with a posting list, as in PostgreSQL: a tenth of a page. */
#define MAX_POSTING_BYTES	(MAXALIGN_DOWN(BLCKSZ * 10 / 100) - sizeof(ItemIdData))

/* The interval of progress reports and memory resets, in tuples: a power of two. */
#define TUPLES_A_ROUND		256

typedef struct LeafBuilder
{
	Relation	heap;
	Relation	index;
	GsBuildSort *sort;
	bool		unique;
	bool		nulls_not_distinct;
	bool		deduplicate;
	bool		may_be_wrong;	/* the order can be wrong without a bug */
	bool		wrong_order;	/* it is, here or in another range */
	GsIndexCompare *compare;
	GsIndexPages *pages;
	TupleDesc	desc;			/* the index's */

	IndexTuple	last;			/* the previous one, or that of its posting list, on its page */
	ItemPointerData *tids;		/* the posting list */
	int			ntids;			/* 0: there is no posting list yet */
	bool		last_alive;		/* is the previous tuple live? */
	bool		any_alive;		/* is one of those with the same key live? */
	uint64		ntuples;		/* added so far */
	uint64		nreported;		/* of these, as progress */
	const GsBuildPart *part;	/* NULL: the whole index */
	IndexTuple	next;			/* the first tuple of the next range */
	ItemPointerData first;		/* of this one; invalid: it is empty */

	MemoryContext context;
	MemoryContext scratch;		/* reset every TUPLES_A_ROUND tuples */
} LeafBuilder;

/* ------------------------------------------------------------------- order */

/* The tuple does not sort after the previous one. */
static pg_noinline void
note_wrong_order(LeafBuilder *builder)
{
	builder->wrong_order = !gs_build_sort_permits_wrong_order(builder->sort, builder->index,
															  builder->ntuples + 1);
}

/* Reports two live tuples with the same key, as PostgreSQL's sort does. */
static void
report_duplicate(LeafBuilder *builder, IndexTuple tuple)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		nulls[INDEX_MAX_KEYS];
	char	   *key;

	index_deform_tuple(tuple, RelationGetDescr(builder->index), values, nulls);
	key = BuildIndexValueDescription(builder->index, values, nulls);
	ereport(ERROR,
			(errcode(ERRCODE_UNIQUE_VIOLATION),
			 errmsg("could not create unique index \"%s\"",
					RelationGetRelationName(builder->index)),
			 key != NULL ? errdetail("Key %s is duplicated.", key) :
			 errdetail("Duplicate keys exist."),
			 errtableconstraint(builder->heap, RelationGetRelationName(builder->index))));
}

/* The heap TID of the previous tuple. */
static inline ItemPointer
last_tid(LeafBuilder *builder)
{
	return builder->ntids > 0 ? &builder->tids[builder->ntids - 1] : &builder->last->t_tid;
}

/* Is a tuple with an equal key a duplicate, if both are live? */
static inline bool
may_be_duplicate(LeafBuilder *builder, IndexTuple tuple)
{
	return builder->nulls_not_distinct || !gs_index_compare_has_null(builder->compare, tuple);
}

/* Compares a tuple with the previous one.  Returns whether the keys are equal. */
static inline bool
check_tuple(LeafBuilder *builder, IndexTuple tuple, bool alive)
{
	int			order = gs_index_compare_entries(builder->compare, builder->last, tuple);

	if (likely(order < 0))
	{
		builder->any_alive = alive;
		return false;
	}
	if (order > 0 || ItemPointerCompare(last_tid(builder), &tuple->t_tid) >= 0)
	{
		note_wrong_order(builder);
		return false;
	}
	if (builder->unique && builder->any_alive && alive && may_be_duplicate(builder, tuple))
		report_duplicate(builder, builder->last_alive ? builder->last : tuple);
	builder->any_alive |= alive;
	return true;
}

/* ----------------------------------------------------------- equal tuples */

/* Are the columns of the two byte by byte the same? */
static inline bool
are_same(IndexTuple a, IndexTuple b)
{
	return a->t_info == b->t_info &&
		memcmp(a + 1, b + 1, IndexTupleSize(a) - sizeof(IndexTupleData)) == 0;
}

/* Are they the same, except for how a value is stored? */
static inline bool
have_same_image(const LeafBuilder *builder, IndexTuple a, IndexTuple b)
{
	return are_same(a, b) || _bt_keep_natts_fast(builder->index, a, b) >
		IndexRelationGetNumberOfKeyAttributes(builder->index);
}

/* Is an equal tuple added to the posting list of the previous one? */
static inline bool
is_added_to_posting(const LeafBuilder *builder, IndexTuple tuple)
{
	const int	ntids = Max(builder->ntids, 1) + 1;
	const Size	nbytes = IndexTupleSize(builder->last) + ntids * sizeof(ItemPointerData);

	return builder->deduplicate && MAXALIGN(nbytes) <= MAX_POSTING_BYTES &&
		have_same_image(builder, builder->last, tuple);
}

static inline void
add_to_posting(LeafBuilder *builder, IndexTuple tuple)
{
	if (builder->ntids == 0)
		builder->tids[builder->ntids++] = builder->last->t_tid;
	builder->tids[builder->ntids++] = tuple->t_tid;
}

/* Puts the posting list, if there is one, on the page. */
static inline void
finish_posting_list(LeafBuilder *builder)
{
	if (builder->ntids > 0)
		(void) gs_index_pages_replace_last(builder->pages,
										  _bt_form_posting(builder->last, builder->tids,
														   builder->ntids));
	builder->ntids = 0;
}

/* ------------------------------------------------------------ the builder */

static LeafBuilder *
begin(Relation heap, Relation index, const IndexInfo *info, GsBuildSort *sort,
	  const GsBuildPart *part)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpusort index build",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	LeafBuilder *builder = palloc0(sizeof(LeafBuilder));
	const bool	allequalimage = _bt_allequalimage(index, !IsParallelWorker());

	builder->heap = heap;
	builder->index = index;
	builder->unique = info->ii_Unique;
	builder->nulls_not_distinct = info->ii_NullsNotDistinct;
	builder->sort = sort;
	builder->may_be_wrong = gs_build_sort_may_be_wrong(sort);
	builder->deduplicate = allequalimage && !builder->unique && BTGetDeduplicateItems(index);
	builder->compare = gs_index_compare_create(index);
	builder->pages = gs_index_pages_begin(heap, index, allequalimage, part);
	builder->part = part;
	ItemPointerSetInvalid(&builder->first);
	builder->desc = RelationGetDescr(index);
	builder->tids = palloc(MAX_POSTING_BYTES);
	builder->context = context;
	builder->scratch = AllocSetContextCreate(context, "gpusort index page", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(old);
	return builder;
}

static void
finish_round(LeafBuilder *builder)
{
	if (!gs_build_ranges_report(builder->part, builder->ntuples, &builder->nreported))
		builder->wrong_order = true;	/* as far as is known; this range is worthless, too */
	MemoryContextReset(builder->scratch);
}

/* Forms a tuple some of whose values may have to be compressed. */
static IndexTuple
form_long_tuple(LeafBuilder *builder, MinimalTuple row)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		nulls[INDEX_MAX_KEYS];
	HeapTupleData tuple;

	tuple.t_len = row->t_len + MINIMAL_TUPLE_OFFSET;
	tuple.t_data = (HeapTupleHeader) ((char *) row - MINIMAL_TUPLE_OFFSET);
	heap_deform_tuple(&tuple, builder->desc, values, nulls);
	return index_form_tuple(builder->desc, values, nulls);
}

/* Forms the tuple of a row, at its place on the page if possible and not `separate`. */
static inline IndexTuple
form_tuple(LeafBuilder *builder, MinimalTuple row, bool separate)
{
	IndexTuple	tuple;

	if (likely(!gs_index_row_is_long(row)))
	{
		tuple = gs_index_pages_reserve(builder->pages, gs_index_row_tuple_bytes(row), separate);
		gs_index_row_form_tuple(row, builder->desc->natts, tuple);
	}
	else
	{
		IndexTuple	formed = form_long_tuple(builder, row);

		tuple = gs_index_pages_reserve(builder->pages, IndexTupleSize(formed), separate);
		memcpy(tuple, formed, IndexTupleSize(formed));
	}
	return tuple;
}

/*
 * Adds the next row.  False: it, or a row of another range, is in wrong order, and that is no ERROR
 * because it may be (may_be_wrong).
 */
static bool
add_row(LeafBuilder *builder, MinimalTuple row)
{
	MemoryContext old = MemoryContextSwitchTo(builder->scratch);
	IndexTuple	tuple = form_tuple(builder, row, builder->ntids > 0);
	bool		equal;
	bool		alive;

	CHECK_FOR_INTERRUPTS();
	gs_build_row_get_tid(gs_build_row_last(row), &tuple->t_tid, &alive);
	if (unlikely(builder->last == NULL))
	{
		builder->first = tuple->t_tid;
		builder->any_alive = alive;
	}
	equal = builder->last != NULL && check_tuple(builder, tuple, alive);
	if (unlikely(builder->wrong_order))
	{
		MemoryContextSwitchTo(old);
		return false;
	}
	if (equal && is_added_to_posting(builder, tuple))
		add_to_posting(builder, tuple);
	else
	{
		finish_posting_list(builder);
		builder->last = gs_index_pages_add(builder->pages, tuple);
	}
	builder->last_alive = alive;
	if (unlikely(++builder->ntuples % TUPLES_A_ROUND == 0))
		finish_round(builder);
	MemoryContextSwitchTo(old);
	return !builder->wrong_order;
}

/*
 * Compares a row after the range with its last one, which the process of the next range does not
 * have.  Returns whether the next row must be compared, too.
 */
static bool
check_beyond(LeafBuilder *builder, MinimalTuple row)
{
	MemoryContext old;
	IndexTuple	tuple;
	bool		equal;
	bool		alive;

	CHECK_FOR_INTERRUPTS();
	if (builder->last == NULL)
		return false;
	old = MemoryContextSwitchTo(builder->scratch);
	tuple = form_tuple(builder, row, true);
	gs_build_row_get_tid(gs_build_row_last(row), &tuple->t_tid, &alive);
	equal = check_tuple(builder, tuple, alive);
	if (builder->next == NULL && !builder->wrong_order)
		builder->next = memcpy(MemoryContextAlloc(builder->context, IndexTupleSize(tuple)),
							   tuple, IndexTupleSize(tuple));
	MemoryContextReset(builder->scratch);
	MemoryContextSwitchTo(old);
	return builder->unique && equal && may_be_duplicate(builder, tuple);
}

/* Adds all rows, and compares those after the range, until one is in wrong order. */
static void
add_rows(LeafBuilder *builder)
{
	MinimalTuple rows[GS_BUILD_ROWS];
	int			nrows;

	while ((nrows = gs_build_sort_next_rows(builder->sort, GS_BUILD_ROWS, rows)) > 0)
	{
		for (int i = 0; i < nrows; i++)
			if (!add_row(builder, rows[i]))
				return;
	}
	do
		rows[0] = gs_build_sort_next_beyond(builder->sort);
	while (rows[0] != NULL && check_beyond(builder, rows[0]));
}

/* Were the rows in order, also those after the range?  No range is without rows, either. */
static bool
are_right(const LeafBuilder *builder)
{
	const bool	any = builder->last != NULL || builder->part == NULL;

	if (!any && !builder->may_be_wrong)
		elog(ERROR, "a range of index \"%s\" has no rows", RelationGetRelationName(builder->index));
	return any && !builder->wrong_order;
}

/* Tells the leader where the range begins and ends. */
static void
report_ends(const LeafBuilder *builder)
{
	GsBuildRange *range = &builder->part->ranges->ranges[builder->part->number];

	range->first_row = builder->first;
	if (builder->next != NULL)
		range->next_row = builder->next->t_tid;
	else
		ItemPointerSetInvalid(&range->next_row);
}

/* Writes the remaining pages. */
static void
finish(LeafBuilder *builder)
{
	MemoryContext old = MemoryContextSwitchTo(builder->scratch);

	finish_posting_list(builder);
	finish_round(builder);
	if (builder->part != NULL)
	{
		report_ends(builder);
		(void) gs_build_ranges_add_tuples(builder->part->ranges, builder->ntuples);
	}
	gs_index_pages_end(builder->pages, builder->next);
	MemoryContextSwitchTo(old);
}

/* Instead of that: the file is worthless, also the ranges of others. */
static void
abandon(LeafBuilder *builder)
{
	gs_index_pages_abandon(builder->pages);
	if (builder->part != NULL)
		gs_build_ranges_give_up(builder->part->ranges, builder->part->number);
}

bool
gs_index_tuples_write(Relation heap, Relation index, const IndexInfo *info, GsBuildSort *sort,
					  const GsBuildPart *part, uint64 *ntuples)
{
	LeafBuilder *builder = begin(heap, index, info, sort, part);
	bool		right;

	add_rows(builder);
	right = are_right(builder);
	if (right)
		finish(builder);
	else
		abandon(builder);
	*ntuples = builder->ntuples;
	MemoryContextDelete(builder->context);
	return right;
}
