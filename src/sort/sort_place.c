/*-------------------------------------------------------------------------
 *
 * sort_place.c
 *	  Room for the rows of a sort: in an engine, on a device, in runs on disk.
 *
 * The engine is the CPU's at first; once there are rows enough for a device,
 * or memory is at its end, they move there (sort_device.h).  When an engine can
 * take no more, it sorts the rows that it has, they are written to a temporary
 * file as a run, and a fresh engine goes on:
 *
 *		CPU engine ---> device ---> run		or		CPU engine ---> run
 *			 ^						 |					  ^			 |
 *			 +-----------------------+					  +----------+
 *
 * In the end the runs are merged as rows are asked for (run_set.h).
 *
 * In a parallel plan the engine can be a device's from the first row on, fed by
 * several participants.  Those that do not own it leave it when it can take no more.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sort/sort_device.h"
#include "guc.h"
#include "sort/sort_parallel.h"
#include "sort/sort_place.h"

#include "executor/executor.h"
#include "miscadmin.h"

/* What an engine needs beside its one row, and some more. */
#define LEAST_ENGINE_BYTES	((Size) 32 << 10)

static GsStatus reserve(GsSortState *state, Size row_bytes, GsBatch **batch);

/* ------------------------------------------------------------------ devices */

static void
report_no_memory(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("out of memory"),
			 errdetail("Failed while allocating sort memory.")));
}

const char *
gs_sort_status_reason(const GsSortState *state, GsStatus status)
{
	switch (status)
	{
		case GS_STATUS_FULL:
			if (state->refuted)
				return gs_key_encoder_disproof(state->key);
			return state->engine->stats.full != NULL ?
				state->engine->stats.full : "the rows exceed work_mem";
		case GS_STATUS_OOM:
			return "out of memory";
		default:
			return "the engine failed";
	}
}

/* Moves the rows to a device, if there is one and it has room.  One try only. */
static bool
move_to_device(GsSortState *state)
{
	double		nrows = gs_topn_expected_rows(&state->top, state->expected_rows);
	GsEngine   *engine;

	state->may_use_device = false;
	engine = gs_device_move(state->engine, state->context,
									  Max(nrows, (double) gs_topn_rows_of_engine(state->engine)),
									  gs_sort_row_bytes(state), &state->device_reason);
	if (engine == NULL)
		return false;
	state->engine = engine;
	gs_key_encoder_keep_full(state->key);
	state->top.may_prune = false;
	state->device_reason = NULL;
	return true;
}

/*
 * Would a device take it from here?  Not as long as most of the rows will be
 * dropped before long.
 */
static bool
device_pays(const GsSortState *state, bool loaded)
{
	uint64		nrows;

	if (!state->may_use_device)
		return false;
	nrows = gs_topn_rows_of_engine(state->engine);
	return gs_device_pays(nrows) &&
		(loaded || !gs_topn_will_prune(&state->top, state->expected_rows));
}

bool
gs_sort_device_is_likely(const GsSortState *state)
{
	return state->may_use_device && gs_device_is_likely(state->expected_rows);
}

void
gs_sort_consider_device(GsSortState *state, bool loaded)
{
	if (device_pays(state, loaded))
		(void) move_to_device(state);
}

/* ------------------------------------------------------------------- orders */

/* By the columns from `first` on. */
static int
compare_from(GsSortState *state, const void *a, const void *b, int first)
{
	return gs_sort_compare_rows(state->compare, (MinimalTuple) unconstify(void *, a),
								(MinimalTuple) unconstify(void *, b), first);
}

/* A GsRowCompare of any rows; the argument is the state. */
static int
compare_rows(void *arg, const void *a, const void *b)
{
	return compare_from(arg, a, b, 0);
}

int
gs_sort_compare_tied(void *arg, const void *a, const void *b)
{
	GsSortState *state = arg;

	return compare_from(state, a, b, gs_key_encoder_first_tied(state->key));
}

/* Has a comparator at hand. */
static void
prepare_to_compare(GsSortState *state)
{
	MemoryContext old = MemoryContextSwitchTo(state->context);

	if (state->compare == NULL)
		state->compare = gs_sort_compare_create(state->columns, state->ncolumns,
												state->desc);
	MemoryContextSwitchTo(old);
}

void
gs_sort_compare_ties(GsSortState *state)
{
	prepare_to_compare(state);
	if (state->engine != NULL)
	{
		state->engine->job.compare = gs_sort_compare_tied;
		state->engine->job.compare_arg = state;
	}
	if (state->spill != NULL)
		gs_run_set_compare_ties(state->spill, gs_sort_compare_tied, state);
}

GsMergeOrder
gs_sort_compared_order(GsSortState *state)
{
	static const GsKeyLayout no_keys = {0};

	prepare_to_compare(state);
	return (GsMergeOrder) {
		.layout = &no_keys,.compare = compare_rows,.compare_arg = state
	};
}

