/*-------------------------------------------------------------------------
 *
 * index_build.c
 *	  Builds a btree of entries that gpusort has sorted.
 *
 *		table scan ---> sort (index_sort.c) ---> pages (index_tuples.c) ---> index
 *
 * A device can fail, and keys that are only approximate can give a wrong order, which the writer
 * finds: nobody has verified it before, as the writer compares all entries anyway.  Then the index
 * is built once more, in a way in which neither happens.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "index/index_hook.h"
#include "index/index_parallel.h"
#include "index/index_scan.h"
#include "index/index_write.h"

#include "access/nbtree.h"
#include "catalog/storage.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

/* Reports that the table is being scanned, perhaps once more. */
static void
report_scanning(void)
{
	const int	params[] = {
		PROGRESS_CREATEIDX_SUBPHASE,
		PROGRESS_CREATEIDX_TUPLES_TOTAL,
		PROGRESS_CREATEIDX_TUPLES_DONE
	};
	const int64 values[] = {PROGRESS_BTREE_PHASE_INDEXBUILD_TABLESCAN, 0, 0};

	pgstat_progress_update_multi_param(lengthof(params), params, values);
}

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

/* Scans and sorts without workers.  Returns NULL if a device failed and lost the entries. */
static GsIndexSort *
sort_serial(Relation heap, Relation index, IndexInfo *info, double expected_rows, bool careful,
			double *ntuples)
{
	GsIndexSort *sort = gs_index_sort_begin(index, expected_rows, maintenance_work_mem, careful,
											NULL, NULL);

	*ntuples = gs_index_scan(sort, heap, index, info, NULL, true);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PROGRESS_BTREE_PHASE_PERFORMSORT_1);
	if (gs_index_sort_perform(sort))
		return sort;
	gs_index_sort_end(sort);
	return NULL;
}

/* Writes the index.  False: the order of the entries is wrong. */
static bool
write_index(Relation heap, Relation index, const IndexInfo *info, GsIndexParallel *parallel,
			GsIndexSort *sort)
{
	bool		written;

	report_writing(sort);
	if (parallel != NULL)
		written = gs_index_parallel_write(parallel, info, sort);
	else
		written = gs_index_tuples_write(heap, index, info, sort, NULL);
	if (written)
		gs_index_sort_report(sort, index);
	else
		gs_index_sort_report_wrong_order(sort, index);
	return written;
}

/*
 * Builds the index.  careful: without workers and devices, and approximate keys are verified.
 * False, only if not careful: it failed.
 */
static bool
build(Relation heap, Relation index, IndexInfo *info, double expected_rows, bool careful,
	  IndexBuildResult *result)
{
	GsIndexParallel *parallel = NULL;
	GsIndexSort *sort;
	bool		written = false;

	report_scanning();
	if (info->ii_ParallelWorkers > 0 && !careful)
		parallel = gs_index_parallel_begin(heap, index, info, expected_rows);
	if (parallel != NULL)
		sort = gs_index_parallel_sort(parallel, info, &result->heap_tuples);
	else
		sort = sort_serial(heap, index, info, expected_rows, careful, &result->heap_tuples);
	if (sort != NULL)
	{
		written = write_index(heap, index, info, parallel, sort);
		result->index_tuples = gs_index_sort_count(sort);
		gs_index_sort_end(sort);
	}
	if (parallel != NULL)
		gs_index_parallel_end(parallel);
	return written;
}

IndexBuildResult *
gs_index_build(Relation heap, Relation index, IndexInfo *info, double expected_rows)
{
	IndexBuildResult *result = palloc0(sizeof(IndexBuildResult));

	if (build(heap, index, info, expected_rows, false, result))
		return result;
	if (RelationGetNumberOfBlocks(index) > 0)
		RelationTruncate(index, 0);
	if (!build(heap, index, info, expected_rows, true, result))
		elog(ERROR, "could not sort the entries of index \"%s\"", RelationGetRelationName(index));
	return result;
}
