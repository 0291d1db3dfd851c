/*-------------------------------------------------------------------------
 *
 * share_state.c
 *	  What the participants of a parallel sort know of each other, in shared memory.
 *
 * One of them, the consumer, has a job on a device, and the others send rows to it:
 *
 *					   open					 wait
 *		UNDECIDED ------------> OPEN ------------------> CLOSED
 *			 |											   ^
 *			 +------------------- close -------------------+
 *
 * Sorted runs, which the leader merges, can take the place of the job.  Then the state is
 * OPEN from the start, as no one has to wait for the leader; if the leader wanted a job,
 * and has none, from when it knows that.
 *
 * A participant that joins while the job is open is a producer, and the consumer
 * waits for it.  One that joins later sorts its own rows, as all do without a
 * job.  After the end of a parallel scan it finds no rows, and that is correct.
 *
 * No one waits for a participant that has not joined.  If one that has joined
 * ends with an error, the error ends the query, and with it the wait.
 *
 * Each participant writes its results to an entry of its own before it leaves;
 * so the lock protects four numbers only.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pg_compat.h"
#include "common/protocol.h"
#include "share/share_state.h"

#include "port/atomics.h"
#include "storage/condition_variable.h"
#include "storage/spin.h"

typedef enum JobState
{
	JOB_UNDECIDED,
	JOB_OPEN,
	JOB_CLOSED
} JobState;

typedef struct Participant
{
	bool		has_produced;
	GsProduced produced;
	GsSortSummary summary;
} Participant;

struct GsShared
{
	int			nparticipants;
	bool		wanted;			/* a job, when it began */
	bool		leader_consumes;	/* of a job */

	slock_t		mutex;			/* of these */
	JobState	state;
	bool		has_consumer;	/* a participant opens the job, or has */
	int			nproducers;		/* that have joined and not left */
	GsSharedJob job;			/* once it is open */

	pg_atomic_uint32 nkeyed;	/* see gs_shared_nkeyed() */

	ConditionVariable changed;	/* the state, or nproducers */
	Participant participants[FLEXIBLE_ARRAY_MEMBER];
};

void
gs_shared_check_build(const char *build_id)
{
	if (strcmp(build_id, gs_build_id) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("gpusort was replaced by another build while this session uses it"),
				 errdetail("The session has loaded build %s, and a parallel worker build %s.",
						   build_id, gs_build_id),
				 errhint("Connect again. If shared_preload_libraries contains gpusort, restart the server.")));
}

Size
gs_shared_bytes(int nparticipants)
{
	return add_size(offsetof(GsShared, participants),
					mul_size(nparticipants, sizeof(Participant)));
}

void
gs_shared_init(GsShared *shared, int nparticipants)
{
	shared->nparticipants = nparticipants;
	SpinLockInit(&shared->mutex);
	pg_atomic_init_u32(&shared->nkeyed, 0);
	ConditionVariableInit(&shared->changed);
}

void
gs_shared_reset(GsShared *shared, GsSharedWay way, bool leader_consumes, int nkeyed)
{
	pg_atomic_write_u32(&shared->nkeyed, (uint32) nkeyed);
	shared->wanted = way == GS_SHARE_JOB;
	shared->leader_consumes = leader_consumes;
	shared->state = way == GS_SHARE_JOB ? JOB_UNDECIDED : way == GS_SHARE_STREAMS ? JOB_OPEN :
		JOB_CLOSED;
	shared->job = (GsSharedJob) {.by_streams = way == GS_SHARE_STREAMS};
	shared->has_consumer = false;
	shared->nproducers = 0;
	memset(shared->participants, 0, sizeof(Participant) * shared->nparticipants);
}

int
gs_shared_nparticipants(const GsShared *shared)
{
	return shared->nparticipants;
}

int
gs_shared_nkeyed(GsShared *shared)
{
	return (int) pg_atomic_read_u32(&shared->nkeyed);
}

