/*-------------------------------------------------------------------------
 *
 * index_scan.c
 *	  The rows of a table whose index is built.
 *
 * The table is scanned as it is for every index build: table_index_build_scan() knows about
 * visibility, HOT chains, expressions and predicates, and calls back for each entry.
 *
 * That takes 100 ns a row, most of it to find out one by one what is true of a whole page.
 * Where all tuples of a page are live, or the scan's snapshot has found those it sees, and the
 * index is one of plain columns, the rest of the page is read here as soon as the scan has
 * given the first of it; and then the pages behind it, as long as they are such.  The scan goes
 * on where that ends.
 *
 * Entries with equal keys are to be in the order of their TIDs.  A scan from the first block on
 * gives them block by block, but within one an entry of a HOT chain has the TID of the
 * chain's root.  So rows of such a block are collected, and put in order first.
 *
 * Values that are stored out of line are fetched when they come, as an index never has
 * pointers to them, and what they point to may be gone by the time that the rows leave.  Those
 * that are too long for a btree as they are, as an expression can make them, are compressed.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "index/index_row.h"
#include "index/index_scan.h"
#include "pg_compat.h"
#include "key/key_deform.h"
#include "key/key_row.h"
#include "sort/sort_seqscan.h"

#include "access/detoast.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "storage/procarray.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* A btree has no tuple that is longer: a third of a page. */
#define LONGEST_TUPLE	(BLCKSZ / 3)

/* A row of the block whose rows come. */
typedef struct BlockRow
{
	OffsetNumber offset;
	Size		at;				/* in bytes */
} BlockRow;

typedef struct EntryScan
{
	GsIndexScanTarget target;
	IndexInfo  *info;
	HeapScanDesc heap;
	TupleDesc	table;			/* the type of its tuples */
	TupleDesc	index;			/* of the index's */
	int			ncolumns;		/* of the index */
	int			nvariable;		/* of them: of variable width */
	int		   *variable;		/* which */
	TupleTableSlot *values;		/* virtual: a row */
	MemoryContext fetched;		/* values that were stored out of line, or were too long */
	bool		any_fetched;
	GsRowForm	form;			/* of a row that is short */
	char	   *formed;			/* one of them */

	/* pages that are read here */
	bool		by_page;		/* are there any? */
	bool		progress;		/* is reported */
	GsDeform   *deform;			/* NULL: a column twice, heap_getattr() then */
	TransactionId oldest_xmin;	/* that somebody may want to see, unless there is a snapshot */
	BlockNumber asked;			/* the latest page that the scan was at, and its rest asked for */
	OffsetNumber offsets[MaxHeapTuplesPerPage];		/* of its tuples to be read */
	int			noffsets;
	double		ntaken;			/* tuples read so far, in all */

	/* rows of a block, before they are put */
	BlockNumber block;
	BlockRow   *rows;
	int			nrows;
	int			rows_allocated;
	bool		in_order;		/* of their TIDs */
	bool		in_chains;		/* one that the scan gave is part of a HOT chain */
	char	   *bytes;			/* of the rows, 8-aligned each */
	Size		nbytes;
	Size		bytes_allocated;
	TupleTableSlot *row;		/* of one of them */
} EntryScan;

/* ------------------------------------------------------- rows until their block ends */

static int
compare_offsets(const void *a, const void *b)
{
	return (int) ((const BlockRow *) a)->offset - (int) ((const BlockRow *) b)->offset;
}

/* All rows of a block have come, or what still comes is behind them: they are put. */
static void
emit_block(EntryScan *scan)
{
	if (!scan->in_order)
		qsort(scan->rows, scan->nrows, sizeof(BlockRow), compare_offsets);
	for (int i = 0; i < scan->nrows; i++)
	{
		ExecStoreMinimalTuple((MinimalTuple) (scan->bytes + scan->rows[i].at), scan->row, false);
		scan->target.put(scan->target.arg, scan->row);
	}
	ExecClearTuple(scan->row);
	scan->nrows = 0;
	scan->nbytes = 0;
	scan->in_order = true;
}

