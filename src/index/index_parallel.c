/*-------------------------------------------------------------------------
 *
 * index_parallel.c
 *	  Several processes scan the table of an index that is built, and write the index.
 *
 * The leader and its workers read pages of one parallel scan, as in PostgreSQL's own
 * builds, and each adds the entries of its pages to a sort of its own.  With a
 * device these sorts are one job: workers are producers, the leader is the
 * consumer (sort_parallel.c) and finds all entries in its sort.
 *
 * A worker sorts the entries that it cannot send, and leaves them as sorted runs for
 * all to read (share_gather.c).  Without a device these are all its entries, with a
 * device usually none.
 *
 * If all entries are in runs, each participant merges a range of them and writes its
 * leaf pages (index_ranges.c).  If all are on a device, and all workers can read them there,
 * each gets a range of them from it.  The leader then writes the levels above.  Otherwise, or
 * if there are few entries, the leader writes the index alone.
 *
 *		leader	 scan ---> perform ---> wait ---> open ---> get, write ---> wait ---> upper levels
 *						  ^ sent entries ^ runs	   | ranges					 ^
 *		worker	 scan ---> perform ------+		   +------> get, write ------+
 *
 * Entries with equal keys then come in the order of participants, not of their TIDs,
 * so the TID is the last key of the sort.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "guc.h"
#include "common/build_id.h"
#include "index/index_parallel.h"
#include "index/index_write.h"
#include "share/share_state.h"
#include "sort/sort_parallel.h"

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
#include "utils/rel.h"
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
#define KEY_RANGES			UINT64CONST(0x6770757300000008)

/* The least pages that a participant writes; for fewer, others are not worth it. */
#define LEAST_RANGE_PAGES	64

/* Shared state of the participants of a build. */
typedef struct SharedBuild
{
	char		build_id[GS_BUILD_ID_BYTES + 1];	/* of the leader; first, whatever the build */
	Oid			heap;
	Oid			index;
	bool		concurrent;
	bool		unique;			/* false also where a table with duplicates is rewritten */
	bool		nulls_not_distinct;
	double		expected_rows;	/* of each worker */
	int			memory_kb;		/* of each participant */

	slock_t		mutex;			/* protects the following fields */
	int			ndone;			/* participants whose sort is performed */
	double		ntuples;		/* tuples that their scans found */
	uint64		nkept;			/* entries that workers have left to the leader */
	int			nreaders;		/* workers that can read the job of a device */
	bool		corrupt_hot_chain;
	bool		entries_lost;			/* by a device that failed */
	uint64		nread_there;	/* entries that participants read from that job; 0: they merge
								 * runs.  Set before ranges are opened */

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
	GsSortGather *gather;
	GsIndexRanges *ranges;
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
	bool		reads;

	ntuples = gs_index_sort_scan(sort, heap, index, info, scan, leads);
	if (leads)
		pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE,
									 PROGRESS_BTREE_PHASE_PERFORMSORT_1);
	sorted = gs_index_sort_perform(sort) && gs_index_sort_make_runs(sort);
	reads = sorted && !leads && gpusort_enable_parallel_index_write &&
		gs_index_sort_open_reader(sort);

	SpinLockAcquire(&build->mutex);
	build->ndone++;
	build->nreaders += reads;
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

/* Writes the range of a worker, if there is one. */
static void
write_range(SharedBuild *build, Relation heap, Relation index, IndexInfo *info, GsIndexSort *sort,
			const GsIndexRange *range)
{
	const int	nranges = gs_index_ranges_wait_for_open(range->ranges);

	bool		has_all = true;

	if (nranges == 1)
		return;
	if (build->nread_there > 0)
		gs_index_sort_begin_reading(sort, build->nread_there);
	else
		has_all = gs_index_sort_adopt(sort);
	if (!has_all || !gs_index_sort_begin_range(sort, range->number, nranges, build->memory_kb))
		elog(ERROR, "could not divide the sorted entries of index \"%s\"",
			 RelationGetRelationName(index));
	(void) gs_index_write(heap, index, info, sort, range);
}

