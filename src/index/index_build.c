/*-------------------------------------------------------------------------
 *
 * index_build.c
 *	  Builds a btree of entries that gpusort has sorted.
 *
 *		table scan ---> sort (index_sort.c) ---> index_load.c, or btbuild() ---> index
 *
 * The table is scanned as it is for every index build, which knows about
 * visibility, HOT chains, expressions and predicates; by as many workers as PostgreSQL would
 * have (index_parallel.c).  index_load.c writes the index of the sorted entries, unless
 * gpusort.index_loader is native.
 *
 * If it is, PostgreSQL's own btbuild() runs, and when it wants the table scanned it gets the
 * sorted entries instead: for this one call the table's access method is a copy with another
 * index_build_range_scan.  It puts the entries into a tuplesort of its own.  That begins by
 * looking whether they are in order, which takes n - 1 comparisons, and it is done.  In these
 * it finds what makes an index not unique, and so it does all that is left to do: uniqueness,
 * entries of dead tuples, pages, WAL.  A wrong order of ours would only cost time there; for
 * index_load.c it is an ERROR.  Entries that got lost would be missing from the index either
 * way, so they are counted (index_sort.c).
 *
 * maintenance_work_mem is for both sorts then.  Ours has INPUT_SHARE of it while entries come.
 * When they leave, the tuplesort gets what ours does not hold: as runs on disk are merged,
 * little.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "guc.h"
#include "index/index_build.h"
#include "index/index_load.h"
#include "index/index_parallel.h"
#include "index/index_sort.h"
#include "pg_compat.h"

#include "access/nbtree.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "utils/guc.h"

/* Our shares of maintenance_work_mem beside a tuplesort: of the sort, and of its merge of runs. */
#define INPUT_SHARE		0.75
#define MERGE_SHARE		0.25

/* Does PostgreSQL build the index of the sorted entries? */
static inline bool
is_native(void)
{
	return gpusort_index_loader == GS_INDEX_LOADER_NATIVE;
}

/* The memory of our sort. */
static inline double
input_kb(void)
{
	return maintenance_work_mem * (is_native() ? INPUT_SHARE : 1.0);
}

/* The table's access method for the time of btbuild()'s scan. */
typedef struct SortedTable
{
	TableAmRoutine routine;		/* must be first */
	const TableAmRoutine *original;
	GsIndexSort *sort;
	double		ntuples;		/* that the scan found in the table */
} SortedTable;

/*
 * btbuild() wants the table scanned.  Its relation has its own access method again from
 * here on.
 */
static double
emit_sorted(Relation heap, Relation index, IndexInfo *info, bool allow_sync, bool anyvisible,
	 bool progress, BlockNumber start, BlockNumber nblocks, IndexBuildCallback callback,
	 void *callback_state, TableScanDesc scan)
{
	SortedTable *table = (SortedTable *) unconstify(TableAmRoutine *, heap->rd_tableam);
	GsIndexEntry entry;

	heap->rd_tableam = table->original;
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PROGRESS_BTREE_PHASE_PERFORMSORT_1);
	while (gs_index_sort_next(table->sort, &entry))
	{
		CHECK_FOR_INTERRUPTS();
		callback(index, &entry.tid, entry.values, entry.nulls, entry.alive, callback_state);
	}
	return table->ntuples;
}

/* Runs btbuild(), which finds the sorted entries in the table. */
static IndexBuildResult *
run_btbuild(Relation heap, Relation index, IndexInfo *info, GsIndexSort *sort, double ntuples)
{
	const TableAmRoutine *original = heap->rd_tableam;
	SortedTable table = {.routine = *original, .original = original, .sort = sort, .ntuples = ntuples};
	IndexBuildResult *result;

	table.routine.index_build_range_scan = emit_sorted;
	heap->rd_tableam = &table.routine;
	PG_TRY();
	{
		result = btbuild(heap, index, info);
	}
	PG_FINALLY();
	{
		/* unless the relation was rebuilt; then btbuild() has scanned the table itself */
		if (heap->rd_tableam == &table.routine)
			heap->rd_tableam = original;
	}
	PG_END_TRY();
	return result;
}

