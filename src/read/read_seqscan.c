/*-------------------------------------------------------------------------
 *
 * read_seqscan.c
 *	  Reads the rows of a GpuSort's child; those of a sequential scan page by page.
 *
 * Between two rows of a page this leaves out ExecProcNode(), ExecScan(), the table
 * access method, and the check for interrupts, which is made once a page.  With a
 * filter or a projection, which are the scan's own and may take long, it is made
 * for each row.  What these functions count is counted here: rows and filtered
 * rows for EXPLAIN ANALYZE, and tuples for the statistics.
 *
 * The scan's state is as if it had read each row itself, so that it can be read
 * on, rescanned or ended at any row, also after an ERROR.  A caller that passes
 * tuples without their slot leaves the last one of each page to the scan.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pg_compat.h"
#include "read/read_seqscan.h"

#include "executor/executor.h"
#include "executor/instrument.h"
#include "miscadmin.h"

/* The scan that returned the child's last row; NULL: another node did, or changed the row. */
static SeqScanState *
find_scan(PlanState *node)
{
	while (IsA(node, AppendState))
	{
		AppendState *append = (AppendState *) node;

		if (append->as_nasyncplans > 0 || append->as_whichplan < 0)
			return NULL;
		node = append->appendplans[append->as_whichplan];
	}
	return IsA(node, SeqScanState) ? (SeqScanState *) node : NULL;
}

/* Counts rows in the nodes from the child down to the scan. */
static void
count_rows(const GsSeqScan *scan, double nrows)
{
	PlanState  *node = scan->child;

	for (;;)
	{
		if (node->instrument != NULL)
			InstrUpdateTupleCount(node->instrument, nrows);
		if (!IsA(node, AppendState))
			return;
		node = ((AppendState *) node)->appendplans[((AppendState *) node)->as_whichplan];
	}
}

/*
 * Takes over the page of the child's last row, if it is a heap's page of which the
 * scan knows all visible tuples.
 */
static void
read_page(GsSeqScan *scan, const TupleTableSlot *row)
{
	SeqScanState *seq = find_scan(scan->child);
	HeapScanDesc heap;

	if (seq == NULL || seq->ss.ss_currentScanDesc == NULL ||
		seq->ss.ps.state->es_epq_active != NULL ||
		!ScanDirectionIsForward(seq->ss.ps.state->es_direction) ||
		!gs_is_heap(seq->ss.ss_currentScanDesc->rs_rd))
		return;
	heap = (HeapScanDesc) seq->ss.ss_currentScanDesc;
	if (!gs_is_pagemode(heap) || heap->rs_base.rs_nkeys > 0 ||
		!BufferIsValid(heap->rs_cbuf) ||
		!TTS_IS_BUFFERTUPLE(seq->ss.ss_ScanTupleSlot) ||
		((HeapTupleTableSlot *) seq->ss.ss_ScanTupleSlot)->tuple != &heap->rs_ctup)
		return;

	scan->seq = seq;
	scan->heap = heap;
	scan->page = BufferGetPage(heap->rs_cbuf);
	Assert(heap->rs_cindex < heap->rs_ntuples);
	scan->next = &heap->rs_vistuples[heap->rs_cindex + 1];
	scan->end = &heap->rs_vistuples[heap->rs_ntuples];
	scan->plain = seq->ss.ps.qual == NULL && seq->ss.ps.ps_ProjInfo == NULL &&
		row == seq->ss.ss_ScanTupleSlot;
	for (int i = 0; i < GS_SEQSCAN_PREFETCH_ROWS && i < scan->end - scan->next; i++)
		gs_seqscan_prefetch(scan->page, scan->next[i]);
	gs_count_heap_rows(heap->rs_base.rs_rd, scan->end - scan->next);
	if (scan->plain)
		count_rows(scan, scan->end - scan->next);
}

TupleTableSlot *
gs_seqscan_next_page(GsSeqScan *scan)
{
	TupleTableSlot *row;

	CHECK_FOR_INTERRUPTS();
	row = ExecProcNode(scan->child);
	if (!TupIsNull(row))
		read_page(scan, row);
	return row;
}

TupleTableSlot *
gs_seqscan_next_computed(GsSeqScan *scan)
{
	PlanState  *node = &scan->seq->ss.ps;
	ExprContext *econtext = node->ps_ExprContext;

	while (scan->next < scan->end)
	{
		CHECK_FOR_INTERRUPTS();
		econtext->ecxt_scantuple = gs_seqscan_next_tuple(scan);
		ResetExprContext(econtext);
		if (ExecQual(node->qual, econtext))
		{
			count_rows(scan, 1);
			return node->ps_ProjInfo != NULL ? ExecProject(node->ps_ProjInfo) :
				econtext->ecxt_scantuple;
		}
		InstrCountFiltered1(node, 1);
	}
	return gs_seqscan_next_page(scan);
}
