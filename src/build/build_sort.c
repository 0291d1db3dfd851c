/*-------------------------------------------------------------------------
 *
 * build_sort.c
 *	  Sorts the entries of an index that is built.
 *
 * An entry is sorted as a row (build_method.h).  Entries with equal keys must come in the order of
 * their heap TIDs.  The sort is stable, so that is true if they are added in that order
 * (build_scan.c).  The TID as a sort key would cost a third of the keys' memory, and for an index
 * with few distinct keys two passes of a radix sort.  It is a key only if several processes scan
 * the heap (build_parallel.c), because blocks then come in no order, or if the access method
 * demands it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "guc.h"
#include "build/build_row.h"
#include "build/build_sort.h"
#include "pg_compat.h"
#include "sort/sort_failure.h"
#include "sort/sort_parallel.h"
#include "sort/sort_stats.h"
#include "store/store_merge.h"

#include "access/parallel.h"
#include "access/transam.h"
#include "miscadmin.h"
#include "optimizer/plancat.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* The support function of a btree, and of GIN, that compares keys. */
#define COMPARE_PROC	1

double
gs_build_expected_rows(Relation heap)
{
	BlockNumber npages;
	double		ntuples;
	double		all_visible;

	estimate_rel_size(heap, NULL, &npages, &ntuples, &all_visible);
	return ntuples;
}

char *
gs_build_few_rows(double nrows)
{
	if (nrows >= gpusort_min_rows || gpusort_force)
		return NULL;
	return psprintf("the estimated number of rows, %.0f, is less than gpusort.min_rows (%d)",
					nrows, gpusort_min_rows);
}

int
gs_build_expected_width(TupleDesc desc)
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

/* -------------------------------------------------------------------- the sort */

static int
participant_number(void)
{
	return ParallelWorkerNumber + 1;
}

GsBuildSort *
gs_build_sort_begin(const GsBuildMethod *method, Relation index, double expected_rows,
					int memory_kb, bool careful, GsShared *shared, GsShareGather *gather)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "GpuSort index",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	GsBuildSort *sort = palloc0(sizeof(GsBuildSort));
	const TupleDesc desc = method->row_type(index);
	GsSortSpec	spec = {
		.desc = desc,
		.expected_rows = expected_rows,
		.expected_width = gs_build_expected_width(desc),
		.of_index = true,
		.verify_output = gpusort_verify,
		.caller_verifies = !careful && !gpusort_verify,
		.slot = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple),
		.merged_elsewhere = gather != NULL,
		.parent_context = context
	};

	spec.columns = method->columns(index, &spec.ncolumns);
	spec.ngrouped = method->keeps_groups ? spec.ncolumns : 0;
	if (shared != NULL || method->sorts_tids)
		spec.ncolumns++;
	else
		spec.nstable = 1;
	if (gather != NULL)
		spec.run_files = gs_share_gather_files(gather, participant_number());
	sort->method = method;
	sort->memory_kb = memory_kb;
	sort->context = context;
	sort->careful = careful;
	sort->gather = gather;
	gs_sort_init(&sort->sort, &spec);
	gs_sort_parallel_set_shared(&sort->sort, shared);
	gs_sort_begin(&sort->sort, Max(memory_kb / method->memory_parts, 64));
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
fail_entries(GsBuildSort *sort)
{
	sort->entries_lost = true;
	gs_sort_abandon(&sort->sort);
}

bool
gs_build_sort_may_be_wrong(const GsBuildSort *sort)
{
	const GsSortSpec *spec = &sort->sort.spec;

	return !sort->careful && gs_key_columns_are_approximate(spec->columns, spec->ncolumns);
}

void
gs_build_sort_add(GsBuildSort *sort, TupleTableSlot *row)
{
	if (!sort->entries_lost && !gs_sort_add(&sort->sort, row))
		fail_entries(sort);
}

bool
gs_build_sort_perform(GsBuildSort *sort)
{
	if (!sort->entries_lost && !gs_sort_perform(&sort->sort))
		fail_entries(sort);
	return !sort->entries_lost;
}

bool
gs_build_sort_make_runs(GsBuildSort *sort)
{
	/* workers make runs if they have any entries, which is as good as sure without a device */
	const bool	made = (!IsParallelWorker() && gs_store_is_on_device(&sort->sort.store)) ||
		gs_share_gather_emit(sort->gather, participant_number(), &sort->sort.store);

	if (!made)
		fail_entries(sort);
	return made;
}

bool
gs_build_sort_adopt(GsBuildSort *sort)
{
	const bool	adopted =
		gs_share_gather_adopt(sort->gather, participant_number(), &sort->sort.store);

	if (!adopted)
		fail_entries(sort);
	return adopted;
}

bool
gs_build_sort_begin_range(GsBuildSort *sort, int range, int nranges, int memory_kb)
{
	MinimalTuple end;

	gs_store_set_merge_memory(&sort->sort.store, memory_kb);
	if (sort->method->keeps_groups)
	{
		sort->in_groups = true;
		return gs_store_begin_groups(&sort->sort.store, range, nranges);
	}
	if (gs_store_is_on_device(&sort->sort.store))
		gs_store_begin_range_of_engine(&sort->sort.store, range, nranges, &end);
	else if (!gs_store_begin_range(&sort->sort.store, range, nranges, &end))
		return false;
	sort->in_range = true;
	sort->end = end == NULL ? -1 : gs_build_row_last(end);
	return true;
}