static void
work(SharedBuild *build, Relation heap, Relation index, shm_toc *toc)
{
	IndexInfo  *info = BuildIndexInfo(index);
	GsSortGather *gather = shm_toc_lookup(toc, KEY_GATHER, false);
	const GsIndexRange range = {
		.ranges = shm_toc_lookup(toc, KEY_RANGES, false),
		.number = ParallelWorkerNumber + 1,
		.files = gs_sort_gather_file_set(gather)
	};
	GsIndexSort *sort;

	info->ii_Concurrent = build->concurrent;
	info->ii_Unique = build->unique;
	info->ii_NullsNotDistinct = build->nulls_not_distinct;
	gs_sort_gather_attach(gather);
	sort = gs_index_sort_begin_shared(index, build->expected_rows, build->memory_kb,
									  shm_toc_lookup(toc, KEY_SORT, false), gather);
	if (scan_and_sort(sort, build, heap, index, info, shm_toc_lookup(toc, KEY_SCAN, false)))
		write_range(build, heap, index, info, sort, &range);
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

	gs_shared_check_build(build->build_id);
	debug_query_string = shm_toc_lookup(toc, KEY_QUERY, true);
	pgstat_report_activity(STATE_RUNNING, debug_query_string);
	heap = table_open(build->heap, heap_lock);
	index = index_open(build->index, index_lock);
	InstrStartParallelQuery();
	work(build, heap, index, toc);
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
	const Size	gather_bytes = gs_sort_gather_bytes(nworkers + 1);
	const Size	ranges_bytes = gs_index_ranges_bytes(nworkers + 1);
	const Size	wal_bytes = mul_size(sizeof(WalUsage), nworkers);
	const Size	buffer_bytes = mul_size(sizeof(BufferUsage), nworkers);

	estimate(context, sizeof(SharedBuild));
	estimate(context, scan_bytes);
	estimate(context, sort_bytes);
	estimate(context, gather_bytes);
	estimate(context, ranges_bytes);
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
	parallel->ranges = allocate(context, KEY_RANGES, ranges_bytes);
	parallel->wal_usage = allocate(context, KEY_WAL_USAGE, wal_bytes);
	parallel->buffer_usage = allocate(context, KEY_BUFFER_USAGE, buffer_bytes);
	share_query(context);
	return true;
}

