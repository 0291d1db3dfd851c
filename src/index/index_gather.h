/*-------------------------------------------------------------------------
 *
 * index_gather.h
 *	  The entries that workers of an index build have sorted, on their way to the leader.
 *
 * In shared memory, with files:
 *
 *	  leader   init { } prepare merge
 *	  worker   attach { } put
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INDEX_GATHER_H
#define GPUSORT_INDEX_GATHER_H

#include "storage/dsm.h"

#include "sort/sort_state.h"

typedef struct GsIndexGather GsIndexGather;

extern Size gs_index_gather_bytes(int nworkers);
extern void gs_index_gather_init(GsIndexGather *gather, int nworkers, dsm_segment *segment);
extern void gs_index_gather_attach(GsIndexGather *gather, dsm_segment *segment);

/* Where a worker's sort is to have its runs. */
extern GsRunFiles gs_index_gather_files(GsIndexGather *gather, int worker);

/*
 * The sort of a worker is performed: what it has not given away is the leader's to merge.  False: its
 * engine failed, and has lost the entries.
 */
extern bool gs_index_gather_emit(GsIndexGather *gather, int worker, GsSortState *sort);

/*
 * The leader's own sort is performed: makes runs of its entries, unless a device has them all.
 * False as before.
 */
extern bool gs_index_gather_prepare(GsSortState *sort);

/*
 * All workers that have put anything are done, and the leader's own sort is performed: it gives
 * their entries among its own from now on.  False as before.
 */
extern bool gs_index_gather_merge(GsIndexGather *gather, GsSortState *sort);

#endif							/* GPUSORT_INDEX_GATHER_H */