void
gs_build_sort_begin_merge(GsBuildSort *sort)
{
	gs_store_set_merge_memory(&sort->sort.store, maintenance_work_mem);
	gs_store_begin_merge(&sort->sort.store);
}

void
gs_build_sort_check_count(const GsBuildSort *sort, uint64 nreturned)
{
	if (nreturned != gs_build_sort_count(sort))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("sort returned " UINT64_FORMAT " rows, expected " UINT64_FORMAT,
						nreturned, gs_build_sort_count(sort)),
				 gs_errhint_bug(sort->method->setting, "build the index")));
}

/* Gets the next row of a range; returns 1, or 0 after the last one. */
static int
next_in_range(GsBuildSort *sort, MinimalTuple *row)
{
	const int	nrows = gs_sort_next_rows(&sort->sort, 1, row);

	if (nrows == 0 || gs_build_row_last(*row) != sort->end)
		return nrows;
	sort->beyond = *row;
	return 0;
}

MinimalTuple
gs_build_sort_next_beyond(GsBuildSort *sort)
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
gs_build_sort_next_rows(GsBuildSort *sort, int nwanted, MinimalTuple *rows)
{
	int			nrows;

	if (sort->in_range)
		return next_in_range(sort, rows);
	nrows = gs_sort_next_rows(&sort->sort, nwanted, rows);
	sort->nreturned += nrows;
	if (nrows == 0 && !sort->in_groups)
		gs_build_sort_check_count(sort, sort->nreturned);
	return nrows;
}

uint64
gs_build_sort_count(const GsBuildSort *sort)
{
	return sort->sort.store.nread;
}

uint64
gs_build_sort_bytes_on_device(const GsBuildSort *sort)
{
	const GsEngine *engine = sort->sort.store.engine;

	return gs_store_is_on_device(&sort->sort.store) ?
		engine->stats.bytes_up - engine->stats.nrows * gs_record_bytes(engine->request.layout) : 0;
}

/*
 * Does a comparison function of the index come from an extension or a user?  It may contradict
 * itself.
 */
static bool
has_foreign_function(Relation index)
{
	for (int i = 1; i <= IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		if (index_getprocid(index, i, COMPARE_PROC) >= FirstNormalObjectId)
			return true;
	}
	return false;
}

/* Is a column text of a collation for which ICU may contradict itself? */
static bool
may_be_wrong_by_icu(const GsBuildSort *sort)
{
	const GsSortSpec *spec = &sort->sort.spec;

	return gs_key_columns_icu_disagrees(spec->columns, spec->ncolumns);
}

pg_noinline bool
gs_build_sort_permits_wrong_order(GsBuildSort *sort, Relation index, uint64 tuple)
{
	bool		of_icu;

	if (gs_build_sort_may_be_wrong(sort))
		return false;
	of_icu = may_be_wrong_by_icu(sort);
	if (sort->warned)
		return of_icu;
	sort->warned = true;
	ereport(of_icu ? WARNING : ERROR,
			(errcode(of_icu ? ERRCODE_WARNING : ERRCODE_INTERNAL_ERROR),
			 errmsg("sort returned rows in wrong order"),
			 errdetail("Index tuple " UINT64_FORMAT " does not sort after the previous one in "
					   "index \"%s\".",
					   tuple, RelationGetRelationName(index)),
			 of_icu ?
			 errhint("ICU contradicts itself: its sort keys and its comparison disagree for some "
					 "texts of a collation of the index.") :
			 has_foreign_function(index) ?
			 errhint("A comparison function of the index may contradict itself; otherwise this is "
					 "a bug in gpusort.") :
			 gs_errhint_bug(sort->method->setting, "build the index")));
	return true;
}

void
gs_build_sort_report_wrong_order(GsBuildSort *sort, Relation index)
{
	ereport(LOG,
			(errmsg("entries of index \"%s\" were sorted in wrong order and are sorted again",
					RelationGetRelationName(index)),
			 errdetail("The sort keys of a column do not have the order of its comparison "
					   "function, or a device has returned wrong rows.")));
	gs_sort_stats_end(&sort->sort);
}

char *
gs_build_sort_name(Relation index)
{
	return quote_qualified_identifier(get_namespace_name(RelationGetNamespace(index)),
									  RelationGetRelationName(index));
}

void
gs_build_sort_report(GsBuildSort *sort, Relation index)
{
	const GsSortState *state = &sort->sort;

	gs_sort_stats_end(&sort->sort);
	gs_stats_add(GS_STAT_BUILDS_CPU + (gs_sort_sorter(state) - GS_SORTER_CPU), 1);
	if (gs_sort_is_slow(state))
		gs_sort_log_duration(state, gs_build_sort_name(index));
}

void
gs_build_sort_end(GsBuildSort *sort)
{
	gs_sort_reset(&sort->sort);
	ExecDropSingleTupleTableSlot(sort->sort.spec.slot);
	MemoryContextDelete(sort->context);
}
