/*-------------------------------------------------------------------------
 *
 * index_validate.c
 *	  Validates an index that was built CONCURRENTLY.
 *
 * PostgreSQL builds such an index of the rows that a first snapshot sees.  Rows that were
 * committed later can be missing, because their transactions did not insert into the index yet.
 * But a tuple that a second snapshot sees is in the index if its transaction had ended before the
 * first snapshot was taken: then that transaction had committed, and the tuple was not deleted,
 * as it is not even now.  So the build has read it.  The others are candidates:
 *
 *					first snapshot		second snapshot
 *	  committed			|					|
 *	  ------------------|-------------------|------------
 *	  in the index		|	candidates		| not visible
 *
 * They are few, or there are none; then the index is not read at all:
 *
 *	  1. find_candidates() scans the table, except for blocks that VACUUM has made all-visible
 *		 before.  Only if the transaction of a tuple had not ended, its visibility is determined.
 *	  2. find_in_index() asks the access method which TIDs are in the index.
 *	  3. insert_missing() inserts the others, as PostgreSQL inserts them.
 *
 * If the candidates exceed maintenance_work_mem, PostgreSQL validates the index.  README.md has
 * what other transactions may do meanwhile.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "guc.h"
#include "index/index_hook.h"
#include "build/build_scan.h"
#include "pg_compat.h"
#include "stats/stats.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/catalog.h"
#include "catalog/index.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "commands/progress.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/tuplesort.h"

/* --------------------------------------------------------- ended transactions */

struct GsEndedTransactions
{
	TransactionId xmin;			/* all transactions before it have ended */
	TransactionId xmax;			/* it and all transactions after it have not */
	uint32		nrunning;
	TransactionId running[FLEXIBLE_ARRAY_MEMBER];	/* between them, by xidComparator() */
};

GsEndedTransactions *
gs_ended_transactions_note(Snapshot snapshot)
{
	const uint32 nrunning = snapshot->suboverflowed ? 0 : snapshot->xcnt + snapshot->subxcnt;
	GsEndedTransactions *ended = palloc(offsetof(GsEndedTransactions, running) +
										sizeof(TransactionId) * nrunning);

	ended->xmin = snapshot->xmin;
	/* without all subtransactions, the snapshot does not tell which ones from xmin on have ended */
	ended->xmax = snapshot->suboverflowed ? snapshot->xmin : snapshot->xmax;
	ended->nrunning = nrunning;
	if (nrunning == 0)
		return ended;
	/* an array without elements may be NULL */
	if (snapshot->xcnt > 0)
		memcpy(ended->running, snapshot->xip, sizeof(TransactionId) * snapshot->xcnt);
	if (snapshot->subxcnt > 0)
		memcpy(ended->running + snapshot->xcnt, snapshot->subxip,
			   sizeof(TransactionId) * snapshot->subxcnt);
	qsort(ended->running, nrunning, sizeof(TransactionId), xidComparator);
	return ended;
}

static bool
has_ended(const GsEndedTransactions *ended, TransactionId xid)
{
	if (TransactionIdPrecedes(xid, ended->xmin))
		return true;
	return TransactionIdPrecedes(xid, ended->xmax) &&
		bsearch(&xid, ended->running, ended->nrunning, sizeof(TransactionId),
				xidComparator) == NULL;
}

/* ---------------------------------------------------------------- candidates */

/*
 * A tuple as one number, in the order of the TIDs of roots: block, offset of its root, its own
 * offset.
 */
typedef uint64 Candidate;

#define IN_INDEX	UINT64CONST(0x8000)	/* no offset has this bit */

/*
 * Fewer all-visible blocks in a row are read, which costs less than to interrupt read-ahead, as in
 * VACUUM.
 */
#define LEAST_SKIPPED	32

StaticAssertDecl(MaxOffsetNumber < IN_INDEX, "an offset has the bit IN_INDEX");

