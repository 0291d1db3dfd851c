/*-------------------------------------------------------------------------
 *
 * index_sort.c
 *	  Sorts the entries of a btree that is built.
 *
 * An entry is sorted as a row (index_row.h).  Entries with equal keys must come in the order of
 * their heap TIDs.  The sort is stable, so that is true if they are added in that order
 * (index_scan.c).  The TID as a sort key would cost a third of the keys' memory, and for an index
 * with few distinct keys two passes of a radix sort.  It is a key only if several processes scan
 * the heap (index_parallel.c), because blocks then come in no order.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "guc.h"
#include "index/index_row.h"
#include "index/index_sort.h"
#include "pg_compat.h"
#include "sort/sort_failure.h"
#include "sort/sort_parallel.h"
#include "sort/sort_stats.h"
#include "store/store_merge.h"

#include "access/nbtree.h"
#include "access/parallel.h"
#include "access/stratnum.h"
#include "catalog/pg_index.h"
#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "miscadmin.h"
#include "optimizer/plancat.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* --------------------------------------------------------------- the columns */

/*
 * Would ORDER BY with an operator of an operator family have the order of that family?  The
 * operator can belong to others, too, of which PostgreSQL's sort, and so gpusort's, takes any: the
 * same comparison function decides then, or they have different orders.
 */
static bool
has_order_of_family(Oid operator, Oid family, Oid type, bool descending)
{
	Oid			found_family;
	Oid			found_type;
	bool		found_descending;

	return gs_ordering_operator(operator, &found_family, &found_type, &found_descending) &&
		found_type == type && found_descending == descending &&
		get_opfamily_proc(found_family, type, type,
						  BTORDER_PROC) == get_opfamily_proc(family, type, type, BTORDER_PROC);
}

/*
 * Key column i of an index as a column of an ORDER BY.  The operator is invalid if
 * ORDER BY with it would have another order.
 */
static GsSortColumn
index_column(Relation index, int i)
{
	const int16 options = index->rd_indoption[i];
	const bool	descending = (options & INDOPTION_DESC) != 0;
	const Oid	family = index->rd_opfamily[i];
	const Oid	type = index->rd_opcintype[i];
	GsSortColumn column = {.attno = i + 1};

	/* an index of names stores them as cstrings */
	column.type = TupleDescAttr(RelationGetDescr(index), i)->atttypid;
	if (column.type == CSTRINGOID)
		column.type = type;
	column.sort_operator = get_opfamily_member(family, type, type,
											   descending ? BTGreaterStrategyNumber :
											   BTLessStrategyNumber);
	if (!has_order_of_family(column.sort_operator, family, type, descending))
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
gs_index_sort_why_not(Relation index, double nrows)
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
	if (!gs_key_columns_can_encode(columns, ncolumns, &reason))
		return reason;
	if (nrows < gpusort_min_rows && !gpusort_force)
		return psprintf("the estimated number of rows, %.0f, is less than gpusort.min_rows (%d)",
						nrows, gpusort_min_rows);
	return NULL;
}

double
gs_index_expected_rows(Relation heap)
{
	BlockNumber npages;
	double		ntuples;
	double		all_visible;

	estimate_rel_size(heap, NULL, &npages, &ntuples, &all_visible);
	return ntuples;
}

int
gs_index_expected_width(TupleDesc desc)
{
	int32		width = 0;

	for (int i = 0; i < desc->natts; i++)
	{
		if (!TupleDescAttr(desc, i)->attisdropped)
			width += get_typavgwidth(TupleDescAttr(desc, i)->atttypid,
									 TupleDescAttr(desc, i)->atttypmod);
	}
	return width;
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

/* -------------------------------------------------------------------- the sort */

static int
participant_number(void)
{
	return ParallelWorkerNumber + 1;
}

GsIndexSort *
gs_index_sort_begin(Relation index, double expected_rows, int memory_kb, bool careful,
					GsShared *shared, GsShareGather *gather)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "GpuSort index",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	GsIndexSort *sort = palloc0(sizeof(GsIndexSort));
	const TupleDesc desc = entry_type(index);
	GsSortSpec	spec = {
		.desc = desc,
		.expected_rows = expected_rows,
		.expected_width = gs_index_expected_width(desc),
		.of_index = true,
		.verify_output = gpusort_verify,
		.caller_verifies = !careful && !gpusort_verify,
		.slot = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple),
		.merged_elsewhere = gather != NULL,
		.parent_context = context
	};

	spec.columns = gs_index_sort_columns(index, &spec.ncolumns);
	if (shared != NULL)
		spec.ncolumns++;
	else
		spec.nstable = 1;
	if (gather != NULL)
		spec.run_files = gs_share_gather_files(gather, participant_number());
	sort->context = context;
	sort->careful = careful;
	sort->gather = gather;
	gs_sort_init(&sort->sort, &spec);
	gs_sort_parallel_set_shared(&sort->sort, shared);
	gs_sort_begin(&sort->sort, memory_kb);
	if (careful)
		gs_sort_disable_device(&sort->sort);
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

