/*-------------------------------------------------------------------------
 *
 * index_build.c
 *	  Builds a btree of entries that gpusort has sorted.
 *
 *		table scan ---> sort (index_sort.c) ---> pages (index_write.c) ---> index
 *
 * The table is scanned as for every index build, so visibility, HOT chains,
 * expressions and predicates are PostgreSQL's, by as many workers as PostgreSQL
 * would use (index_parallel.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "index/index_build.h"
#include "index/index_parallel.h"
#include "index/index_sort.h"
#include "index/index_write.h"

#include "access/nbtree.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "pgstat.h"

/* Reports that the index is being written. */
static void
report_writing(const GsIndexSort *sort)
{
	const int	params[] = {
		PROGRESS_CREATEIDX_TUPLES_TOTAL,
		PROGRESS_SCAN_BLOCKS_TOTAL,
		PROGRESS_SCAN_BLOCKS_DONE
	};
	const int64 values[] = {gs_index_sort_count(sort), 0, 0};

	pgstat_progress_update_multi_param(lengthof(params), params, values);
}

/*
 * Scans and sorts without workers.  Returns NULL if a device failed and lost the
 * entries.
 */
static GsIndexSort *
sort_serial(Relation heap, Relation index, IndexInfo *info, double expected_rows,
			bool may_use_device, double *ntuples)
{
	GsIndexSort *sort = gs_index_sort_begin(index, expected_rows, maintenance_work_mem, NULL, NULL);

	if (!may_use_device)
		gs_index_sort_disable_device(sort);
	*ntuples = gs_index_sort_scan(sort, heap, index, info, NULL, true);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PROGRESS_BTREE_PHASE_PERFORMSORT_1);
	if (gs_index_sort_perform(sort))
		return sort;
	gs_index_sort_end(sort);
	return NULL;
}

IndexBuildResult *
gs_index_build(Relation heap, Relation index, IndexInfo *info, double expected_rows)
{
	GsIndexParallel *parallel = NULL;
	GsIndexSort *sort;
	IndexBuildResult *result = palloc0(sizeof(IndexBuildResult));

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE,
								 PROGRESS_BTREE_PHASE_INDEXBUILD_TABLESCAN);
	if (info->ii_ParallelWorkers > 0)
		parallel = gs_index_parallel_begin(heap, index, info, expected_rows, maintenance_work_mem);
	if (parallel != NULL)
		sort = gs_index_parallel_sort(parallel, info, maintenance_work_mem, &result->heap_tuples);
	else
		sort = sort_serial(heap, index, info, expected_rows, true, &result->heap_tuples);
	if (sort == NULL)
	{
		pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE,
									 PROGRESS_BTREE_PHASE_INDEXBUILD_TABLESCAN);
		sort = sort_serial(heap, index, info, expected_rows, false, &result->heap_tuples);
	}
	report_writing(sort);
	if (parallel != NULL && gs_index_parallel_has_ranges(parallel))
		gs_index_parallel_write(parallel, info, sort);
	else
		gs_index_write(heap, index, info, sort, NULL);
	result->index_tuples = gs_index_sort_count(sort);
	gs_index_sort_report(sort, index);
	gs_index_sort_end(sort);
	if (parallel != NULL)
		gs_index_parallel_end(parallel);
	return result;
}
