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

#include "guc.h"
#include "index/index_gather.h"
#include "index/index_row.h"
#include "index/index_scan.h"
#include "index/index_sort.h"
#include "key/key_bytes.h"
#include "key/key_order.h"
#include "sort/sort_external.h"
#include "sort/sort_input.h"
#include "sort/sort_output.h"
#include "sort/sort_parallel.h"

#include "access/htup_details.h"
#include "access/parallel.h"
#include "access/stratnum.h"
#include "catalog/pg_index.h"
#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

struct GsIndexSort
{
	GsSortState sort;
	int			ncolumns;		/* of the index */
	MemoryContext context;		/* of all this */
	GsIndexGather *gather;		/* where workers' entries are; NULL: it is alone */
	bool		entries_lost;			/* by a device that failed: there are none */
	uint64		nleft;
	bool		order_verified;			/* their order: by the sort's proof */
	uint32		checksum;		/* of those that left, then */
	TupleTableSlot *row;		/* of one that left */
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
	return gs_key_columns_can_encode(columns, ncolumns, &reason) ? NULL : reason;
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
gs_index_sort_begin(Relation index, double expected_rows, int memory_kb, GsShared *shared,
					GsIndexGather *gather)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "GpuSort index",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	GsIndexSort *sort = palloc0(sizeof(GsIndexSort));
	const TupleDesc desc = entry_type(index);
	GsSortSpec	spec = {
		.desc = desc,
		.expected_rows = expected_rows,
		.expected_width = expected_width(desc),
		.checked = gpusort_verify,
		.slot = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple),
		.merged_elsewhere = gather != NULL,
		.parent_context = context
	};

	spec.columns = gs_index_sort_columns(index, &spec.ncolumns);
	if (shared != NULL)
		spec.ncolumns++;
	else
		spec.nstable = 1;
	if (IsParallelWorker())
		spec.run_files = gs_index_gather_files(gather, ParallelWorkerNumber);
	sort->context = context;
	sort->ncolumns = IndexRelationGetNumberOfAttributes(index);
	sort->gather = gather;
	sort->row = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple);
	gs_sort_init(&sort->sort, &spec);
	gs_sort_parallel_set_shared(&sort->sort, shared);
	gs_sort_begin(&sort->sort, memory_kb);
	MemoryContextSwitchTo(old);
	return sort;
}

/*
 * The engine failed, and has lost the entries.  The scan cannot be ended before its end but by
 * an ERROR, so what still comes is dropped.
 */
static void
fail_entries(GsIndexSort *sort)
{
	sort->entries_lost = true;
	gs_sort_abandon(&sort->sort);
}

void
gs_index_sort_disable_device(GsIndexSort *sort)
{
	gs_sort_disable_device(&sort->sort);
}

/* A GsIndexScanEmit. */
static void
put(void *arg, TupleTableSlot *row)
{
	GsIndexSort *sort = arg;

	if (!sort->entries_lost && !gs_sort_add(&sort->sort, row))
		fail_entries(sort);
}

double
gs_index_sort_scan(GsIndexSort *sort, Relation heap, Relation index, IndexInfo *info,
				   ParallelTableScanDesc parallel, bool progress)
{
	const GsIndexScanTarget target = {
		.put = put,.arg = sort,.desc = sort->sort.spec.desc,.any_order = sort->sort.spec.nstable == 0
	};

	return gs_index_scan(heap, index, info, parallel, progress, &target);
}

bool
gs_index_sort_perform(GsIndexSort *sort, int merge_kb)
{
	gs_sort_limit_merge(&sort->sort, merge_kb);
	if (!sort->entries_lost && !gs_sort_perform(&sort->sort))
		fail_entries(sort);
	return !sort->entries_lost;
}

int
gs_index_sort_memory_kb(const GsIndexSort *sort)
{
	return gs_sort_memory_kb(&sort->sort);
}

bool
gs_index_sort_make_runs(GsIndexSort *sort)
{
	const bool	made = IsParallelWorker() ?
		gs_index_gather_emit(sort->gather, ParallelWorkerNumber, &sort->sort) :
		gs_index_gather_prepare(&sort->sort);

	if (!made)
		fail_entries(sort);
	return made;
}

bool
gs_index_sort_merge_shared(GsIndexSort *sort, uint64 nkept, int merge_kb)
{
	bool		merged;

	/* nobody else has any, and what it has, if anything, is not in runs */
	if (nkept == 0 && sort->sort.phase != GS_SORT_MERGE)
		return true;
	gs_sort_limit_merge(&sort->sort, merge_kb);
	merged = gs_index_gather_merge(sort->gather, &sort->sort);
	if (!merged)
		fail_entries(sort);
	return merged;
}

/* All have left, or it is an ERROR. */
static void
check_end(const GsIndexSort *sort)
{
	if (sort->order_verified && sort->checksum != sort->sort.input.verification.checksum)
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("rows left a sort in the wrong order"),
				 errdetail("They are not as they were when they were compared."),
				 errhint("This is a bug in gpusort. Set gpusort.enable_create_index to off to build the index without it.")));
	if (sort->nleft != gs_index_sort_count(sort))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("rows got lost or doubled in a sort"),
				 errdetail(UINT64_FORMAT " rows came, and " UINT64_FORMAT " left.",
						   gs_index_sort_count(sort), sort->nleft),
				 errhint("This is a bug in gpusort. Set gpusort.enable_create_index to off to build the index without it.")));
}

int
gs_index_sort_next_rows(GsIndexSort *sort, int nwanted, MinimalTuple *rows)
{
	const int	nrows = gs_sort_next_rows(&sort->sort, nwanted, rows);

	for (int i = 0; i < nrows && sort->order_verified; i++)
		sort->checksum = gs_sort_checksum(sort->checksum, rows[i]);
	sort->nleft += nrows;
	if (nrows == 0)
		check_end(sort);
	return nrows;
}

bool
gs_index_sort_is_verified(GsIndexSort *sort)
{
	sort->order_verified = gs_sort_is_verified(&sort->sort);
	return sort->order_verified;
}

bool
gs_index_sort_next(GsIndexSort *sort, GsIndexEntry *entry)
{
	TupleTableSlot *slot = sort->row;
	MinimalTuple row;

	if (gs_index_sort_next_rows(sort, 1, &row) == 0)
		return false;
	ExecStoreMinimalTuple(row, slot, false);
	slot_getallattrs(slot);
	gs_index_row_get_tid(DatumGetInt64(slot->tts_values[sort->ncolumns]), &entry->tid, &entry->alive);
	entry->values = slot->tts_values;
	entry->nulls = slot->tts_isnull;
	return true;
}

uint64
gs_index_sort_count(const GsIndexSort *sort)
{
	return sort->sort.input.nread;
}

void
gs_index_sort_end(GsIndexSort *sort)
{
	gs_sort_reset(&sort->sort);
	ExecDropSingleTupleTableSlot(sort->sort.spec.slot);
	ExecDropSingleTupleTableSlot(sort->row);
	MemoryContextDelete(sort->context);
}
