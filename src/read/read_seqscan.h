/*-------------------------------------------------------------------------
 *
 * read_seqscan.h
 *	  Reads the rows of a GpuSort's child; those of a sequential scan page by page.
 *
 * The executor reads one row at a time, through five functions down to the heap.
 * For a sequential scan this is a third of the time in which a sort reads a row,
 * although the scan has the page and knows which of its tuples are visible.  So
 * the child returns only the first row of a page, and the other rows are read
 * here, as the heap would do.  Whatever the child is, its rows come in the same
 * order and in the same slot.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_READ_SEQSCAN_H
#define GPUSORT_READ_SEQSCAN_H

#include "access/heapam.h"
#include "nodes/execnodes.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"

#include "common/basics.h"

/*
 * How many tuples ahead memory is prefetched, and how many bytes of each.  A scan reads a page from
 * its end to its start, which the processor does not predict.  10 M rows of 166 bytes, on a device:
 * 0.88 s without, 0.68 s with two tuples, 0.64 s with six (16-core Xeon, H200, 2026-11-21).
 */
#define GS_SEQSCAN_PREFETCH_ROWS		6
#define GS_SEQSCAN_PREFETCH_BYTES	192

/* Reads from the child's current position; begins with child set, and zeroes. */
typedef struct GsSeqScan
{
	PlanState  *child;

	/* the page being read; next == end: none */
	const OffsetNumber *next;	/* of its visible tuples */
	const OffsetNumber *end;
	Page		page;
	SeqScanState *seq;			/* the scan that reads the page */
	HeapScanDesc heap;			/* its heap scan */
	bool		plain;			/* it has no filter and no projection */
} GsSeqScan;

/* Not for callers: the child's next row; following ones are read from its page, if it is on one. */
extern TupleTableSlot *gs_seqscan_next_page(GsSeqScan *scan);

/* Not for callers: the next row of the page that passes the filter, projected. */
extern TupleTableSlot *gs_seqscan_next_computed(GsSeqScan *scan);

/* Prefetches a tuple of a page. */
static inline void
gs_seqscan_prefetch(Page page, OffsetNumber offset)
{
	const char *tuple = PageGetItem(page, PageGetItemId(page, offset));

	for (int at = 0; at < GS_SEQSCAN_PREFETCH_BYTES; at += GS_CACHE_LINE)
		__builtin_prefetch(tuple + at);
}

/*
 * Is there a next tuple that gs_seqscan_skip() can pass?  The last one of a page is
 * not: gs_seqscan_next() returns it, so that slot and scan agree again.
 */
static inline bool
gs_seqscan_can_skip(const GsSeqScan *scan)
{
	return scan->plain && scan->end - scan->next > 1;
}

/* The next tuple of the page; *nbytes becomes its length. */
static inline HeapTupleHeader
gs_seqscan_tuple(const GsSeqScan *scan, uint32 *nbytes)
{
	ItemId		item = PageGetItemId(scan->page, *scan->next);

	Assert(ItemIdIsNormal(item));
	*nbytes = ItemIdGetLength(item);
	return (HeapTupleHeader) PageGetItem(scan->page, item);
}

/* Passes the next tuple of the page, and leaves the slot as it is. */
static inline void
gs_seqscan_skip(GsSeqScan *scan)
{
	scan->next++;
	scan->heap->rs_cindex++;
	if (scan->end - scan->next >= GS_SEQSCAN_PREFETCH_ROWS)
		gs_seqscan_prefetch(scan->page, scan->next[GS_SEQSCAN_PREFETCH_ROWS - 1]);
}

/* Stores the next tuple of the page in the scan's slot. */
static inline TupleTableSlot *
gs_seqscan_next_tuple(GsSeqScan *scan)
{
	TupleTableSlot *slot = scan->seq->ss.ss_ScanTupleSlot;
	HeapTuple	tuple = &scan->heap->rs_ctup;

	Assert(scan->page == BufferGetPage(scan->heap->rs_cbuf));
	/* the slot already refers to rs_ctup, and pins its page */
	tuple->t_data = gs_seqscan_tuple(scan, &tuple->t_len);
	ItemPointerSetOffsetNumber(&tuple->t_self, *scan->next);
	((HeapTupleTableSlot *) slot)->off = 0;
	slot->tts_nvalid = 0;
	slot->tts_tid = tuple->t_self;
	gs_seqscan_skip(scan);
	return slot;
}

/*
 * The next row; an empty slot or NULL after the last.  Checks for interrupts once a page or more.
 */
static inline TupleTableSlot *
gs_seqscan_next(GsSeqScan *scan)
{
	if (scan->next == scan->end)
		return gs_seqscan_next_page(scan);
	return scan->plain ? gs_seqscan_next_tuple(scan) : gs_seqscan_next_computed(scan);
}

#endif							/* GPUSORT_READ_SEQSCAN_H */
