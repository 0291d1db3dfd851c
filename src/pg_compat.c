/*-------------------------------------------------------------------------
 *
 * pg_compat.c
 *	  What differs between versions of PostgreSQL, or reaches into its structs.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pg_compat.h"

#include "access/heapam.h"
#include "access/nbtree.h"
#include "access/relscan.h"
#include "access/stratnum.h"
#include "access/tableam.h"
#include "access/visibilitymap.h"
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "catalog/index.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_database.h"
#include "catalog/pg_proc.h"
#include "commands/defrem.h"
#include "commands/explain.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "nodes/pathnodes.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#if PG_VERSION_NUM < 170000
#include "port/pg_iovec.h"
#include "storage/fd.h"
#endif
#include "storage/lock.h"
#if PG_VERSION_NUM >= 170000
#include "storage/proc.h"
#include "storage/read_stream.h"
#endif
#include "storage/smgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/pg_locale.h"
#include "utils/rel.h"
#include "utils/sortsupport.h"
#include "utils/syscache.h"
#include "utils/tuplesort.h"
#include "utils/wait_event.h"

/* -------------------------------------------------------------- wait events */

uint32
gs_wait_event(GsWait wait)
{
#if PG_VERSION_NUM >= 170000
	static const char *const names[] = {
		[GS_WAIT_SERVICE] = "GpusortService",
		[GS_WAIT_DEVICE_MEMORY] = "GpusortDeviceMemory",
		[GS_WAIT_SORT] = "GpusortSort",
		[GS_WAIT_BATCH] = "GpusortBatch",
		[GS_WAIT_PARTICIPANTS] = "GpusortParticipants"
	};
	static uint32 events[lengthof(names)];	/* 0: not asked for in this process */

	if (events[wait] == 0)
		events[wait] = WaitEventExtensionNew(names[wait]);
	return events[wait];
#else
	return PG_WAIT_EXTENSION;
#endif
}

/* --------------------------------------------------------------- collations */

bool
gs_collation_is_bytewise(Oid collation)
{
#if PG_VERSION_NUM >= 180000
	return OidIsValid(collation) && pg_newlocale_from_collation(collation)->collate_is_c;
#else
	return lc_collate_is_c(collation);
#endif
}

/* The row of a collation in pg_collation; that of the database for the default one. */
static HeapTuple
collation_row(Oid collation)
{
	const bool	is_default = collation == DEFAULT_COLLATION_OID;
	const Oid	oid = is_default ? MyDatabaseId : collation;
	HeapTuple	row = SearchSysCache1(is_default ? DATABASEOID : COLLOID, ObjectIdGetDatum(oid));

	if (!HeapTupleIsValid(row))
		elog(ERROR, "cache lookup failed for %s %u", is_default ? "database" : "collation", oid);
	return row;
}

char
gs_collation_provider(Oid collation)
{
	HeapTuple	row = collation_row(collation);
	char		provider;

	if (collation == DEFAULT_COLLATION_OID)
		provider = ((Form_pg_database) GETSTRUCT(row))->datlocprovider;
	else
		provider = ((Form_pg_collation) GETSTRUCT(row))->collprovider;
	ReleaseSysCache(row);
	return provider;
}

char *
gs_collation_libc_name(Oid collation)
{
	HeapTuple	row = collation_row(collation);
	Datum		name;
	bool		is_null;
	char	   *result;

	if (collation == DEFAULT_COLLATION_OID)
		name = SysCacheGetAttr(DATABASEOID, row, Anum_pg_database_datcollate, &is_null);
	else
		name = SysCacheGetAttr(COLLOID, row, Anum_pg_collation_collcollate, &is_null);
	result = is_null ? pstrdup("") : TextDatumGetCString(name);
	ReleaseSysCache(row);
	return result;
}

bool
gs_collation_has_icu_rules(Oid collation)
{
#if PG_VERSION_NUM >= 160000
	HeapTuple	row = collation_row(collation);
	bool		is_null;

	if (collation == DEFAULT_COLLATION_OID)
		(void) SysCacheGetAttr(DATABASEOID, row, Anum_pg_database_daticurules, &is_null);
	else
		(void) SysCacheGetAttr(COLLOID, row, Anum_pg_collation_collicurules, &is_null);
	ReleaseSysCache(row);
	return !is_null;
#else
	return false;
#endif
}

