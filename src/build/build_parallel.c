/*-------------------------------------------------------------------------
 *
 * build_parallel.c
 *	  Several processes scan the table of an index that is built, and write the index.
 *
 * The leader and its workers read pages of one parallel scan, and each sorts the entries that it
 * has read: all in one job of a device, where the leader is the consumer (sort_parallel.c), or
 * each in sorted runs for all to read (share_streams.c).  Then each participant writes the leaf
 * pages of a range of all entries (build_ranges.c), and the leader the levels above; or the
 * leader writes the index alone (README.md, "Workers"):
 *
 *		leader	 scan ---> perform ---> wait ---> open ---> get, write ---> wait ---> upper levels
 *						  ^ sent entries ^ runs	   | ranges					 ^
 *		worker	 scan ---> perform ------+		   +------> get, write ------+
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "guc.h"
#include "common/protocol.h"
#include "build/build_parallel.h"
#include "build/build_scan.h"
#include "share/share_state.h"
#include "sort/sort_parallel.h"

#include "access/genam.h"
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
#define KEY_SHARED	UINT64CONST(0x6770757300000001)
#define KEY_SCAN	UINT64CONST(0x6770757300000002)
#define KEY_QUERY	UINT64CONST(0x6770757300000003)

/* The least pages that a participant writes; for fewer, others are not worth it. */
#define LEAST_RANGE_PAGES	64

/* Shared state of the participants of a build. */
typedef struct SharedBuild
{
	char		build_id[GS_BUILD_ID_BYTES + 1];	/* of the leader; first, whatever the build */
	int			nworkers;
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
	bool		entries_lost;	/* by a device that failed */
	uint64		nread_there;	/* entries that participants read from that job; 0: they merge runs.
								 * Set before ranges are opened */

	ConditionVariable done;		/* signaled when ndone changes */
} SharedBuild;

/* One chunk of shared memory. */
typedef struct SharedChunk
{
	SharedBuild *build;			/* first */
	GsShared   *sort;
	GsShareGather *gather;
	GsBuildRanges *ranges;
	WalUsage   *wal_usage;		/* of each worker */
	BufferUsage *buffer_usage;
} SharedChunk;

struct GsBuildParallel
{
	const GsBuildMethod *method;
	Relation	heap;
	Relation	index;
	Snapshot	snapshot;
	ParallelContext *context;
	ParallelTableScanDesc scan;
	SharedChunk shared;
};

/* ------------------------------------------------------------ shared memory */

static void *
take(char *chunk, Size *at, Size nbytes)
{
	void	   *place = chunk == NULL ? NULL : chunk + *at;

	*at = add_size(*at, MAXALIGN(nbytes));
	return place;
}

/* Finds the parts of a chunk; NULL: there is none yet.  Returns its size. */
static Size
set_shared(SharedChunk *shared, char *chunk, int nworkers)
{
	Size		at = 0;

	shared->build = take(chunk, &at, sizeof(SharedBuild));
	shared->sort = take(chunk, &at, gs_shared_bytes(nworkers + 1));
	shared->gather = take(chunk, &at, gs_share_gather_bytes(nworkers + 1));
	shared->ranges = take(chunk, &at, gs_build_ranges_bytes(nworkers + 1));
	shared->wal_usage = take(chunk, &at, mul_size(sizeof(WalUsage), nworkers));
	shared->buffer_usage = take(chunk, &at, mul_size(sizeof(BufferUsage), nworkers));
	return at;
}

/* ------------------------------------------------------------ participants */

/* Scans a part of the table, sorts, and reports.  False: a device lost the entries. */
static bool
scan_and_sort(GsBuildSort *sort, SharedBuild *build, Relation heap, Relation index,
			  IndexInfo *info, ParallelTableScanDesc scan)
{
	const bool	leads = !IsParallelWorker();
	double		ntuples;
	bool		sorted;
	bool		reads;

	ntuples = sort->method->scan(sort, heap, index, info, scan, leads);
	if (leads)
		pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, sort->method->sort_phase);
	sorted = gs_build_sort_perform(sort) && gs_build_sort_make_runs(sort);
	reads = sorted && !leads && gpusort_enable_parallel_index_write &&
		gs_sort_parallel_open_reader(&sort->sort);

	SpinLockAcquire(&build->mutex);
	build->ndone++;
	build->nreaders += reads;
	build->ntuples += ntuples;
	if (!sorted)
		build->entries_lost = true;
	else if (!leads)
		build->nkept += gs_build_sort_count(sort);
	build->corrupt_hot_chain |= info->ii_BrokenHotChain;
	SpinLockRelease(&build->mutex);
	ConditionVariableSignal(&build->done);
	return sorted;
}

