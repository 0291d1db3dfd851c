/*-------------------------------------------------------------------------
 *
 * sort_parallel.c
 *	  A GpuSort in a parallel plan: one participant returns the rows of all.
 *
 * Below a Gather Merge, one participant, the consumer, returns the rows of all.  The others, the
 * producers, send it their rows: through a job on a device, or sorted, through streams in shared
 * memory (share/share_streams.c).  What a producer cannot send it sorts itself, and the Gather
 * Merge merges it with the rest.  README.md has the reasons.
 *
 * Equal rows come in the order of participants, and for each participant as it read them.
 *
 * Keys mean the same in all participants: they depend on the columns, on settings, which workers
 * have from the leader, and on enum labels, which are compared (gs_key_encoder_fingerprint()).
 *
 * A participant that ends with an error closes its connection, which makes the job fail for the
 * others (gs_sort_parallel_wait_for_error()).  Waits can be interrupted.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/protocol.h"
#include "guc.h"
#include "pg_compat.h"
#include "read/read_tied.h"
#include "share/share_streams.h"
#include "share/share_state.h"
#include "sort/sort_parallel.h"
#include "store/store_device_choice.h"
#include "store/store_fetch.h"
#include "store/store_merge.h"
#include "store/store_space.h"

#include "access/parallel.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "portability/instr_time.h"
#include "storage/latch.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* Fewer rows are not worth it. */
#define LEAST_ROWS_OF_STREAMS	10000

/* How long to wait for another participant's error, which ends the query. */
#define ERROR_WAIT_MS	1000

/* The leader is the first. */
static int
participant_number(void)
{
	return ParallelWorkerNumber + 1;
}

/* ------------------------------------------------------------- what is shared */

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
		!gs_key_columns_traits(columns, ncolumns).leave_ties && gs_device_is_likely(nrows);
}

/* Should workers send sorted rows to the leader by streams?  Not if there are few. */
static bool
wants_streams(const GsSortState *state)
{
	return state->participants.streams != NULL && gpusort_enabled &&
		parallel_leader_participation &&
		expected_rows(state) >= LEAST_ROWS_OF_STREAMS;
}

/* If participants need not share anything, none waits for another. */
static GsSharedWay
choose_way(const GsSortState *state)
{
	const GsSortSpec *spec = &state->spec;

	/* ranges: the job ends with the leader's node, which workers do not outlive, but wait for */
	if ((spec->may_share ||
		 (state->participants.ranges != NULL && state->participants.leader_comes &&
		  parallel_leader_participation)) &&
		gs_sort_parallel_pays(spec->columns, spec->ncolumns,
							  gs_shared_nparticipants(state->participants.shared),
							  expected_rows(state)))
		return GS_SHARE_JOB;
	/* not where each participant may use a device */
	return wants_streams(state) && !gs_device_is_likely(spec->expected_rows) ? GS_SHARE_STREAMS :
		GS_SHARE_NOTHING;
}

void
gs_sort_parallel_expect_leader(GsSortState *state)
{
	state->participants.leader_comes = true;
}

static void
reset_shared(const GsSortState *state)
{
	const GsSortSpec *spec = &state->spec;
	const GsSharedWay way = choose_way(state);
	const int	nkeyed = way != GS_SHARE_JOB ? 0 : spec->ngrouped > 0 ? spec->ncolumns :
		gs_tied_keyed_on_device(spec->child, spec->columns, spec->ncolumns, spec->desc, true);

	gs_shared_reset(state->participants.shared, way, parallel_leader_participation, nkeyed);
}

/* ------------------------------------------------- the end of what is shared */

/* The leader takes no more rows, so that its workers can exit. */
static void
abandon_streams(GsSortState *state)
{
	if (state->participants.streams != NULL && !IsParallelWorker())
		gs_share_streams_abandon(state->participants.streams);
}

/* The Gather Merge is about to run again.  Not called any more after that. */
static void
before_rescan(Datum state)
{
	abandon_streams((GsSortState *) DatumGetPointer(state));
}

void
gs_sort_parallel_set_gather(GsSortState *state, ExprContext *context)
{
	state->participants.gather_context = context;
}

static void
expect_rescan(GsSortState *state)
{
	if (state->participants.streams != NULL)
		RegisterExprContextCallback(state->participants.gather_context, before_rescan,
									PointerGetDatum(state));
}

/* ----------------------------------------------------------- shared memory */

/* GsShared, then GsShareStreams if the participants may share, or GsShareRanges. */
static Size
offset_of_rows(int nparticipants)
{
	return MAXALIGN(gs_shared_bytes(nparticipants));
}