static inline Candidate
make_candidate(BlockNumber block, OffsetNumber root, OffsetNumber offset)
{
	return (uint64) block << 32 | (uint64) root << 16 | offset;
}

static inline uint64
root_of(Candidate tuple)
{
	return tuple >> 16;
}

static int
compare_roots(const void *a, const void *b)
{
	const uint64 x = root_of(*(const Candidate *) a);
	const uint64 y = root_of(*(const Candidate *) b);

	return x < y ? -1 : x > y;
}

typedef struct Validation
{
	Relation	heap;
	IndexVacuumInfo *info;
	IndexBulkDeleteCallback callback;	/* of PostgreSQL's validation */
	ValidateIndexState *state;
	const GsEndedTransactions *before;
	Snapshot	snapshot;		/* the second one */

	TransactionId ended;		/* one for which has_ended() is true, from an earlier call */
	Candidate  *candidates;		/* in order */
	Size		ncandidates;
	Size		allocated;
	uint8	   *blocks;			/* a bit for each block: is a candidate there? */
	BlockNumber nblocks;
} Validation;

/* PostgreSQL validates one index at a time.  heap is NULL: none. */
static Validation pending;

static inline Size
blocks_bytes(const Validation *validation)
{
	return validation->nblocks / BITS_PER_BYTE + 1;
}

/* Adds the candidates of a page.  False: there is no memory for them. */
static bool
add_candidates(Validation *validation, const Candidate *candidates, int n)
{
	while (validation->ncandidates + n > validation->allocated)
	{
		const Size	nbytes = 2 * validation->allocated * sizeof(Candidate);

		if (nbytes + blocks_bytes(validation) > (Size) maintenance_work_mem * 1024)
			return false;
		validation->candidates = repalloc_huge(validation->candidates, nbytes);
		validation->allocated *= 2;
	}
	memcpy(validation->candidates + validation->ncandidates, candidates, sizeof(Candidate) * n);
	validation->ncandidates += n;
	return true;
}

/* Is a tuple of a locked page a candidate? */
static inline bool
is_candidate(Validation *validation, Buffer buffer, OffsetNumber offset)
{
	const Page	page = BufferGetPage(buffer);
	const ItemId item = PageGetItemId(page, offset);
	HeapTupleData tuple;
	TransactionId xid;

	if (!ItemIdIsNormal(item))
		return false;
	tuple.t_data = (HeapTupleHeader) PageGetItem(page, item);
	xid = HeapTupleHeaderGetXmin(tuple.t_data);
	if (xid == validation->ended)
		return false;
	if (has_ended(validation->before, xid))
	{
		validation->ended = xid;
		return false;
	}
	tuple.t_len = ItemIdGetLength(item);
	tuple.t_tableOid = RelationGetRelid(validation->heap);
	ItemPointerSet(&tuple.t_self, BufferGetBlockNumber(buffer), offset);
	return HeapTupleSatisfiesVisibility(&tuple, validation->snapshot, buffer);
}

/*
 * Lists the offsets of the candidates of a page, and, if there are any, the roots of all of its
 * tuples.
 */
static int
list_candidates(Validation *validation, Buffer buffer, OffsetNumber *offsets, OffsetNumber *roots)
{
	const Page	page = BufferGetPage(buffer);
	OffsetNumber last;
	int			n = 0;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	last = PageGetMaxOffsetNumber(page);
	for (OffsetNumber offset = FirstOffsetNumber; offset <= last; offset++)
	{
		if (is_candidate(validation, buffer, offset))
			offsets[n++] = offset;
	}
	if (n > 0)
		heap_get_root_tuples(page, roots);
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	return n;
}