/* -------------------------------------------------------------------- a worker */

/* Writes the range of a worker, if there is one. */
static void
write_range(SharedBuild *build, Relation heap, Relation index, IndexInfo *info, GsBuildSort *sort,
			const GsBuildPart *part)
{
	const int	nranges = gs_build_ranges_wait(part->ranges, GS_RANGES_OPEN, 0);
	bool		has_all = true;
	uint64		ntuples;

	if (nranges == 1)
		return;
	if (build->nread_there > 0)
		gs_sort_parallel_begin_reading(&sort->sort, build->nread_there);
	else
		has_all = gs_build_sort_adopt(sort);
	if (!has_all || !gs_build_sort_begin_range(sort, part->number, nranges, build->memory_kb))
		elog(ERROR, "could not divide the sorted entries of index \"%s\"",
			 RelationGetRelationName(index));
	(void) sort->method->write(heap, index, info, sort, part, &ntuples);
}

static void
work(const GsBuildMethod *method, const SharedChunk *shared, Relation heap, Relation index,
	 ParallelTableScanDesc scan)
{
	SharedBuild *build = shared->build;
	IndexInfo  *info = BuildIndexInfo(index);
	const GsBuildPart part = {
		.ranges = shared->ranges,
		.number = ParallelWorkerNumber + 1,
		.files = gs_share_gather_file_set(shared->gather)
	};
	GsBuildSort *sort;

	info->ii_Concurrent = build->concurrent;
	info->ii_Unique = build->unique;
	info->ii_NullsNotDistinct = build->nulls_not_distinct;
	gs_share_gather_attach(shared->gather);
	sort = gs_build_sort_begin(method, index, build->expected_rows, build->memory_kb, false,
							   shared->sort, shared->gather);
	if (scan_and_sort(sort, build, heap, index, info, scan))
		write_range(build, heap, index, info, sort, &part);
	gs_build_sort_end(sort);
}

void
gs_build_parallel_work(const GsBuildMethod *method, shm_toc *toc)
{
	SharedBuild *build = shm_toc_lookup(toc, KEY_SHARED, false);
	SharedChunk shared;
	LOCKMODE	heap_lock;
	LOCKMODE	index_lock;
	Relation	heap;
	Relation	index;

	gs_shared_check_build(build->build_id);
	(void) set_shared(&shared, (char *) build, build->nworkers);
	debug_query_string = shm_toc_lookup(toc, KEY_QUERY, true);
	pgstat_report_activity(STATE_RUNNING, debug_query_string);
	/* as the statement has locked them */
	heap_lock = build->concurrent ? ShareUpdateExclusiveLock : ShareLock;
	index_lock = build->concurrent ? RowExclusiveLock : AccessExclusiveLock;
	heap = table_open(build->heap, heap_lock);
	index = index_open(build->index, index_lock);
	InstrStartParallelQuery();
	work(method, &shared, heap, index, shm_toc_lookup(toc, KEY_SCAN, false));
	InstrEndParallelQuery(&shared.buffer_usage[ParallelWorkerNumber],
						  &shared.wal_usage[ParallelWorkerNumber]);
	index_close(index, index_lock);
	table_close(heap, heap_lock);
}

/* ------------------------------------------------------------------ the leader */

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
allocate_shared(GsBuildParallel *parallel)
{
	ParallelContext *context = parallel->context;
	const Size	nbytes = set_shared(&parallel->shared, NULL, context->nworkers);
	const Size	scan_bytes = table_parallelscan_estimate(parallel->heap, parallel->snapshot);
	const char *query = debug_query_string; /* for pg_stat_activity */

	estimate(context, nbytes);
	estimate(context, scan_bytes);
	if (query != NULL)
		estimate(context, strlen(query) + 1);
	InitializeParallelDSM(context);
	if (context->seg == NULL)
		return false;
	(void) set_shared(&parallel->shared, allocate(context, KEY_SHARED, nbytes), context->nworkers);
	parallel->scan = allocate(context, KEY_SCAN, scan_bytes);
	if (query != NULL)
		strcpy(allocate(context, KEY_QUERY, strlen(query) + 1), query);
	return true;
}