bool
gs_collation_is_deterministic(Oid collation)
{
	pg_locale_t locale = pg_newlocale_from_collation(collation);

	return locale == NULL || locale->deterministic;
}

locale_t
gs_collation_libc_locale(Oid collation)
{
	pg_locale_t locale = pg_newlocale_from_collation(collation);

#if PG_VERSION_NUM >= 190000
	return locale == NULL ? NULL : locale->lt;
#else
	return locale == NULL ? NULL : locale->info.lt;
#endif
}

#ifdef USE_ICU
struct UCollator *
gs_collation_collator(Oid collation)
{
#if PG_VERSION_NUM >= 190000
	return pg_newlocale_from_collation(collation)->icu.ucol;
#else
	return pg_newlocale_from_collation(collation)->info.icu.ucol;
#endif
}
#endif

/* -------------------------------------------------------------- types, sorts */

bool
gs_ordering_operator(Oid operator, Oid *family, Oid *input_type, bool *descending)
{
#if PG_VERSION_NUM >= 180000
	CompareType type;

	if (!get_ordering_op_properties(operator, family, input_type, &type))
		return false;
	*descending = type == COMPARE_GT;
#else
	int16		strategy;

	if (!get_ordering_op_properties(operator, family, input_type, &strategy))
		return false;
	*descending = strategy == BTGreaterStrategyNumber;
#endif
	return true;
}

Oid
gs_pathkey_operator(const PathKey *pathkey, Oid type)
{
#if PG_VERSION_NUM >= 180000
	return get_opfamily_member_for_cmptype(pathkey->pk_opfamily, type, type, pathkey->pk_cmptype);
#else
	return get_opfamily_member(pathkey->pk_opfamily, type, type, pathkey->pk_strategy);
#endif
}

void
gs_finish_tuple_desc(TupleDesc desc)
{
#if PG_VERSION_NUM >= 190000
	TupleDescFinalize(desc);
#endif
}

bool
gs_get_tuplesort_datum(Tuplesortstate *state, bool forward, Datum *value, bool *is_null)
{
#if PG_VERSION_NUM >= 160000
	return tuplesort_getdatum(state, forward, false, value, is_null, NULL);
#else
	return tuplesort_getdatum(state, forward, value, is_null, NULL);
#endif
}

/* ------------------------------------------------------------------- planner */

void
gs_check_execute(Oid function)
{
#if PG_VERSION_NUM >= 160000
	const AclResult result = object_aclcheck(ProcedureRelationId, function, GetUserId(),
											 ACL_EXECUTE);
#else
	const AclResult result = pg_proc_aclcheck(function, GetUserId(), ACL_EXECUTE);
#endif

	if (result != ACLCHECK_OK)
		aclcheck_error(result, get_func_prokind(function) == PROKIND_AGGREGATE ?
					   OBJECT_AGGREGATE : OBJECT_FUNCTION, get_func_name(function));
	InvokeFunctionExecuteHook(function);
}

bool
gs_explain_uses_prefixes(const ExplainState *es)
{
#if PG_VERSION_NUM >= 180000
	return es->rtable_size > 1 || es->verbose;
#else
	return list_length(es->rtable) > 1 || es->verbose;
#endif
}

bool
gs_appears_disabled_by_input(const Plan *plan)
{
#if PG_VERSION_NUM >= 180000
	return plan->disabled_nodes > 0 && plan->disabled_nodes <= outerPlan(plan)->disabled_nodes;
#else
	return false;
#endif
}

#if PG_VERSION_NUM >= 180000

static int	explain_id;			/* of the option's state in an ExplainState */
static GsExplainNode explain_print;
static explain_per_node_hook_type next_explain_node_hook;

/* The option's state is not NULL if it is on. */
static void
set_explain_option(ExplainState *es, DefElem *option, ParseState *pstate)
{
	SetExplainExtensionState(es, explain_id, defGetBoolean(option) ? es : NULL);
}

static void
explain_node(PlanState *node, List *ancestors, const char *relationship, const char *plan_name,
			 ExplainState *es)
{
	if (next_explain_node_hook)
		next_explain_node_hook(node, ancestors, relationship, plan_name, es);
	if (GetExplainExtensionState(es, explain_id) != NULL)
		explain_print(node, es);
}

