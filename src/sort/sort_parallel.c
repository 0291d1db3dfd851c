/*-------------------------------------------------------------------------
 *
 * sort_parallel.c
 *	  A GpuSort in a parallel plan: one job for the rows of all participants.
 *
 * A Sort below a Gather Merge sorts in each participant, and the leader merges
 * the streams: a row goes through a queue and a heap before it leaves.  Here one
 * participant, the owner, has a job on a device, all feed it, and the owner
 * hands all rows out.  Where that is the leader, as it mostly is, no row goes
 * through a queue.  The Gather Merge stays where it is: it gets one stream with
 * all rows, and others with none.
 *
 * Equal rows come in the order of participants and, of each, as it read them.
 *
 * Whatever a feeder cannot give away it sorts itself, as every participant does
 * where there is no such job: the Gather Merge merges it with the rest.  That is
 * the way out wherever something is not as expected.
 *
 * Codes mean the same in all participants: what decides them are the columns,
 * settings, which workers have from the leader, and enum labels, which are
 * compared.
 *
 * EXPLAIN ANALYZE shows how each participant sorted, also where they do not share a sort: below a
 * merge join, say.  PostgreSQL gives a Sort shared memory for that, but a custom node only while
 * its plan says parallel_aware.  So the plan of a query that is to be explained is copied before
 * it starts, each of its GpuSorts says so from there until it is shut down, and workers have it
 * from the leader.  EXPLAIN, which comes after that, prints the node as it was planned.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sort/sort_device.h"
#include "guc.h"
#include "common/protocol.h"
#include "sort/sort_parallel.h"
#include "sort/sort_shared.h"

#include "access/parallel.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "portability/instr_time.h"
#include "storage/latch.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

/* How long another participant's error has to end the query, and this one with it. */
#define ERROR_WAIT_MS	1000

/* The leader is the first. */
static int
participant_number(void)
{
	return ParallelWorkerNumber + 1;
}

/* ------------------------------------------------------------------- reports */

/* The memory of plans that are ours to change. */
#define PLAN_CONTEXT	"GpuSort plan"

