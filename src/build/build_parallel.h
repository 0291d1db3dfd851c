/*-------------------------------------------------------------------------
 *
 * build_parallel.h
 *	  Several processes scan the table of an index that is built.
 *
 *		begin sort [ write ] end
 *
 * After an ERROR the end of the transaction cleans up.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BUILD_PARALLEL_H
#define GPUSORT_BUILD_PARALLEL_H

#include "build/build_sort.h"

#include "storage/shm_toc.h"

typedef struct GsBuildParallel GsBuildParallel;

/*
 * Starts info->ii_ParallelWorkers workers; maintenance_work_mem is for all participants.
 * NULL: none could be started.
 */
extern GsBuildParallel *gs_build_parallel_begin(const GsBuildMethod *method, Relation heap,
												Relation index, IndexInfo *info,
												double expected_rows);

/*
 * Scans and sorts with the workers.  Returns a performed sort that returns the
 * entries of all, or of the leader's range, and in *ntuples the number of tuples that
 * the scans found.  NULL: a device failed and lost entries.
 */
extern GsBuildSort *gs_build_parallel_sort(GsBuildParallel *parallel, IndexInfo *info,
										   double *ntuples);

/*
 * Writes the index, or the leader's range of it and the levels above all ranges.  False as the
 * method's write(); *ntuples is the number of all index tuples.
 */
extern bool gs_build_parallel_write(GsBuildParallel *parallel, const IndexInfo *info,
									GsBuildSort *sort, uint64 *ntuples);

/* After the end of the sort.  Waits for the workers. */
extern void gs_build_parallel_end(GsBuildParallel *parallel);

/* What a worker does: the main function of a method calls it. */
extern void gs_build_parallel_work(const GsBuildMethod *method, shm_toc *toc);

#endif							/* GPUSORT_BUILD_PARALLEL_H */
