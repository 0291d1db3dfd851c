/*-------------------------------------------------------------------------
 *
 * index_build.c
 *	  Builds a btree of entries that gpusort has sorted.
 *
 *		table scan ---> sort (index_sort.c) ---> btbuild() ---> index
 *
 * The table is scanned as it is for every index build, which knows about
 * visibility, HOT chains, expressions and predicates.  Then PostgreSQL's own btbuild()
 * runs, and when it wants the table scanned it gets the sorted entries instead: for this one
 * call the table's access method is a copy with another index_build_range_scan.
 *
 * btbuild() puts the entries into a tuplesort of its own.  That begins by looking whether they
 * are in order, which takes n - 1 comparisons, and it is done.  In these it finds what makes an
 * index not unique, and so it does all that is left to do: uniqueness, entries of dead tuples,
 * pages, WAL.  Nor does the index depend on our order: a wrong one would cost time.  Entries
 * that got lost would be missing from it, so they are counted (index_sort.c).
 *
 * maintenance_work_mem is for both sorts.  Ours has LOAD_SHARE of it while entries come.
 * When they leave, the tuplesort gets what ours does not hold: as runs on disk are merged,
 * little.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "index_build.h"
#include "index_sort.h"
#include "pgcompat.h"

#include "access/nbtree.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "utils/guc.h"

/* Shares of maintenance_work_mem: of our sort, and of its merge of runs. */
#define LOAD_SHARE		0.75
#define MERGE_SHARE		0.25

/* The table's access method for the time of btbuild()'s scan. */
typedef struct SortedTable
{
	TableAmRoutine routine;		/* must be first */
	const TableAmRoutine *original;
	GsIndexSort *sort;
	double		ntuples;		/* that the scan found in the table */
} SortedTable;

/* An IndexBuildCallback: the scan has come to a tuple. */
static void
collect(Relation index, ItemPointer tid, Datum *values, bool *nulls, bool alive, void *sort)
{
	GsIndexEntry entry = {.tid = *tid, .alive = alive, .values = values, .nulls = nulls};

	gs_index_sort_put(sort, &entry);
}

/*
 * btbuild() wants the table scanned.  Its relation has its own access method again from
 * here on.
 */
static double
feed(Relation heap, Relation index, IndexInfo *info, bool allow_sync, bool anyvisible,
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

/* Has btbuild() build the index with the sorted entries. */
static IndexBuildResult *
build_natively(Relation heap, Relation index, IndexInfo *info, GsIndexSort *sort, double ntuples)
{
	const TableAmRoutine *original = heap->rd_tableam;
	SortedTable table = {.routine = *original, .original = original, .sort = sort, .ntuples = ntuples};
	IndexBuildResult *result;

	table.routine.index_build_range_scan = feed;
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
leave_memory(int left_kb)
{
	char		value[32];

	snprintf(value, sizeof(value), "%dkB", Max(left_kb, 1024));
	(void) set_config_option("maintenance_work_mem", value, PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
}

/*
 * What both sorts do is done twice: to write rows to disk (text by bytes 0.9x of
 * stock), and to make a key that costs something (numeric 0.9x, text by ICU 0.87x; 2 cores, 1 M
 * rows, 2026-11).
 */
char *
gs_index_build_reason_not(Relation index, double nrows)
{
	if (nrows * gs_index_sort_entry_bytes(index) > maintenance_work_mem * LOAD_SHARE * 1024)
		return "its rows outgrow maintenance_work_mem";
	if (gs_index_sort_makes_keys(index))
		return "its keys cost as much to make as to sort";
	return NULL;
}

IndexBuildResult *
gs_index_build(Relation heap, Relation index, IndexInfo *info, double expected_rows)
{
	const int	memory_kb = maintenance_work_mem;
	GsIndexSort *sort;
	IndexBuildResult *result;
	double		ntuples;
	int			nest_level;

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE,
								 PROGRESS_BTREE_PHASE_INDEXBUILD_TABLESCAN);
	sort = gs_index_sort_begin(index, expected_rows, memory_kb * LOAD_SHARE);
	/* from the first block on, since that is what the sort wants */
	ntuples = table_index_build_scan(heap, index, info, false, true, collect, sort, NULL);

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PROGRESS_BTREE_PHASE_PERFORMSORT_1);
	gs_index_sort_perform(sort, memory_kb * MERGE_SHARE);

	nest_level = NewGUCNestLevel();
	leave_memory(memory_kb - gs_index_sort_held_kb(sort));
	info->ii_ParallelWorkers = 0;
	result = build_natively(heap, index, info, sort, ntuples);
	AtEOXact_GUC(true, nest_level);
	gs_index_sort_end(sort);
	return result;
}