void
gs_explain_add_option(const char *name, GsExplainNode print)
{
	explain_id = GetExplainExtensionId(name);
	explain_print = print;
#if PG_VERSION_NUM >= 190000
	RegisterExtensionExplainOption(name, set_explain_option, GUCCheckBooleanExplainOption);
#else
	RegisterExtensionExplainOption(name, set_explain_option);
#endif
	next_explain_node_hook = explain_per_node_hook;
	explain_per_node_hook = explain_node;
}

#else							/* the options of EXPLAIN are fixed */

void
gs_explain_add_option(const char *name, GsExplainNode print)
{
}

#endif

/* ------------------------------------------------------------- index builds */

const IndexAmRoutine *
gs_access_method_functions(Relation index)
{
	return GetIndexAmRoutine(index->rd_amhandler);
}

IndexAmRoutine *
gs_index_functions(Relation index)
{
	Assert(index->rd_refcnt > 0);
#if PG_VERSION_NUM >= 190000
	/* all indexes share one routine, so this one gets its own */
	if (index->rd_indam == gs_access_method_functions(index))
	{
		IndexAmRoutine *routine = MemoryContextAlloc(index->rd_indexcxt, sizeof(IndexAmRoutine));

		*routine = *index->rd_indam;
		index->rd_indam = routine;
	}
	return unconstify(IndexAmRoutine *, index->rd_indam);
#else
	return index->rd_indam;
#endif
}

bool
gs_block_was_vacuumed(Relation heap, BlockNumber block, Buffer *map)
{
#if PG_VERSION_NUM >= 190000
	return false;				/* whoever reads a page can make it all-visible */
#else
	return VM_ALL_VISIBLE(heap, block, map);
#endif
}

bool
gs_snapshots_expire(void)
{
#if PG_VERSION_NUM >= 170000
	return false;
#else
	return OldSnapshotThresholdActive();
#endif
}

void
gs_keep_relation(Relation relation)
{
	relation->rd_refcnt++;
}

void
gs_forget_relation(Relation relation)
{
	Assert(relation->rd_refcnt > 0);
	relation->rd_refcnt--;
}

bool
gs_holds_exclusive_lock(Oid relation)
{
	LOCKTAG		tag;

	SET_LOCKTAG_RELATION(tag, MyDatabaseId, relation);
#if PG_VERSION_NUM >= 170000
	return LockHeldByMe(&tag, AccessExclusiveLock, false);
#else
	return LockHeldByMe(&tag, AccessExclusiveLock);
#endif
}

void
gs_prepare_index_comparator(Relation index, bool descending, SortSupport column)
{
#if PG_VERSION_NUM >= 180000
	PrepareSortSupportFromIndexRel(index, descending, column);
#else
	PrepareSortSupportFromIndexRel(index, descending ? BTGreaterStrategyNumber :
								   BTLessStrategyNumber, column);
#endif
}

Size
gs_longest_btree_item(Page page)
{
#if PG_VERSION_NUM >= 180000
	return BTMaxItemSize;
#else
	return BTMaxItemSize(page);
#endif
}

#if PG_VERSION_NUM >= 160000
#define RELATION_LOCATOR(relation)	((relation)->rd_locator)
#else
#define RELATION_LOCATOR(relation)	((relation)->rd_node)
#endif

static inline void
set_checksum(Page page, BlockNumber block)
{
#if PG_VERSION_NUM >= 190000
	PageSetChecksum(page, block);
#else
	PageSetChecksumInplace(page, block);
#endif
}

Page
gs_page_alloc(MemoryContext context)
{
#if PG_VERSION_NUM >= 160000
	return MemoryContextAllocAligned(context, BLCKSZ, PG_IO_ALIGN_SIZE, 0);
#else
	return MemoryContextAlloc(context, BLCKSZ);
#endif
}

void
gs_extend_relation(Relation relation, BlockNumber nblocks)
{
	Page		zeroes = gs_page_alloc(CurrentMemoryContext);

	Assert(nblocks > RelationGetNumberOfBlocks(relation));
	/* the blocks before are read as zeroes */
	memset(zeroes, 0, BLCKSZ);
	smgrextend(RelationGetSmgr(relation), MAIN_FORKNUM, nblocks - 1, zeroes, true);
	pfree(zeroes);
}

