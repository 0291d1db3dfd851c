/*-------------------------------------------------------------------------
 *
 * index_sort.c
 *	  Sorts the entries of a btree that is built.
 *
 * An entry is sorted as a row: all columns of the index, INCLUDE columns too,
 * and a last one of type bigint that is the heap TID and whether the tuple is alive:
 *
 *	   63   49 48			17 16	   1   0
 *	  |   0	  |   block number | offset | alive |
 *
 * Entries with equal keys are to be in the order of their TIDs.  Our sorts are stable, so
 * it does if entries come in that order.  A scan of a heap from its first block on gives them
 * block by block, but within one an entry of a HOT chain has the TID of the
 * chain's root.  So the entries of a block are collected, and put in order, before they
 * are sorted.  To have the TID in the sort's keys would cost a third of their memory, and
 * of an index with few distinct keys two passes of a radix sort.  It is there only where
 * several processes scan the heap (index_parallel.c): blocks come in no order then.
 *
 * Values that are stored out of line are fetched when they come, as an index never has
 * pointers to them, and what they point to may be gone by the time that the rows leave.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "gpusort.h"
#include "index_gather.h"
#include "index_sort.h"
#include "key_bytes.h"
#include "key_order.h"
#include "sort_fetch.h"
#include "sort_load.h"
#include "sort_parallel.h"
#include "sort_row.h"

#include "access/detoast.h"
#include "access/heaptoast.h"
#include "access/htup_details.h"
#include "access/parallel.h"
#include "access/stratnum.h"
#include "access/tableam.h"
#include "catalog/pg_index.h"
#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* An entry of the block whose entries come. */
typedef struct BlockRow
{
	OffsetNumber offset;
	Size		at;				/* in bytes */
} BlockRow;

struct GsIndexSort
{
	GsSortState sort;
	int			ncolumns;		/* of the index */
	MemoryContext context;		/* of all this */
	GsIndexGather *gather;		/* others' entries and these; NULL: these only */
	uint64		nothers;		/* others' */
	bool		lost;			/* by a device that failed: there are none */
	uint64		nleft;
	TupleDesc	index_desc;
	IndexTuple	tuple;			/* of the row that left, if it is short */

	/* the entry that comes */
	TupleTableSlot *values;		/* virtual */
	MemoryContext fetched_context;

	/* those of its block */
	BlockNumber block;
	BlockRow   *rows;
	int			nrows;
	int			rows_allocated;
	bool		in_order;		/* of their TIDs */
	char	   *bytes;			/* of the rows, 8-aligned each */
	Size		nbytes;
	Size		bytes_allocated;
	TupleTableSlot *row;		/* of one of them */
};

/* --------------------------------------------------------------- the columns */

/*
 * Key column i of an index, as an ORDER BY would have it.  The operator is
 * Invalid if an ORDER BY by it would not be the index's order, as it is in another
 * family, too.
 */
static GsSortColumn
index_column(Relation index, int i)
{
	const int16 options = index->rd_indoption[i];
	const Oid	family = index->rd_opfamily[i];
	const Oid	type = index->rd_opcintype[i];
	GsSortColumn column = {.attno = i + 1};
	Oid			found_family;
	Oid			found_type;
	int16		strategy;

	/* an index of names stores them as cstrings */
	column.type = TupleDescAttr(RelationGetDescr(index), i)->atttypid;
	if (column.type == CSTRINGOID)
		column.type = type;
	column.sort_operator = get_opfamily_member(family, type, type,
											   (options & INDOPTION_DESC) != 0 ?
											   BTGreaterStrategyNumber : BTLessStrategyNumber);
	if (!get_ordering_op_properties(column.sort_operator, &found_family, &found_type, &strategy) ||
		found_family != family || found_type != type)
		column.sort_operator = InvalidOid;
	column.collation = index->rd_indcollation[i];
	column.nulls_first = (options & INDOPTION_NULLS_FIRST) != 0;
	return column;
}

