/*-------------------------------------------------------------------------
 *
 * index_parallel.c
 *	  Several processes scan the table of an index that is built.
 *
 * The leader and its workers read pages of one parallel scan, as in PostgreSQL's own
 * builds, and each adds the entries of its pages to a sort of its own.  With a
 * device these sorts are one job: workers are producers, the leader is the
 * consumer (sort_parallel.c) and finds all entries in its sort.
 *
 * A worker sorts the entries that it cannot send, and leaves them to the leader as
 * sorted runs (index_gather.c).  Without a device these are all its entries, with a
 * device usually none.
 *
 *		leader	 begin: launch   scan ---> perform ---> wait ---> merge { next } ---> end
 *										  ^ sent entries ^ runs
 *		worker	   scan ---> perform -----+------> emit -+
 *
 * Entries with equal keys then come in the order of participants, not of their TIDs,
 * so the TID is the last key of the sort.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "guc.h"
#include "index/index_parallel.h"
#include "sort/sort_parallel.h"
#include "sort_parts/sort_shared.h"

#include "access/genam.h"
#include "access/nbtree.h"
#include "access/parallel.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "commands/progress.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/condition_variable.h"
#include "storage/spin.h"
#include "tcop/tcopprot.h"
#include "utils/snapmgr.h"
#include "utils/wait_event.h"

/* Keys of the shared memory segment. */
#define KEY_BUILD			UINT64CONST(0x6770757300000001)
#define KEY_SCAN			UINT64CONST(0x6770757300000002)
#define KEY_SORT			UINT64CONST(0x6770757300000003)
#define KEY_GATHER			UINT64CONST(0x6770757300000004)
#define KEY_QUERY			UINT64CONST(0x6770757300000005)
#define KEY_WAL_USAGE		UINT64CONST(0x6770757300000006)
#define KEY_BUFFER_USAGE	UINT64CONST(0x6770757300000007)

/* Shared state of the participants of a build. */
typedef struct SharedBuild
{
	Oid			heap;
	Oid			index;
	bool		concurrent;
	double		expected_rows;	/* of each worker */
	int			memory_kb;		/* of each participant */

	slock_t		mutex;			/* protects the following fields */
	int			ndone;			/* participants whose sort is performed */
	double		ntuples;		/* tuples that their scans found */
	uint64		nkept;			/* entries that workers have left to the leader */
	bool		corrupt_hot_chain;
	bool		entries_lost;			/* by a device that failed */

	ConditionVariable done;		/* signaled when ndone changes */
} SharedBuild;

struct GsIndexParallel
{
	Relation	heap;
	Relation	index;
	Snapshot	snapshot;
	ParallelContext *context;
	SharedBuild *build;
	ParallelTableScanDesc scan;
	GsShared   *sort;
	GsIndexGather *gather;
	WalUsage   *wal_usage;
	BufferUsage *buffer_usage;
};

/* ------------------------------------------------------------ participants */

/* Scans a part of the table, sorts, and reports.  False: a device lost the entries. */
static bool
scan_and_sort(GsIndexSort *sort, SharedBuild *build, Relation heap, Relation index,
			  IndexInfo *info, ParallelTableScanDesc scan)
{
	const bool	leads = !IsParallelWorker();
	double		ntuples;
	bool		sorted;

	ntuples = gs_index_sort_scan(sort, heap, index, info, scan, leads);
	if (leads)
		pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE,
									 PROGRESS_BTREE_PHASE_PERFORMSORT_1);
	sorted = gs_index_sort_perform(sort) && gs_index_sort_make_runs(sort);

	SpinLockAcquire(&build->mutex);
	build->ndone++;
	build->ntuples += ntuples;
	if (!sorted)
		build->entries_lost = true;
	else if (!leads)
		build->nkept += gs_index_sort_count(sort);
	build->corrupt_hot_chain |= info->ii_BrokenHotChain;
	SpinLockRelease(&build->mutex);
	ConditionVariableSignal(&build->done);
	return sorted;
}

/* -------------------------------------------------------------------- a worker */

static void
work(SharedBuild *build, Relation heap, Relation index, dsm_segment *segment, shm_toc *toc)
{
	IndexInfo  *info = BuildIndexInfo(index);
	GsIndexGather *gather = shm_toc_lookup(toc, KEY_GATHER, false);
	GsIndexSort *sort;

	info->ii_Concurrent = build->concurrent;
	gs_index_gather_attach(gather, segment);
	sort = gs_index_sort_begin(index, build->expected_rows, build->memory_kb,
							   shm_toc_lookup(toc, KEY_SORT, false), gather);
	(void) scan_and_sort(sort, build, heap, index, info, shm_toc_lookup(toc, KEY_SCAN, false));
	gs_index_sort_end(sort);
}