#if PG_VERSION_NUM >= 170000

/* Writes consecutive pages of one segment of a relation. */
static void
write_consecutive(Relation relation, BlockNumber first, int npages, Page *pages)
{
	smgrwritev(RelationGetSmgr(relation), MAIN_FORKNUM, first, (const void **) pages, npages, true);
}

#else

/* Writes consecutive pages of a file by one call.  False: not all of them were written. */
static bool
write_vector(const char *path, off_t offset, int npages, Page *pages)
{
	const int	file = OpenTransientFile(path, O_RDWR | PG_BINARY);
	struct iovec vector[GS_MAX_LOGGED_PAGES];
	ssize_t		written;

	if (file < 0)
		return false;
	for (int i = 0; i < npages; i++)
		vector[i] = (struct iovec) {.iov_base = pages[i],.iov_len = BLCKSZ};
	pgstat_report_wait_start(WAIT_EVENT_DATA_FILE_WRITE);
	written = pg_pwritev(file, vector, npages, offset);
	pgstat_report_wait_end();
	return CloseTransientFile(file) == 0 && written == (ssize_t) npages * BLCKSZ;
}

/* The storage manager writes single pages only; it does so here to report an error. */
static void
write_consecutive(Relation relation, BlockNumber first, int npages, Page *pages)
{
	const BlockNumber segment = first / RELSEG_SIZE;
	const off_t offset = (off_t) (first % RELSEG_SIZE) * BLCKSZ;
	char	   *base = relpathbackend(RELATION_LOCATOR(relation), relation->rd_backend,
									  MAIN_FORKNUM);
	char	   *path = segment == 0 ? pstrdup(base) : psprintf("%s.%u", base, segment);

	if (npages == 1 || !write_vector(path, offset, npages, pages))
	{
		for (int i = 0; i < npages; i++)
			smgrwrite(RelationGetSmgr(relation), MAIN_FORKNUM, first + i, (char *) pages[i], true);
	}
	pfree(path);
	pfree(base);
}

#endif

void
gs_write_pages(Relation relation, int npages, const BlockNumber *blocks, Page *pages,
			   BlockNumber nblocks)
{
	int			next;

	Assert(npages > 0 && npages <= GS_MAX_LOGGED_PAGES);
	if (RelationNeedsWAL(relation))
		log_newpages(&RELATION_LOCATOR(relation), MAIN_FORKNUM, npages,
					 unconstify(BlockNumber *, blocks), pages, true);
	for (int i = 0; i < npages; i++)
	{
		Assert(i == 0 || blocks[i] > blocks[i - 1]);
		set_checksum(pages[i], blocks[i]);
	}
	if (blocks[npages - 1] >= nblocks)
	{
		npages--;
		smgrextend(RelationGetSmgr(relation), MAIN_FORKNUM, blocks[npages], (char *) pages[npages],
				   true);
	}
	for (int i = 0; i < npages; i = next)
	{
		/* a call writes to one segment, which is a file of its own */
		for (next = i + 1; next < npages && blocks[next] == blocks[next - 1] + 1 &&
			 blocks[next] % RELSEG_SIZE != 0;)
			next++;
		write_consecutive(relation, blocks[i], next - i, &pages[i]);
	}
}

#if PG_VERSION_NUM >= 170000

XLogRecPtr
gs_page_sync_begin(void)
{
	return GetRedoRecPtr();
}

/*
 * The next checkpoint syncs the file.  If one has begun since the start, recovery from it would not
 * write the pages that were logged before.
 */
void
gs_page_sync_end(Relation relation, XLogRecPtr start)
{
	SMgrRelation file = RelationGetSmgr(relation);
	bool		checkpointed;

	if (RelationUsesLocalBuffers(relation))
		return;
	/* no checkpoint may begin between the question and the request */
	MyProc->delayChkptFlags |= DELAY_CHKPT_START;
	checkpointed = GetRedoRecPtr() != start;
	if (!checkpointed)
		smgrregistersync(file, MAIN_FORKNUM);
	MyProc->delayChkptFlags &= ~DELAY_CHKPT_START;
	if (checkpointed)
		smgrimmedsync(file, MAIN_FORKNUM);
}

#else

XLogRecPtr
gs_page_sync_begin(void)
{
	return InvalidXLogRecPtr;
}