static void
set_shared(GsSortState *state, void *memory, int nparticipants, bool has_workers, bool has_streams,
		   dsa_area *dsa)
{
	GsSortParticipants *participants = &state->participants;

	gs_sort_parallel_set_shared(state, memory);
	participants->streams = !has_streams ? NULL :
		(GsShareStreams *) ((char *) memory + offset_of_rows(nparticipants));
	participants->memory = dsa;
	participants->ranges = !has_workers || state->spec.ngrouped == 0 ? NULL :
		(GsShareRanges *) ((char *) memory + offset_of_rows(nparticipants));
	state->spec.run_files = participants->ranges == NULL ? (GsRunPlace) {0} :
		gs_share_ranges_files(participants->ranges, participant_number());
}

Size
gs_sort_parallel_bytes(const GsSortState *state, int nparticipants)
{
	return add_size(offset_of_rows(nparticipants),
					state->spec.may_share ? gs_share_streams_bytes(nparticipants) :
					state->spec.ngrouped > 0 ? gs_share_ranges_bytes(nparticipants) : 0);
}

void
gs_sort_parallel_create(GsSortState *state, void *memory, int nparticipants, dsm_segment *segment,
						dsa_area *dsa)
{
	const bool	has_workers = segment != NULL;

	set_shared(state, memory, nparticipants, has_workers,
			   state->spec.may_share && has_workers && state->participants.gather_context != NULL,
			   dsa);
	gs_shared_init(memory, nparticipants);
	if (state->participants.ranges != NULL)
		gs_share_ranges_init(state->participants.ranges, nparticipants, segment);
	if (state->participants.streams != NULL)
		gs_share_streams_init(state->participants.streams, nparticipants);
	expect_rescan(state);
	reset_shared(state);
}

void
gs_sort_parallel_recreate(GsSortState *state)
{
	if (state->participants.streams != NULL)
		gs_share_streams_reset(state->participants.streams);
	if (state->participants.ranges != NULL)
		gs_share_ranges_reset(state->participants.ranges);
	expect_rescan(state);
	reset_shared(state);
}

void
gs_sort_parallel_attach(GsSortState *state, void *memory, dsa_area *dsa)
{
	set_shared(state, memory, gs_shared_nparticipants(memory), true, state->spec.may_share, dsa);
	if (state->participants.ranges != NULL)
		gs_share_ranges_attach(state->participants.ranges);
}

void
gs_sort_parallel_detach(GsSortState *state)
{
	GsSortParticipants *participants = &state->participants;
	MemoryContext old;

	if (participants->shared == NULL)
		return;
	abandon_streams(state);
	if (participants->ranges != NULL)
		gs_shared_close(participants->shared);
	old = MemoryContextSwitchTo(state->spec.parent_context);
	if (participants->summaries != NULL)
		pfree(participants->summaries);
	participants->nparticipants = gs_shared_nparticipants(participants->shared);
	participants->summaries = gs_shared_copy_summaries(participants->shared);
	participants->shared = NULL;
	participants->streams = NULL;
	participants->ranges = NULL;
	MemoryContextSwitchTo(old);
}

void
gs_sort_parallel_report(GsSortState *state, const GsSortSummary *summary)
{
	gs_shared_put_summary(state->participants.shared, participant_number(), summary);
}

/* ------------------------------------------------------------------- the job */

static bool end_input_before_run(void *arg, Size row_bytes, GsStatus *status);

static void
set_role(GsSortState *state, GsRole role, GsRole of_streams)
{
	state->participants.role = role;
	state->participants.of_streams = of_streams;
	gs_store_set_policy(&state->store, &(GsStorePolicy) {
		.gives_rows = role == GS_ROLE_PRODUCER,
		.merged_elsewhere = of_streams != GS_ROLE_SERIAL || state->participants.ranges != NULL,
		.end_input = state->participants.shared == NULL ? NULL : end_input_before_run,
		.arg = state
	});
}

/* The role is SERIAL from now on. */
static void
end_role(GsSortState *state)
{
	set_role(state, GS_ROLE_SERIAL, state->participants.of_streams);
}

void
gs_sort_parallel_set_shared(GsSortState *state, GsShared *shared)
{
	state->participants.shared = shared;
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
	end_role(state);
}

/* Opens a job and publishes it, so that others can join. */
static GsEngine *
open_job(GsSortState *state, const GsEngineRequest *request)
{
	GsSortParticipants *participants = &state->participants;
	const char *why_not;
	GsEngine   *engine = gs_device_open_shared(request, state->store.context, participant_number(),
											   expected_rows(state),
											   gs_store_row_bytes(&state->store), &why_not);

	if (engine == NULL)
		gs_store_forbid_device(&state->store, why_not);
	else
	{
		participants->job.device = gs_engine_gpu_device(engine);
		participants->job.token = gs_engine_gpu_token(engine);
		participants->job.form = gs_key_encoder_fingerprint(state->store.order.key);
		gs_shared_open(participants->shared, &participants->job);
	}
	return engine;
}