/* Adds the candidates of the scan's page.  False: there is no memory for them. */
static bool
examine_page(Validation *validation, HeapScanDesc scan)
{
	OffsetNumber offsets[MaxHeapTuplesPerPage];
	OffsetNumber roots[MaxHeapTuplesPerPage];
	Candidate	candidates[MaxHeapTuplesPerPage];
	const int	n = list_candidates(validation, scan->rs_cbuf, offsets, roots);

	if (n == 0)
		return true;
	for (int i = 0; i < n; i++)
		candidates[i] = make_candidate(scan->rs_cblock,
									   gs_build_scan_root(scan, offsets[i], roots), offsets[i]);
	qsort(candidates, n, sizeof(Candidate), compare_roots);
	return add_candidates(validation, candidates, n);
}

static void
report_phase(int64 phase)
{
	const int	params[] = {
		PROGRESS_CREATEIDX_PHASE,
		PROGRESS_SCAN_BLOCKS_DONE,
		PROGRESS_SCAN_BLOCKS_TOTAL
	};
	const int64 values[] = {phase, 0, 0};

	pgstat_progress_update_multi_param(lengthof(params), params, values);
}

/*
 * Finds the next blocks from *start on that can have candidates; they end before *end.  False:
 * there are none.  VACUUM has made a block all-visible before the statement began, and nobody has
 * written to it since.
 */
static bool
find_blocks(const Validation *validation, Buffer *map, BlockNumber *start, BlockNumber *end)
{
	BlockNumber block = *start;
	int			nvisible = 0;

	while (block < validation->nblocks && gs_block_was_vacuumed(validation->heap, block, map))
	{
		CHECK_FOR_INTERRUPTS();
		block++;
	}
	*start = block;
	for (; block < validation->nblocks && nvisible < LEAST_SKIPPED; block++)
	{
		CHECK_FOR_INTERRUPTS();
		nvisible = gs_block_was_vacuumed(validation->heap, block, map) ? nvisible + 1 : 0;
	}
	*end = block - nvisible;
	return *start < *end;
}

/* Adds the candidates of the scan's blocks.  False: there is no memory for them. */
static bool
scan_blocks(Validation *validation, TableScanDesc table_scan)
{
	HeapScanDesc scan = (HeapScanDesc) table_scan;
	BlockNumber examined = InvalidBlockNumber;
	bool		added = true;

	/* one tuple of each page, of any visibility, and those that come while the page is examined */
	while (added && heap_getnext(table_scan, ForwardScanDirection) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		if (scan->rs_cblock != examined)
		{
			pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_DONE, scan->rs_cblock);
			added = examine_page(validation, scan);
			examined = scan->rs_cblock;
		}
		gs_skip_tuples(scan);
	}
	return added;
}

/* Step 1.  False: there is no memory for all candidates. */
static bool
find_candidates(Validation *validation)
{
	TableScanDesc scan = table_beginscan_strat(validation->heap, SnapshotAny, 0, NULL, true, false);
	Buffer		map = InvalidBuffer;
	BlockNumber start = 0;
	BlockNumber end;
	bool		found = true;

	validation->allocated = 1024;
	validation->candidates = palloc(sizeof(Candidate) * validation->allocated);
	validation->nblocks = ((HeapScanDesc) scan)->rs_nblocks;
	pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_TOTAL, validation->nblocks);
	while (found && find_blocks(validation, &map, &start, &end))
	{
		table_rescan(scan, NULL);
		heap_setscanlimits(scan, start, end - start);
		found = scan_blocks(validation, scan);
		start = end;
	}
	if (BufferIsValid(map))
		ReleaseBuffer(map);
	table_endscan(scan);
	return found;
}

/* --------------------------------------------------------- TIDs of the index */

static inline void
add_block(Validation *validation, BlockNumber block)
{
	validation->blocks[block / BITS_PER_BYTE] |= 1 << block % BITS_PER_BYTE;
}

static inline bool
has_block(const Validation *validation, BlockNumber block)
{
	return block < validation->nblocks &&
		(validation->blocks[block / BITS_PER_BYTE] & 1 << block % BITS_PER_BYTE) != 0;
}