/* Leaves so much of maintenance_work_mem to others until the nest level of settings ends. */
static void
limit_memory(int left_kb)
{
	char		value[32];

	snprintf(value, sizeof(value), "%dkB", Max(left_kb, 1024));
	(void) set_config_option("maintenance_work_mem", value, PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
}

/* Has PostgreSQL build the index of the sorted entries. */
static IndexBuildResult *
build_natively(Relation heap, Relation index, IndexInfo *info, GsIndexSort *sort, double ntuples)
{
	int			nest_level = NewGUCNestLevel();
	IndexBuildResult *result;

	limit_memory(maintenance_work_mem - gs_index_sort_memory_kb(sort));
	info->ii_ParallelWorkers = 0;
	result = run_btbuild(heap, index, info, sort, ntuples);
	AtEOXact_GUC(true, nest_level);
	return result;
}

/* Writes the index of the sorted entries. */
static IndexBuildResult *
build_directly(Relation heap, Relation index, IndexInfo *info, GsIndexSort *sort, double ntuples)
{
	const int	params[] = {
		PROGRESS_CREATEIDX_TUPLES_TOTAL,
		PROGRESS_SCAN_BLOCKS_TOTAL,
		PROGRESS_SCAN_BLOCKS_DONE
	};
	const int64 values[] = {gs_index_sort_count(sort), 0, 0};
	IndexBuildResult *result = palloc0(sizeof(IndexBuildResult));
	GsIndexLeafBuilder *load;
	MinimalTuple rows[GS_INDEX_ROWS];
	int			nrows;

	pgstat_progress_update_multi_param(lengthof(params), params, values);
	load = gs_index_leaf_begin(heap, index, info, gs_index_sort_is_verified(sort));
	while ((nrows = gs_index_sort_next_rows(sort, GS_INDEX_ROWS, rows)) > 0)
	{
		for (int i = 0; i < nrows; i++)
			gs_index_leaf_add(load, rows[i]);
	}
	gs_index_leaf_end(load);
	result->heap_tuples = ntuples;
	result->index_tuples = gs_index_sort_count(sort);
	return result;
}

/*
 * With a tuplesort, what both sorts do is done twice: to write rows to disk (text by bytes 0.9x of
 * stock), and to make a key that costs something (numeric 0.9x, text by ICU 0.87x; 2 cores, 1 M
 * rows, 2026-11).
 */
char *
gs_index_build_reason_not(Relation index, const IndexInfo *info, double nrows)
{
	if (!is_native())
		return NULL;
	if (info->ii_ParallelWorkers > 0)
		return psprintf("PostgreSQL builds it with %d parallel workers", info->ii_ParallelWorkers);
	if (nrows * gs_index_sort_entry_bytes(index) / 1024 > input_kb())
		return "its rows outgrow maintenance_work_mem";
	if (gs_index_sort_makes_keys(index))
		return "its keys cost as much to make as to sort";
	return NULL;
}

/* Scans and sorts without workers.  NULL: a device failed, and has lost the entries. */
static GsIndexSort *
sort_serial(Relation heap, Relation index, IndexInfo *info, double expected_rows, bool may_use_device,
		   int merge_kb, double *ntuples)
{
	GsIndexSort *sort = gs_index_sort_begin(index, expected_rows, input_kb(), NULL, NULL);

	if (!may_use_device)
		gs_index_sort_disable_device(sort);
	*ntuples = gs_index_sort_scan(sort, heap, index, info, NULL, true);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PROGRESS_BTREE_PHASE_PERFORMSORT_1);
	if (gs_index_sort_perform(sort, merge_kb))
		return sort;
	gs_index_sort_end(sort);
	return NULL;
}

IndexBuildResult *
gs_index_build(Relation heap, Relation index, IndexInfo *info, double expected_rows)
{
	const bool	natively = is_native();
	const int	merge_kb = natively ? maintenance_work_mem * MERGE_SHARE : maintenance_work_mem;
	GsIndexParallel *parallel = NULL;
	GsIndexSort *sort;
	IndexBuildResult *result;
	double		ntuples;

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE,
								 PROGRESS_BTREE_PHASE_INDEXBUILD_TABLESCAN);
	if (info->ii_ParallelWorkers > 0)
		parallel = gs_index_parallel_begin(heap, index, info, expected_rows, input_kb());
	if (parallel != NULL)
		sort = gs_index_parallel_sort(parallel, info, merge_kb, &ntuples);
	else
		sort = sort_serial(heap, index, info, expected_rows, true, merge_kb, &ntuples);
	if (sort == NULL)
	{
		pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE,
									 PROGRESS_BTREE_PHASE_INDEXBUILD_TABLESCAN);
		sort = sort_serial(heap, index, info, expected_rows, false, merge_kb, &ntuples);
	}
	if (natively)
		result = build_natively(heap, index, info, sort, ntuples);
	else
		result = build_directly(heap, index, info, sort, ntuples);
	gs_index_sort_end(sort);
	if (parallel != NULL)
		gs_index_parallel_end(parallel);
	return result;
}