/* Joins the consumer's job, if keys mean the same there. */
static GsEngine *
join_job(GsSortState *state, const GsEngineRequest *request)
{
	const GsSharedJob *shared_job = &state->participants.job;
	const char *why_not;
	GsEngine   *engine;

	if (gs_key_encoder_fingerprint(state->store.order.key) != shared_job->form)
	{
		gs_store_forbid_device(&state->store, "an enum label was added while the sort began");
		return NULL;
	}
	engine = gs_device_join_shared(request, state->store.context, shared_job->device,
								   shared_job->token, participant_number(), &why_not);
	if (engine == NULL)
		gs_store_forbid_device(&state->store, why_not);
	return engine;
}

/* The leader cannot open a job: the others sort their rows and send them. */
static void
take_streams_instead(GsSortState *state)
{
	GsSortParticipants *participants = &state->participants;

	participants->job = (GsSharedJob) {.by_streams = true};
	set_role(state, GS_ROLE_SERIAL, GS_ROLE_CONSUMER);
	gs_shared_open(participants->shared, &participants->job);
}

GsEngine *
gs_sort_parallel_open(GsSortState *state, const GsEngineRequest *request)
{
	GsEngine   *engine;

	Assert(state->participants.role != GS_ROLE_SERIAL);
	engine = state->participants.role == GS_ROLE_CONSUMER ?
		open_job(state, request) : join_job(state, request);
	if (engine == NULL && state->participants.role == GS_ROLE_CONSUMER &&
		participant_number() == 0 && wants_streams(state))
		take_streams_instead(state);
	else if (engine == NULL)
		gs_sort_parallel_leave(state);
	return engine;
}

/*
 * The device has the rows of a producer, which now belong to the consumer.  gs_engine_next_batch()
 * returns those that the device did not take.
 */
static GsStatus
give_rows_to_consumer(GsSortState *state)
{
	GsSortParticipants *participants = &state->participants;
	GsStore    *store = &state->store;
	GsProduced	produced;
	GsStatus	status = gs_engine_end_producer(store->engine, &produced.nrows);

	if (status == GS_STATUS_FULL)	/* again, without the rows that the device did not take */
		status = gs_engine_end_producer(store->engine, &produced.nrows);
	if (status != GS_STATUS_OK)
		return status;
	produced.nnulls = store->nnulls;
	produced.nbytes = store->engine->stats.bytes_up;
	produced.layout = *gs_key_encoder_layout(store->order.key);
	gs_shared_leave(participants->shared, participant_number(), &produced);
	end_role(state);
	participants->nsent = produced.nrows + produced.nnulls;
	gs_store_give_rows(store, participants->nsent);
	return GS_STATUS_OK;
}

/*
 * Ends the input of a producer: it sends no more rows, and continues with those that the device did
 * not take, in a CPU engine that allows a row of row_bytes.  The role is SERIAL from then on.  OK
 * or FAILED.
 */
static GsStatus
end_producer(GsSortState *state, Size row_bytes)
{
	GsStatus	status = give_rows_to_consumer(state);

	if (status == GS_STATUS_OK)
		status = gs_store_replace_engine(&state->store, row_bytes, false);
	gs_store_forbid_device(&state->store, NULL);	/* the consumer's sort fills it */
	return status;
}

/* The rows of producers count as read by the consumer. */
static void
add_produced(GsSortState *state)
{
	GsShared   *shared = state->participants.shared;
	GsStore    *store = &state->store;
	uint64		nrows = 0;

	for (int i = 0; i < gs_shared_nparticipants(shared); i++)
	{
		const GsProduced *produced = gs_shared_produced(shared, i);

		if (produced == NULL)
			continue;
		gs_key_layout_merge(gs_key_encoder_layout(store->order.key), &produced->layout);
		nrows += produced->nrows;
		gs_store_take_rows(store, produced->nrows, produced->nnulls, produced->nbytes);
	}
	gs_engine_gpu_expect(store->engine, nrows);
}

/* The consumer waits for producers. */
static void
wait_for_producers(GsSortParticipants *participants)
{
	instr_time	start;
	instr_time	end;

	INSTR_TIME_SET_CURRENT(start);
	gs_shared_wait(participants->shared);
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_SUBTRACT(end, start);
	participants->wait_us = INSTR_TIME_GET_MICROSEC(end);
}

static void
end_consumer_input(GsSortState *state)
{
	wait_for_producers(&state->participants);
	add_produced(state);
	end_role(state);
}

GsStatus
gs_sort_parallel_end_input(GsSortState *state)
{
	switch (state->participants.role)
	{
		case GS_ROLE_SERIAL:
			break;
		case GS_ROLE_PRODUCER:
			return end_producer(state, 0);
		case GS_ROLE_CONSUMER:
			end_consumer_input(state);
			break;
	}
	return GS_STATUS_OK;
}

