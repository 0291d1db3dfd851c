/*-------------------------------------------------------------------------
 *
 * index_scan.h
 *	  Scans the table of an index that is built.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INDEX_SCAN_H
#define GPUSORT_INDEX_SCAN_H

#include "access/heapam.h"
#include "access/tableam.h"
#include "nodes/execnodes.h"

#include "index/index_sort.h"

/*
 * Adds the entries of a heap to a sort; or, if parallel is not NULL, those of this process's share
 * of a parallel scan.  They come in the order of their heap TIDs if the sort relies on it
 * (nstable).  progress: reports it.  Returns the number of tuples.
 */
extern double gs_index_scan(GsIndexSort *sort, Relation heap, Relation index, IndexInfo *info,
							ParallelTableScanDesc parallel, bool progress);

/*
 * The root of the HOT chain of a tuple on the scan's page; roots is what heap_get_root_tuples() has
 * found there.  ERROR if there is none.
 */
extern OffsetNumber gs_index_scan_root(HeapScanDesc scan, OffsetNumber offset,
									   const OffsetNumber *roots);

#endif							/* GPUSORT_INDEX_SCAN_H */
