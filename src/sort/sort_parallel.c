/*-------------------------------------------------------------------------
 *
 * sort_parallel.c
 *	  A GpuSort in a parallel plan: one device job for the rows of all participants.
 *
 * A Sort below a Gather Merge sorts in each participant, and the leader merges
 * their rows: each row passes a queue and a heap.  Here one participant, the
 * consumer, opens a job on a device.  The others, the producers, send their rows
 * to it, and the consumer returns all rows.  If it is the leader, as it usually
 * is, no row passes a queue.  The Gather Merge remains in the plan: it gets one
 * stream with all rows and others without any.
 *
 * Equal rows come in the order of participants, and for each participant as it
 * read them.
 *
 * What a producer cannot send it sorts itself, and the Gather Merge merges it
 * with the rest, as it does without a shared job.  So every irregularity has the
 * same answer.
 *
 * Keys mean the same in all participants: they depend on the columns, on
 * settings, which workers have from the leader, and on enum labels, which are
 * compared (gs_key_encoder_fingerprint()).
 *
 * EXPLAIN ANALYZE shows how each participant sorted, also where they share no
 * job, such as below a merge join.  PostgreSQL gives a Sort shared memory for
 * this, but a custom node only if its plan is parallel_aware.  So the plan of a
 * query that runs instrumented is copied before it starts, and its GpuSorts are
 * parallel_aware until they are shut down; workers get this from the leader.
 * EXPLAIN comes after that, and prints the node as it was planned.
 *
 * A participant that ends with an error closes its connection, which makes the
 * job fail for the others (gs_sort_parallel_wait_for_error()).  Waits can be
 * interrupted.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/protocol.h"
#include "guc.h"
#include "pg_compat.h"
#include "sort/sort_parallel.h"
#include "sort/sort_place.h"
#include "sort_parts/sort_device.h"
#include "sort_parts/sort_shared.h"

#include "access/parallel.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "portability/instr_time.h"
#include "storage/latch.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* How long to wait for another participant's error, which ends the query. */
#define ERROR_WAIT_MS	1000

/* The leader is the first. */
static int
participant_number(void)
{
	return ParallelWorkerNumber + 1;
}

/* ------------------------------------------------------------------- reports */

/* The memory context of plans that are copies. */
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

/* The reports are complete; a sort that runs again makes none. */
static void
end_reports(CustomScanState *node)
{
	Plan	   *plan = node->ss.ps.plan;

	if (is_prepared(plan))
		plan->parallel_aware = gs_node_sort(node)->spec.may_share;
}

bool
gs_sort_parallel_is_shared(const PlanState *node)
{
	if (IsA(node, CustomScanState) &&
		((const CustomScanState *) node)->methods->ShutdownCustomScan == gs_sort_parallel_shutdown)
		return gs_node_sort((CustomScanState *) unconstify(PlanState *, node))->spec.may_share;
	return node->plan->parallel_aware;
}

/* ------------------------------------------------------- executor callbacks */

/* Of all participants, as the planner estimates it for a Gather Merge. */
static double
expected_rows(const GsSortState *state)
{
	return state->spec.expected_rows *
		Max(gs_shared_nparticipants(state->participants.shared) - 1, 1);
}

bool
gs_sort_parallel_pays(const GsSortColumn *columns, int ncolumns, int nparticipants, double nrows)
{
	return gpusort_enabled && nparticipants <= GS_MAX_PARTICIPANTS &&
		!gs_key_columns_leave_ties(columns, ncolumns) && gs_device_is_likely(nrows);
}

/* Is a shared job worth a try?  If not, no participant waits for one. */
static bool
wants_job(const GsSortState *state)
{
	return state->spec.may_share &&
		gs_sort_parallel_pays(state->spec.columns, state->spec.ncolumns,
							  gs_shared_nparticipants(state->participants.shared),
							  expected_rows(state));
}

Size
gs_sort_parallel_estimate(CustomScanState *node, ParallelContext *pcxt)
{
	return gs_shared_bytes(pcxt->nworkers + 1);
}

void
gs_sort_parallel_initialize(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	gs_sort_parallel_set_shared(gs_node_sort(node), coordinate);
	gs_shared_init(coordinate, pcxt->nworkers + 1);
	gs_sort_parallel_reinitialize(node, pcxt, coordinate);
}

void
gs_sort_parallel_reinitialize(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	gs_shared_reset(coordinate, wants_job(gs_node_sort(node)), parallel_leader_participation);
}

void
gs_sort_parallel_attach(CustomScanState *node, shm_toc *toc, void *coordinate)
{
	gs_sort_parallel_set_shared(gs_node_sort(node), coordinate);
}

/* The shared memory is released before EXPLAIN runs. */
void
gs_sort_parallel_shutdown(CustomScanState *node)
{
	GsSortParticipants *participants = &gs_node_sort(node)->participants;
	MemoryContext old;

	if (IsParallelWorker())
		return;
	end_reports(node);
	if (participants->shared == NULL)
		return;
	old = MemoryContextSwitchTo(node->ss.ps.state->es_query_cxt);
	if (participants->summaries != NULL)
		pfree(participants->summaries);
	participants->nparticipants = gs_shared_nparticipants(participants->shared);
	participants->summaries = gs_shared_copy_summaries(participants->shared);
	participants->shared = NULL;
	MemoryContextSwitchTo(old);
}

void
gs_sort_parallel_report(GsSortState *state, const GsSortSummary *summary)
{
	gs_shared_put_summary(state->participants.shared, participant_number(), summary);
}

