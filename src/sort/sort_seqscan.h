/*-------------------------------------------------------------------------
 *
 * sort_seqscan.h
 *	  The rows of a GpuSort's child; those of a sequential scan page by page.
 *
 * The executor asks a node for one row at a time, through five functions down to
 * the heap.  For a sequential scan that is a third of all that loading a row
 * costs, and hardly any of it is about the row: the scan has the page, and knows
 * which tuples of it are visible.  So the child is asked for the first row of a
 * page only, and the rest of the page is read here, as the heap would have.
 * Whatever the child is, its rows come in the same order and in the same slot.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_SEQSCAN_H
#define GPUSORT_SORT_SEQSCAN_H

#include "access/heapam.h"
#include "nodes/execnodes.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"

/*
 * How many tuples ahead memory is asked for, and how much of each.  A scan
 * meets its tuples in an order that the processor does not foresee, from the end of
 * a page to its front.  10 M rows of 166 bytes to a device, seconds until the
 * first one comes back: not ahead 0.62, two 0.47, six 0.47 to 0.50; the whole
 * sort 0.88, 0.68, 0.64 (16-core Xeon with an H200, 2026-11-21).
 */
#define GS_SEQSCAN_PREFETCH_ROWS		6
#define GS_SEQSCAN_PREFETCH_BYTES	192
#define GS_CACHE_LINE		64

typedef struct GsSeqScan
{
	PlanState  *child;

	/* a page being read; next == end: ask the child */
	const OffsetNumber *next;	/* of its visible tuples */
	const OffsetNumber *end;
	Page		page;
	SeqScanState *seq;			/* the scan whose page it is */
	HeapScanDesc heap;			/* the same */
	bool		plain;			/* its tuples are its rows */
} GsSeqScan;

/* Begins to read a child, from where it is. */
extern void gs_seqscan_begin(GsSeqScan *scan, PlanState *child);

/* Not for others: the child's next row, and the rest of its page if it is on one. */
extern TupleTableSlot *gs_seqscan_next_page(GsSeqScan *scan);

/* Not for others: the next row of the page that the scan's filter lets pass, projected. */
extern TupleTableSlot *gs_seqscan_next_computed(GsSeqScan *scan);

/* Asks for the memory of a page's tuple. */
static inline void
gs_seqscan_prefetch(Page page, OffsetNumber offset)
{
	const char *tuple = PageGetItem(page, PageGetItemId(page, offset));

	for (int at = 0; at < GS_SEQSCAN_PREFETCH_BYTES; at += GS_CACHE_LINE)
		__builtin_prefetch(tuple + at);
}

/* Has the scan's slot hold the next tuple of the page. */
static inline TupleTableSlot *
gs_seqscan_next_tuple(GsSeqScan *scan)
{
	TupleTableSlot *slot = scan->seq->ss.ss_ScanTupleSlot;
	HeapTuple	tuple = &scan->heap->rs_ctup;
	OffsetNumber offset = *scan->next++;
	ItemId		item = PageGetItemId(scan->page, offset);

	/* the slot holds rs_ctup and a pin of its page already */
	tuple->t_data = (HeapTupleHeader) PageGetItem(scan->page, item);
	tuple->t_len = ItemIdGetLength(item);
	ItemPointerSetOffsetNumber(&tuple->t_self, offset);
	scan->heap->rs_cindex++;
	((HeapTupleTableSlot *) slot)->off = 0;
	slot->tts_nvalid = 0;
	slot->tts_tid = tuple->t_self;
	if (scan->end - scan->next >= GS_SEQSCAN_PREFETCH_ROWS)
		gs_seqscan_prefetch(scan->page, scan->next[GS_SEQSCAN_PREFETCH_ROWS - 1]);
	return slot;
}

/* The next row; an empty slot or NULL after the last. */
static inline TupleTableSlot *
gs_seqscan_next(GsSeqScan *scan)
{
	if (scan->next == scan->end)
		return gs_seqscan_next_page(scan);
	return scan->plain ? gs_seqscan_next_tuple(scan) : gs_seqscan_next_computed(scan);
}

#endif							/* GPUSORT_SORT_SEQSCAN_H */
