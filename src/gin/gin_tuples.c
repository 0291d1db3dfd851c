/*-------------------------------------------------------------------------
 *
 * gin_tuples.c
 *	  Writes a GIN index from rows in order.
 *
 * The rows of a key come in the order of their first TIDs.  Those of one process follow each other,
 * those of several overlap, because each process has read other blocks of the table:
 *
 *	  row of process 0		1 2 3			7 8		  12
 *	  row of process 1			  4 5 6			9 10	 13 ...
 *
 * So rows are merged: a row is open until its last TID has been written, and when a row comes, the
 * TIDs below its first one are written.  Equal TIDs, of keys that are equal but have other bytes,
 * are written once.
 *
 * Each key is compared with the previous one by the comparison function of the index, which checks
 * the order, as in a btree (index/index_tuples.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "gin/gin_columns.h"
#include "gin/gin_row.h"
#include "gin/gin_tuples.h"
#include "gin/gin_write.h"

#include "access/gin_private.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* The interval of progress reports and memory resets, in rows: a power of two. */
#define ROWS_A_ROUND	256

/* TIDs that are written at a time. */
#define MOST_TIDS		1024

/* A row whose TIDs have not all been written. */
typedef struct OpenRow
{
	uint64		next;			/* the number of the next TID */
	const uint8 *at;			/* differences after it */
	const uint8 *end;
	uint8	   *rest;			/* GS_GIN_REST_BYTES */
} OpenRow;

typedef struct KeyWriter
{
	Relation	index;
	GsBuildSort *sort;
	const GsBuildPart *part;	/* NULL: the whole index */
	GinState	state;
	GsGinLayout layout;
	GsGinPages *pages;
	TupleTableSlot *row;

	/* the key that is written */
	bool		any;			/* there is one */
	OffsetNumber attribute;
	GinNullCategory category;
	Datum		key;			/* a copy */
	char	   *key_copy;
	Size		key_allocated;
	uint64		last_first;		/* the first TID of its last row */

	OpenRow    *open;			/* rows of the key; those that are closed keep memory */
	int			nopen;
	int			nallocated;
	uint64		written;		/* the last TID; 0: none of this key */
	ItemPointerData tids[MOST_TIDS];	/* before they are written */
	int			ntids;

	bool		wrong_order;	/* here or in another range */
	uint64		nrows;			/* added so far */
	uint64		nreported;		/* of these, as progress */
	uint64		ntuples;		/* TIDs of all keys */
	MemoryContext context;
	MemoryContext scratch;		/* reset every ROWS_A_ROUND rows */
} KeyWriter;

/* ---------------------------------------------------------------------- TIDs */

static void
write_tids(KeyWriter *writer)
{
	if (writer->ntids > 0)
		gs_gin_pages_add_tids(writer->pages, writer->tids, writer->ntids);
	writer->ntuples += writer->ntids;
	writer->ntids = 0;
}

static inline void
add_tid(KeyWriter *writer, uint64 number)
{
	if (number == writer->written)
		return;
	if (writer->ntids == MOST_TIDS)
		write_tids(writer);
	ItemPointerSet(&writer->tids[writer->ntids], gs_gin_block_of(number), gs_gin_offset_of(number));
	writer->ntids++;			/* PostgreSQL 15 has a macro that evaluates its arguments twice */
	writer->written = number;
}

/* Closes a row; the memory of its rest becomes that of another one. */
static void
close_row(KeyWriter *writer, OpenRow *row)
{
	OpenRow    *last = &writer->open[--writer->nopen];
	const OpenRow closed = *row;

	*row = *last;
	last->rest = closed.rest;
}

/* Writes the TIDs of a row that are less than a limit. */
static void
drain_row(KeyWriter *writer, OpenRow *row, uint64 limit)
{
	while (row->next < limit)
	{
		uint64		difference;

		add_tid(writer, row->next);
		if (row->at == row->end)
		{
			close_row(writer, row);
			return;
		}
		row->at = gs_gin_difference_get(row->at, &difference);
		row->next += difference;
	}
}

