/*-------------------------------------------------------------------------
 *
 * cluster_copy.c
 *	  Copies a table in the order of an index.
 *
 *		scan ---> sort ---> cluster_write.c ---> new table
 *
 * Rows are whole tuples with their visibility (cluster_row.c).  Which tuples are dead is
 * determined for a page at a time, and by the same rules as in PostgreSQL's copy: a tuple that
 * only became dead after the oldest snapshot is copied.  PostgreSQL's rewriteheap.c, if it writes
 * the table, also wants to know about dead tuples, but only of those that come after it was given
 * others; here it is not even begun before all tuples have been read.
 *
 * If a device fails before a row was returned, the table is scanned again for the CPU engine.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "cluster/cluster.h"
#include "guc.h"
#include "build/build_sort.h"
#include "read/read_seqscan.h"
#include "sort/sort.h"
#include "sort/sort_failure.h"
#include "sort/sort_stats.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* A list of rows in any order. */
typedef struct Tally
{
	uint64		nrows;
	uint64		sum;			/* of their hash values */
} Tally;

static inline void
tally_row(Tally *tally, const MinimalTupleData *row)
{
	tally->nrows++;
	tally->sum += gs_cluster_row_hash(row);
}

typedef struct Cluster
{
	GsClusterCopy *copy;
	GsClusterRows *rows;
	GsSortState sort;
	Tally		added;			/* to the sort */
	bool		has_links;		/* between these rows */
} Cluster;

/* ---------------------------------------------------------------------- scan */

/* The tuples of a page, and what is true of them. */
typedef struct PageTuples
{
	Page		page;
	BlockNumber block;
	Oid			table;
	int			ntuples;
	OffsetNumber offsets[MaxHeapTuplesPerPage];
	HTSV_Result results[MaxHeapTuplesPerPage];
} PageTuples;

static inline HeapTupleData
tuple_at(const PageTuples *tuples, OffsetNumber offset)
{
	const ItemId item = PageGetItemId(tuples->page, offset);
	HeapTupleData tuple = {
		.t_len = ItemIdGetLength(item),.t_tableOid = tuples->table,
		.t_data = (HeapTupleHeader) PageGetItem(tuples->page, item)
	};

	ItemPointerSet(&tuple.t_self, tuples->block, offset);
	return tuple;
}

/* Lists the tuples of the scan's page, from its current tuple on. */
static void
list_tuples(const GsClusterCopy *copy, const HeapScanDescData *scan, PageTuples *tuples)
{
	const OffsetNumber first = ItemPointerGetOffsetNumber(&scan->rs_ctup.t_self);
	OffsetNumber last;

	tuples->page = BufferGetPage(scan->rs_cbuf);
	tuples->block = scan->rs_cblock;
	tuples->table = RelationGetRelid(copy->old_heap);
	tuples->ntuples = 0;
	gs_lock_cluster_page(scan->rs_cbuf);
	last = PageGetMaxOffsetNumber(tuples->page);
	for (OffsetNumber offset = first; offset <= last; offset++)
	{
		HeapTupleData tuple;

		if (!ItemIdIsNormal(PageGetItemId(tuples->page, offset)))
			continue;
		tuple = tuple_at(tuples, offset);
		tuples->offsets[tuples->ntuples] = offset;
		tuples->results[tuples->ntuples++] = HeapTupleSatisfiesVacuum(&tuple, copy->oldest_xmin,
																	  scan->rs_cbuf);
	}
	LockBuffer(scan->rs_cbuf, BUFFER_LOCK_UNLOCK);
}

/* The transaction that inserts or deletes a tuple can only be this one, as the table is locked. */
static void
check_in_progress(const GsClusterCopy *copy, TransactionId xid, const char *what)
{
	if (!TransactionIdIsCurrentTransactionId(xid))
		elog(WARNING, "concurrent %s in progress within table \"%s\"", what,
			 RelationGetRelationName(copy->old_heap));
}

/* Counts a tuple.  Must it be copied? */
static inline bool
count_tuple(GsClusterCopy *copy, HeapTupleHeader tuple, HTSV_Result result)
{
	switch (result)
	{
		case HEAPTUPLE_LIVE:
			break;
		case HEAPTUPLE_DEAD:
			copy->ndead++;
			return false;
		case HEAPTUPLE_RECENTLY_DEAD:
			copy->nrecently_dead++;
			break;
		case HEAPTUPLE_INSERT_IN_PROGRESS:
			check_in_progress(copy, HeapTupleHeaderGetXmin(tuple), "insert");
			break;
		case HEAPTUPLE_DELETE_IN_PROGRESS:
			check_in_progress(copy, HeapTupleHeaderGetUpdateXid(tuple), "delete");
			copy->nrecently_dead++;
			break;
	}
	copy->ntuples++;
	return true;
}