/* ------------------------------------------------------------------- the job */

void
gs_sort_parallel_set_shared(GsSortState *state, GsShared *shared)
{
	state->participants.shared = shared;
}

void
gs_sort_parallel_join(GsSortState *state)
{
	GsSortParticipants *participants = &state->participants;
	GsShared   *shared = participants->shared;

	participants->role = shared == NULL ? GS_ROLE_SERIAL :
		gs_shared_join(shared, participant_number(), &participants->job);
	participants->nsent = 0;
	participants->wait_us = 0;

	/* all of them try it once, and wait once for the device */
	if (shared != NULL && gs_shared_is_wanted(shared))
		state->input.may_use_device = false;
}

void
gs_sort_parallel_leave(GsSortState *state)
{
	GsSortParticipants *participants = &state->participants;

	switch (participants->role)
	{
		case GS_ROLE_SERIAL:
			break;
		case GS_ROLE_CONSUMER:
			gs_shared_close(participants->shared);
			break;
		case GS_ROLE_PRODUCER:
			gs_shared_leave(participants->shared, participant_number(), NULL);
			break;
	}
	participants->role = GS_ROLE_SERIAL;
}

/* Opens a job and publishes it, so that others can join. */
static GsEngine *
open_job(GsSortState *state, const GsJob *job)
{
	GsSortParticipants *participants = &state->participants;
	GsEngine   *engine;

	engine = gs_device_open_shared(job, state->context, participant_number(), expected_rows(state),
								   gs_sort_row_bytes(state), &state->input.device_reason);
	if (engine != NULL)
	{
		participants->job.token = gs_engine_gpu_token(engine);
		participants->job.form = gs_key_encoder_fingerprint(state->input.key);
		gs_shared_open(participants->shared, &participants->job);
	}
	return engine;
}

/* Joins the consumer's job, if keys mean the same there. */
static GsEngine *
join_job(GsSortState *state, const GsJob *job)
{
	const GsSharedJob *shared_job = &state->participants.job;

	if (gs_key_encoder_fingerprint(state->input.key) != shared_job->form)
	{
		state->input.device_reason = "an enum label was added while the sort began";
		return NULL;
	}
	return gs_device_join_shared(job, state->context, shared_job->token,
								 participant_number(), &state->input.device_reason);
}

GsEngine *
gs_sort_parallel_open(GsSortState *state, const GsJob *job)
{
	GsEngine   *engine;

	Assert(state->participants.role != GS_ROLE_SERIAL);
	engine = state->participants.role == GS_ROLE_CONSUMER ?
		open_job(state, job) : join_job(state, job);
	if (engine == NULL)
		gs_sort_parallel_leave(state);
	return engine;
}

GsStatus
gs_sort_parallel_end_producer(GsSortState *state)
{
	GsSortParticipants *participants = &state->participants;
	GsSortInput *input = &state->input;
	GsProduced	produced;
	GsStatus	status = gs_engine_end_producer(input->engine, &produced.nrows);

	if (status == GS_STATUS_FULL)	/* again, without the rows that the device did not take */
		status = gs_engine_end_producer(input->engine, &produced.nrows);
	if (status != GS_STATUS_OK)
		return status;
	produced.nnulls = input->nnulls;
	produced.nbytes = input->engine->stats.bytes_up;
	produced.layout = *gs_key_encoder_layout(input->key);
	gs_shared_leave(participants->shared, participant_number(), &produced);
	participants->role = GS_ROLE_SERIAL;
	participants->nsent = produced.nrows + produced.nnulls;
	input->nnulls = 0;
	input->nread -= participants->nsent;
	return GS_STATUS_OK;
}

/* The rows of producers count as read by the consumer. */
static void
add_produced(GsSortState *state)
{
	GsShared   *shared = state->participants.shared;
	GsSortInput *input = &state->input;
	uint64		nrows = 0;

	for (int i = 0; i < gs_shared_nparticipants(shared); i++)
	{
		const GsProduced *produced = gs_shared_produced(shared, i);

		if (produced == NULL)
			continue;
		gs_key_layout_merge(gs_key_encoder_layout(input->key), &produced->layout);
		nrows += produced->nrows;
		input->engine->stats.bytes_up += produced->nbytes;
		input->nnulls += produced->nnulls;
		input->nread += produced->nrows + produced->nnulls;
	}
	gs_engine_gpu_expect(input->engine, nrows);
}

void
gs_sort_parallel_end_input(GsSortState *state)
{
	GsSortParticipants *participants = &state->participants;
	instr_time	start;
	instr_time	end;

	INSTR_TIME_SET_CURRENT(start);
	gs_shared_wait(participants->shared);
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_SUBTRACT(end, start);
	participants->wait_us = INSTR_TIME_GET_MICROSEC(end);
	add_produced(state);
	participants->role = GS_ROLE_SERIAL;
}

/*
 * A worker sends its error before its connection closes, so the leader finds it at once.  But among
 * the errors of workers the leader reports the one of the first worker, not the first error.  So a
 * worker that only notices the failure waits before it reports it.
 */
void
gs_sort_parallel_wait_for_error(GsSortState *state)
{
	TimestampTz end = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), ERROR_WAIT_MS);
	long		left = ERROR_WAIT_MS;

	CHECK_FOR_INTERRUPTS();
	while (IsParallelWorker() && state->participants.role != GS_ROLE_SERIAL && left > 0)
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, left,
						 gs_wait_event(GS_WAIT_PARTICIPANTS));
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		left = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), end);
	}
}