/* The open row with the least TID; *second: the least TID of the others. */
static OpenRow *
find_least(KeyWriter *writer, uint64 *second)
{
	OpenRow    *least = &writer->open[0];

	*second = PG_UINT64_MAX;
	for (int i = 1; i < writer->nopen; i++)
	{
		OpenRow    *row = &writer->open[i];

		*second = Min(*second, Max(row->next, least->next));
		if (row->next < least->next)
			least = row;
	}
	return least;
}

/* Writes the TIDs of all open rows that are less than a limit. */
static void
drain(KeyWriter *writer, uint64 limit)
{
	while (writer->nopen > 0)
	{
		uint64		second;
		OpenRow    *least = find_least(writer, &second);

		CHECK_FOR_INTERRUPTS();
		if (least->next >= limit)
			break;
		/* equal ones in turn */
		drain_row(writer, least, Min(limit, Max(second, least->next + 1)));
	}
}

static void
open_row(KeyWriter *writer, uint64 first, const struct varlena *rest)
{
	const Size	nbytes = VARSIZE_ANY_EXHDR(rest);
	OpenRow    *row;

	if (writer->nopen == writer->nallocated)
	{
		writer->open = repalloc(writer->open, sizeof(OpenRow) * ++writer->nallocated);
		writer->open[writer->nopen].rest = MemoryContextAlloc(writer->context, GS_GIN_REST_BYTES);
	}
	row = &writer->open[writer->nopen++];
	memcpy(row->rest, VARDATA_ANY(rest), nbytes);
	row->next = first;
	row->at = row->rest;
	row->end = row->rest + nbytes;
}

/* ---------------------------------------------------------------------- keys */

/* Copies the key of an item, which is the one that is written from now on. */
static void
copy_key(KeyWriter *writer, const GsGinItem *item)
{
	const FormData_pg_attribute *type = TupleDescAttr(writer->state.origTupdesc,
													  item->attribute - 1);
	Size		nbytes;

	writer->attribute = item->attribute;
	writer->category = item->category;
	writer->key = item->key;
	if (item->category != GIN_CAT_NORM_KEY || type->attbyval)
		return;
	nbytes = datumGetSize(item->key, false, type->attlen);
	if (nbytes > writer->key_allocated)
	{
		writer->key_allocated = 2 * nbytes;
		if (writer->key_copy != NULL)
			pfree(writer->key_copy);
		writer->key_copy = MemoryContextAllocHuge(writer->context, writer->key_allocated);
	}
	writer->key = PointerGetDatum(memcpy(writer->key_copy, DatumGetPointer(item->key), nbytes));
}

static void
finish_key(KeyWriter *writer)
{
	drain(writer, PG_UINT64_MAX);
	write_tids(writer);
}

static void
begin_key(KeyWriter *writer, const GsGinItem *item)
{
	finish_key(writer);
	copy_key(writer, item);
	gs_gin_pages_add_key(writer->pages, item->attribute, item->key, item->category);
	writer->any = true;
	writer->written = 0;
	writer->last_first = 0;
}

/* Compares an item with the previous one; < 0: its key is greater. */
static int
compare_keys(KeyWriter *writer, const GsGinItem *item)
{
	return ginCompareAttEntries(&writer->state, writer->attribute, writer->key, writer->category,
								item->attribute, item->key, item->category);
}

/* ---------------------------------------------------------------------- rows */

static GsGinItem
item_of_row(KeyWriter *writer, MinimalTuple row)
{
	const GsGinLayout *layout = &writer->layout;
	const Datum *values = writer->row->tts_values;
	GsGinItem	item = {.attribute = 1};

	ExecStoreMinimalTuple(row, writer->row, false);
	slot_getallattrs(writer->row);
	if (layout->attribute >= 0)
		item.attribute = DatumGetInt16(values[layout->attribute]);
	item.category = DatumGetChar(values[layout->category]);
	item.key = values[layout->key + item.attribute - 1];
	item.first = gs_gin_number_of_column(DatumGetInt64(values[layout->tid]));
	item.rest = (struct varlena *) DatumGetPointer(values[layout->rest]);
	return item;
}