/* An IndexBulkDeleteCallback: a TID is in the index.  Nothing is deleted. */
static bool
note_tid(ItemPointer tid, void *arg)
{
	Validation *validation = arg;
	const BlockNumber block = ItemPointerGetBlockNumber(tid);
	Candidate	key;
	Candidate  *found;

	validation->state->itups++;
	if (likely(!has_block(validation, block)))
		return false;
	key = make_candidate(block, ItemPointerGetOffsetNumber(tid), 0);
	found = bsearch(&key, validation->candidates, validation->ncandidates, sizeof(Candidate),
					compare_roots);
	if (found != NULL)
		*found |= IN_INDEX;
	return false;
}

/* Lets the access method report the TIDs of the index. */
static void
read_index(const Validation *validation, IndexBulkDeleteCallback callback, void *state)
{
	IndexVacuumInfo *info = validation->info;

	report_phase(PROGRESS_CREATEIDX_PHASE_VALIDATE_IDXSCAN);
	(void) gs_access_method_functions(info->index)->ambulkdelete(info, NULL, callback, state);
}

/* Step 2. */
static void
find_in_index(Validation *validation)
{
	validation->blocks = MemoryContextAllocExtended(CurrentMemoryContext, blocks_bytes(validation),
													MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	for (Size i = 0; i < validation->ncandidates; i++)
		add_block(validation, validation->candidates[i] >> 32);
	read_index(validation, note_tid, validation);
	report_phase(PROGRESS_CREATEIDX_PHASE_VALIDATE_TABLESCAN);
}

/* ------------------------------------------------------------ missing tuples */

/* Step 3. */
static void
insert_missing(Validation *validation, IndexInfo *info)
{
	Relation	index = validation->info->index;
	TupleTableSlot *slot = table_slot_create(validation->heap, NULL);
	EState	   *estate = CreateExecutorState();
	ExprContext *econtext = GetPerTupleExprContext(estate);
	ExprState  *predicate = ExecPrepareQual(info->ii_Predicate, estate);

	econtext->ecxt_scantuple = slot;
	for (Size i = 0; i < validation->ncandidates; i++)
	{
		const Candidate candidate = validation->candidates[i];
		const BlockNumber block = candidate >> 32;
		Datum		values[INDEX_MAX_KEYS];
		bool		nulls[INDEX_MAX_KEYS];
		ItemPointerData tid;

		if ((candidate & IN_INDEX) != 0)
			continue;
		CHECK_FOR_INTERRUPTS();
		ResetExprContext(econtext);
		ItemPointerSet(&tid, block, (OffsetNumber) candidate);
		if (!table_tuple_fetch_row_version(validation->heap, &tid, validation->snapshot, slot))
			elog(ERROR, "could not find tuple (%u,%u)", block, (OffsetNumber) candidate);
		if (predicate != NULL && !ExecQual(predicate, econtext))
			continue;
		FormIndexDatum(info, slot, estate, values, nulls);
		/* whether a row of the HOT chain is a duplicate, the access method finds out by its root */
		ItemPointerSet(&tid, block, (OffsetNumber) root_of(candidate));
		index_insert(index, values, nulls, &tid, validation->heap,
					 info->ii_Unique ? UNIQUE_CHECK_YES : UNIQUE_CHECK_NO, false, info);
		validation->state->tups_inserted++;
	}
	ExecDropSingleTupleTableSlot(slot);
	FreeExecutorState(estate);
	/* they have pointed into it */
	info->ii_ExpressionsState = NIL;
	info->ii_PredicateState = NULL;
}

/* ---------------------------------------------------- PostgreSQL's validation */

/* Does what PostgreSQL has done or will do for an index that gpusort does not validate. */
static void
collect_tids(Validation *validation)
{
	ValidateIndexState *state = validation->state;

	tuplesort_end(state->tuplesort);
	state->tuplesort = tuplesort_begin_datum(INT8OID, Int8LessOperator, InvalidOid, false,
											 maintenance_work_mem, NULL, TUPLESORT_NONE);
	read_index(validation, validation->callback, state);
	report_phase(PROGRESS_CREATEIDX_PHASE_VALIDATE_SORT);
	tuplesort_performsort(state->tuplesort);
	report_phase(PROGRESS_CREATEIDX_PHASE_VALIDATE_TABLESCAN);
}

/*
 * With gpusort.verify: would PostgreSQL insert another row?  Other access methods do not report all
 * TIDs.
 */
static void
verify(Validation *validation, IndexInfo *info)
{
	ValidateIndexState *state = validation->state;
	const double ninserted = state->tups_inserted;

	collect_tids(validation);
	GetHeapamTableAmRoutine()->index_validate_scan(validation->heap, validation->info->index, info,
												   validation->snapshot, state);
	if (state->tups_inserted != ninserted)
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("index \"%s\" lacked %.0f rows after its validation",
						RelationGetRelationName(validation->info->index),
						state->tups_inserted - ninserted),
				 gs_errhint_bug("enable_index_validation", "validate the index")));
}

