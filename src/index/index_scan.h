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
#include "executor/tuptable.h"
#include "nodes/execnodes.h"

/* Receives a row (index_row.h), which is in the slot until it returns. */
typedef void (*GsIndexScanEmit) (void *arg, TupleTableSlot *row);

typedef struct GsIndexScanTarget
{
	GsIndexScanEmit emit;
	void	   *arg;
	TupleDesc	desc;			/* type of the rows */
	bool		any_order;		/* else rows come in the order of their heap TIDs */
} GsIndexScanTarget;

/*
 * Scans a heap, or, if parallel is not NULL, this process's share of a parallel
 * scan.  Returns the number of tuples.
 */
extern double gs_index_scan(Relation heap, Relation index, IndexInfo *info,
							ParallelTableScanDesc parallel, bool progress,
							const GsIndexScanTarget *target);

/*
 * The root of the HOT chain of a tuple on the scan's page; roots is what heap_get_root_tuples() has
 * found there.  ERROR if there is none.
 */
extern OffsetNumber gs_index_scan_root(HeapScanDesc scan, OffsetNumber offset,
									   const OffsetNumber *roots);

/* The number of tuples that a scan will probably return. */
extern double gs_index_expected_rows(Relation heap);

/* The bytes that values of these columns will probably have. */
extern int	gs_index_expected_width(TupleDesc desc);

#endif							/* GPUSORT_INDEX_SCAN_H */
