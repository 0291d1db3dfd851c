/*-------------------------------------------------------------------------
 *
 * stats.c
 *	  Statistics of all sessions, in shared memory.
 *
 * The memory is a dynamic segment, which the first sort creates (README.md).  Its handle is in a
 * structure of a few bytes, for which PostgreSQL always has space (ShmemInitStruct(), as
 * pg_prewarm uses it).  The segment starts from zero after a crash of the server.
 *
 *	  GsStatsSegment:	databases[]		counters of processes that have ended
 *						slots[]			one for each PGPROC: the process that has it
 *
 * A slot belongs to one process at a time, which alone writes it, without a lock.  A reader adds
 * the slots to the databases.  A process that ends moves its counters from its slot to its
 * database, for which it holds AddinShmemInitLock exclusively, as readers do.  That is when its
 * mapping of the segment is removed: after its transaction was aborted, and before another
 * process can get its PGPROC.
 *
 * A reset does not write to slots.  It subtracts what was counted from the databases, in unsigned
 * numbers, so that the sums are zero.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "stats/stats.h"

#include "common/protocol.h"

#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/dsm.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/timestamp.h"

/* Further ones are counted together, as the first entry. */
#define MAX_DATABASES	1024

/* Of one process; others only read it. */
typedef struct Slot
{
	int			pid;			/* 0: not used */
	Oid			database;
	bool		is_active;		/* activity is valid */
	GsActivity	activity;
	uint64		counters[GS_NSTATS];
} pg_attribute_aligned(64) Slot;

typedef struct GsStatsSegment
{
	TimestampTz since;
	int			ndatabases;
	GsDatabaseStats databases[MAX_DATABASES];
	int			nslots;
	Slot		slots[FLEXIBLE_ARRAY_MEMBER];
} GsStatsSegment;

/* Where the segment is found. */
typedef struct Root
{
	pg_atomic_uint32 handle;	/* DSM_HANDLE_INVALID: not created yet */
} Root;

static GsStatsSegment *segment = NULL;	/* NULL: not mapped */
static bool mapping_was_tried = false;

/* This process's slot, or a private one that nobody reads. */
static Slot private_slot;
static volatile Slot *my_slot = &private_slot;

/* The sorts of this process, the latest one first. */
static dlist_head activities = DLIST_STATIC_INIT(activities);

/* -------------------------------------------------------------- the segment */

static Root *
find_root(void)
{
	bool		found;
	Root	   *root;
	char		name[sizeof("gpusort statistics ") + GS_BUILD_ID_BYTES];

	snprintf(name, sizeof(name), "gpusort statistics %s", gs_build_id);
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	root = ShmemInitStruct(name, sizeof(Root), &found);
	if (!found)
		pg_atomic_init_u32(&root->handle, DSM_HANDLE_INVALID);
	LWLockRelease(AddinShmemInitLock);
	return root;
}

static dsm_segment *
create_segment(Root *root)
{
	const int	nslots = ProcGlobal->allProcCount;
	const Size	nbytes = offsetof(GsStatsSegment, slots) + sizeof(Slot) * nslots;
	dsm_segment *created = dsm_create(nbytes, DSM_CREATE_NULL_IF_MAXSEGMENTS);
	GsStatsSegment *contents;
	uint32		handle = DSM_HANDLE_INVALID;

	if (created == NULL)
		return NULL;
	contents = dsm_segment_address(created);
	memset(contents, 0, nbytes);
	contents->since = GetCurrentTimestamp();
	contents->nslots = nslots;
	contents->ndatabases = 1;	/* for further ones */
	dsm_pin_segment(created);
	if (pg_atomic_compare_exchange_u32(&root->handle, &handle, dsm_segment_handle(created)))
		return created;
	/* another process was faster */
	dsm_unpin_segment(dsm_segment_handle(created));
	dsm_detach(created);
	return dsm_attach(handle);
}

/* The counters of a database; InvalidOid if there are too many. */
static GsDatabaseStats *
find_database(Oid database)
{
	GsDatabaseStats *found = segment->databases;

	for (int i = 1; i < segment->ndatabases; i++)
		if (segment->databases[i].database == database)
			return &segment->databases[i];
	if (segment->ndatabases < MAX_DATABASES)
	{
		found = &segment->databases[segment->ndatabases++];
		found->database = database;
	}
	return found;
}

/* The mapping is removed, because the process ends. */
static void
leave(dsm_segment *mapped, Datum arg)
{
	Slot	   *slot = &segment->slots[MyProc - ProcGlobal->allProcs];
	GsDatabaseStats *database;

	if (slot->pid == MyProcPid)
	{
		LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
		database = find_database(slot->database);
		for (int i = 0; i < GS_NSTATS; i++)
			database->counters[i] += slot->counters[i];
		memset(slot, 0, sizeof(Slot));
		LWLockRelease(AddinShmemInitLock);
	}
	my_slot = &private_slot;
	segment = NULL;
}

static void
map_segment(void)
{
	Root	   *root = find_root();
	const dsm_handle handle = pg_atomic_read_u32(&root->handle);
	dsm_segment *mapped = handle == DSM_HANDLE_INVALID ? create_segment(root) : dsm_attach(handle);

	if (mapped == NULL)
		return;
	segment = dsm_segment_address(mapped);
	on_dsm_detach(mapped, leave, (Datum) 0);
}

/*
 * Maps the segment, once.  Sorts do not depend on it, so no error leaves this function.  None is a
 * cancel: nothing here serves interrupts, so one that comes meanwhile remains pending.
 */
