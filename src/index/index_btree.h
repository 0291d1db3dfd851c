/*-------------------------------------------------------------------------
 *
 * index_btree.h
 *	  Builds a btree.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INDEX_BTREE_H
#define GPUSORT_INDEX_BTREE_H

#include "access/genam.h"
#include "nodes/execnodes.h"
#include "storage/dsm.h"
#include "storage/shm_toc.h"

/* Does what btbuild() does, for an index whose entries gpusort can sort (index_columns.h). */
extern IndexBuildResult *gs_index_btree_build(Relation heap, Relation index, IndexInfo *info,
											  double expected_rows);

/* The main function of a worker. */
extern PGDLLEXPORT void gs_index_btree_worker(dsm_segment *segment, shm_toc *toc);

#endif							/* GPUSORT_INDEX_BTREE_H */