/* Adds the tuples of the scan's page to the sort.  False: the engine failed and lost all rows. */
static bool
add_page(Cluster *cluster, const HeapScanDescData *scan)
{
	PageTuples	tuples;

	list_tuples(cluster->copy, scan, &tuples);
	for (int i = 0; i < tuples.ntuples; i++)
	{
		HeapTupleData tuple = tuple_at(&tuples, tuples.offsets[i]);
		TupleTableSlot *row;

		CHECK_FOR_INTERRUPTS(); /* an expression may take long */
		if (i + GS_SEQSCAN_PREFETCH_ROWS < tuples.ntuples)
			gs_seqscan_prefetch(tuples.page, tuples.offsets[i + GS_SEQSCAN_PREFETCH_ROWS]);
		if (!count_tuple(cluster->copy, tuple.t_data, tuples.results[i]))
			continue;
		cluster->has_links |= gs_cluster_is_linked(&tuple, cluster->copy->oldest_xmin);
		row = gs_cluster_row_form(cluster->rows, &tuple);
		tally_row(&cluster->added, ((MinimalTupleTableSlot *) row)->mintuple);
		if (!gs_sort_add(&cluster->sort, row))
			return false;
	}
	gs_count_heap_rows(cluster->copy->old_heap, tuples.ntuples - 1);
	return true;
}

/* Adds all tuples of the table to the sort.  False: the engine failed and lost all rows. */
static bool
add_table(Cluster *cluster)
{
	GsClusterCopy *copy = cluster->copy;
	TableScanDesc scan = table_beginscan_strat(copy->old_heap, SnapshotAny, 0, NULL, true, false);
	HeapScanDesc heap = (HeapScanDesc) scan;
	bool		added = true;

	copy->ntuples = copy->ndead = copy->nrecently_dead = 0;
	cluster->added = (Tally) {0};
	cluster->has_links = false;
	gs_report_cluster_phase(GS_CLUSTER_SCAN);
	gs_report_cluster_blocks(heap->rs_nblocks);
	while (added && heap_getnext(scan, ForwardScanDirection) != NULL)
	{
		added = add_page(cluster, heap);
		gs_skip_tuples(heap);
		gs_report_cluster_scanned(heap->rs_cblock + 1, copy->ntuples);
	}
	gs_report_cluster_scanned(heap->rs_nblocks, copy->ntuples);
	table_endscan(scan);
	return added;
}

/* ---------------------------------------------------------------------- sort */

static void
init_sort(Cluster *cluster, double expected_rows)
{
	const TupleDesc desc = cluster->rows->desc;
	GsSortSpec	spec = {
		.desc = desc,
		.columns = cluster->rows->columns,
		.ncolumns = cluster->rows->ncolumns,
		.expected_rows = expected_rows,
		.expected_width = gs_build_expected_width(desc),
		.verify_output = gpusort_verify,
		.slot = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple),
		.parent_context = CurrentMemoryContext
	};

	gs_sort_init(&cluster->sort, &spec);
}

/* Reads the table and sorts.  False: a device failed and has lost the rows. */
static bool
sort_table(Cluster *cluster, bool may_use_device)
{
	GsSortState *sort = &cluster->sort;

	gs_sort_begin(sort, maintenance_work_mem);
	if (!may_use_device)
		gs_sort_disable_device(sort);
	if (add_table(cluster))
	{
		gs_report_cluster_phase(GS_CLUSTER_SORT);
		if (gs_sort_perform(sort))
			return true;
	}
	gs_sort_abandon(sort);
	gs_sort_reset(sort);
	return false;
}

/* --------------------------------------------------------------------- write */

/* Raises an ERROR if rows were lost or duplicated. */
static void
check_rows(const Tally *added, const Tally *returned)
{
	if (added->nrows == returned->nrows && added->sum == returned->sum)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INTERNAL_ERROR),
			 added->nrows != returned->nrows ?
			 errmsg("sort returned " UINT64_FORMAT " rows, expected " UINT64_FORMAT,
					returned->nrows, added->nrows) :
			 errmsg("sort returned other rows than expected"),
			 gs_errhint_bug("enable_cluster", "cluster the table")));
}

static void
write_table(Cluster *cluster)
{
	GsClusterWriter *writer = gs_cluster_write_begin(cluster->copy, cluster->has_links);
	MinimalTuple batch[GS_STORE_WINDOW];
	Tally		returned = {0};
	int			nrows;

	gs_report_cluster_phase(GS_CLUSTER_WRITE);
	while ((nrows = gs_sort_next_rows(&cluster->sort, GS_STORE_WINDOW, batch)) > 0)
	{
		for (int i = 0; i < nrows; i++)
		{
			CHECK_FOR_INTERRUPTS();
			tally_row(&returned, batch[i]);
			gs_cluster_row_write(cluster->rows, batch[i], writer);
		}
		gs_report_cluster_written(returned.nrows);
	}
	check_rows(&cluster->added, &returned);
	gs_cluster_write_end(writer);
}

void
gs_cluster_copy(GsClusterCopy *copy, double expected_rows)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "GpuSort cluster",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	Cluster    *cluster = palloc0(sizeof(Cluster));

	cluster->copy = copy;
	cluster->rows = gs_cluster_rows_create(copy->old_heap, copy->index);
	init_sort(cluster, expected_rows);
	if (!sort_table(cluster, true))
		(void) sort_table(cluster, false);
	if (gs_sort_is_slow(&cluster->sort))
		gs_sort_log_duration(&cluster->sort,
							 psprintf("index %s", gs_build_sort_name(copy->index)));
	write_table(cluster);
	gs_sort_reset(&cluster->sort);
	ExecDropSingleTupleTableSlot(cluster->sort.spec.slot);
	gs_cluster_rows_free(cluster->rows);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}