/*
 * Pages were logged, but a checkpoint that began meanwhile does not know of the file.  A
 * relation that needs no WAL is synced at the end of the transaction.
 */
void
gs_page_sync_end(Relation relation, XLogRecPtr start)
{
	if (RelationNeedsWAL(relation))
		smgrimmedsync(RelationGetSmgr(relation), MAIN_FORKNUM);
}

#endif

/* ------------------------------------------------------- functions of a heap */

/*
 * There is no hook, and all heaps share a routine that cannot be changed.  So the relcache
 * entry of a heap gets a copy of it, with functions that put the original back before they
 * do anything.  heap_getnext() accepts no other routine, so one of them is that of every scan.  An
 * ERROR may leave the copy in the entry, where it does no harm.
 */
static TableAmRoutine heap_routine;
static GsClusterFunction cluster_function;
static GsValidateFunction validate_function;

static inline void
restore_routine(Relation heap)
{
	if (heap->rd_tableam == &heap_routine)
		heap->rd_tableam = GetHeapamTableAmRoutine();
}

/* A scan_begin function. */
static TableScanDesc
begin_scan_restored(Relation heap, Snapshot snapshot, int nkeys, struct ScanKeyData *key,
					ParallelTableScanDesc parallel, uint32 flags)
{
	restore_routine(heap);
	return GetHeapamTableAmRoutine()->scan_begin(heap, snapshot, nkeys, key, parallel, flags);
}

/* REPACK CONCURRENTLY passes the snapshot of the tuples to be copied. */
#if PG_VERSION_NUM >= 190000
#define SNAPSHOT_PARAM	Snapshot snapshot,
#define SNAPSHOT_ARG	snapshot,
#define HAS_SNAPSHOT	(snapshot != NULL)
#else
#define SNAPSHOT_PARAM
#define SNAPSHOT_ARG
#define HAS_SNAPSHOT	false
#endif

/* A relation_copy_for_cluster function. */
static void
copy_for_cluster(Relation old_heap, Relation new_heap, Relation index, bool use_sort,
				 TransactionId oldest_xmin, SNAPSHOT_PARAM TransactionId *freeze_xid,
				 MultiXactId *freeze_multi, double *ntuples, double *ndead, double *nrecently_dead)
{
	GsClusterCopy copy = {
		.old_heap = old_heap,.new_heap = new_heap,.index = index,
			.oldest_xmin = oldest_xmin,.freeze_xid = *freeze_xid,.freeze_multi = *freeze_multi
	};

	restore_routine(old_heap);
	if (use_sort && !HAS_SNAPSHOT && cluster_function != NULL && cluster_function(&copy))
	{
		*ntuples += copy.ntuples;
		*ndead += copy.ndead;
		*nrecently_dead += copy.nrecently_dead;
	}
	else
		GetHeapamTableAmRoutine()->relation_copy_for_cluster(old_heap, new_heap, index, use_sort,
															 oldest_xmin, SNAPSHOT_ARG freeze_xid,
															 freeze_multi, ntuples, ndead,
															 nrecently_dead);
}

/* An index_validate_scan function. */
static void
validate_scan(Relation heap, Relation index, IndexInfo *info, Snapshot snapshot,
			  ValidateIndexState *state)
{
	restore_routine(heap);
	if (validate_function == NULL || !validate_function(heap, index, info, snapshot, state))
		GetHeapamTableAmRoutine()->index_validate_scan(heap, index, info, snapshot, state);
}

/* Replaces the functions of an open heap.  False: it is none. */
static bool
replace_functions(Relation heap)
{
	Assert(heap->rd_refcnt > 0);
	if (!gs_is_heap(heap))
		return false;
	heap_routine = *GetHeapamTableAmRoutine();
	heap_routine.scan_begin = begin_scan_restored;
	heap_routine.relation_copy_for_cluster = copy_for_cluster;
	heap_routine.index_validate_scan = validate_scan;
	heap->rd_tableam = &heap_routine;
	return true;
}

bool
gs_set_cluster(Relation heap, GsClusterFunction function)
{
	cluster_function = function;
	return replace_functions(heap);
}

bool
gs_set_validate(Relation heap, GsValidateFunction function)
{
	validate_function = function;
	return replace_functions(heap);
}

/* ------------------------------------------------------------------ CLUSTER */