void
gs_shared_key_more(GsShared *shared, int nkeyed)
{
	uint32		before = pg_atomic_read_u32(&shared->nkeyed);

	while (before < (uint32) nkeyed &&
		   !pg_atomic_compare_exchange_u32(&shared->nkeyed, &before, (uint32) nkeyed))
		;
}

/* ------------------------------------------------------------------- the job */

bool
gs_shared_is_wanted(const GsShared *shared)
{
	return shared->wanted;
}

/* The role of a participant that joins now; false: not known yet. */
static bool
try_join(GsShared *shared, int participant, GsSharedJob *job, GsRole *role)
{
	bool		known = true;

	SpinLockAcquire(&shared->mutex);
	if (shared->state == JOB_CLOSED)
	{
		*role = GS_ROLE_SERIAL;
		if (shared->job.token != 0)
			*job = shared->job;
	}
	else if (shared->state == JOB_OPEN && shared->job.by_streams && participant == 0)
	{
		*role = GS_ROLE_CONSUMER;
		*job = shared->job;
	}
	else if (shared->state == JOB_OPEN)
	{
		*role = GS_ROLE_PRODUCER;
		*job = shared->job;
		shared->nproducers++;
	}
	else if (!shared->has_consumer && (participant == 0 || !shared->leader_consumes))
	{
		*role = GS_ROLE_CONSUMER;
		shared->has_consumer = true;
	}
	else
		known = false;
	SpinLockRelease(&shared->mutex);
	return known;
}

GsRole
gs_shared_join(GsShared *shared, int participant, GsSharedJob *job)
{
	GsRole		role;

	ConditionVariablePrepareToSleep(&shared->changed);
	while (!try_join(shared, participant, job, &role))
		ConditionVariableSleep(&shared->changed, gs_wait_event(GS_WAIT_PARTICIPANTS));
	ConditionVariableCancelSleep();
	return role;
}

void
gs_shared_open(GsShared *shared, const GsSharedJob *job)
{
	SpinLockAcquire(&shared->mutex);
	shared->job = *job;
	shared->state = JOB_OPEN;
	SpinLockRelease(&shared->mutex);
	ConditionVariableBroadcast(&shared->changed);
}

void
gs_shared_close(GsShared *shared)
{
	SpinLockAcquire(&shared->mutex);
	shared->state = JOB_CLOSED;
	SpinLockRelease(&shared->mutex);
	ConditionVariableBroadcast(&shared->changed);
}

void
gs_shared_leave(GsShared *shared, int participant, const GsProduced *produced)
{
	if (produced != NULL)
	{
		shared->participants[participant].produced = *produced;
		shared->participants[participant].has_produced = true;
	}
	SpinLockAcquire(&shared->mutex);
	shared->nproducers--;
	SpinLockRelease(&shared->mutex);
	ConditionVariableBroadcast(&shared->changed);
}

static bool
has_producers(GsShared *shared)
{
	bool		any;

	SpinLockAcquire(&shared->mutex);
	any = shared->nproducers > 0;
	SpinLockRelease(&shared->mutex);
	return any;
}

void
gs_shared_wait(GsShared *shared)
{
	gs_shared_close(shared);
	ConditionVariablePrepareToSleep(&shared->changed);
	while (has_producers(shared))
		ConditionVariableSleep(&shared->changed, gs_wait_event(GS_WAIT_PARTICIPANTS));
	ConditionVariableCancelSleep();
}

const GsProduced *
gs_shared_produced(const GsShared *shared, int participant)
{
	const Participant *from = &shared->participants[participant];

	return from->has_produced ? &from->produced : NULL;
}

/* ------------------------------------------------------------------- EXPLAIN */

void
gs_shared_put_summary(GsShared *shared, int participant, const GsSortSummary *summary)
{
	shared->participants[participant].summary = *summary;
}

GsSortSummary *
gs_shared_copy_summaries(const GsShared *shared)
{
	GsSortSummary *summaries = palloc(sizeof(GsSortSummary) * shared->nparticipants);

	for (int i = 0; i < shared->nparticipants; i++)
		summaries[i] = shared->participants[i].summary;
	return summaries;
}