GsSortColumn *
gs_index_sort_columns(Relation index, int *nkeys)
{
	GsSortColumn *columns;

	*nkeys = IndexRelationGetNumberOfKeyAttributes(index);
	columns = palloc(sizeof(GsSortColumn) * (*nkeys + 1));
	for (int i = 0; i < *nkeys; i++)
		columns[i] = index_column(index, i);
	columns[*nkeys] = (GsSortColumn) {
		.attno = IndexRelationGetNumberOfAttributes(index) + 1,
		.type = INT8OID,
		.sort_operator = Int8LessOperator
	};
	return columns;
}

char *
gs_index_sort_reason_not(Relation index)
{
	int			ncolumns;
	GsSortColumn *columns = gs_index_sort_columns(index, &ncolumns);
	char	   *reason;

	for (int i = 0; i < ncolumns; i++)
	{
		if (!OidIsValid(columns[i].sort_operator))
			return psprintf("sort column %d: its operator has the order of another operator family",
							i + 1);
	}
	return gs_sort_key_can_encode(columns, ncolumns, &reason) ? NULL : reason;
}

/* The rows' type. */
static TupleDesc
entry_type(Relation index)
{
	TupleDesc	of_index = RelationGetDescr(index);
	TupleDesc	desc = CreateTemplateTupleDesc(of_index->natts + 1);

	for (int i = 1; i <= of_index->natts; i++)
		TupleDescCopyEntry(desc, i, of_index, i);
	TupleDescInitEntry(desc, of_index->natts + 1, "tid", INT8OID, -1, 0);
	return desc;
}

static int
expected_width(TupleDesc desc)
{
	int32		width = 0;

	for (int i = 0; i < desc->natts; i++)
		width += get_typavgwidth(TupleDescAttr(desc, i)->atttypid, TupleDescAttr(desc, i)->atttypmod);
	return width;
}

double
gs_index_sort_entry_bytes(Relation index)
{
	/* a word each for a key, where the row is, and the sort, which takes two of them */
	return MAXALIGN(SizeofMinimalTupleHeader) + MAXALIGN(expected_width(entry_type(index))) +
		4 * sizeof(uint64);
}

bool
gs_index_sort_makes_keys(Relation index)
{
	const GsSortColumn column = index_column(index, 0);
	GsKeyOrder	order;
	bool		descending;
	char	   *why_not;

	return !gs_key_order_of_operator(column.sort_operator, column.type, column.collation,
									 &order, &descending, &why_not) ||
		gs_key_kind_is_made(order.kind) || OidIsValid(order.collation);
}

/* ---------------------------------------------------------------- the heap TID */

static int64
tid_code(const GsIndexEntry *entry)
{
	return (int64) ItemPointerGetBlockNumberNoCheck(&entry->tid) << 17 |
		(int64) ItemPointerGetOffsetNumberNoCheck(&entry->tid) << 1 | entry->alive;
}

static void
set_tid(GsIndexEntry *entry, int64 code)
{
	ItemPointerSet(&entry->tid, (BlockNumber) (code >> 17), (OffsetNumber) (code >> 1));
	entry->alive = (code & 1) != 0;
}

/* -------------------------------------------------------------------- the sort */

