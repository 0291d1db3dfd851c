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

/* Does what btbuild() does, for an index whose entries gpusort can sort (index_sort.h). */
extern IndexBuildResult *gs_index_build(Relation heap, Relation index, IndexInfo *info,
										double expected_rows);

#endif							/* GPUSORT_INDEX_BUILD_H */
