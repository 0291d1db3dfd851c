/*-------------------------------------------------------------------------
 *
 * sort_external.c
 *	  A sort of more rows than memory holds: runs are written, then merged.
 *
 * When an engine has no memory for another row, it sorts the rows that it has.
 * They are written to a temporary file as a run, and an empty CPU engine takes
 * its place (run_set.h):
 *
 *		CPU engine ---> device ---> run		or		CPU engine ---> run
 *			 ^						 |					  ^			 |
 *			 +-----------------------+					  +----------+
 *
 * A device that is full has not taken its last batches.  They are still in the
 * shared buffers, and are copied to the next engine first.
 *
 * After the last row the runs are merged while rows are returned.  In a parallel
 * index build each process writes runs, and the leader merges all of them.
 *
 * A producer of a shared job does not write runs when the device is full: the
 * rows that the device took belong to the consumer, and the producer sorts the
 * rest (sort_parallel.c).
 *
 * Temporary files belong to the resource owner, which removes them after ERROR
 * and cancel.  Loops over rows check for interrupts.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sort/sort_external.h"
#include "sort/sort_order.h"
#include "sort/sort_output.h"
#include "sort/sort_parallel.h"
#include "sort/sort_place.h"

#include "miscadmin.h"
#include "utils/memutils.h"

/* What an engine needs for itself, to hold one row. */
#define LEAST_ENGINE_BYTES	((Size) 32 << 10)

static void
report_no_memory(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("out of memory"),
			 errdetail("Failed while allocating memory for a sort.")));
}

/* --------------------------------------------------------------------- runs */

/*
 * A merge returns its rows once, so runs are no use where rows may be returned twice.
 * Nor may a device's rows become a run if the keys are approximate: they would have to be verified,
 * and the device has only some of the rows.  A producer's rows are verified by the consumer.
 */
bool
gs_sort_may_spill(const GsSortState *state)
{
	const GsSortInput *input = &state->input;

	if (state->participants.role == GS_ROLE_PRODUCER)
		return true;
	return !state->spec.random_access &&
		!(input->engine->capabilities->on_device && gs_key_encoder_is_approximate(input->key));
}

static void
begin_runs(GsSortState *state)
{
	const GsSortSpec *spec = &state->spec;
	GsSortInput *input = &state->input;
	MemoryContext old;
	GsMergeOrder order;

	if (input->runs != NULL)
		return;
	old = MemoryContextSwitchTo(state->context);
	order = gs_sort_merge_order(state);
	input->runs = gs_run_set_create(spec->columns, spec->ncolumns, spec->desc, input->key,
									&order, input->memory_limit, &spec->run_files);
	MemoryContextSwitchTo(old);
}

/* Writes the rows that the engine has sorted as a run, if there are any. */
static GsStatus
write_sorted(GsSortState *state)
{
	GsSortInput *input = &state->input;

	if (input->engine->stats.nrows == 0)
		return GS_STATUS_OK;
	begin_runs(state);
	return gs_run_set_write_run(input->runs, input->engine, input->presorted);
}

/*
 * Sorts the rows of the engine and writes them as a run.  FULL: a device has no memory to sort them.
 */
static GsStatus
write_run(GsSortState *state)
{
	GsEngine   *engine = state->input.engine;
	GsStatus	status;

	/* rows shorter than those before can need a little more than was left for them */
	engine->job.memory_limit = SIZE_MAX;
	status = gs_engine_sort(engine);
	if (status == GS_STATUS_FULL)
		status = gs_engine_sort(engine);	/* without those that it did not take */
	if (status == GS_STATUS_OK)
		status = gs_sort_verify_order(state);
	return status == GS_STATUS_OK ? write_sorted(state) : status;
}

/* Copies rows that a device returns unsorted to the engine, in input order. */
static GsStatus
copy_returned(GsSortState *state, GsEngine *device)
{
	const GsKeyLayout *layout = device->job.layout;
	GsSortInput *input = &state->input;
	const GsBatch *from;
	GsStatus	status;

	input->batch = NULL;
	while ((status = gs_engine_next_batch(device, &from)) == GS_STATUS_OK && from != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		for (size_t i = 0; i < from->nrows; i++)
		{
			Size		row_bytes = gs_batch_row_bytes(from, layout, i);

			if ((input->batch == NULL || !gs_engine_has_space(input->batch, row_bytes)) &&
				gs_sort_reserve(state, row_bytes) != GS_STATUS_OK)
				report_no_memory();
			gs_batch_push_copy(input->batch, from, layout, i, row_bytes);
		}
	}
	return status;
}

/* An empty CPU engine, which allows a row of row_bytes. */
static void
open_cpu_engine(GsSortInput *input, const GsJob *last, Size row_bytes)
{
	GsJob		job = *last;

	job.memory_limit = Max(gs_sort_engine_limit(input), row_bytes + LEAST_ENGINE_BYTES);
	input->engine = gs_engine_cpu_open(&job);
	if (input->engine == NULL)
		report_no_memory();
}

/*
 * Replaces the engine, whose rows are in a run or, if `unsorted`, still in the device because it has
 * no memory to sort them.  Copies all rows that are in no run.
 */