GsIndexSort *
gs_index_sort_begin(Relation index, double expected_rows, int memory_kb, GsShared *shared)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "GpuSort index",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	GsIndexSort *sort = palloc0(sizeof(GsIndexSort));
	GsSortState *state = &sort->sort;

	sort->context = context;
	sort->fetched_context = AllocSetContextCreate(context, "GpuSort index entry",
												  ALLOCSET_SMALL_SIZES);
	sort->ncolumns = IndexRelationGetNumberOfAttributes(index);
	sort->index_desc = RelationGetDescr(index);
	sort->tuple = palloc(TOAST_INDEX_TARGET + MAXALIGN(sizeof(IndexAttributeBitMapData)));
	state->desc = entry_type(index);
	state->columns = gs_index_sort_columns(index, &state->ncolumns);
	state->expected_rows = expected_rows;
	state->expected_width = expected_width(state->desc);
	state->verified = gpusort_verify;
	state->parent_context = context;
	if (shared != NULL)
		state->ncolumns++;
	else
		state->nstable = 1;
	state->shared = shared;
	state->slot = MakeSingleTupleTableSlot(state->desc, &TTSOpsMinimalTuple);
	sort->values = MakeSingleTupleTableSlot(state->desc, &TTSOpsVirtual);
	sort->row = MakeSingleTupleTableSlot(state->desc, &TTSOpsMinimalTuple);
	sort->block = InvalidBlockNumber;
	sort->in_order = true;
	sort->rows_allocated = MaxHeapTuplesPerPage;
	sort->rows = palloc(sizeof(BlockRow) * sort->rows_allocated);
	sort->bytes_allocated = 2 * BLCKSZ;
	sort->bytes = palloc(sort->bytes_allocated);
	gs_sort_begin(state, memory_kb);
	MemoryContextSwitchTo(old);
	return sort;
}

/* A value as an index can store it. */
static inline Datum
fetched_value(GsIndexSort *sort, Datum value, bool *fetched)
{
	MemoryContext old;

	if (likely(!VARATT_IS_EXTERNAL(DatumGetPointer(value))))
		return value;
	old = MemoryContextSwitchTo(sort->fetched_context);
	value = PointerGetDatum(detoast_external_attr((struct varlena *) DatumGetPointer(value)));
	MemoryContextSwitchTo(old);
	*fetched = true;
	return value;
}

/* Has the slot of values hold an entry. */
static void
set_values(GsIndexSort *sort, const GsIndexEntry *entry, bool *fetched)
{
	TupleTableSlot *slot = sort->values;

	ExecClearTuple(slot);
	for (int i = 0; i < sort->ncolumns; i++)
	{
		slot->tts_values[i] = entry->values[i];
		slot->tts_isnull[i] = entry->nulls[i];
		if (!entry->nulls[i] && TupleDescAttr(sort->sort.desc, i)->attlen == -1)
			slot->tts_values[i] = fetched_value(sort, entry->values[i], fetched);
	}
	slot->tts_values[sort->ncolumns] = Int64GetDatum(tid_code(entry));
	slot->tts_isnull[sort->ncolumns] = false;
	ExecStoreVirtualTuple(slot);
}

static int
compare_offsets(const void *a, const void *b)
{
	return (int) ((const BlockRow *) a)->offset - (int) ((const BlockRow *) b)->offset;
}

/*
 * The engine failed, and has lost the entries.  The scan cannot be ended before its end but by
 * an ERROR, so what still comes is dropped.
 */
static void
lose_entries(GsIndexSort *sort)
{
	sort->lost = true;
	gs_sort_parallel_withdraw(&sort->sort);
	if (!IsParallelWorker())
		gs_sort_log_failure(&sort->sort);
}

/* All entries of a block have come: they are put into the sort. */
static void
end_block(GsIndexSort *sort)
{
	if (!sort->in_order)
		qsort(sort->rows, sort->nrows, sizeof(BlockRow), compare_offsets);
	for (int i = 0; i < sort->nrows && !sort->lost; i++)
	{
		ExecStoreMinimalTuple((MinimalTuple) (sort->bytes + sort->rows[i].at), sort->row, false);
		if (!gs_sort_put(&sort->sort, sort->row))
			lose_entries(sort);
	}
	ExecClearTuple(sort->row);
	sort->nrows = 0;
	sort->nbytes = 0;
	sort->in_order = true;
}