Oid
gs_copied_table(Oid new_heap)
{
	char	   *name = get_rel_name(new_heap);
	Oid			table;
	char		after;

	/* make_new_heap() names it so */
	return name != NULL && sscanf(name, "pg_temp_%u%c", &table, &after) == 1 ? table : InvalidOid;
}

void
gs_lock_cluster_page(Buffer buffer)
{
#if PG_VERSION_NUM >= 190000
	/* under a shared lock, hint bits may be left out, which rewrite_heap_tuple() relies on */
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
#else
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
#endif
}

#if PG_VERSION_NUM >= 190000
#define CLUSTER_PHASE			PROGRESS_REPACK_PHASE
#define CLUSTER_PHASE_SCAN		PROGRESS_REPACK_PHASE_SEQ_SCAN_HEAP
#define CLUSTER_PHASE_SORT		PROGRESS_REPACK_PHASE_SORT_TUPLES
#define CLUSTER_PHASE_WRITE		PROGRESS_REPACK_PHASE_WRITE_NEW_HEAP
#define CLUSTER_TOTAL_BLOCKS	PROGRESS_REPACK_TOTAL_HEAP_BLKS
#define CLUSTER_BLOCKS			PROGRESS_REPACK_HEAP_BLKS_SCANNED
#define CLUSTER_SCANNED			PROGRESS_REPACK_HEAP_TUPLES_SCANNED
#define CLUSTER_WRITTEN			PROGRESS_REPACK_HEAP_TUPLES_INSERTED
#else
#define CLUSTER_PHASE			PROGRESS_CLUSTER_PHASE
#define CLUSTER_PHASE_SCAN		PROGRESS_CLUSTER_PHASE_SEQ_SCAN_HEAP
#define CLUSTER_PHASE_SORT		PROGRESS_CLUSTER_PHASE_SORT_TUPLES
#define CLUSTER_PHASE_WRITE		PROGRESS_CLUSTER_PHASE_WRITE_NEW_HEAP
#define CLUSTER_TOTAL_BLOCKS	PROGRESS_CLUSTER_TOTAL_HEAP_BLKS
#define CLUSTER_BLOCKS			PROGRESS_CLUSTER_HEAP_BLKS_SCANNED
#define CLUSTER_SCANNED			PROGRESS_CLUSTER_HEAP_TUPLES_SCANNED
#define CLUSTER_WRITTEN			PROGRESS_CLUSTER_HEAP_TUPLES_WRITTEN
#endif

void
gs_report_cluster_phase(GsClusterPhase phase)
{
	static const int64 phases[] = {
		[GS_CLUSTER_SCAN] = CLUSTER_PHASE_SCAN,
		[GS_CLUSTER_SORT] = CLUSTER_PHASE_SORT,
		[GS_CLUSTER_WRITE] = CLUSTER_PHASE_WRITE
	};

	pgstat_progress_update_param(CLUSTER_PHASE, phases[phase]);
}

void
gs_report_cluster_blocks(BlockNumber total)
{
	pgstat_progress_update_param(CLUSTER_TOTAL_BLOCKS, total);
}

void
gs_report_cluster_scanned(BlockNumber nblocks, int64 ntuples)
{
	const int	params[] = {CLUSTER_BLOCKS, CLUSTER_SCANNED};
	const int64 values[] = {nblocks, ntuples};

	pgstat_progress_update_multi_param(lengthof(params), params, values);
}

void
gs_report_cluster_written(int64 ntuples)
{
	pgstat_progress_update_param(CLUSTER_WRITTEN, ntuples);
}

/* --------------------------------------------------------------- heap scans */

bool
gs_is_heap(Relation relation)
{
	return relation->rd_tableam == GetHeapamTableAmRoutine() ||
		relation->rd_tableam == &heap_routine;
}

bool
gs_is_pagemode(HeapScanDesc scan)
{
	return (scan->rs_base.rs_flags & SO_ALLOW_PAGEMODE) != 0;
}

