/*-------------------------------------------------------------------------
 *
 * index_parallel.h
 *	  Several processes scan the table of an index that is built.
 *
 *		begin sort end
 *
 * After an ERROR the transaction's end does what end does.
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
 * Starts info->ii_ParallelWorkers workers; memory_kb is for all participants.  NULL: none came.
 */
extern GsIndexParallel *gs_index_parallel_begin(Relation heap, Relation index, IndexInfo *info,
												double expected_rows, int memory_kb);

/*
 * Scans and sorts with them.  Returns a sort that is performed, and gives the entries of all;
 * *ntuples becomes how many tuples the scans found.  NULL: a device failed, and has lost them.
 */
extern GsIndexSort *gs_index_parallel_sort(GsIndexParallel *parallel, IndexInfo *info,
										   int merge_kb, double *ntuples);

/* The sort was ended.  The workers are gone after it. */
extern void gs_index_parallel_end(GsIndexParallel *parallel);

/* What a worker runs. */
extern PGDLLEXPORT void gs_index_parallel_main(dsm_segment *segment, shm_toc *toc);

#endif							/* GPUSORT_INDEX_PARALLEL_H */