void
gs_index_parallel_main(dsm_segment *segment, shm_toc *toc)
{
	SharedBuild *build = shm_toc_lookup(toc, KEY_BUILD, false);
	BufferUsage *buffer_usage = shm_toc_lookup(toc, KEY_BUFFER_USAGE, false);
	WalUsage   *wal_usage = shm_toc_lookup(toc, KEY_WAL_USAGE, false);
	/* as the statement has locked them */
	const LOCKMODE heap_lock = build->concurrent ? ShareUpdateExclusiveLock : ShareLock;
	const LOCKMODE index_lock = build->concurrent ? RowExclusiveLock : AccessExclusiveLock;
	Relation	heap;
	Relation	index;

	debug_query_string = shm_toc_lookup(toc, KEY_QUERY, true);
	pgstat_report_activity(STATE_RUNNING, debug_query_string);
	heap = table_open(build->heap, heap_lock);
	index = index_open(build->index, index_lock);
	InstrStartParallelQuery();
	work(build, heap, index, segment, toc);
	InstrEndParallelQuery(&buffer_usage[ParallelWorkerNumber], &wal_usage[ParallelWorkerNumber]);
	index_close(index, index_lock);
	table_close(heap, heap_lock);
}

/* ------------------------------------------------------------------ the leader */

/* A copy of the statement, for pg_stat_activity. */
static void
estimate_query(ParallelContext *context)
{
	if (debug_query_string == NULL)
		return;
	shm_toc_estimate_chunk(&context->estimator, strlen(debug_query_string) + 1);
	shm_toc_estimate_keys(&context->estimator, 1);
}

static void
share_query(ParallelContext *context)
{
	Size		nbytes;
	char	   *copy;

	if (debug_query_string == NULL)
		return;
	nbytes = strlen(debug_query_string) + 1;
	copy = shm_toc_allocate(context->toc, nbytes);
	memcpy(copy, debug_query_string, nbytes);
	shm_toc_insert(context->toc, KEY_QUERY, copy);
}

static void
estimate(ParallelContext *context, Size nbytes)
{
	shm_toc_estimate_chunk(&context->estimator, nbytes);
	shm_toc_estimate_keys(&context->estimator, 1);
}

static void *
allocate(ParallelContext *context, uint64 key, Size nbytes)
{
	void	   *place = shm_toc_allocate(context->toc, nbytes);

	shm_toc_insert(context->toc, key, place);
	return place;
}

/* Allocates shared memory.  False: there is none. */
static bool
allocate_shared(GsIndexParallel *parallel)
{
	ParallelContext *context = parallel->context;
	const int	nworkers = context->nworkers;
	const Size	scan_bytes = table_parallelscan_estimate(parallel->heap, parallel->snapshot);
	const Size	sort_bytes = gs_shared_bytes(nworkers + 1);
	const Size	gather_bytes = gs_index_gather_bytes(nworkers);
	const Size	wal_bytes = mul_size(sizeof(WalUsage), nworkers);
	const Size	buffer_bytes = mul_size(sizeof(BufferUsage), nworkers);

	estimate(context, sizeof(SharedBuild));
	estimate(context, scan_bytes);
	estimate(context, sort_bytes);
	estimate(context, gather_bytes);
	estimate(context, wal_bytes);
	estimate(context, buffer_bytes);
	estimate_query(context);
	InitializeParallelDSM(context);
	if (context->seg == NULL)
		return false;
	parallel->build = allocate(context, KEY_BUILD, sizeof(SharedBuild));
	parallel->scan = allocate(context, KEY_SCAN, scan_bytes);
	parallel->sort = allocate(context, KEY_SORT, sort_bytes);
	parallel->gather = allocate(context, KEY_GATHER, gather_bytes);
	parallel->wal_usage = allocate(context, KEY_WAL_USAGE, wal_bytes);
	parallel->buffer_usage = allocate(context, KEY_BUFFER_USAGE, buffer_bytes);
	share_query(context);
	return true;
}