static void
init_build(GsBuildParallel *parallel, const IndexInfo *info, double expected_rows)
{
	SharedBuild *build = parallel->shared.build;
	const int	nworkers = parallel->context->nworkers;

	memset(build, 0, sizeof(SharedBuild));
	memcpy(build->build_id, gs_build_id, sizeof(build->build_id));
	build->nworkers = nworkers;
	build->heap = RelationGetRelid(parallel->heap);
	build->index = RelationGetRelid(parallel->index);
	build->concurrent = info->ii_Concurrent;
	build->unique = info->ii_Unique;
	build->nulls_not_distinct = info->ii_NullsNotDistinct;
	build->expected_rows = expected_rows / nworkers;
	build->memory_kb = Max(maintenance_work_mem / (nworkers + 1), 64);
	SpinLockInit(&build->mutex);
	ConditionVariableInit(&build->done);
}

static void
init_sort(GsBuildParallel *parallel, double expected_rows)
{
	const int	nparticipants = parallel->context->nworkers + 1;
	int			ncolumns;
	GsSortColumn *columns = parallel->method->columns(parallel->index, &ncolumns);
	const bool	by_job = gs_sort_parallel_pays(columns, ncolumns, nparticipants, expected_rows);

	gs_shared_init(parallel->shared.sort, nparticipants);
	gs_shared_reset(parallel->shared.sort, by_job ? GS_SHARE_JOB : GS_SHARE_NOTHING, true,
					by_job ? ncolumns : 0);
	pfree(columns);
}

GsBuildParallel *
gs_build_parallel_begin(const GsBuildMethod *method, Relation heap, Relation index,
						IndexInfo *info, double expected_rows)
{
	GsBuildParallel *parallel = palloc0(sizeof(GsBuildParallel));

	parallel->method = method;
	parallel->heap = heap;
	parallel->index = index;
	EnterParallelMode();
	parallel->context = CreateParallelContext(gs_library_path(), method->worker_main,
											  info->ii_ParallelWorkers);
	/* as PostgreSQL does: all tuples, and the scan recognizes dead ones; or those of a snapshot */
	parallel->snapshot = info->ii_Concurrent ?
		RegisterSnapshot(GetTransactionSnapshot()) : SnapshotAny;
	if (allocate_shared(parallel))
	{
		init_build(parallel, info, expected_rows);
		init_sort(parallel, expected_rows);
		gs_share_gather_init(parallel->shared.gather, parallel->context->nworkers + 1,
							 parallel->context->seg);
		gs_build_ranges_init(parallel->shared.ranges, method->first_block);
		table_parallelscan_initialize(heap, parallel->scan, parallel->snapshot);
		LaunchParallelWorkers(parallel->context);
	}
	if (parallel->context->nworkers_launched > 0)
		return parallel;
	gs_build_parallel_end(parallel);
	return NULL;
}

