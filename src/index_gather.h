/*-------------------------------------------------------------------------
 *
 * index_gather.h
 *	  Merges the sorted entries of the participants of an index build.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INDEX_GATHER_H
#define GPUSORT_INDEX_GATHER_H

#include "executor/tqueue.h"

#include "sort_state.h"

typedef struct GsIndexGather GsIndexGather;

/*
 * Of this process's sort, which is done, and of others that send theirs; in the current
 * memory context.  All of them sort by the columns of this one.
 */
extern GsIndexGather *gs_index_gather_create(GsSortState *own, TupleQueueReader **readers,
											 int nreaders);

/* The next row, there until the next call; NULL after the last. */
extern MinimalTuple gs_index_gather_next(GsIndexGather *gather);

#endif							/* GPUSORT_INDEX_GATHER_H */
