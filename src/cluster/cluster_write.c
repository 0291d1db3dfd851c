/*-------------------------------------------------------------------------
 *
 * cluster_write.c
 *	  Writes the tuples of the new table, in the order in which they come.
 *
 * If no tuple is linked to another one that is copied, as in most tables, the pages are formed
 * here: the same ones as those of PostgreSQL's rewriteheap.c, with the same freezing and the same
 * TOAST, but logged and written some at a time.  If there is a link, or logical decoding has to
 * know the new TID of each row, rewriteheap.c writes the whole table (README.md).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "cluster/cluster.h"
#include "guc.h"

#include "access/heapam.h"
#include "access/heaptoast.h"
#include "access/rewriteheap.h"
#include "access/transam.h"
#include "access/xlog.h"
#include "catalog/catalog.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

struct GsClusterWriter
{
	RewriteState rewrite;		/* NULL: pages are formed here */

	const GsClusterCopy *copy;
	Relation	table;
	TransactionId frozen_xmin;	/* that heap_freeze_tuple() froze last */
	Size		reserved;		/* bytes of a page that stay free */
	XLogRecPtr	sync_start;
	BlockNumber nblocks;		/* of the file, without those of pages */
	int			npages;			/* with tuples; all but the last are full */
	Page		pages[GS_MAX_LOGGED_PAGES];
};

bool
gs_cluster_is_linked(HeapTuple tuple, TransactionId oldest_xmin)
{
	const HeapTupleHeader header = tuple->t_data;

	/*
	 * To a later version: updated, and not only locked.  rewrite_heap_tuple() also leaves out rows
	 * that were moved to another partition, and updaters of a multixact that aborted.
	 */
	if ((header->t_infomask & HEAP_XMAX_INVALID) == 0 &&
		!HEAP_XMAX_IS_LOCKED_ONLY(header->t_infomask) &&
		!ItemPointerEquals(&tuple->t_self, &header->t_ctid))
		return true;
	/* an earlier version is not dead, because some transaction may not see that it was updated */
	return (header->t_infomask & HEAP_UPDATED) != 0 &&
		!TransactionIdPrecedes(HeapTupleHeaderGetXmin(header), oldest_xmin);
}

GsClusterWriter *
gs_cluster_write_begin(const GsClusterCopy *copy, bool has_links)
{
	GsClusterWriter *writer = palloc0(sizeof(GsClusterWriter));

	if (has_links || RelationIsAccessibleInLogicalDecoding(copy->old_heap))
	{
		if (gpusort_debug_plan)
			ereport(NOTICE,
					(errmsg("sorted rows of table \"%s\" are written by PostgreSQL",
							RelationGetRelationName(copy->old_heap)),
					 gs_errdetail_reason(has_links ? "versions of rows that old transactions may "
										 "see are linked to later ones" :
										 "logical decoding uses the table as a catalog")));
		writer->rewrite = begin_heap_rewrite(copy->old_heap, copy->new_heap, copy->oldest_xmin,
											 copy->freeze_xid, copy->freeze_multi);
		return writer;
	}
	writer->copy = copy;
	writer->table = copy->new_heap;
	writer->reserved = RelationGetTargetPageFreeSpace(writer->table, HEAP_DEFAULT_FILLFACTOR);
	writer->sync_start = gs_page_sync_begin();
	writer->nblocks = RelationGetNumberOfBlocks(writer->table);
	for (int i = 0; i < GS_MAX_LOGGED_PAGES; i++)
		writer->pages[i] = gs_page_alloc(CurrentMemoryContext);
	return writer;
}

/* ---------------------------------------------------------------- a tuple's header */

/*
 * Freezes what is old enough.  heap_freeze_tuple() takes much longer than the rest of a header, but
 * what it does to a tuple that is neither deleted nor locked depends only on xmin.
 *
 * Equal numbers of xmin are the same transaction, also after a wraparound: frozen_xmin is never
 * that of a tuple that was frozen before, so it is not before relfrozenxid, and neither is that of
 * any other tuple that is not frozen.
 */