static void
init_build(GsIndexParallel *parallel, const IndexInfo *info, double expected_rows, int memory_kb)
{
	SharedBuild *build = parallel->build;
	const int	nworkers = parallel->context->nworkers;

	memset(build, 0, sizeof(SharedBuild));
	memcpy(build->build_id, gs_build_id, sizeof(build->build_id));
	build->heap = RelationGetRelid(parallel->heap);
	build->index = RelationGetRelid(parallel->index);
	build->concurrent = info->ii_Concurrent;
	build->unique = info->ii_Unique;
	build->nulls_not_distinct = info->ii_NullsNotDistinct;
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
	const bool	by_job = gs_sort_parallel_pays(columns, ncolumns, nparticipants, expected_rows);

	gs_shared_init(parallel->sort, nparticipants);
	gs_shared_reset(parallel->sort, by_job ? GS_SHARE_JOB : GS_SHARE_NOTHING, true,
					by_job ? ncolumns : 0);
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
		init_build(parallel, info, expected_rows, memory_kb);
		init_sort(parallel, expected_rows);
		gs_sort_gather_init(parallel->gather, parallel->context->nworkers + 1,
							parallel->context->seg);
		gs_index_ranges_init(parallel->ranges);
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

/* How many participants write: as many as have enough to do. */
static int
choose_ranges(const GsIndexParallel *parallel, GsIndexSort *sort, BlockNumber npages)
{
	const int	nranges = parallel->context->nworkers_launched + 1;

	return gpusort_enable_parallel_index_write && npages >= nranges * LEAST_RANGE_PAGES &&
		gs_index_sort_begin_range(sort, 0, nranges, parallel->build->memory_kb) ? nranges : 1;
}

/*
 * The leader's sort gets the entries of all: a range of them if workers write, too.  False: a
 * device lost entries.
 */
static bool
begin_output(GsIndexParallel *parallel, GsIndexSort *sort, int merge_kb)
{
	SharedBuild *build = parallel->build;
	const BlockNumber npages = (gs_sort_gather_run_bytes(parallel->gather) +
								gs_index_sort_bytes_on_device(sort)) / BLCKSZ;
	int			nranges = 1;
	bool		merged = true;

	/* no worker has entries, and those of the leader are on a device */
	if (build->nkept == 0 && !gs_index_sort_has_runs(sort))
	{
		if (build->nreaders == parallel->context->nworkers_launched)
			nranges = choose_ranges(parallel, sort, npages);
		if (nranges > 1)
			build->nread_there = gs_index_sort_count(sort);
	}
	else
	{
		const bool	all_in_runs = gs_index_sort_has_runs(sort) || gs_index_sort_count(sort) == 0;

		merged = gs_index_sort_adopt(sort);
		if (merged && all_in_runs)
			nranges = choose_ranges(parallel, sort, npages);
		if (merged && nranges == 1)
			gs_index_sort_begin_merge(sort, merge_kb);
	}
	gs_index_ranges_open(parallel->ranges, parallel->index, nranges, npages,
						 gs_index_sort_count(sort));
	return merged;
}

GsIndexSort *
gs_index_parallel_sort(GsIndexParallel *parallel, IndexInfo *info, int merge_kb, double *ntuples)
{
	SharedBuild *build = parallel->build;
	GsIndexSort *sort;

	sort = gs_index_sort_begin_shared(parallel->index, build->expected_rows, build->memory_kb,
									  parallel->sort, parallel->gather);
	(void) scan_and_sort(sort, build, parallel->heap, parallel->index, info, parallel->scan);
	wait_for_workers(parallel);
	*ntuples = build->ntuples;
	info->ii_BrokenHotChain = build->corrupt_hot_chain;
	if (build->entries_lost)
		gs_index_ranges_open(parallel->ranges, parallel->index, 1, 0, 0);
	else if (begin_output(parallel, sort, merge_kb))
		return sort;
	gs_index_sort_end(sort);
	return NULL;
}

bool
gs_index_parallel_has_ranges(const GsIndexParallel *parallel)
{
	return gs_index_ranges_count(parallel->ranges) > 1;
}

/* Raises an ERROR if ranges do not follow each other, though each may be in order. */
static void
check_ends(const GsIndexParallel *parallel)
{
	const int	gap = gs_index_ranges_find_gap(parallel->ranges);

	if (gap > 0)
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("sort returned rows in wrong order"),
				 errdetail("Process %d of %d has a first row for index \"%s\" that does not follow the last row of the previous process.",
						   gap + 1, gs_index_ranges_count(parallel->ranges),
						   RelationGetRelationName(parallel->index)),
				 errhint("This is a bug in gpusort. Set gpusort.enable_create_index to off to build the index without it.")));
}

/* Do the ranges together have all entries, in order, if each is in order? */
static bool
are_complete(const GsIndexParallel *parallel, const GsIndexSort *sort)
{
	return gs_index_ranges_rows(parallel->ranges) == gs_index_sort_count(sort) &&
		gs_index_ranges_find_gap(parallel->ranges) == 0;
}

bool
gs_index_parallel_write(GsIndexParallel *parallel, const IndexInfo *info, GsIndexSort *sort)
{
	const GsIndexRange range = {
		.ranges = parallel->ranges,
		.number = 0,
		.files = gs_sort_gather_file_set(parallel->gather)
	};
	bool		all_written;

	elog(DEBUG1, "%d processes write index \"%s\"", gs_index_ranges_count(parallel->ranges),
		 RelationGetRelationName(parallel->index));
	(void) gs_index_write(parallel->heap, parallel->index, info, sort, &range);
	all_written = gs_index_ranges_wait_for_all(parallel->ranges);
	if (gs_index_ranges_are_given_up(parallel->ranges))
		return false;
	if (!all_written)
	{
		WaitForParallelWorkersToFinish(parallel->context);	/* raises the ERROR of one of them */
		elog(ERROR, "a process could not write its range of index \"%s\"",
			 RelationGetRelationName(parallel->index));
	}
	if (gs_index_sort_may_be_wrong(sort) && !are_complete(parallel, sort))
		return false;
	gs_index_sort_check_count(sort, gs_index_ranges_rows(parallel->ranges));
	check_ends(parallel);
	gs_index_write_upper(parallel->heap, parallel->index, &range);
	return true;
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