static void
try_to_map(void)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;

	if (mapping_was_tried)
		return;
	mapping_was_tried = true;
	if (!IsUnderPostmaster || MyProc == NULL)
		return;
	PG_TRY();
	{
		CurrentResourceOwner = NULL;	/* the mapping is the process's */
		map_segment();
	}
	PG_CATCH();
	{
		ErrorData  *error;

		LWLockReleaseAll();		/* nobody holds one when a sort begins */
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		ereport(LOG,
				(errmsg("could not map the statistics of gpusort"),
				 errdetail_internal("%s", error->message)));
		FreeErrorData(error);
	}
	PG_END_TRY();
	CurrentResourceOwner = owner;
}

/* Gets this process's slot. */
static pg_noinline void
join(void)
{
	Slot	   *slot;

	try_to_map();
	if (segment == NULL)
		return;
	slot = &segment->slots[MyProc - ProcGlobal->allProcs];
	memset(slot, 0, sizeof(Slot));
	slot->database = MyDatabaseId;
	pg_write_barrier();
	slot->pid = MyProcPid;
	my_slot = slot;
}

/* ------------------------------------------------------------------ updates */

void
gs_stats_add(GsStat stat, uint64 n)
{
	if (unlikely(!mapping_was_tried))
		join();
	my_slot->counters[stat] += n;
}

/* Shows the latest sort, if there is one. */
static void
show_latest(void)
{
	const GsActivity *latest;

	if (dlist_is_empty(&activities))
	{
		my_slot->is_active = false;
		return;
	}
	latest = dlist_head_element(GsActivity, node, &activities);
	my_slot->activity.of_index = latest->of_index;
	my_slot->activity.step = latest->step;
	my_slot->activity.sorter = latest->sorter;
	my_slot->activity.devices = latest->devices;
	my_slot->activity.nrows = latest->nrows;
	my_slot->activity.start_us = latest->start_us;
	my_slot->is_active = true;
}

void
gs_stats_begin_activity(GsActivity *activity)
{
	if (unlikely(!mapping_was_tried))
		join();
	dlist_push_head(&activities, &activity->node);
	show_latest();
}

void
gs_stats_show_activity(const GsActivity *activity)
{
	if (dlist_head_node(&activities) == &activity->node)
		show_latest();
}

void
gs_stats_end_activity(GsActivity *activity)
{
	dlist_delete(&activity->node);
	show_latest();
}

/* ------------------------------------------------------- for SQL functions */

/* Does it belong to a process?  Then its other fields are that process's (join()). */
static bool
is_used(const volatile Slot *slot)
{
	if (slot->pid == 0)
		return false;
	pg_read_barrier();
	return true;
}

/* All that was counted, by database, in the order of the segment.  Holds the lock. */
static GsDatabaseStats *
sum(int *ndatabases)
{
	GsDatabaseStats *sums;

	for (int i = 0; i < segment->nslots; i++)
		if (is_used(&segment->slots[i]))
			(void) find_database(segment->slots[i].database);
	*ndatabases = segment->ndatabases;
	sums = palloc(sizeof(GsDatabaseStats) * segment->ndatabases);
	memcpy(sums, segment->databases, sizeof(GsDatabaseStats) * segment->ndatabases);
	for (int i = 0; i < segment->nslots; i++)
	{
		const volatile Slot *slot = &segment->slots[i];
		GsDatabaseStats *database;

		if (!is_used(slot))
			continue;
		database = &sums[find_database(slot->database) - segment->databases];
		for (int k = 0; k < GS_NSTATS; k++)
			database->counters[k] += slot->counters[k];
	}
	return sums;
}

GsDatabaseStats *
gs_stats_read(int *ndatabases, TimestampTz *since)
{
	GsDatabaseStats *sums;

	if (!mapping_was_tried)
		join();
	*ndatabases = 0;
	if (segment == NULL)
		return NULL;
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	*since = segment->since;
	sums = sum(ndatabases);
	LWLockRelease(AddinShmemInitLock);
	return sums;
}

GsProcessActivity *
gs_stats_read_activity(int *nprocesses)
{
	GsProcessActivity *processes;

	if (!mapping_was_tried)
		join();
	*nprocesses = 0;
	if (segment == NULL)
		return NULL;
	processes = palloc(sizeof(GsProcessActivity) * segment->nslots);
	LWLockAcquire(AddinShmemInitLock, LW_SHARED);
	for (int i = 0; i < segment->nslots; i++)
	{
		const Slot *slot = &segment->slots[i];

		if (is_used(slot) && slot->is_active)
			processes[(*nprocesses)++] = (GsProcessActivity) {
				.pid = slot->pid,
					.database = slot->database,
					.role = ProcGlobal->allProcs[i].roleId,
					.activity = slot->activity
			};
	}
	LWLockRelease(AddinShmemInitLock);
	return processes;
}

void
gs_stats_reset(void)
{
	GsDatabaseStats *sums;
	int			ndatabases;

	if (!mapping_was_tried)
		join();
	if (segment == NULL)
		return;
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	sums = sum(&ndatabases);
	for (int i = 0; i < ndatabases; i++)
		for (int k = 0; k < GS_NSTATS; k++)
			segment->databases[i].counters[k] -= sums[i].counters[k];
	segment->since = GetCurrentTimestamp();
	LWLockRelease(AddinShmemInitLock);
	pfree(sums);
}
