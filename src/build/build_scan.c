/*-------------------------------------------------------------------------
 *
 * build_scan.c
 *	  Scans the table of an index that is built.
 *
 * table_index_build_scan() handles visibility, HOT chains, expressions and predicates, and calls
 * back for each entry.  That takes 100 ns a row, most of it to determine for each tuple what is
 * true of its whole page.  So when it has returned the first tuple of a page, the rest is read
 * here, and the following pages, as far as README.md says ("Scan and sort").
 *
 * Entries with equal keys must come in the order of their TIDs.  A scan from the first block on
 * returns them block by block, but within a block an entry of a HOT chain has the TID of the root
 * of the chain.  So the rows of such a block are collected and put in order first; but a sink that
 * can do without the order gets long ones earlier.
 *
 * Values stored out of line are fetched when they come, because an index never contains pointers to
 * them, and their target may be gone when the rows are returned.  Values of an expression that are
 * too long for a btree are compressed.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "build/build_row.h"
#include "build/build_scan.h"
#include "pg_compat.h"
#include "key/key_deform.h"
#include "key/key_stored_row.h"
#include "read/read_seqscan.h"

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

/* The longest tuple of a btree: a third of a page. */
#define MAX_TUPLE_BYTES	(BLCKSZ / 3)

/* A row of the current block. */
typedef struct BlockRow
{
	OffsetNumber offset;
	Size		at;				/* in bytes */
} BlockRow;

typedef struct EntryScan
{
	const GsBuildSink *sink;
	IndexInfo  *info;
	HeapScanDesc heap;
	TupleDesc	table;			/* row type of the table */
	TupleDesc	index;			/* row type of the index */
	int			ncolumns;		/* of the index */
	int			nvariable;		/* columns of variable width, if values have to be stored */
	int		   *variable;		/* their numbers */
	TupleTableSlot *values;		/* virtual slot: a row */
	MemoryContext fetched;		/* values that were stored out of line, or compressed here */
	bool		any_fetched;

	/* pages that are read here */
	bool		by_page;		/* may pages be read here? */
	bool		progress;		/* report progress */
	GsDeform   *deform;			/* locates the columns of the index in a tuple */
	TransactionId oldest_xmin;	/* horizon of live tuples, without a snapshot */
	BlockNumber asked;			/* the last page of the scan whose rest was tried */
	OffsetNumber offsets[MaxHeapTuplesPerPage];		/* listed tuples, to be read */
	int			noffsets;
	double		nread;			/* tuples read here so far */

	/* rows of a block, before they are emitted */
	BlockNumber block;
	BlockRow   *rows;
	int			nrows;
	int			rows_allocated;
	bool		in_order;		/* they are in the order of their TIDs */
	bool		in_chains;		/* a tuple of the scan is part of a HOT chain */
	char	   *bytes;			/* the rows, each 8-aligned */
	Size		nbytes;
	Size		bytes_allocated;
	TupleTableSlot *row;		/* one of the rows */
} EntryScan;

/* ------------------------------------------------------- rows until their block ends */

static int
compare_offsets(const void *a, const void *b)
{
	return (int) ((const BlockRow *) a)->offset - (int) ((const BlockRow *) b)->offset;
}

/* Emits the rows of a block, all of which have come, or the rest of which are greater. */
static void
emit_block(EntryScan *scan)
{
	if (!scan->in_order)
		qsort(scan->rows, scan->nrows, sizeof(BlockRow), compare_offsets);
	for (int i = 0; i < scan->nrows; i++)
	{
		ExecStoreMinimalTuple((MinimalTuple) (scan->bytes + scan->rows[i].at), scan->row, false);
		scan->sink->add(scan->sink->arg, scan->row);
	}
	ExecClearTuple(scan->row);
	scan->nrows = 0;
	scan->nbytes = 0;
	scan->in_order = true;
}

/* Starts another block. */
static void
begin_block(EntryScan *scan, BlockNumber block)
{
	emit_block(scan);
	scan->block = block;
	scan->in_chains = false;
}

/* Allocates another row of the block. */
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

/* Emits the row in the slot of values. */
static inline void
emit_now(EntryScan *scan)
{
	scan->sink->add(scan->sink->arg, scan->values);
}

/* Emits the row at once, or with its block if the order matters. */
static void
add_slot(EntryScan *scan, OffsetNumber offset)
{
	GsRowSource source;

	if (scan->sink->any_order)
	{
		emit_now(scan);
		return;
	}
	gs_row_source_init(&source, scan->values, NULL);
	gs_row_store(&source, scan->values, next_row(scan, offset, source.nbytes));
	scan->nbytes += MAXALIGN(source.nbytes);
	if (scan->sink->block_bytes > 0 && scan->nbytes > scan->sink->block_bytes)
		emit_block(scan);
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
 * Replaces the values of the row in the slot by the compressed ones of its index tuple.  If no
 * tuple can be formed it is an ERROR, as early as in PostgreSQL's own builds.
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

/* Converts values of the row in the slot to those that an index can store. */
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
	if (unlikely(nbytes > MAX_TUPLE_BYTES))
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
	scan->values->tts_values[scan->ncolumns] =
		Int64GetDatum(gs_build_row_tid(block, offset, alive));
}

/* ------------------------------------------------------------- pages read here */

static inline HeapTupleHeader
tuple_at(Page page, OffsetNumber offset)
{
	return (HeapTupleHeader) PageGetItem(page, PageGetItemId(page, offset));
}

/* Would the scan find that the tuple is live?  Its page is locked. */
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

/* Lists the tuples of a page from an offset on.  False if not all of them are live. */
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

