/*-------------------------------------------------------------------------
 *
 * build_scan.h
 *	  Scans the table of an index that is built.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BUILD_SCAN_H
#define GPUSORT_BUILD_SCAN_H

#include "access/heapam.h"
#include "access/tableam.h"
#include "nodes/execnodes.h"

/* Where the entries go. */
typedef struct GsBuildSink
{
	TupleDesc	desc;			/* of a row: what is indexed, and the heap TID (build_row.h) */
	bool		any_order;		/* rows need not come in the order of their heap TIDs */
	Size		block_bytes;	/* rows of a block that have more bytes may come in parts, each of
								 * which is in order; 0: only together */
	bool		stored;			/* values become what an index tuple stores: none is out of line */

	/* The row is valid until the function returns. */
	void		(*add) (void *arg, TupleTableSlot *row);
	void	   *arg;
} GsBuildSink;

/*
 * Adds the entries of a heap to a sink; or, if parallel is not NULL, those of this process's share
 * of a parallel scan, whose blocks may begin again with lower ones once.  progress: reports it.
 * Returns the number of tuples.
 */
extern double gs_build_scan(const GsBuildSink *sink, Relation heap, Relation index,
							IndexInfo *info, ParallelTableScanDesc parallel, bool progress);

/*
 * The root of the HOT chain of a tuple on the scan's page; roots is what heap_get_root_tuples() has
 * found there.  ERROR if there is none.
 */
extern OffsetNumber gs_build_scan_root(HeapScanDesc scan, OffsetNumber offset,
									   const OffsetNumber *roots);

#endif							/* GPUSORT_BUILD_SCAN_H */