/* Rows of another block come. */
static void
begin_block(EntryScan *scan, BlockNumber block)
{
	emit_block(scan);
	scan->block = block;
	scan->in_chains = false;
}

/* Room for another row of the block. */
static char *
next_row(EntryScan *scan, OffsetNumber offset, Size nbytes)
{
	if (scan->nrows == scan->rows_allocated)
	{
		scan->rows_allocated *= 2;
		scan->rows = repalloc(scan->rows, sizeof(BlockRow) * scan->rows_allocated);
	}
	if (scan->nbytes + nbytes > scan->bytes_allocated)
	{
		scan->bytes_allocated = 2 * (scan->nbytes + nbytes);
		scan->bytes = repalloc_huge(scan->bytes, scan->bytes_allocated);
	}
	if (scan->nrows > 0 && scan->rows[scan->nrows - 1].offset > offset)
		scan->in_order = false;
	scan->rows[scan->nrows++] = (BlockRow) {.offset = offset, .at = scan->nbytes};
	return scan->bytes + scan->nbytes;
}

/*
 * Puts the row in the slot of values: as a tuple, which goes through the sort faster, if that
 * is made easily.
 */
static inline void
emit_now(EntryScan *scan)
{
	const Size	nbytes = gs_row_form_short(&scan->form, scan->values, scan->formed);

	if (nbytes == 0)
	{
		scan->target.put(scan->target.arg, scan->values);
		return;
	}
	((MinimalTuple) scan->formed)->t_len = nbytes;
	ExecStoreMinimalTuple((MinimalTuple) scan->formed, scan->row, false);
	scan->target.put(scan->target.arg, scan->row);
}

/* The same, but at the end of its block if order matters. */
static void
add_slot(EntryScan *scan, OffsetNumber offset)
{
	GsRowSource source;

	if (scan->target.any_order)
	{
		emit_now(scan);
		return;
	}
	gs_row_source_init(&source, scan->values);
	gs_row_store(&source, scan->values, next_row(scan, offset, source.nbytes));
	scan->nbytes += MAXALIGN(source.nbytes);
}

/* ------------------------------------------------------------------------ a row */

static pg_noinline Datum
fetch_value(EntryScan *scan, Datum value)
{
	MemoryContext old = MemoryContextSwitchTo(scan->fetched);

	value = PointerGetDatum(detoast_external_attr((struct varlena *) DatumGetPointer(value)));
	scan->any_fetched = true;
	MemoryContextSwitchTo(old);
	return value;
}

/*
 * Has the values of the row in the slot be those of its index tuple, compressed.  If there can
 * be none it is an ERROR, as early as in PostgreSQL's own builds.
 */
static pg_noinline void
compress_values(EntryScan *scan)
{
	Datum	   *values = scan->values->tts_values;
	bool	   *nulls = scan->values->tts_isnull;
	MemoryContext old = MemoryContextSwitchTo(scan->fetched);

	index_deform_tuple(index_form_tuple(scan->index, values, nulls), scan->index, values, nulls);
	scan->any_fetched = true;
	MemoryContextSwitchTo(old);
}

/* Has values of the row in the slot be such as an index can store. */
static inline void
fetch_values(EntryScan *scan)
{
	Datum	   *values = scan->values->tts_values;
	const bool *nulls = scan->values->tts_isnull;
	Size		nbytes = 0;

	for (int i = 0; i < scan->nvariable; i++)
	{
		const int	column = scan->variable[i];

		if (nulls[column])
			continue;
		if (unlikely(VARATT_IS_EXTERNAL(DatumGetPointer(values[column]))))
			values[column] = fetch_value(scan, values[column]);
		nbytes += VARSIZE_ANY(DatumGetPointer(values[column]));
	}
	if (unlikely(nbytes > LONGEST_TUPLE))
		compress_values(scan);
}

static inline void
reset_fetched(EntryScan *scan)
{
	if (unlikely(scan->any_fetched))
		MemoryContextReset(scan->fetched);
	scan->any_fetched = false;
}