/* Is the engine's order still to be proven? */
static bool
needs_verification(const GsSortState *state)
{
	return gs_key_encoder_is_approximate(state->key) &&
		!(state->engine->stats.all_compared && gs_key_encoder_first_tied(state->key) == 0);
}

GsStatus
gs_sort_verify_order(GsSortState *state)
{
	MemoryContext old = MemoryContextSwitchTo(state->context);
	GsSortVerification verification = {.succeeded = true};
	GsStatus	status = GS_STATUS_OK;

	if (state->presorted)
	{
		verification.ncomparisons = state->engine->stats.nrows -
			(state->spill == NULL && state->engine->stats.nrows > 0 ? 1 : 0);
		verification.compared = gs_key_encoder_is_approximate(state->key);
		verification.checksum = state->verification.checksum; /* of all so far */
	}
	else if (needs_verification(state))
		status = gs_sort_verify_rows(state->engine, state->key, state->compare, &verification);
	if (!verification.succeeded && !gs_sort_is_device(state->engine) &&
		gs_engine_cpu_resort(state->engine, compare_rows, state) == GS_STATUS_OK)
	{
		verification.succeeded = true;
		state->verification.ncorrected++;
	}
	MemoryContextSwitchTo(old);
	state->verification.ncomparisons += verification.ncomparisons;
	state->verification.us += verification.us;
	state->verification.compared = verification.compared;
	state->verification.checksum = verification.checksum;
	state->refuted = !verification.succeeded;
	return status == GS_STATUS_OK && state->refuted ? GS_STATUS_FULL : status;
}

/*
 * The order in which runs are merged.  Where keys are a hint, the first run's rows
 * came in order and have none, or a tuplesort has dropped them, only comparisons decide.
 */
static GsMergeOrder
merge_order(GsSortState *state)
{
	GsMergeOrder order = {.compare_arg = state};

	if (state->presorted || state->phase == GS_SORT_FALLBACK || gs_key_encoder_is_approximate(state->key))
		return gs_sort_compared_order(state);
	order.keys_decide = true;
	order.layout = gs_key_encoder_layout(state->key);
	order.compare = gs_key_encoder_first_tied(state->key) >= 0 ? gs_sort_compare_tied : NULL;
	return order;
}

/* --------------------------------------------------------------------- runs */

/*
 * May the rows become a run?  A merge gives them once, so they may not where
 * they may be asked for again; nor where a device can take some of them only, which
 * are to be proven.  A feeder's are the owner's to prove.
 */
bool
gs_sort_may_spill(const GsSortState *state)
{
	return state->role == GS_ROLE_PRODUCER || (!state->random_access && !state->refuted &&
		!(gs_sort_is_device(state->engine) && gs_key_encoder_is_approximate(state->key)));
}

void
gs_sort_begin_runs(GsSortState *state)
{
	MemoryContext old;
	GsMergeOrder order;

	if (state->spill != NULL)
		return;
	old = MemoryContextSwitchTo(state->context);
	order = merge_order(state);
	state->spill = gs_run_set_create(state->columns, state->ncolumns, state->desc, state->key,
								   &order, state->memory_limit, &state->run_files);
	MemoryContextSwitchTo(old);
}

GsStatus
gs_sort_append_run(GsSortState *state)
{
	if (state->engine->stats.nrows == 0)
		return GS_STATUS_OK;
	gs_sort_begin_runs(state);
	return gs_run_set_write_run(state->spill, state->engine, state->presorted);
}

/*
 * Sorts the rows that the engine has taken, and writes them as a run, if there
 * are any.  FULL: a device has no memory to sort them, or their order was
 * disproved.
 */
static GsStatus
write_run(GsSortState *state)
{
	GsEngine   *engine = state->engine;
	GsStatus	status;

	/* rows shorter than those before can need a little more than was left for them */
	engine->job.memory_limit = SIZE_MAX;
	status = gs_engine_sort(engine);
	if (status == GS_STATUS_FULL)
		status = gs_engine_sort(engine);	/* without those that it did not take */
	if (status == GS_STATUS_OK)
		status = gs_sort_verify_order(state);
	return status == GS_STATUS_OK ? gs_sort_append_run(state) : status;
}

/* Copies the rows that another engine has not written, in input order. */
static GsStatus
copy_rest(GsSortState *state, GsEngine *from)
{
	const GsKeyLayout *layout = from->job.layout;
	const GsBatch *rest;
	GsBatch    *batch = NULL;
	GsStatus	status;

	while ((status = gs_engine_next_batch(from, &rest)) == GS_STATUS_OK && rest != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		for (size_t i = 0; i < rest->nrows; i++)
		{
			Size		row_bytes = gs_batch_row_bytes(rest, layout, i);

			if ((batch == NULL || !gs_engine_has_space(batch, row_bytes)) &&
				reserve(state, row_bytes, &batch) != GS_STATUS_OK)
				report_no_memory();
			gs_batch_push_copy(batch, rest, layout, i, row_bytes);
		}
	}
	return status;
}

/* Rows that come in order leave some of the memory for keys, should they be needed. */
#define PRESORTED_SHARE	0.75