/* -------------------------------------------------------------- the interface */

static void
report(const Validation *validation, bool done)
{
	gs_stats_add(done ? GS_STAT_VALIDATIONS : GS_STAT_VALIDATIONS_POSTGRES, 1);
	if (IsSystemRelation(validation->heap))
		return;
	gs_report_choice("validating index", RelationGetRelationName(validation->info->index), done,
					 !done ? "the rows that are newer than the build exceed maintenance_work_mem" :
					 psprintf("%zu rows were newer than the build, and %.0f of them were not in "
							  "the index",
							  validation->ncandidates, validation->state->tups_inserted));
}

/* A GsValidateFunction. */
static bool
validate(Relation heap, Relation index, IndexInfo *info, Snapshot snapshot,
		 ValidateIndexState *state)
{
	Validation	validation = pending;
	MemoryContext context;
	MemoryContext old;
	bool		found;

	if (pending.state != state)
		return false;
	Assert(validation.heap == heap && validation.info->index == index);
	pending = (Validation) {0};
	validation.snapshot = snapshot;
	context = AllocSetContextCreate(CurrentMemoryContext, "GpuSort index validation",
									ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	found = find_candidates(&validation);
	if (found && validation.ncandidates > 0)
		find_in_index(&validation);
	MemoryContextSwitchTo(old);
	/* in the context that is current when PostgreSQL ends the inserts (index_insert_cleanup()) */
	if (found && validation.ncandidates > 0)
		insert_missing(&validation, info);
	MemoryContextDelete(context);
	if (!found)
		collect_tids(&validation);
	else if (gpusort_verify && index->rd_rel->relam == BTREE_AM_OID)
		verify(&validation, info);
	report(&validation, found);
	return found;
}

bool
gs_index_validate_begin(Relation heap, IndexVacuumInfo *info, IndexBulkDeleteCallback callback,
						ValidateIndexState *state, const GsEndedTransactions *before)
{
	if (!gs_set_validate(heap, validate))
		return false;
	pending = (Validation) {
		.heap = heap,.info = info,.callback = callback,.state = state,.before = before
	};
	return true;
}

/*
 * An XactCallback.  If PostgreSQL did not call validate() after gs_index_validate_begin(), it saw
 * no TIDs and inserted each row once more.
 */
static void
gpusort_validation_end(XactEvent event, void *arg)
{
	const bool	lost = pending.heap != NULL;

	pending = (Validation) {0};
	if (lost && event == XACT_EVENT_PRE_COMMIT)
		elog(ERROR, "index was not validated");
}

void
gs_index_validate_install(void)
{
	RegisterXactCallback(gpusort_validation_end, NULL);
}