/* The rows are about to become a run.  True: those of a producer are the consumer's now. */
static bool
end_input_before_run(void *arg, Size row_bytes, GsStatus *status)
{
	GsSortState *state = arg;

	if (state->participants.role != GS_ROLE_PRODUCER)
	{
		(void) gs_sort_parallel_end_input(state);
		return false;
	}
	*status = end_producer(state, row_bytes);
	return true;
}

void
gs_sort_parallel_join(GsSortState *state)
{
	GsSortParticipants *participants = &state->participants;
	GsShared   *shared = participants->shared;
	GsRole		role;

	participants->job = (GsSharedJob) {0};
	role = shared == NULL ? GS_ROLE_SERIAL :
		gs_shared_join(shared, participant_number(), &participants->job);
	participants->nsent = 0;
	participants->wait_us = 0;
	participants->sends = false;
	participants->reads = participants->ranges == NULL ||
		gs_share_ranges_begin(participants->ranges);
	if (participants->job.by_streams)
		set_role(state, GS_ROLE_SERIAL, role);
	else
		set_role(state, role, GS_ROLE_SERIAL);

	/*
	 * all of them try it once, and wait once for the device; rows of a device would have to be read
	 * back
	 */
	if (shared != NULL &&
		(gs_shared_is_wanted(shared) || participants->of_streams != GS_ROLE_SERIAL ||
		 participants->ranges != NULL))
		gs_store_forbid_device(&state->store, NULL);
}

/* ------------------------------------------------------------------- readers */

bool
gs_sort_parallel_open_reader(GsSortState *state)
{
	GsSortParticipants *participants = &state->participants;
	const GsSharedJob *shared_job = &participants->job;
	GsEngineRequest request;
	const char *why_not;

	if (shared_job->token == 0 || state->store.nread > 0 || state->store.phase != GS_STORE_ENGINE)
		return false;
	request = gs_store_make_request(&state->store);
	participants->reader = gs_device_read_shared(&request, state->store.context, shared_job->device,
												 shared_job->token, &why_not);
	return participants->reader != NULL;
}

void
gs_sort_parallel_begin_reading(GsSortState *state, uint64 nrows)
{
	GsStore    *store = &state->store;

	gs_store_set_engine(store, state->participants.reader);
	state->participants.reader = NULL;
	if (gs_engine_gpu_begin_reading(store->engine, nrows) != GS_STATUS_OK)
		gs_store_report_failure(store);
	gs_store_take_rows(store, nrows, 0, 0);
	gs_store_begin_output(store, nrows);
}

/* ------------------------------------------------------------------- streams */

/* Others have such keys, too, if a job was wanted but could not be opened. */
bool
gs_sort_parallel_needs_full_keys(const GsSortState *state)
{
	const GsSortParticipants *participants = &state->participants;

	return participants->role != GS_ROLE_SERIAL ||
		(participants->of_streams != GS_ROLE_SERIAL && gs_shared_is_wanted(participants->shared));
}

/* A producer sends its rows to the consumer, if it can, when its node ends. */
static void
offer_rows(GsSortState *state)
{
	GsSortParticipants *participants = &state->participants;
	GsStore    *store = &state->store;

	participants->sends =
		gs_share_streams_offer(participants->streams, participant_number(), store);
	if (participants->sends)
	{
		participants->nsent = store->nread;
		gs_store_give_rows(store, store->nread);
		gs_store_begin_output(store, 0);
	}
}

void
gs_sort_parallel_gather(GsSortState *state)
{
	GsSortParticipants *participants = &state->participants;
	const GsRole role = participants->of_streams;

	set_role(state, participants->role, GS_ROLE_SERIAL);
	if (role == GS_ROLE_CONSUMER)
		wait_for_producers(participants);
	if (role == GS_ROLE_PRODUCER)
		offer_rows(state);
	if (role == GS_ROLE_CONSUMER && gs_share_streams_any(participants->streams))
	{
		if (!gs_share_streams_merge(participants->streams, &state->store, participants->memory))
			gs_store_report_failure(&state->store);
	}
	else if (role != GS_ROLE_SERIAL && !participants->sends && state->store.phase == GS_STORE_RUNS)
		gs_store_begin_merge(&state->store);
	if (role == GS_ROLE_PRODUCER)
		gs_shared_leave(participants->shared, participant_number(), NULL);
}

void
gs_sort_parallel_end(GsSortState *state)
{
	GsSortParticipants *participants = &state->participants;

	if (participants->sends)
		gs_share_streams_send(participants->streams, participant_number(), &state->store,
							  participants->memory);
	participants->sends = false;
	abandon_streams(state);
	/*
	 * its shared memory may be gone when the callback before a rescan is called for the last time
	 */
	participants->streams = NULL;
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
