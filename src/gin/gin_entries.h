/*-------------------------------------------------------------------------
 *
 * gin_entries.h
 *	  The entries of a GIN index that is built, from the table to the sort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GIN_ENTRIES_H
#define GPUSORT_GIN_ENTRIES_H

#include "build/build_sort.h"

/* GsBuildMethod.scan() */
extern double gs_gin_entries_scan(GsBuildSort *sort, Relation heap, Relation index,
								  IndexInfo *info, ParallelTableScanDesc parallel, bool progress);

#endif							/* GPUSORT_GIN_ENTRIES_H */