void
gs_skip_tuples(HeapScanDesc scan)
{
	OffsetNumber last;

	Assert(BufferIsValid(scan->rs_cbuf));
	last = PageGetMaxOffsetNumber(BufferGetPage(scan->rs_cbuf));
	if (gs_is_pagemode(scan))
		scan->rs_cindex = scan->rs_ntuples > 0 ? scan->rs_ntuples - 1 : 0;
	else
#if PG_VERSION_NUM >= 160000
		scan->rs_coffset = Max(last, FirstOffsetNumber);
#else
		ItemPointerSetOffsetNumber(&scan->rs_ctup.t_self, Max(last, FirstOffsetNumber));
#endif
}

Buffer
gs_read_next_page(HeapScanDesc scan)
{
#if PG_VERSION_NUM >= 170000
	/* the scan's own pages come from the stream, which is ahead of it */
	if (gs_is_pagemode(scan) || scan->rs_read_stream == NULL)
		return InvalidBuffer;
	return read_stream_next_buffer(scan->rs_read_stream, NULL);
#else
	ParallelBlockTableScanDesc shared = (ParallelBlockTableScanDesc) scan->rs_base.rs_parallel;
	ParallelBlockTableScanWorker mine = scan->rs_parallelworkerdata;
	BlockNumber next = InvalidBlockNumber;

	if (gs_is_pagemode(scan))
		return InvalidBuffer;
	if (shared == NULL)
	{
		if (scan->rs_cblock + 1 < scan->rs_nblocks)
			next = scan->rs_cblock + 1;
	}
	/*
	 * the next of the blocks that this process has allocated already, which may be more than there
	 * are
	 */
	else if (mine->phsw_chunk_remaining > 0 && mine->phsw_nallocated + 1 < shared->phs_nblocks)
		next = (mine->phsw_nallocated + 1 + shared->phs_startblock) % shared->phs_nblocks;
	return next == InvalidBlockNumber ? InvalidBuffer :
		ReadBufferExtended(scan->rs_base.rs_rd, MAIN_FORKNUM, next, RBM_NORMAL, scan->rs_strategy);
#endif
}

void
gs_enter_page(HeapScanDesc scan, Buffer buffer)
{
#if PG_VERSION_NUM < 170000
	ParallelBlockTableScanDesc shared = (ParallelBlockTableScanDesc) scan->rs_base.rs_parallel;
	BlockNumber next PG_USED_FOR_ASSERTS_ONLY = scan->rs_cblock + 1;

	if (shared != NULL)
		next = table_block_parallelscan_nextpage(scan->rs_base.rs_rd, scan->rs_parallelworkerdata,
												 shared);
	Assert(next == BufferGetBlockNumber(buffer));
#endif
	Assert(BufferIsValid(scan->rs_cbuf) && !gs_is_pagemode(scan));
	ReleaseBuffer(scan->rs_cbuf);
	scan->rs_cbuf = buffer;
	scan->rs_cblock = BufferGetBlockNumber(buffer);
}

void
gs_return_page(HeapScanDesc scan, Buffer buffer)
{
#if PG_VERSION_NUM >= 170000
	/* a stream takes nothing back: the scan goes on before the first tuple of the page */
	gs_enter_page(scan, buffer);
	scan->rs_coffset = InvalidOffsetNumber;
#else
	ReleaseBuffer(buffer);
#endif
}

TableScanDesc
gs_beginscan_parallel(Relation relation, ParallelTableScanDesc shared)
{
#if PG_VERSION_NUM >= 190000
	return table_beginscan_parallel(relation, shared, SO_NONE);
#else
	return table_beginscan_parallel(relation, shared);
#endif
}

BlockNumber
gs_blocks_done(HeapScanDesc scan)
{
	ParallelBlockTableScanDesc shared = (ParallelBlockTableScanDesc) scan->rs_base.rs_parallel;

	return shared == NULL ? scan->rs_cblock :
		(scan->rs_cblock + shared->phs_nblocks - shared->phs_startblock) % shared->phs_nblocks;
}

void
gs_count_heap_rows(Relation relation, int64 nrows)
{
	if (pgstat_should_count_relation(relation))
#if PG_VERSION_NUM >= 160000
		relation->pgstat_info->counts.tuples_returned += nrows;
#else
		relation->pgstat_info->t_counts.t_tuples_returned += nrows;
#endif
}

void
gs_path_change_disabled(Path *path, const Path *before, const Path *input)
{
#if PG_VERSION_NUM >= 180000
	path->disabled_nodes += input->disabled_nodes - (before == NULL ? 0 : before->disabled_nodes);
#endif
}