static inline void
freeze(GsClusterWriter *writer, HeapTupleHeader header)
{
	const GsClusterCopy *copy = writer->copy;
	const bool	has_only_xmin = HeapTupleHeaderGetRawXmax(header) == InvalidTransactionId &&
		(header->t_infomask & (HEAP_MOVED | HEAP_XMAX_IS_MULTI)) == 0;

	if (has_only_xmin && HeapTupleHeaderXminFrozen(header))
		return;
	if (has_only_xmin && HeapTupleHeaderGetRawXmin(header) == writer->frozen_xmin)
	{
		header->t_infomask |= HEAP_XMIN_FROZEN;
		return;
	}
	(void) heap_freeze_tuple(header, copy->old_heap->rd_rel->relfrozenxid,
							 copy->old_heap->rd_rel->relminmxid, copy->freeze_xid,
							 copy->freeze_multi);
	if (has_only_xmin && HeapTupleHeaderXminFrozen(header))
		writer->frozen_xmin = HeapTupleHeaderGetRawXmin(header);
}

/* Sets what is true of the version of a row, without what linked it to others. */
static inline void
set_version(GsClusterWriter *writer, HeapTupleHeader header, HeapTupleHeader old)
{
	header->t_choice.t_heap = old->t_choice.t_heap;
	header->t_infomask =
		(header->t_infomask & ~HEAP_XACT_MASK) | (old->t_infomask & HEAP_XACT_MASK);
	header->t_infomask2 &= ~HEAP2_XACT_MASK;
	freeze(writer, header);
}

/* --------------------------------------------------------------------- pages */

static void
write_pages(GsClusterWriter *writer)
{
	BlockNumber blocks[GS_MAX_LOGGED_PAGES];

	if (writer->npages == 0)
		return;
	for (int i = 0; i < writer->npages; i++)
		blocks[i] = writer->nblocks + i;
	gs_write_pages(writer->table, writer->npages, blocks, writer->pages, writer->nblocks);
	writer->nblocks += writer->npages;
	writer->npages = 0;
}

/* Puts the last page in place that has room for a tuple. */
static inline Page
page_for(GsClusterWriter *writer, Size nbytes)
{
	Page		page;

	if (writer->npages > 0)
	{
		page = writer->pages[writer->npages - 1];
		if (PageGetHeapFreeSpace(page) >= nbytes + writer->reserved)
			return page;
	}
	if (writer->npages == GS_MAX_LOGGED_PAGES)
		write_pages(writer);
	page = writer->pages[writer->npages++];
	PageInit(page, BLCKSZ, 0);
	return page;
}

static inline void
add_to_page(GsClusterWriter *writer, const HeapTupleData *tuple)
{
	Page		page = page_for(writer, MAXALIGN(tuple->t_len));
	const OffsetNumber offset = PageAddItem(page, (char *) tuple->t_data, tuple->t_len,
											InvalidOffsetNumber, false, true);
	HeapTupleHeader header;

	if (offset == InvalidOffsetNumber)
		elog(ERROR, "failed to add tuple");
	header = (HeapTupleHeader) PageGetItem(page, PageGetItemId(page, offset));
	ItemPointerSet(&header->t_ctid, writer->nblocks + writer->npages - 1, offset);
}

static pg_noinline void
report_size(Size size)
{
	ereport(ERROR,
			(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			 errmsg("row is too big: size %zu, maximum size %zu", size, MaxHeapTupleSize)));
}

void
gs_cluster_write_add(GsClusterWriter *writer, HeapTuple old, HeapTuple tuple)
{
	HeapTuple	toasted = tuple;

	if (writer->rewrite != NULL)
	{
		rewrite_heap_tuple(writer->rewrite, old, tuple);
		return;
	}
	set_version(writer, tuple->t_data, old->t_data);
	if (HeapTupleHasExternal(tuple) || tuple->t_len > TOAST_TUPLE_THRESHOLD)
		toasted = heap_toast_insert_or_update(writer->table, tuple, NULL,
											  HEAP_INSERT_SKIP_FSM | HEAP_INSERT_NO_LOGICAL);
	if (MAXALIGN(toasted->t_len) > MaxHeapTupleSize)
		report_size(MAXALIGN(toasted->t_len));
	add_to_page(writer, toasted);
	if (toasted != tuple)
		heap_freetuple(toasted);
}

void
gs_cluster_write_end(GsClusterWriter *writer)
{
	if (writer->rewrite != NULL)
		end_heap_rewrite(writer->rewrite);
	else
	{
		write_pages(writer);
		gs_page_sync_end(writer->table, writer->sync_start);
	}
}