void
gs_sort_parallel_prepare(QueryDesc *query, int eflags)
{
	MemoryContext context;
	MemoryContext old;

	if (query->instrument_options == 0 || !query->plannedstmt->parallelModeNeeded ||
		(eflags & EXEC_FLAG_EXPLAIN_ONLY) != 0)
		return;
	context = AllocSetContextCreate(CurrentMemoryContext, PLAN_CONTEXT, ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(context);
	query->plannedstmt = copyObject(query->plannedstmt);
	MemoryContextSwitchTo(old);
}

static inline bool
is_prepared(const Plan *plan)
{
	return strcmp(GetMemoryChunkContext(unconstify(Plan *, plan))->name, PLAN_CONTEXT) == 0;
}

void
gs_sort_parallel_begin(CustomScanState *node)
{
	Plan	   *plan = node->ss.ps.plan;

	if (is_prepared(plan))
		plan->parallel_aware = true;
}

/* The reports are in, and whoever sorts again does it without. */
static void
end_reports(CustomScanState *node)
{
	Plan	   *plan = node->ss.ps.plan;

	if (is_prepared(plan))
		plan->parallel_aware = gs_node_sort(node)->may_share;
}

bool
gs_sort_parallel_is_shared(const PlanState *node)
{
	if (IsA(node, CustomScanState) &&
		((const CustomScanState *) node)->methods->ShutdownCustomScan == gs_sort_parallel_shutdown)
		return gs_node_sort((CustomScanState *) unconstify(PlanState *, node))->may_share;
	return node->plan->parallel_aware;
}

/* ------------------------------------------------------ the executor's calls */

/* As the planner estimates it for a Gather Merge. */
static double
expected_rows(const GsSortState *state)
{
	return state->expected_rows *
		Max(gs_shared_nparticipants(state->shared) - 1, 1);
}

bool
gs_sort_parallel_pays(const GsSortColumn *columns, int ncolumns, int nparticipants, double nrows)
{
	return gpusort_enabled && nparticipants <= GS_MAX_PARTICIPANTS &&
		!gs_key_columns_leave_ties(columns, ncolumns) && gs_device_is_likely(nrows);
}

/* Is a shared job worth a try?  If not nobody has to wait for one. */
static bool
wants_job(const GsSortState *state)
{
	return state->may_share &&
		gs_sort_parallel_pays(state->columns, state->ncolumns,
							  gs_shared_nparticipants(state->shared), expected_rows(state));
}

Size
gs_sort_parallel_estimate(CustomScanState *node, ParallelContext *pcxt)
{
	return gs_shared_bytes(pcxt->nworkers + 1);
}

void
gs_sort_parallel_initialize(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	GsSortState *state = gs_node_sort(node);

	state->shared = coordinate;
	gs_shared_init(state->shared, pcxt->nworkers + 1);
	gs_sort_parallel_reinitialize(node, pcxt, coordinate);
}

void
gs_sort_parallel_reinitialize(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	GsSortState *state = gs_node_sort(node);

	gs_shared_reset(state->shared, wants_job(state), parallel_leader_participation);
}

void
gs_sort_parallel_attach(CustomScanState *node, shm_toc *toc, void *coordinate)
{
	gs_node_sort(node)->shared = coordinate;
}

/* The shared memory goes before EXPLAIN asks. */
void
gs_sort_parallel_shutdown(CustomScanState *node)
{
	GsSortState *state = gs_node_sort(node);
	MemoryContext old;

	if (IsParallelWorker())
		return;
	end_reports(node);
	if (state->shared == NULL)
		return;
	old = MemoryContextSwitchTo(node->ss.ps.state->es_query_cxt);
	if (state->summaries != NULL)
		pfree(state->summaries);
	state->nparticipants = gs_shared_nparticipants(state->shared);
	state->summaries = gs_shared_copy_summaries(state->shared);
	state->shared = NULL;
	MemoryContextSwitchTo(old);
}

void
gs_sort_parallel_report(GsSortState *state, const GsSortSummary *summary)
{
	gs_shared_put_summary(state->shared, participant_number(), summary);
}

/* ------------------------------------------------------------------- the job */

void
gs_sort_parallel_join(GsSortState *state)
{
	state->role = state->shared == NULL ? GS_ROLE_SERIAL :
		gs_shared_join(state->shared, participant_number(), &state->shared_job);
	state->nsent = 0;
	state->wait_us = 0;

	/* all of them try it once, and wait once for the device */
	if (state->shared != NULL && gs_shared_is_wanted(state->shared))
		state->may_use_device = false;
}

void
gs_sort_parallel_leave(GsSortState *state)
{
	if (state->role == GS_ROLE_CONSUMER)
		gs_shared_close(state->shared);
	else if (state->role == GS_ROLE_PRODUCER)
		gs_shared_leave(state->shared, participant_number(), NULL);
	state->role = GS_ROLE_SERIAL;
}

/* Opens a job and has the others join it. */
static GsEngine *
open_job(GsSortState *state, const GsJob *job)
{
	GsEngine   *engine;

	engine = gs_device_open_shared(job, state->context, participant_number(), expected_rows(state),
								   gs_sort_row_bytes(state), &state->device_reason);
	if (engine != NULL)
	{
		state->shared_job.token = gs_engine_gpu_token(engine);
		state->shared_job.form = gs_key_encoder_fingerprint(state->key);
		gs_shared_open(state->shared, &state->shared_job);
	}
	return engine;
}

/* Joins the owner's job, if keys mean the same there. */
static GsEngine *
join_job(GsSortState *state, const GsJob *job)
{
	if (gs_key_encoder_fingerprint(state->key) != state->shared_job.form)
	{
		state->device_reason = "an enum label was added while the sort began";
		return NULL;
	}
	return gs_device_join_shared(job, state->context, state->shared_job.token,
								 participant_number(), &state->device_reason);
}

GsEngine *
gs_sort_parallel_open(GsSortState *state, const GsJob *job)
{
	GsEngine   *engine;

	if (state->role == GS_ROLE_SERIAL)
		return NULL;
	engine = state->role == GS_ROLE_CONSUMER ? open_job(state, job) : join_job(state, job);
	if (engine == NULL)
		gs_sort_parallel_leave(state);
	return engine;
}

GsStatus
gs_sort_parallel_end_producer(GsSortState *state)
{
	GsProduced produced;
	GsStatus	status = gs_engine_end_producer(state->engine, &produced.nrows);

	if (status == GS_STATUS_FULL)
		status = gs_engine_end_producer(state->engine, &produced.nrows);	/* without what it did not take */
	if (status != GS_STATUS_OK)
		return status;
	produced.nnulls = state->nnulls;
	produced.nbytes = state->engine->stats.bytes_up;
	produced.layout = *gs_key_encoder_layout(state->key);
	gs_shared_leave(state->shared, participant_number(), &produced);
	state->nnulls = 0;
	state->nsent = produced.nrows + produced.nnulls;
	state->nread -= state->nsent;
	state->role = GS_ROLE_SERIAL;
	return GS_STATUS_OK;
}

void
gs_sort_parallel_end_input(GsSortState *state)
{
	uint64		nrows = 0;
	instr_time	start;
	instr_time	end;

	INSTR_TIME_SET_CURRENT(start);
	gs_shared_wait(state->shared);
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_SUBTRACT(end, start);
	state->wait_us = INSTR_TIME_GET_MICROSEC(end);
	for (int i = 0; i < gs_shared_nparticipants(state->shared); i++)
	{
		const GsProduced *produced = gs_shared_produced(state->shared, i);

		if (produced == NULL)
			continue;
		gs_key_layout_merge(gs_key_encoder_layout(state->key), &produced->layout);
		nrows += produced->nrows;
		state->engine->stats.bytes_up += produced->nbytes;
		state->nnulls += produced->nnulls;
		state->nread += produced->nrows + produced->nnulls;
	}
	gs_engine_gpu_expect(state->engine, nrows);
	state->role = GS_ROLE_SERIAL;
}

/*
 * Who goes with an error has sent it before the job is lost, so the leader finds it at
 * once.  But of the errors that workers have sent it takes that of the first worker,
 * not the one that came first; so this one is not sent yet.
 */
void
gs_sort_parallel_wait_for_error(GsSortState *state)
{
	TimestampTz end = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), ERROR_WAIT_MS);
	long		left = ERROR_WAIT_MS;

	CHECK_FOR_INTERRUPTS();
	while (IsParallelWorker() && state->role != GS_ROLE_SERIAL && left > 0)
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, left,
						 PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		left = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), end);
	}
}
