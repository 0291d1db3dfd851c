/*-------------------------------------------------------------------------
 *
 * index_scan.h
 *	  The rows of a table whose index is built.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INDEX_SCAN_H
#define GPUSORT_INDEX_SCAN_H

#include "access/tableam.h"
#include "executor/tuptable.h"
#include "nodes/execnodes.h"

/* Takes a row (index_row.h), which is in the slot until it returns. */
typedef void (*GsIndexScanEmit) (void *arg, TupleTableSlot *row);

typedef struct GsIndexScanTarget
{
	GsIndexScanEmit put;
	void	   *arg;
	TupleDesc	desc;			/* of the rows */
	bool		any_order;		/* rows need not come in the order of their heap TIDs */
} GsIndexScanTarget;

/*
 * Scans the table, a heap; or, if that is not NULL, the share that falls to this process of a
 * parallel scan.  Returns how many tuples there were.
 */
extern double gs_index_scan(Relation heap, Relation index, IndexInfo *info,
							ParallelTableScanDesc parallel, bool progress,
							const GsIndexScanTarget *target);

#endif							/* GPUSORT_INDEX_SCAN_H */