static void
finish_round(KeyWriter *writer)
{
	if (!gs_build_ranges_report(writer->part, writer->nrows, &writer->nreported))
		writer->wrong_order = true; /* as far as is known; this range is worthless, too */
	MemoryContextReset(writer->scratch);
}

/* Notes that a key is not greater than the previous one, or a row not later. */
static pg_noinline void
note_wrong_order(KeyWriter *writer)
{
	writer->wrong_order = !gs_build_sort_permits_wrong_order(writer->sort, writer->index,
															 writer->nrows + 1);
}

/* Adds the next row, unless it is in wrong order. */
static void
add_row(KeyWriter *writer, MinimalTuple row)
{
	const GsGinItem item = item_of_row(writer, row);
	const int	order = writer->any ? compare_keys(writer, &item) : -1;

	CHECK_FOR_INTERRUPTS();
	if (unlikely(order > 0 || (order == 0 && item.first < writer->last_first)))
		note_wrong_order(writer);
	if (unlikely(writer->wrong_order))
		return;
	if (order != 0)
		begin_key(writer, &item);
	drain(writer, item.first);
	writer->last_first = item.first;
	open_row(writer, item.first, item.rest);
	if (unlikely(++writer->nrows % ROWS_A_ROUND == 0))
		finish_round(writer);
}

/* Adds all rows, until one is in wrong order. */
static void
add_rows(KeyWriter *writer)
{
	MemoryContext old = MemoryContextSwitchTo(writer->scratch);
	MinimalTuple rows[GS_BUILD_ROWS];
	int			nrows;

	while (!writer->wrong_order &&
		   (nrows = gs_build_sort_next_rows(writer->sort, GS_BUILD_ROWS, rows)) > 0)
	{
		for (int i = 0; i < nrows && !writer->wrong_order; i++)
			add_row(writer, rows[i]);
	}
	MemoryContextSwitchTo(old);
}

/* ------------------------------------------------------------ the interface */

static KeyWriter *
begin(Relation index, GsBuildSort *sort, const GsBuildPart *part)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "GpuSort GIN build",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	KeyWriter  *writer = palloc0(sizeof(KeyWriter));

	writer->index = index;
	writer->sort = sort;
	writer->part = part;
	initGinState(&writer->state, index);
	writer->layout = gs_gin_layout(index);
	writer->pages = gs_gin_pages_begin(index, part);
	writer->row = MakeSingleTupleTableSlot(sort->sort.spec.desc, &TTSOpsMinimalTuple);
	writer->open = palloc(sizeof(OpenRow));
	writer->context = context;
	writer->scratch = AllocSetContextCreate(context, "GpuSort GIN page", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(old);
	return writer;
}

/* Writes the remaining pages. */
static void
finish(KeyWriter *writer)
{
	MemoryContext old = MemoryContextSwitchTo(writer->scratch);

	finish_key(writer);
	finish_round(writer);
	if (writer->part != NULL)
		(void) gs_build_ranges_add_tuples(writer->part->ranges, writer->ntuples);
	gs_gin_pages_end(writer->pages);
	MemoryContextSwitchTo(old);
}

/* Instead of that: the file is worthless, also the ranges of others. */
static void
abandon(KeyWriter *writer)
{
	gs_gin_pages_abandon(writer->pages);
	if (writer->part != NULL)
		gs_build_ranges_give_up(writer->part->ranges, writer->part->number);
}

bool
gs_gin_tuples_write(Relation heap, Relation index, const IndexInfo *info, GsBuildSort *sort,
					const GsBuildPart *part, uint64 *ntuples)
{
	KeyWriter  *writer = begin(index, sort, part);
	bool		right;

	add_rows(writer);
	right = !writer->wrong_order;
	if (right)
		finish(writer);
	else
		abandon(writer);
	*ntuples = writer->ntuples;
	ExecDropSingleTupleTableSlot(writer->row);
	MemoryContextDelete(writer->context);
	return right;
}
