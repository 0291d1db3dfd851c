/*-------------------------------------------------------------------------
 *
 * index_gather.h
 *	  Passes entries that workers of an index build have sorted to the leader.
 *
 * In shared memory, with files:
 *
 *	  leader   init { } prepare merge
 *	  worker   attach { } emit
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

/* The files for the runs of a worker. */
extern GsRunFiles gs_index_gather_files(GsIndexGather *gather, int worker);

/*
 * Leaves the entries of a worker's performed sort to the leader, except those that
 * it has sent.  False: its engine failed and lost the entries.
 */
extern bool gs_index_gather_emit(GsIndexGather *gather, int worker, GsSortState *sort);

/*
 * Makes runs of the entries of the leader's performed sort, unless a device has them
 * all.  False as above.
 */
extern bool gs_index_gather_prepare(GsSortState *sort);

/*
 * Adds the entries of the workers, all of which have finished, to the leader's
 * performed sort.  False as above.
 */
extern bool gs_index_gather_merge(GsIndexGather *gather, GsSortState *sort);

#endif							/* GPUSORT_INDEX_GATHER_H */
