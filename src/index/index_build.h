/*-------------------------------------------------------------------------
 *
 * index_build.h
 *	  Builds a btree of entries that gpusort has sorted.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INDEX_BUILD_H
#define GPUSORT_INDEX_BUILD_H

#include "access/genam.h"
#include "nodes/execnodes.h"

/*
 * Does what btbuild() does, for an index whose entries can be sorted here
 * (index_sort.h).
 */
extern IndexBuildResult *gs_index_build(Relation heap, Relation index, IndexInfo *info,
										double expected_rows);

/*
 * Why an index with so many entries is not worth it, as they pass through two sorts; NULL: it
 * is.  Not for a device, nor where comparisons are what costs most.
 */
extern char *gs_index_build_reason_not(Relation index, const IndexInfo *info, double nrows);

#endif							/* GPUSORT_INDEX_BUILD_H */