static void
init_build(GsIndexParallel *parallel, bool concurrent, double expected_rows, int memory_kb)
{
	SharedBuild *build = parallel->build;
	const int	nworkers = parallel->context->nworkers;

	memset(build, 0, sizeof(SharedBuild));
	build->heap = RelationGetRelid(parallel->heap);
	build->index = RelationGetRelid(parallel->index);
	build->concurrent = concurrent;
	build->expected_rows = expected_rows / nworkers;
	build->memory_kb = Max(memory_kb / (nworkers + 1), 64);
	SpinLockInit(&build->mutex);
	ConditionVariableInit(&build->done);
}

static void
init_sort(GsIndexParallel *parallel, double expected_rows)
{
	const int	nparticipants = parallel->context->nworkers + 1;
	int			ncolumns;
	GsSortColumn *columns = gs_index_sort_columns(parallel->index, &ncolumns);

	gs_shared_init(parallel->sort, nparticipants);
	gs_shared_reset(parallel->sort,
					gs_sort_parallel_pays(columns, ncolumns, nparticipants, expected_rows), true);
	pfree(columns);
}

GsIndexParallel *
gs_index_parallel_begin(Relation heap, Relation index, IndexInfo *info, double expected_rows,
						int memory_kb)
{
	GsIndexParallel *parallel = palloc0(sizeof(GsIndexParallel));

	parallel->heap = heap;
	parallel->index = index;
	EnterParallelMode();
	parallel->context = CreateParallelContext(gs_library_path(), "gs_index_parallel_main",
											  info->ii_ParallelWorkers);
	/* as PostgreSQL does: all tuples, and the scan recognizes dead ones; or those of a snapshot */
	parallel->snapshot = info->ii_Concurrent ?
		RegisterSnapshot(GetTransactionSnapshot()) : SnapshotAny;
	if (allocate_shared(parallel))
	{
		init_build(parallel, info->ii_Concurrent, expected_rows, memory_kb);
		init_sort(parallel, expected_rows);
		gs_index_gather_init(parallel->gather, parallel->context->nworkers, parallel->context->seg);
		table_parallelscan_initialize(heap, parallel->scan, parallel->snapshot);
		LaunchParallelWorkers(parallel->context);
	}
	if (parallel->context->nworkers_launched > 0)
		return parallel;
	gs_index_parallel_end(parallel);
	return NULL;
}

/* Waits until all participants have scanned, and reported. */
static void
wait_for_workers(GsIndexParallel *parallel)
{
	SharedBuild *build = parallel->build;
	int			ndone;

	/* ERROR if a worker failed to start, instead of waiting forever */
	WaitForParallelWorkersToAttach(parallel->context);
	ConditionVariablePrepareToSleep(&build->done);
	for (;;)
	{
		SpinLockAcquire(&build->mutex);
		ndone = build->ndone;
		SpinLockRelease(&build->mutex);
		if (ndone == parallel->context->nworkers_launched + 1)
			break;
		ConditionVariableSleep(&build->done, WAIT_EVENT_PARALLEL_CREATE_INDEX_SCAN);
	}
	ConditionVariableCancelSleep();
}

GsIndexSort *
gs_index_parallel_sort(GsIndexParallel *parallel, IndexInfo *info, int merge_kb, double *ntuples)
{
	SharedBuild *build = parallel->build;
	GsIndexSort *sort;

	sort = gs_index_sort_begin(parallel->index, build->expected_rows, build->memory_kb,
							   parallel->sort, parallel->gather);
	(void) scan_and_sort(sort, build, parallel->heap, parallel->index, info, parallel->scan);
	wait_for_workers(parallel);
	*ntuples = build->ntuples;
	info->ii_BrokenHotChain = build->corrupt_hot_chain;
	if (!build->entries_lost && gs_index_sort_merge_shared(sort, build->nkept, merge_kb))
		return sort;
	gs_index_sort_end(sort);
	return NULL;
}

void
gs_index_parallel_end(GsIndexParallel *parallel)
{
	ParallelContext *context = parallel->context;

	WaitForParallelWorkersToFinish(context);
	for (int i = 0; i < context->nworkers_launched; i++)
		InstrAccumParallelQuery(&parallel->buffer_usage[i], &parallel->wal_usage[i]);
	if (IsMVCCSnapshot(parallel->snapshot))
		UnregisterSnapshot(parallel->snapshot);
	DestroyParallelContext(context);
	ExitParallelMode();
	pfree(parallel);
}