static inline void
set_tid(EntryScan *scan, BlockNumber block, OffsetNumber offset, bool alive)
{
	scan->values->tts_values[scan->ncolumns] = Int64GetDatum(gs_index_row_tid(block, offset, alive));
}

/* ------------------------------------------------------------- pages read here */

static inline HeapTupleHeader
tuple_at(Page page, OffsetNumber offset)
{
	return (HeapTupleHeader) PageGetItem(page, PageGetItemId(page, offset));
}

/* Is a tuple live, as the scan would find it?  Its page is locked. */
static bool
is_live(const EntryScan *scan, Buffer buffer, OffsetNumber offset)
{
	Page		page = BufferGetPage(buffer);
	HeapTupleData tuple = {
		.t_data = tuple_at(page, offset),
		.t_len = ItemIdGetLength(PageGetItemId(page, offset)),
		.t_tableOid = RelationGetRelid(scan->heap->rs_base.rs_rd)
	};

	ItemPointerSet(&tuple.t_self, BufferGetBlockNumber(buffer), offset);
	return HeapTupleSatisfiesVacuum(&tuple, scan->oldest_xmin, buffer) == HEAPTUPLE_LIVE;
}

/* Lists the tuples of a page from an offset on.  False: not all of them are live. */
static bool
list_live_tuples(EntryScan *scan, Buffer buffer, OffsetNumber first)
{
	Page		page = BufferGetPage(buffer);
	OffsetNumber last;
	bool		all_visible;
	bool		live = true;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	last = PageGetMaxOffsetNumber(page);
	all_visible = PageIsAllVisible(page);
	scan->noffsets = 0;
	for (OffsetNumber offset = first; offset <= last && live; offset++)
	{
		if (!ItemIdIsNormal(PageGetItemId(page, offset)))
			continue;
		live = all_visible || is_live(scan, buffer, offset);
		scan->offsets[scan->noffsets++] = offset;
	}
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	return live;
}

/* Lists the tuples of the scan's page behind the one that it is at.  False: they are the scan's. */
static bool
list_remaining(EntryScan *scan)
{
	HeapScanDesc heap = scan->heap;

	if (!gs_is_pagemode(heap))
		return list_live_tuples(scan, heap->rs_cbuf,
								OffsetNumberNext(ItemPointerGetOffsetNumber(&heap->rs_ctup.t_self)));
	scan->noffsets = 0;
	for (int i = heap->rs_cindex + 1; i < heap->rs_ntuples; i++)
		scan->offsets[scan->noffsets++] = heap->rs_vistuples[i];
	return true;
}

/* Has the scan go to its next page, and lists the tuples there.  False: it has to go itself. */
static bool
list_next_page(EntryScan *scan)
{
	HeapScanDesc heap = scan->heap;
	const BlockNumber next = gs_next_block(heap);
	Buffer		buffer;

	if (next == InvalidBlockNumber)
		return false;
	buffer = ReadBufferExtended(heap->rs_base.rs_rd, MAIN_FORKNUM, next, RBM_NORMAL,
								heap->rs_strategy);
	if (list_live_tuples(scan, buffer, FirstOffsetNumber))
	{
		gs_go_to_next_block(heap, buffer);
		return true;
	}
	ReleaseBuffer(buffer);
	return false;
}

/* Is one of the listed tuples part of a HOT chain?  All their memory is asked for on the way. */
static bool
has_chains(const EntryScan *scan, Page page)
{
	for (int i = 0; i < scan->noffsets; i++)
	{
		if (i + GS_SEQSCAN_PREFETCH_ROWS < scan->noffsets)
			gs_seqscan_prefetch(page, scan->offsets[i + GS_SEQSCAN_PREFETCH_ROWS]);
		if (HeapTupleHeaderIsHeapOnly(tuple_at(page, scan->offsets[i])))
			return true;
	}
	return false;
}