Size
gs_sort_engine_limit(const GsSortState *state)
{
	Size		limit = state->memory_limit;

	if (state->spill != NULL)
		limit -= gs_run_set_writer_bytes(limit);
	return state->presorted ? limit * PRESORTED_SHARE : limit;
}

/*
 * Puts a CPU engine, with room for a row of row_bytes, in the place of one whose
 * rows were written as a run, but for those that it did not take; it did not
 * even sort if it is to be drained.
 */
static GsStatus
open_next_engine(GsSortState *state, Size row_bytes, bool return_input)
{
	GsEngine   *device = gs_sort_is_device(state->engine) ? state->engine : NULL;
	GsJob		job = state->engine->job;
	GsStatus	status = GS_STATUS_OK;

	if (device == NULL)
		gs_engine_close(state->engine);
	job.memory_limit = Max(gs_sort_engine_limit(state), row_bytes + LEAST_ENGINE_BYTES);
	state->engine = gs_engine_cpu_open(&job);
	if (state->engine == NULL)
		report_no_memory();
	if (device == NULL)
		return GS_STATUS_OK;

	state->may_use_device = false;
	if (return_input)
		status = gs_engine_return_input(device);
	if (status == GS_STATUS_OK)
		status = copy_rest(state, device);
	if (status != GS_STATUS_OK)
	{
		gs_engine_close(state->engine);
		state->engine = device;
		return status;
	}
	/* the next rows go to the device again, if it took more than we can */
	state->may_use_device = !return_input && device->stats.nrows > 0 &&
		device->stats.bytes_up >= state->memory_limit;
	state->device_reason = device->stats.full;
	gs_engine_close(device);
	return GS_STATUS_OK;
}

/* A feeder ends its feed, and goes on with what the device did not take of it. */
static GsStatus
end_producer(GsSortState *state, Size row_bytes)
{
	GsStatus	status = gs_sort_parallel_end_producer(state);

	if (status == GS_STATUS_OK)
		status = open_next_engine(state, row_bytes, false);
	state->may_use_device = false;	/* it is this very sort that the device is full of */
	return status;
}

GsStatus
gs_sort_end_shared_input(GsSortState *state)
{
	if (state->role == GS_ROLE_PRODUCER)
		return end_producer(state, 0);
	if (state->role == GS_ROLE_CONSUMER)
		gs_sort_parallel_end_input(state);
	return GS_STATUS_OK;
}

GsStatus
gs_sort_spill(GsSortState *state, Size row_bytes)
{
	GsStatus	status;

	if (state->role == GS_ROLE_PRODUCER)
		return end_producer(state, row_bytes);
	(void) gs_sort_end_shared_input(state);
	status = write_run(state);
	if (status == GS_STATUS_OK ||
		(status == GS_STATUS_FULL && gs_sort_is_device(state->engine) && !state->refuted))
		status = open_next_engine(state, row_bytes, status == GS_STATUS_FULL);
	return status;
}

/* Begins another batch for a row, whatever it takes. */
static GsStatus
reserve(GsSortState *state, Size row_bytes, GsBatch **batch)
{
	GsStatus	status = gs_engine_reserve(state->engine, row_bytes, batch);

	if (status == GS_STATUS_FULL &&
		(gs_topn_prune(&state->top, state->engine, state->context, true) ||
		 (state->may_use_device && gpusort_engine != GS_ENGINE_CPU && move_to_device(state))))
		status = gs_engine_reserve(state->engine, row_bytes, batch);
	if ((status == GS_STATUS_FULL || status == GS_STATUS_OOM) && gs_sort_may_spill(state))
	{
		status = gs_sort_spill(state, row_bytes);
		if (status == GS_STATUS_OK)
			status = gs_engine_reserve(state->engine, row_bytes, batch);
	}
	return status;
}

const char *
gs_sort_begin_batch(GsSortState *state, Size row_bytes, GsBatch **batch)
{
	GsStatus	status;

	(void) gs_topn_prune(&state->top, state->engine, state->context, false);
	gs_sort_consider_device(state, false);
	status = reserve(state, row_bytes, batch);
	return status == GS_STATUS_OK ? NULL : gs_sort_status_reason(state, status);
}

void
gs_sort_begin_merge(GsSortState *state)
{
	gs_run_set_begin_merge(state->spill, state->merge_limit);
	state->nrows = gs_run_set_stats(state->spill)->nrows + state->nnulls;
}

GsStatus
gs_sort_merge_runs(GsSortState *state)
{
	GsStatus	status = gs_sort_is_device(state->engine) ? gs_sort_spill(state, 0) : GS_STATUS_OK;

	if (status == GS_STATUS_OK)
		status = write_run(state);
	if (status != GS_STATUS_OK)
		return status;
	gs_engine_close(state->engine);
	state->engine = NULL;
	state->phase = GS_SORT_MERGE;
	if (!state->merged_elsewhere)
		gs_sort_begin_merge(state);
	return GS_STATUS_OK;
}
