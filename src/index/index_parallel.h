/*-------------------------------------------------------------------------
 *
 * index_parallel.h
 *	  Several processes scan the table of an index that is built.
 *
 *		begin sort [ write ] end
 *
 * After an ERROR the end of the transaction cleans up.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INDEX_PARALLEL_H
#define GPUSORT_INDEX_PARALLEL_H

#include "index/index_sort.h"

#include "storage/dsm.h"
#include "storage/shm_toc.h"

typedef struct GsIndexParallel GsIndexParallel;

/*
 * Starts info->ii_ParallelWorkers workers; maintenance_work_mem is for all participants.
 * NULL: none could be started.
 */
extern GsIndexParallel *gs_index_parallel_begin(Relation heap, Relation index, IndexInfo *info,
												double expected_rows);

/*
 * Scans and sorts with the workers.  Returns a performed sort that returns the
 * entries of all, or of the leader's range, and in *ntuples the number of tuples that
 * the scans found.  NULL: a device failed and lost entries.
 */
extern GsIndexSort *gs_index_parallel_sort(GsIndexParallel *parallel, IndexInfo *info,
										   double *ntuples);

/*
 * Writes the index, or the leader's range of it and the levels above all ranges.  False as
 * gs_index_tuples_write().
 */
extern bool gs_index_parallel_write(GsIndexParallel *parallel, const IndexInfo *info,
									GsIndexSort *sort);

/* After the end of the sort.  Waits for the workers. */
extern void gs_index_parallel_end(GsIndexParallel *parallel);

/* The main function of a worker. */
extern PGDLLEXPORT void gs_index_parallel_main(dsm_segment *segment, shm_toc *toc);

#endif							/* GPUSORT_INDEX_PARALLEL_H */