bool
gs_index_sort_may_be_wrong(const GsIndexSort *sort)
{
	const GsSortSpec *spec = &sort->sort.spec;

	return !sort->careful && gs_key_columns_are_approximate(spec->columns, spec->ncolumns);
}

void
gs_index_sort_add(GsIndexSort *sort, TupleTableSlot *row)
{
	if (!sort->entries_lost && !gs_sort_add(&sort->sort, row))
		fail_entries(sort);
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
	/* workers make runs if they have any entries, which is as good as sure without a device */
	const bool	made = (!IsParallelWorker() && gs_store_is_on_device(&sort->sort.store)) ||
		gs_share_gather_emit(sort->gather, participant_number(), &sort->sort.store);

	if (!made)
		fail_entries(sort);
	return made;
}

bool
gs_index_sort_adopt(GsIndexSort *sort)
{
	const bool	adopted =
		gs_share_gather_adopt(sort->gather, participant_number(), &sort->sort.store);

	if (!adopted)
		fail_entries(sort);
	return adopted;
}

bool
gs_index_sort_begin_range(GsIndexSort *sort, int range, int nranges, int memory_kb)
{
	MinimalTuple end;

	gs_store_set_merge_memory(&sort->sort.store, memory_kb);
	if (gs_store_is_on_device(&sort->sort.store))
		gs_store_begin_range_of_engine(&sort->sort.store, range, nranges, &end);
	else if (!gs_store_begin_range(&sort->sort.store, range, nranges, &end))
		return false;
	sort->in_range = true;
	sort->end = end == NULL ? -1 : gs_index_row_last(end);
	return true;
}

void
gs_index_sort_begin_merge(GsIndexSort *sort)
{
	gs_store_set_merge_memory(&sort->sort.store, maintenance_work_mem);
	gs_store_begin_merge(&sort->sort.store);
}

void
gs_index_sort_check_count(const GsIndexSort *sort, uint64 nreturned)
{
	if (nreturned != gs_index_sort_count(sort))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("sort returned " UINT64_FORMAT " rows, expected " UINT64_FORMAT,
						nreturned, gs_index_sort_count(sort)),
				 gs_errhint_bug("enable_create_index", "build the index")));
}

/* Gets the next row of a range; returns 1, or 0 after the last one. */
static int
next_in_range(GsIndexSort *sort, MinimalTuple *row)
{
	const int	nrows = gs_sort_next_rows(&sort->sort, 1, row);

	if (nrows == 0 || gs_index_row_last(*row) != sort->end)
		return nrows;
	sort->beyond = *row;
	return 0;
}

MinimalTuple
gs_index_sort_next_beyond(GsIndexSort *sort)
{
	MinimalTuple row = sort->beyond;

	if (row != NULL)
		sort->beyond = NULL;
	else if (!sort->passed_end || gs_sort_next_rows(&sort->sort, 1, &row) == 0)
		return NULL;
	sort->passed_end = true;
	return row;
}

int
gs_index_sort_next_rows(GsIndexSort *sort, int nwanted, MinimalTuple *rows)
{
	int			nrows;

	if (sort->in_range)
		return next_in_range(sort, rows);
	nrows = gs_sort_next_rows(&sort->sort, nwanted, rows);
	sort->nreturned += nrows;
	if (nrows == 0)
		gs_index_sort_check_count(sort, sort->nreturned);
	return nrows;
}

uint64
gs_index_sort_count(const GsIndexSort *sort)
{
	return sort->sort.store.nread;
}

uint64
gs_index_sort_bytes_on_device(const GsIndexSort *sort)
{
	const GsEngine *engine = sort->sort.store.engine;

	return gs_store_is_on_device(&sort->sort.store) ?
		engine->stats.bytes_up - engine->stats.nrows * gs_record_bytes(engine->request.layout) : 0;
}

void
gs_index_sort_report_wrong_order(GsIndexSort *sort, Relation index)
{
	ereport(LOG,
			(errmsg("entries of index \"%s\" were sorted in wrong order and are sorted again",
					RelationGetRelationName(index)),
			 errdetail("The sort keys of a column do not have the order of its comparison "
					   "function, or a device has returned wrong rows.")));
	gs_sort_stats_end(&sort->sort);
}

char *
gs_index_sort_name(Relation index)
{
	return quote_qualified_identifier(get_namespace_name(RelationGetNamespace(index)),
									  RelationGetRelationName(index));
}

void
gs_index_sort_report(GsIndexSort *sort, Relation index)
{
	const GsSortState *state = &sort->sort;

	gs_sort_stats_end(&sort->sort);
	gs_stats_add(GS_STAT_BUILDS_CPU + (gs_sort_sorter(state) - GS_SORTER_CPU), 1);
	if (gs_sort_is_slow(state))
		gs_sort_log_duration(state, gs_index_sort_name(index));
}

void
gs_index_sort_end(GsIndexSort *sort)
{
	gs_sort_reset(&sort->sort);
	ExecDropSingleTupleTableSlot(sort->sort.spec.slot);
	MemoryContextDelete(sort->context);
}