static GsStatus
replace_engine(GsSortState *state, Size row_bytes, bool unsorted)
{
	GsSortInput *input = &state->input;
	GsEngine   *last = input->engine;
	const GsJob job = last->job;
	GsStatus	status = GS_STATUS_OK;

	if (!last->capabilities->on_device)
	{
		gs_engine_close(last);
		open_cpu_engine(input, &job, row_bytes);
		return GS_STATUS_OK;
	}
	open_cpu_engine(input, &job, row_bytes);
	input->may_use_device = false;
	if (unsorted)
		status = gs_engine_return_input(last);
	if (status == GS_STATUS_OK)
		status = copy_returned(state, last);
	if (status != GS_STATUS_OK)
	{
		gs_engine_close(input->engine);
		input->engine = last;
		return status;
	}
	/* the next rows go to the device again, if it holds more than memory does */
	input->may_use_device = !unsorted && last->stats.nrows > 0 &&
		last->stats.bytes_up >= input->memory_limit;
	input->device_reason = last->stats.full;
	gs_engine_close(last);
	return GS_STATUS_OK;
}

/* A producer sends no more rows, and continues with those that the device did not take. */
static GsStatus
end_producer(GsSortState *state, Size row_bytes)
{
	GsStatus	status = gs_sort_parallel_end_producer(state);

	if (status == GS_STATUS_OK)
		status = replace_engine(state, row_bytes, false);
	state->input.may_use_device = false;	/* the consumer's sort fills it */
	return status;
}

GsStatus
gs_sort_end_shared_input(GsSortState *state)
{
	switch (state->participants.role)
	{
		case GS_ROLE_SERIAL:
			break;
		case GS_ROLE_PRODUCER:
			return end_producer(state, 0);
		case GS_ROLE_CONSUMER:
			gs_sort_parallel_end_input(state);
			break;
	}
	return GS_STATUS_OK;
}

GsStatus
gs_sort_spill(GsSortState *state, Size row_bytes)
{
	GsStatus	status;

	if (state->participants.role == GS_ROLE_PRODUCER)
		return end_producer(state, row_bytes);
	(void) gs_sort_end_shared_input(state);
	status = write_run(state);
	if (status == GS_STATUS_OK)
		return replace_engine(state, row_bytes, false);
	if (status == GS_STATUS_FULL && state->input.engine->capabilities->on_device)
		return replace_engine(state, row_bytes, true);
	return status;
}

/* -------------------------------------------------------------------- merge */

/* The rows are in runs only. */
static void
close_engine(GsSortState *state)
{
	if (state->input.engine != NULL)
		gs_engine_close(state->input.engine);
	state->input.engine = NULL;
	state->phase = GS_SORT_MERGE;
}

GsStatus
gs_sort_merge_runs(GsSortState *state)
{
	GsStatus	status = GS_STATUS_OK;

	/* the rows that a device did not take become a run of their own */
	if (state->input.engine->capabilities->on_device)
		status = gs_sort_spill(state, 0);
	if (status == GS_STATUS_OK)
		status = write_run(state);
	if (status != GS_STATUS_OK)
		return status;
	close_engine(state);
	if (!state->spec.merged_elsewhere)
		gs_sort_begin_merge(state);
	return GS_STATUS_OK;
}

void
gs_sort_begin_merge(GsSortState *state)
{
	GsSortInput *input = &state->input;

	gs_run_set_begin_merge(input->runs, input->merge_limit);
	gs_sort_begin_output(state, gs_run_set_stats(input->runs)->nrows + input->nnulls);
}

void
gs_sort_limit_merge(GsSortState *state, int memory_kb)
{
	state->input.merge_limit = (Size) memory_kb * 1024;
}

/* --------------------------------------------------- the runs of several sorts */

/* Writes the rows of a tuplesort as a run. */
static void
write_fallback(GsSortState *state)
{
	GsSortInput *input = &state->input;
	TupleTableSlot *slot = state->spec.slot;

	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		gs_tuplesort_get(&input->fallback, true, slot);
		if (TupIsNull(slot))
			break;
		gs_run_set_write_tuple(input->runs, ((MinimalTupleTableSlot *) slot)->mintuple);
	}
	gs_tuplesort_end(&input->fallback);
}

bool
gs_sort_make_runs(GsSortState *state)
{
	GsSortInput *input = &state->input;

	if (state->phase == GS_SORT_MERGE)
		return true;
	if (input->nread == 0)
		input->presorted = false;	/* without rows no row lacks a key */
	begin_runs(state);
	if (state->phase == GS_SORT_FALLBACK)
		write_fallback(state);
	else if (write_sorted(state) != GS_STATUS_OK)
		return false;
	close_engine(state);
	return true;
}

void
gs_sort_share_runs(GsSortState *state, GsSharedRuns *runs)
{
	const GsSortInput *input = &state->input;

	gs_run_set_share(input->runs, runs);
	if (gs_run_set_has_keys(input->runs))
	{
		runs->form = gs_key_encoder_fingerprint(input->key);
		runs->first_tied = gs_key_encoder_first_tied(input->key);
	}
	runs->nread = input->nread;
}

/* Do both have keys, and do these mean the same in both processes? */
static bool
have_equal_keys(const GsSortInput *input, const GsSharedRuns *runs)
{
	return gs_run_set_has_keys(input->runs) && runs->layout.ncolumns > 0 &&
		runs->form == gs_key_encoder_fingerprint(input->key);
}

void
gs_sort_adopt_runs(GsSortState *state, const GsSharedRuns *runs, const GsRunFiles *where)
{
	GsSortInput *input = &state->input;

	if (have_equal_keys(input, runs))
	{
		gs_key_layout_merge(gs_key_encoder_layout(input->key), &runs->layout);
		if (runs->first_tied >= 0)
		{
			gs_key_encoder_tie_from(input->key, runs->first_tied);
			gs_sort_compare_ties(state);
		}
	}
	else
	{
		const GsMergeOrder order = gs_sort_compared_order(state);

		gs_run_set_drop_keys(input->runs, &order);
	}
	gs_run_set_adopt(input->runs, runs, where);
	input->nread += runs->nread;
}