/* Room for another row of the block. */
static char *
next_row(GsIndexSort *sort, OffsetNumber offset, Size nbytes)
{
	if (sort->nrows == sort->rows_allocated)
	{
		sort->rows_allocated *= 2;
		sort->rows = repalloc(sort->rows, sizeof(BlockRow) * sort->rows_allocated);
	}
	if (sort->nbytes + nbytes > sort->bytes_allocated)
	{
		sort->bytes_allocated = 2 * (sort->nbytes + nbytes);
		sort->bytes = repalloc_huge(sort->bytes, sort->bytes_allocated);
	}
	if (sort->nrows > 0 && sort->rows[sort->nrows - 1].offset > offset)
		sort->in_order = false;
	sort->rows[sort->nrows++] = (BlockRow) {.offset = offset, .at = sort->nbytes};
	return sort->bytes + sort->nbytes;
}

void
gs_index_sort_stay_here(GsIndexSort *sort)
{
	sort->sort.may_move = false;
}

/* Takes a copy of an entry. */
static void
put_entry(GsIndexSort *sort, const GsIndexEntry *entry)
{
	const BlockNumber block = ItemPointerGetBlockNumber(&entry->tid);
	GsRowSource source;
	bool		fetched = false;

	if (sort->lost)
		return;
	if (block != sort->block)
	{
		end_block(sort);
		sort->block = block;
	}
	set_values(sort, entry, &fetched);
	gs_row_source_init(&source, sort->values);
	gs_row_store(&source, sort->values,
				 next_row(sort, ItemPointerGetOffsetNumber(&entry->tid), source.nbytes));
	sort->nbytes += MAXALIGN(source.nbytes);
	if (fetched)
		MemoryContextReset(sort->fetched_context);
}

/* An IndexBuildCallback: the scan has come to a tuple. */
static void
collect(Relation index, ItemPointer tid, Datum *values, bool *nulls, bool alive, void *sort)
{
	GsIndexEntry entry = {.tid = *tid, .alive = alive, .values = values, .nulls = nulls};

	put_entry(sort, &entry);
}

double
gs_index_sort_scan(GsIndexSort *sort, Relation heap, Relation index, IndexInfo *info,
				   TableScanDesc scan, bool progress)
{
	/* from the first block on, since that is the order of TIDs */
	double		ntuples = table_index_build_scan(heap, index, info, false, progress, collect, sort, scan);

	end_block(sort);
	return ntuples;
}

bool
gs_index_sort_perform(GsIndexSort *sort, int merge_kb)
{
	sort->sort.merge_limit = (Size) merge_kb * 1024;
	if (!sort->lost && !gs_sort_perform(&sort->sort))
		lose_entries(sort);
	return !sort->lost;
}

int
gs_index_sort_held_kb(const GsIndexSort *sort)
{
	const GsSortState *state = &sort->sort;

	switch (state->phase)
	{
		case GS_SORT_ENGINE:
			return (gs_engine_figures(state->engine)->peak_bytes + 1023) / 1024;
		case GS_SORT_MERGE:
			return state->merge_limit / 1024;
		default:
			return state->memory_limit / 1024;
	}
}

void
gs_index_sort_gather(GsIndexSort *sort, TupleQueueReader **readers, int nreaders, uint64 nentries)
{
	MemoryContext old = MemoryContextSwitchTo(sort->context);

	sort->gather = gs_index_gather_create(&sort->sort, readers, nreaders);
	sort->nothers = nentries;
	MemoryContextSwitchTo(old);
}

TupleTableSlot *
gs_index_sort_next_row(GsIndexSort *sort)
{
	TupleTableSlot *slot = sort->gather != NULL ? gs_index_gather_next(sort->gather) :
		gs_sort_next_checked(&sort->sort);

	if (TupIsNull(slot))
	{
		if (sort->nleft != gs_index_sort_count(sort))
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("rows got lost or doubled in a sort"),
					 errdetail(UINT64_FORMAT " rows came, and " UINT64_FORMAT " left.",
							   gs_index_sort_count(sort), sort->nleft),
					 errhint("This is a bug in gpusort. Set gpusort.enable_create_index to off to build the index without it.")));
		return NULL;
	}
	sort->nleft++;
	return slot;
}