/* Lists the tuples of the scan's page after the current one.  False: the scan must read them. */
static bool
list_remaining(EntryScan *scan)
{
	HeapScanDesc heap = scan->heap;
	const OffsetNumber current = ItemPointerGetOffsetNumber(&heap->rs_ctup.t_self);

	if (!gs_is_pagemode(heap))
		return list_live_tuples(scan, heap->rs_cbuf, OffsetNumberNext(current));
	scan->noffsets = 0;
	for (int i = heap->rs_cindex + 1; i < heap->rs_ntuples; i++)
		scan->offsets[scan->noffsets++] = heap->rs_vistuples[i];
	return true;
}

/* Moves the scan to its next page, and lists the tuples there.  False: the scan must read it. */
static bool
list_next_page(EntryScan *scan)
{
	HeapScanDesc heap = scan->heap;
	Buffer		buffer = gs_read_next_page(heap);

	if (!BufferIsValid(buffer))
		return false;
	if (list_live_tuples(scan, buffer, FirstOffsetNumber))
	{
		gs_enter_page(heap, buffer);
		return true;
	}
	gs_return_page(heap, buffer);
	return false;
}

/* Is one of the listed tuples part of a HOT chain?  Prefetches the tuples. */
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

	gs_deform_any(scan->deform, tuple_at(page, offset), slot->tts_values, slot->tts_isnull);
}

/* Emits the listed tuples, which are in the order of their TIDs. */
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

OffsetNumber
gs_build_scan_root(HeapScanDesc scan, OffsetNumber offset, const OffsetNumber *roots)
{
	if (!HeapTupleHeaderIsHeapOnly(tuple_at(BufferGetPage(scan->rs_cbuf), offset)))
		return offset;
	if (!OffsetNumberIsValid(roots[offset - 1]))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("failed to find the root of a heap-only tuple at (%u,%u) in table \"%s\"",
						scan->rs_cblock, offset, RelationGetRelationName(scan->rs_base.rs_rd))));
	return roots[offset - 1];
}

/* Adds the listed tuples with the TIDs of the roots of their chains. */
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
		offset = gs_build_scan_root(scan->heap, offset, roots);
		set_tid(scan, block, offset, true);
		fetch_values(scan);
		add_slot(scan, offset);
		reset_fetched(scan);
	}
}

/* Reads the listed tuples, the last of the scan's page. */
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
	scan->nread += scan->noffsets;
	gs_count_heap_rows(heap->rs_base.rs_rd, scan->noffsets);
}

/* Reads the rest of the scan's page, and the following pages, as far as possible. */
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

/* An IndexBuildCallback, called for each tuple of the scan. */
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

/* Does the index have only plain columns, and no predicate? */
static bool
is_plain(const IndexInfo *info)
{
	return info->ii_Expressions == NIL && info->ii_Predicate == NIL;
}

/* No column is NULL at first; the last one never is. */
static TupleTableSlot *
make_values(TupleDesc desc)
{
	TupleTableSlot *slot = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);

	memset(slot->tts_isnull, 0, sizeof(bool) * desc->natts);
	return ExecStoreVirtualTuple(slot);
}

static void
init_scan(EntryScan *scan, const GsBuildSink *sink, Relation heap, Relation index, IndexInfo *info,
		  bool progress)
{
	const TupleDesc desc = sink->desc;

	memset(scan, 0, sizeof(EntryScan));
	scan->sink = sink;
	scan->info = info;
	scan->progress = progress;
	scan->fetched = AllocSetContextCreate(CurrentMemoryContext, "GpuSort index entry",
										  ALLOCSET_SMALL_SIZES);
	scan->table = RelationGetDescr(heap);
	scan->index = RelationGetDescr(index);
	scan->ncolumns = desc->natts - 1;
	scan->variable = palloc(sizeof(int) * scan->ncolumns);
	for (int i = 0; i < scan->ncolumns && sink->stored; i++)
	{
		if (TupleDescAttr(desc, i)->attlen == -1)
			scan->variable[scan->nvariable++] = i;
	}
	scan->values = make_values(desc);
	scan->row = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple);
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

/* Like table_index_build_scan(), but without a synchronized scan. */
static TableScanDesc
begin_scan(Relation heap, const IndexInfo *info, ParallelTableScanDesc parallel,
		   Snapshot *registered)
{
	Snapshot	snapshot = SnapshotAny;

	*registered = InvalidSnapshot;
	if (parallel != NULL)
		return gs_beginscan_parallel(heap, parallel);
	if (info->ii_Concurrent)
		snapshot = *registered = RegisterSnapshot(GetTransactionSnapshot());
	return table_beginscan_strat(heap, snapshot, 0, NULL, true, false);
}

double
gs_build_scan(const GsBuildSink *sink, Relation heap, Relation index, IndexInfo *info,
			  ParallelTableScanDesc parallel, bool progress)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "GpuSort index scan",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	EntryScan  *scan = palloc(sizeof(EntryScan));
	Snapshot	registered;
	TableScanDesc table_scan;
	double		ntuples;

	init_scan(scan, sink, heap, index, info, progress);
	MemoryContextSwitchTo(old);
	table_scan = begin_scan(heap, info, parallel, &registered);
	scan->heap = (HeapScanDesc) table_scan;
	ntuples = table_index_build_scan(heap, index, info, true, progress, collect, scan, table_scan);
	emit_block(scan);
	ntuples += scan->nread;
	if (registered != InvalidSnapshot)
		UnregisterSnapshot(registered);
	ExecDropSingleTupleTableSlot(scan->values);
	ExecDropSingleTupleTableSlot(scan->row);
	MemoryContextDelete(context);
	return ntuples;
}
