/*-------------------------------------------------------------------------
 *
 * build_index.c
 *	  Builds an index of entries that gpusort has sorted.
 *
 *		scan ---> sort (build_sort.c) ---> write ---> index
 *
 * A device can fail, and keys that are only approximate can give a wrong order, which the writer
 * finds: nobody has verified it before, as the writer compares all entries anyway.  Then the index
 * is built once more, in a way in which neither happens.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "build/build_index.h"
#include "build/build_parallel.h"

#include "catalog/storage.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

/* Reports that the table is being scanned, perhaps once more. */
static void
report_scanning(const GsBuildMethod *method)
{
	const int	params[] = {
		PROGRESS_CREATEIDX_SUBPHASE,
		PROGRESS_CREATEIDX_TUPLES_TOTAL,
		PROGRESS_CREATEIDX_TUPLES_DONE
	};
	const int64 values[] = {method->scan_phase, 0, 0};

	pgstat_progress_update_multi_param(lengthof(params), params, values);
}

/* Reports that the index is being written. */
static void
report_writing(const GsBuildSort *sort)
{
	const int	params[] = {
		PROGRESS_CREATEIDX_SUBPHASE,
		PROGRESS_CREATEIDX_TUPLES_TOTAL,
		PROGRESS_SCAN_BLOCKS_TOTAL,
		PROGRESS_SCAN_BLOCKS_DONE
	};
	const int64 values[] = {sort->method->write_phase, gs_build_sort_count(sort), 0, 0};

	pgstat_progress_update_multi_param(lengthof(params), params, values);
}

/* Scans and sorts without workers.  Returns NULL if a device failed and lost the entries. */
static GsBuildSort *
sort_serial(const GsBuildMethod *method, Relation heap, Relation index, IndexInfo *info,
			double expected_rows, bool careful, double *ntuples)
{
	GsBuildSort *sort = gs_build_sort_begin(method, index, expected_rows, maintenance_work_mem,
											careful, NULL, NULL);

	*ntuples = method->scan(sort, heap, index, info, NULL, true);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, method->sort_phase);
	if (gs_build_sort_perform(sort))
		return sort;
	gs_build_sort_end(sort);
	return NULL;
}

/* Writes the index.  False: the order of the entries is wrong. */
static bool
write_index(Relation heap, Relation index, const IndexInfo *info, GsBuildParallel *parallel,
			GsBuildSort *sort, uint64 *ntuples)
{
	bool		written;

	report_writing(sort);
	if (parallel != NULL)
		written = gs_build_parallel_write(parallel, info, sort, ntuples);
	else
		written = sort->method->write(heap, index, info, sort, NULL, ntuples);
	if (written)
		gs_build_sort_report(sort, index);
	else
		gs_build_sort_report_wrong_order(sort, index);
	return written;
}

/*
 * Builds the index.  careful: without workers and devices, and approximate keys are verified.
 * False, only if not careful: it failed.
 */
static bool
build(const GsBuildMethod *method, Relation heap, Relation index, IndexInfo *info,
	  double expected_rows, bool careful, IndexBuildResult *result)
{
	GsBuildParallel *parallel = NULL;
	GsBuildSort *sort;
	uint64		ntuples = 0;
	bool		written = false;

	report_scanning(method);
	if (info->ii_ParallelWorkers > 0 && !careful)
		parallel = gs_build_parallel_begin(method, heap, index, info, expected_rows);
	if (parallel != NULL)
		sort = gs_build_parallel_sort(parallel, info, &result->heap_tuples);
	else
		sort = sort_serial(method, heap, index, info, expected_rows, careful,
						   &result->heap_tuples);
	if (sort != NULL)
	{
		written = write_index(heap, index, info, parallel, sort, &ntuples);
		result->index_tuples = ntuples;
		gs_build_sort_end(sort);
	}
	if (parallel != NULL)
		gs_build_parallel_end(parallel);
	return written;
}

IndexBuildResult *
gs_build_index(const GsBuildMethod *method, Relation heap, Relation index, IndexInfo *info,
			   double expected_rows)
{
	IndexBuildResult *result = palloc0(sizeof(IndexBuildResult));

	if (build(method, heap, index, info, expected_rows, false, result))
		return result;
	if (RelationGetNumberOfBlocks(index) > 0)
		RelationTruncate(index, 0);
	if (!build(method, heap, index, info, expected_rows, true, result))
		elog(ERROR, "could not sort the entries of index \"%s\"", RelationGetRelationName(index));
	return result;
}