/* Puts a tuple's columns into the slot of values. */
static void
set_columns(EntryScan *scan, Page page, OffsetNumber offset)
{
	TupleTableSlot *slot = scan->values;
	HeapTupleData tuple;

	if (scan->deform != NULL &&
		gs_deform(scan->deform, tuple_at(page, offset), slot->tts_values, slot->tts_isnull))
		return;
	tuple.t_data = tuple_at(page, offset);
	tuple.t_len = ItemIdGetLength(PageGetItemId(page, offset));
	for (int i = 0; i < scan->ncolumns; i++)
		slot->tts_values[i] = heap_getattr(&tuple, scan->info->ii_IndexAttrNumbers[i], scan->table,
										   &slot->tts_isnull[i]);
}

/* Takes the listed tuples, which lie in the order of their TIDs. */
static void
add_presorted(EntryScan *scan, Page page, BlockNumber block)
{
	for (int i = 0; i < scan->noffsets; i++)
	{
		set_columns(scan, page, scan->offsets[i]);
		set_tid(scan, block, scan->offsets[i], true);
		fetch_values(scan);
		emit_now(scan);
		reset_fetched(scan);
	}
}

/* Takes the listed tuples, whose TIDs are those of their chains' roots. */
static void
read_chains(EntryScan *scan, Page page, BlockNumber block)
{
	OffsetNumber roots[MaxHeapTuplesPerPage];

	LockBuffer(scan->heap->rs_cbuf, BUFFER_LOCK_SHARE);
	heap_get_root_tuples(page, roots);
	LockBuffer(scan->heap->rs_cbuf, BUFFER_LOCK_UNLOCK);
	for (int i = 0; i < scan->noffsets; i++)
	{
		OffsetNumber offset = scan->offsets[i];

		set_columns(scan, page, offset);
		if (HeapTupleHeaderIsHeapOnly(tuple_at(page, offset)))
			offset = roots[offset - 1];
		if (offset == InvalidOffsetNumber)
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("failed to find the root of a heap-only tuple at (%u,%u) in table \"%s\"",
							block, scan->offsets[i], RelationGetRelationName(scan->heap->rs_base.rs_rd))));
		set_tid(scan, block, offset, true);
		fetch_values(scan);
		add_slot(scan, offset);
		reset_fetched(scan);
	}
}

/* Takes the listed tuples, the last of the scan's page. */
static void
read_listed(EntryScan *scan)
{
	HeapScanDesc heap = scan->heap;
	Page		page = BufferGetPage(heap->rs_cbuf);

	if (scan->in_chains || has_chains(scan, page))
		read_chains(scan, page, heap->rs_cblock);
	else
	{
		emit_block(scan);
		add_presorted(scan, page, heap->rs_cblock);
	}
	gs_skip_tuples(heap);
	scan->ntaken += scan->noffsets;
	gs_count_heap_rows(heap->rs_base.rs_rd, scan->noffsets);
}

/* Takes the rest of the scan's page, and the pages behind it, as far as they can be read here. */
static void
read_pages(EntryScan *scan)
{
	scan->asked = scan->block;
	if (!list_remaining(scan))
		return;
	read_listed(scan);
	while (list_next_page(scan))
	{
		CHECK_FOR_INTERRUPTS();
		if (scan->progress)
			pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_DONE, gs_blocks_done(scan->heap));
		begin_block(scan, scan->heap->rs_cblock);
		read_listed(scan);
	}
}

/* -------------------------------------------------------------------- the scan */

/* An IndexBuildCallback: the scan has come to a tuple. */
static void
collect(Relation index, ItemPointer tid, Datum *values, bool *nulls, bool alive, void *arg)
{
	EntryScan  *scan = arg;
	const BlockNumber block = ItemPointerGetBlockNumber(tid);
	const OffsetNumber offset = ItemPointerGetOffsetNumber(tid);

	if (block != scan->block)
		begin_block(scan, block);
	memcpy(scan->values->tts_values, values, sizeof(Datum) * scan->ncolumns);
	memcpy(scan->values->tts_isnull, nulls, sizeof(bool) * scan->ncolumns);
	set_tid(scan, block, offset, alive);
	fetch_values(scan);
	add_slot(scan, offset);
	reset_fetched(scan);
	if (HeapTupleIsHeapOnly(&scan->heap->rs_ctup))
		scan->in_chains = true;
	if (scan->by_page && scan->asked != block)
		read_pages(scan);
}