/* Waits until all participants have scanned, and reported. */
static void
wait_for_workers(GsBuildParallel *parallel)
{
	SharedBuild *build = parallel->shared.build;
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
choose_ranges(const GsBuildParallel *parallel, GsBuildSort *sort, BlockNumber npages)
{
	const int	nranges = parallel->context->nworkers_launched + 1;

	return gpusort_enable_parallel_index_write && npages >= nranges * LEAST_RANGE_PAGES &&
		gs_build_sort_begin_range(sort, 0, nranges, parallel->shared.build->memory_kb) ?
		nranges : 1;
}

/*
 * The leader's sort gets the entries of all: a range of them if workers write, too.  False: a
 * device lost entries.
 */
static bool
begin_output(GsBuildParallel *parallel, GsBuildSort *sort)
{
	SharedBuild *build = parallel->shared.build;
	const BlockNumber npages = (gs_share_gather_run_bytes(parallel->shared.gather) +
								gs_build_sort_bytes_on_device(sort)) / BLCKSZ;
	const bool	has_runs = sort->sort.store.phase == GS_STORE_RUNS;
	const bool	all_in_runs = has_runs || gs_build_sort_count(sort) == 0;
	int			nranges = 1;
	bool		merged = true;

	/* no worker has entries, and those of the leader are on a device */
	if (build->nkept == 0 && !has_runs)
	{
		if (build->nreaders == parallel->context->nworkers_launched)
			nranges = choose_ranges(parallel, sort, npages);
		if (nranges > 1)
			build->nread_there = gs_build_sort_count(sort);
	}
	else
	{
		merged = gs_build_sort_adopt(sort);
		if (merged && all_in_runs)
			nranges = choose_ranges(parallel, sort, npages);
		if (merged && nranges == 1)
			gs_build_sort_begin_merge(sort);
	}
	gs_build_ranges_open(parallel->shared.ranges, parallel->index, nranges, npages,
						 gs_build_sort_count(sort));
	return merged;
}

GsBuildSort *
gs_build_parallel_sort(GsBuildParallel *parallel, IndexInfo *info, double *ntuples)
{
	SharedBuild *build = parallel->shared.build;
	GsBuildSort *sort;

	sort = gs_build_sort_begin(parallel->method, parallel->index, build->expected_rows,
							   build->memory_kb, false, parallel->shared.sort,
							   parallel->shared.gather);
	(void) scan_and_sort(sort, build, parallel->heap, parallel->index, info, parallel->scan);
	wait_for_workers(parallel);
	*ntuples = build->ntuples;
	info->ii_BrokenHotChain = build->corrupt_hot_chain;
	if (build->entries_lost)
		gs_build_ranges_open(parallel->shared.ranges, parallel->index, 1, 0, 0);
	else if (begin_output(parallel, sort))
		return sort;
	gs_build_sort_end(sort);
	return NULL;
}

/* Raises an ERROR: a range does not begin with the row that the previous one ended before. */
static void
report_gap(const GsBuildParallel *parallel, int gap)
{
	ereport(ERROR,
			(errcode(ERRCODE_INTERNAL_ERROR),
			 errmsg("sort returned rows in wrong order"),
			 errdetail("Process %d of %d has a first row for index \"%s\" that does not "
					   "follow the last row of the previous process.",
					   gap + 1, parallel->shared.ranges->nranges,
					   RelationGetRelationName(parallel->index)),
			 gs_errhint_bug(parallel->method->setting, "build the index")));
}

bool
gs_build_parallel_write(GsBuildParallel *parallel, const IndexInfo *info, GsBuildSort *sort,
						uint64 *ntuples)
{
	GsBuildRanges *ranges = parallel->shared.ranges;
	const GsBuildPart part = {
		.ranges = ranges,
		.number = 0,
		.files = gs_share_gather_file_set(parallel->shared.gather)
	};
	int			gap;

	if (ranges->nranges == 1)
		return sort->method->write(parallel->heap, parallel->index, info, sort, NULL, ntuples);
	elog(DEBUG1, "%d processes write index \"%s\"", ranges->nranges,
		 RelationGetRelationName(parallel->index));
	(void) sort->method->write(parallel->heap, parallel->index, info, sort, &part, ntuples);
	(void) gs_build_ranges_wait(ranges, GS_RANGES_LEFT, 0);
	if (ranges->given_up)
		return false;
	/* each range is in order, but they may not have all entries, or not follow each other */
	if (gs_build_sort_may_be_wrong(sort) &&
		gs_build_ranges_rows(ranges) != gs_build_sort_count(sort))
		return false;
	gs_build_sort_check_count(sort, gs_build_ranges_rows(ranges));
	gap = parallel->method->write_upper(parallel->heap, parallel->index, &part);
	if (gap > 0 && gs_build_sort_may_be_wrong(sort))
		return false;
	if (gap > 0)
		report_gap(parallel, gap);
	*ntuples = gs_build_ranges_add_tuples(ranges, 0);
	return true;
}

void
gs_build_parallel_end(GsBuildParallel *parallel)
{
	ParallelContext *context = parallel->context;

	WaitForParallelWorkersToFinish(context);
	for (int i = 0; i < context->nworkers_launched; i++)
		InstrAccumParallelQuery(&parallel->shared.buffer_usage[i], &parallel->shared.wal_usage[i]);
	if (IsMVCCSnapshot(parallel->snapshot))
		UnregisterSnapshot(parallel->snapshot);
	DestroyParallelContext(context);
	ExitParallelMode();
	pfree(parallel);
}
