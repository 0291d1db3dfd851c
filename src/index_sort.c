/*-------------------------------------------------------------------------
 *
 * index_sort.c
 *	  Sorts the entries of a btree that is built.
 *
 * An entry is sorted as a row (index_row.h).  Entries with equal keys are to be in the order of
 * their heap TIDs.  Our sorts are stable, so it does if they come in that order (index_scan.c).
 * To have the TID in the sort's keys would cost a third of their memory, and of an index with
 * few distinct keys two passes of a radix sort.  It is there only where several processes scan
 * the heap (index_parallel.c): blocks come in no order then.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "gpusort.h"
#include "index_gather.h"
#include "index_row.h"
#include "index_scan.h"
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

struct GsIndexSort
{
	GsSortState sort;
	int			ncolumns;		/* of the index */
	MemoryContext context;		/* of all this */
	GsIndexGather *gather;		/* others' entries and these; NULL: these only */
	uint64		nothers;		/* others' */
	bool		lost;			/* by a device that failed: there are none */
	uint64		nleft;
	bool		proven;			/* their order: by the sort's proof */
	uint32		checksum;		/* of those that left, then */
	TupleDesc	index_desc;

	/* the row that left */
	TupleTableSlot *row;		/* where one is asked for */
	IndexTuple	tuple;			/* if it is short */
	MemoryContext long_context; /* of the tuple, if it is long */
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
	sort->long_context = AllocSetContextCreate(context, "GpuSort index entry",
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
	sort->row = MakeSingleTupleTableSlot(state->desc, &TTSOpsMinimalTuple);
	gs_sort_begin(state, memory_kb);
	MemoryContextSwitchTo(old);
	return sort;
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

void
gs_index_sort_stay_here(GsIndexSort *sort)
{
	sort->sort.may_move = false;
}

/* A GsIndexScanPut. */
static void
put(void *arg, TupleTableSlot *row)
{
	GsIndexSort *sort = arg;

	if (!sort->lost && !gs_sort_put(&sort->sort, row))
		lose_entries(sort);
}

double
gs_index_sort_scan(GsIndexSort *sort, Relation heap, Relation index, IndexInfo *info,
				   ParallelTableScanDesc parallel, bool progress)
{
	const GsIndexScanTarget target = {
		.put = put,.arg = sort,.desc = sort->sort.desc,.any_order = sort->sort.nstable == 0
	};

	return gs_index_scan(heap, index, info, parallel, progress, &target);
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

/* All have left, or it is an ERROR. */
static void
check_end(const GsIndexSort *sort)
{
	if (sort->proven && sort->checksum != sort->sort.proof.checksum)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("rows left a sort in the wrong order"),
				 errdetail("They are not as they were when they were compared."),
				 errhint("This is a bug in gpusort. Set gpusort.enable_create_index to off to build the index without it.")));
	if (sort->nleft != gs_index_sort_count(sort))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("rows got lost or doubled in a sort"),
				 errdetail(UINT64_FORMAT " rows came, and " UINT64_FORMAT " left.",
						   gs_index_sort_count(sort), sort->nleft),
				 errhint("This is a bug in gpusort. Set gpusort.enable_create_index to off to build the index without it.")));
}

/* The next entry as a row; NULL after the last. */
static inline MinimalTuple
next_row(GsIndexSort *sort)
{
	MinimalTuple row = sort->gather != NULL ? gs_index_gather_next(sort->gather) :
		gs_sort_next_tuple(&sort->sort);

	if (unlikely(row == NULL))
		check_end(sort);
	else
	{
		sort->nleft++;
		if (sort->proven)
			sort->checksum = gs_sort_checksum(sort->checksum, row);
	}
	return row;
}

bool
gs_index_sort_is_proven(GsIndexSort *sort)
{
	const GsSortState *state = &sort->sort;

	/* neither what is merged, nor what is to be looked at as it leaves */
	sort->proven = state->phase == GS_SORT_ENGINE && state->proof.compared &&
		sort->gather == NULL && !state->verified;
	return sort->proven;
}

TupleTableSlot *
gs_index_sort_next_row(GsIndexSort *sort)
{
	MinimalTuple row = next_row(sort);

	return row == NULL ? NULL : ExecStoreMinimalTuple(row, sort->row, false);
}

bool
gs_index_sort_next(GsIndexSort *sort, GsIndexEntry *entry)
{
	TupleTableSlot *slot = gs_index_sort_next_row(sort);

	if (slot == NULL)
		return false;
	slot_getallattrs(slot);
	gs_index_row_get_tid(DatumGetInt64(slot->tts_values[sort->ncolumns]), &entry->tid, &entry->alive);
	entry->values = slot->tts_values;
	entry->nulls = slot->tts_isnull;
	return true;
}

/*
 * An index tuple has the same columns in the same layout behind another header.  The
 * last column of the row is 8 bytes at a multiple of 8: up to there the row is what an
 * index tuple of it is, padding included.
 */
static inline IndexTuple
tuple_of_short_row(GsIndexSort *sort, MinimalTuple row)
{
	const bool	has_nulls = (row->t_infomask & HEAP_HASNULL) != 0;
	const Size	header = IndexInfoFindDataOffset(has_nulls ? INDEX_NULL_MASK : 0);
	const uint64 *from = (const uint64 *) ((char *) row + row->t_hoff - MINIMAL_TUPLE_OFFSET);
	const uint64 *end = (const uint64 *) ((char *) row + row->t_len - sizeof(int64));
	IndexTuple	tuple = sort->tuple;
	uint64	   *to = (uint64 *) ((char *) tuple + header);

	tuple->t_info = header + ((const char *) end - (const char *) from);
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
	while (from < end)
		*to++ = *from++;
	return tuple;
}

/* A row of values some of which an index may have to compress. */
static IndexTuple
tuple_of_long_row(GsIndexSort *sort, MinimalTuple row)
{
	TupleTableSlot *slot = ExecStoreMinimalTuple(row, sort->row, false);
	MemoryContext old;
	IndexTuple	tuple;

	slot_getallattrs(slot);
	MemoryContextReset(sort->long_context);
	old = MemoryContextSwitchTo(sort->long_context);
	tuple = index_form_tuple(sort->index_desc, slot->tts_values, slot->tts_isnull);
	MemoryContextSwitchTo(old);
	return tuple;
}

IndexTuple
gs_index_sort_next_tuple(GsIndexSort *sort, bool *alive)
{
	MinimalTuple row = next_row(sort);
	IndexTuple	tuple;

	if (row == NULL)
		return NULL;
	tuple = row->t_len <= TOAST_INDEX_TARGET ? tuple_of_short_row(sort, row) :
		tuple_of_long_row(sort, row);
	gs_index_row_get_tid(*(const int64 *) ((const char *) row + row->t_len - sizeof(int64)),
						 &tuple->t_tid, alive);
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
	ExecDropSingleTupleTableSlot(sort->row);
	MemoryContextDelete(sort->context);
}