bool
gs_index_sort_next(GsIndexSort *sort, GsIndexEntry *entry)
{
	TupleTableSlot *slot = gs_index_sort_next_row(sort);

	if (slot == NULL)
		return false;
	slot_getallattrs(slot);
	set_tid(entry, DatumGetInt64(slot->tts_values[sort->ncolumns]));
	entry->values = slot->tts_values;
	entry->nulls = slot->tts_isnull;
	return true;
}

/*
 * An index tuple has the same columns in the same layout behind another header.  The
 * last column of the row is 8 bytes at a multiple of 8: up to there the row is what an
 * index tuple of it is, padding included.
 */
static IndexTuple
tuple_of_short_row(GsIndexSort *sort, MinimalTuple row)
{
	const bool	has_nulls = (row->t_infomask & HEAP_HASNULL) != 0;
	const Size	header = IndexInfoFindDataOffset(has_nulls ? INDEX_NULL_MASK : 0);
	const Size	row_header = row->t_hoff - MINIMAL_TUPLE_OFFSET;
	const Size	nbytes = row->t_len - row_header - sizeof(int64);
	IndexTuple	tuple = sort->tuple;

	tuple->t_info = header + nbytes;
	if (has_nulls)
	{
		bits8	   *bits = (bits8 *) (tuple + 1);

		memset(bits, 0, header - sizeof(IndexTupleData));
		memcpy(bits, row->t_bits, BITMAPLEN(sort->ncolumns));
		/* the row's bitmap has one bit more */
		if (sort->ncolumns % BITS_PER_BYTE != 0)
			bits[sort->ncolumns / BITS_PER_BYTE] &= (1 << sort->ncolumns % BITS_PER_BYTE) - 1;
		tuple->t_info |= INDEX_NULL_MASK;
	}
	if ((row->t_infomask & HEAP_HASVARWIDTH) != 0)
		tuple->t_info |= INDEX_VAR_MASK;
	memcpy((char *) tuple + header, (char *) row + row_header, nbytes);
	return tuple;
}

/* A row of values some of which an index may have to compress. */
static IndexTuple
tuple_of_long_row(GsIndexSort *sort, TupleTableSlot *slot)
{
	MemoryContext old;
	IndexTuple	tuple;

	slot_getallattrs(slot);
	MemoryContextReset(sort->fetched_context);
	old = MemoryContextSwitchTo(sort->fetched_context);
	tuple = index_form_tuple(sort->index_desc, slot->tts_values, slot->tts_isnull);
	MemoryContextSwitchTo(old);
	return tuple;
}

IndexTuple
gs_index_sort_next_tuple(GsIndexSort *sort, bool *alive)
{
	TupleTableSlot *slot = gs_index_sort_next_row(sort);
	GsIndexEntry entry;
	MinimalTuple row;
	IndexTuple	tuple;
	int64		code;

	if (slot == NULL)
		return NULL;
	row = ((MinimalTupleTableSlot *) slot)->mintuple;
	memcpy(&code, (char *) row + row->t_len - sizeof(int64), sizeof(int64));
	set_tid(&entry, code);
	if (row->t_len <= TOAST_INDEX_TARGET)
		tuple = tuple_of_short_row(sort, row);
	else
		tuple = tuple_of_long_row(sort, slot);
	tuple->t_tid = entry.tid;
	*alive = entry.alive;
	return tuple;
}

uint64
gs_index_sort_count(const GsIndexSort *sort)
{
	return sort->sort.nread + sort->nothers;
}

void
gs_index_sort_end(GsIndexSort *sort)
{
	gs_sort_forget(&sort->sort);
	ExecDropSingleTupleTableSlot(sort->sort.slot);
	ExecDropSingleTupleTableSlot(sort->values);
	ExecDropSingleTupleTableSlot(sort->row);
	MemoryContextDelete(sort->context);
}
