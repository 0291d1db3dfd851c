/*-------------------------------------------------------------------------
 *
 * index_sort.c
 *	  Sorts the entries of a btree that is built.
 *
 * An entry is sorted as a row (index_row.h).  Entries with equal keys must come in
 * the order of their heap TIDs.  The sort is stable, so that is true if they are
 * added in that order (index_scan.c).  The TID as a sort key would cost a third of the
 * keys' memory, and for an index with few distinct keys two passes of a radix sort.
 * It is a key only if several processes scan the heap (index_parallel.c), because
 * blocks then come in no order.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "guc.h"
#include "index/index_gather.h"
#include "index/index_row.h"
#include "index/index_scan.h"
#include "index/index_sort.h"
#include "pg_compat.h"
#include "sort/sort_external.h"
#include "sort/sort_input.h"
#include "sort/sort_output.h"
#include "sort/sort_parallel.h"

#include "access/parallel.h"
#include "access/stratnum.h"
#include "catalog/pg_index.h"
#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

struct GsIndexSort
{
	GsSortState sort;
	MemoryContext context;		/* of the sort */
	GsIndexGather *gather;		/* runs of workers; NULL: serial build */
	bool		entries_lost;	/* a device failed */
	uint64		nreturned;
	bool		order_verified; /* the sort has verified the order */
	uint32		checksum;		/* then: of the rows returned */
};

/* --------------------------------------------------------------- the columns */

/*
 * Key column i of an index as a column of an ORDER BY.  The operator is invalid if
 * ORDER BY with it would have the order of another operator family.
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
	bool		descending;

	/* an index of names stores them as cstrings */
	column.type = TupleDescAttr(RelationGetDescr(index), i)->atttypid;
	if (column.type == CSTRINGOID)
		column.type = type;
	column.sort_operator = get_opfamily_member(family, type, type,
											   (options & INDOPTION_DESC) != 0 ?
											   BTGreaterStrategyNumber : BTLessStrategyNumber);
	if (!gs_ordering_operator(column.sort_operator, &found_family, &found_type, &descending) ||
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
			return psprintf("sort column %d: the operator has the order of another operator family",
							i + 1);
	}
	return gs_key_columns_can_encode(columns, ncolumns, &reason) ? NULL : reason;
}

/* The row type. */
static TupleDesc
entry_type(Relation index)
{
	TupleDesc	of_index = RelationGetDescr(index);
	TupleDesc	desc = CreateTemplateTupleDesc(of_index->natts + 1);

	for (int i = 1; i <= of_index->natts; i++)
		TupleDescCopyEntry(desc, i, of_index, i);
	TupleDescInitEntry(desc, of_index->natts + 1, "tid", INT8OID, -1, 0);
	gs_finish_tuple_desc(desc);
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
	sort->gather = gather;
	gs_sort_init(&sort->sort, &spec);
	gs_sort_parallel_set_shared(&sort->sort, shared);
	gs_sort_begin(&sort->sort, memory_kb);
	MemoryContextSwitchTo(old);
	return sort;
}

/*
 * The engine failed and lost the entries.  Only an ERROR could stop the scan early,
 * so further entries are ignored.
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
add_row(void *arg, TupleTableSlot *row)
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
		.emit = add_row,.arg = sort,.desc = sort->sort.spec.desc,.any_order = sort->sort.spec.nstable == 0
	};

	return gs_index_scan(heap, index, info, parallel, progress, &target);
}

bool
gs_index_sort_perform(GsIndexSort *sort)
{
	if (!sort->entries_lost && !gs_sort_perform(&sort->sort))
		fail_entries(sort);
	return !sort->entries_lost;
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

	/* no worker has entries, and those of the leader are not in runs */
	if (nkept == 0 && sort->sort.phase != GS_SORT_MERGE)
		return true;
	gs_sort_limit_merge(&sort->sort, merge_kb);
	merged = gs_index_gather_merge(sort->gather, &sort->sort);
	if (!merged)
		fail_entries(sort);
	return merged;
}

/* Raises an ERROR if rows were changed, lost or duplicated. */
static void
check_end(const GsIndexSort *sort)
{
	if (sort->order_verified && sort->checksum != sort->sort.input.verification.checksum)
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("sort returned rows in wrong order"),
				 errdetail("The checksum of the rows differs from the checksum computed at verification."),
				 errhint("This is a bug in gpusort. Set gpusort.enable_create_index to off to build the index without it.")));
	if (sort->nreturned != gs_index_sort_count(sort))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("sort returned " UINT64_FORMAT " rows, expected " UINT64_FORMAT,
						sort->nreturned, gs_index_sort_count(sort)),
				 errhint("This is a bug in gpusort. Set gpusort.enable_create_index to off to build the index without it.")));
}

int
gs_index_sort_next_rows(GsIndexSort *sort, int nwanted, MinimalTuple *rows)
{
	const int	nrows = gs_sort_next_rows(&sort->sort, nwanted, rows);

	for (int i = 0; i < nrows && sort->order_verified; i++)
		sort->checksum = gs_sort_checksum(sort->checksum, rows[i]);
	sort->nreturned += nrows;
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
	MemoryContextDelete(sort->context);
}