/* Are all columns of the index plain ones, of any tuple? */
static bool
is_plain(const IndexInfo *info)
{
	return info->ii_Expressions == NIL && info->ii_Predicate == NIL;
}

/* A row in it has no NULLs but those that are set; the last column never is one. */
static TupleTableSlot *
make_values(TupleDesc desc)
{
	TupleTableSlot *slot = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);

	memset(slot->tts_isnull, 0, sizeof(bool) * desc->natts);
	return ExecStoreVirtualTuple(slot);
}

static void
init_scan(EntryScan *scan, Relation heap, Relation index, IndexInfo *info, bool progress,
		  const GsIndexScanTarget *target)
{
	memset(scan, 0, sizeof(EntryScan));
	scan->target = *target;
	scan->info = info;
	scan->progress = progress;
	scan->fetched = AllocSetContextCreate(CurrentMemoryContext, "GpuSort index entry",
										  ALLOCSET_SMALL_SIZES);
	scan->table = RelationGetDescr(heap);
	scan->index = RelationGetDescr(index);
	scan->ncolumns = target->desc->natts - 1;
	scan->variable = palloc(sizeof(int) * scan->ncolumns);
	for (int i = 0; i < scan->ncolumns; i++)
	{
		if (TupleDescAttr(target->desc, i)->attlen == -1)
			scan->variable[scan->nvariable++] = i;
	}
	scan->values = make_values(target->desc);
	gs_row_form_init(&scan->form, target->desc);
	scan->formed = palloc(GS_ROW_SHORT);
	scan->row = MakeSingleTupleTableSlot(target->desc, &TTSOpsMinimalTuple);
	scan->by_page = is_plain(info);
	if (scan->by_page)
		scan->deform = gs_deform_create(scan->table, info->ii_IndexAttrNumbers, scan->ncolumns);
	if (!info->ii_Concurrent)
		scan->oldest_xmin = GetOldestNonRemovableTransactionId(heap);
	scan->asked = InvalidBlockNumber;
	scan->block = InvalidBlockNumber;
	scan->in_order = true;
	scan->rows_allocated = MaxHeapTuplesPerPage;
	scan->rows = palloc(sizeof(BlockRow) * scan->rows_allocated);
	scan->bytes_allocated = 2 * BLCKSZ;
	scan->bytes = palloc(scan->bytes_allocated);
}

/* As table_index_build_scan() would begin it, but from the first block on. */
static TableScanDesc
begin_scan(Relation heap, const IndexInfo *info, ParallelTableScanDesc parallel, Snapshot *registered)
{
	Snapshot	snapshot = SnapshotAny;

	*registered = InvalidSnapshot;
	if (parallel != NULL)
		return table_beginscan_parallel(heap, parallel);
	if (info->ii_Concurrent)
		snapshot = *registered = RegisterSnapshot(GetTransactionSnapshot());
	return table_beginscan_strat(heap, snapshot, 0, NULL, true, false);
}

double
gs_index_scan(Relation heap, Relation index, IndexInfo *info, ParallelTableScanDesc parallel,
			  bool progress, const GsIndexScanTarget *target)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "GpuSort index scan",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	EntryScan  *scan = palloc(sizeof(EntryScan));
	Snapshot	registered;
	TableScanDesc table_scan;
	double		ntuples;

	init_scan(scan, heap, index, info, progress, target);
	MemoryContextSwitchTo(old);
	table_scan = begin_scan(heap, info, parallel, &registered);
	scan->heap = (HeapScanDesc) table_scan;
	ntuples = table_index_build_scan(heap, index, info, true, progress, collect, scan, table_scan);
	emit_block(scan);
	ntuples += scan->ntaken;
	if (registered != InvalidSnapshot)
		UnregisterSnapshot(registered);
	ExecDropSingleTupleTableSlot(scan->values);
	ExecDropSingleTupleTableSlot(scan->row);
	MemoryContextDelete(context);
	return ntuples;
}
