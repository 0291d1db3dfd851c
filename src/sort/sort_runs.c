/*-------------------------------------------------------------------------
 *
 * sort_runs.c
 *	  A sort of more rows than memory holds: runs are written, then merged.
 *
 * When an engine has no memory for another row, it sorts the rows that it has.
 * They are written to a temporary file as a run (run_set.h).  Then the CPU engine begins again
 * in the same memory, or an empty one takes the place of a device:
 *
 *		CPU engine ---> device ---> run		or		CPU engine ---> run
 *			 ^						 |					  ^			 |
 *			 +-----------------------+					  +----------+
 *
 * A device that is full has not taken its last batches.  They are still in the
 * shared buffers, and are copied to the next engine first.
 *
 * After the last row the runs are merged while rows are returned.  In a parallel
 * index build each process writes runs, and then merges a range of all of them, or the
 * leader merges all.
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

#include "sort/sort_runs.h"
#include "sort/sort_order.h"
#include "sort/sort_output.h"
#include "sort/sort_parallel.h"
#include "sort/sort_space.h"
#include "sort/sort_stats.h"
#include "sort/sort_ties.h"

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
 * Nor may a device's rows become a run if approximate keys have to be verified, because the device has
 * only some of the rows.  A producer's rows are verified by the consumer.
 */
bool
gs_sort_may_write_run(const GsSortState *state)
{
	const GsSortInput *input = &state->input;

	if (state->participants.role == GS_ROLE_PRODUCER)
		return true;
	return !state->spec.random_access &&
		!(input->engine->capabilities->on_device && gs_sort_verifies_keys(state));
}

/* Does someone else merge the runs, or add those of others before they are merged? */
static bool
are_merged_elsewhere(const GsSortState *state)
{
	return state->spec.merged_elsewhere || state->participants.of_streams != GS_ROLE_SERIAL;
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

/* Writes the rows that a device has sorted as a run, with those in order that it has left tied. */
static GsStatus
write_with_ties(GsSortState *state)
{
	GsSortInput *input = &state->input;
	const TupleTableSlot *slot;
	GsStatus	status;

	gs_sort_begin_output(state, input->engine->stats.nrows);
	status = gs_sort_ties_begin(state);
	if (status != GS_STATUS_OK)
		return status;
	gs_run_set_begin_run(input->runs, input->engine);
	for (uint64 i = 0; i < state->output.nrows && status == GS_STATUS_OK; i++)
	{
		slot = gs_sort_ties_next(state);
		if (slot != NULL)
			gs_run_set_write_tuple(input->runs, ((const MinimalTupleTableSlot *) slot)->mintuple);
		else
			status = GS_STATUS_FAILED;
	}
	gs_sort_ties_end(state);
	gs_sort_begin_output(state, 0);
	return status;
}

/* Writes the rows that the engine has sorted as a run, if there are any. */
static GsStatus
write_sorted(GsSortState *state)
{
	GsSortInput *input = &state->input;

	if (input->engine->stats.nrows == 0)
		return GS_STATUS_OK;
	begin_runs(state);
	if (gs_sort_leaves_ties(state))
		return write_with_ties(state);
	state->output.nordered += input->engine->stats.compared_rows;
	return gs_run_set_write_run(input->runs, input->engine, input->presorted);
}

/*
 * Sorts the rows of the engine and writes them as a run.  FULL: a device has no memory to sort them.
 */
static GsStatus
sort_and_write(GsSortState *state)
{
	GsEngine   *engine = state->input.engine;
	GsStatus	status;

	/* rows shorter than those before can need a little more than was left for them */
	engine->request.memory_limit = SIZE_MAX;
	status = gs_sort_order_rows(state);
	if (status == GS_STATUS_FULL)
		status = gs_sort_order_rows(state);	/* without those that it did not take */
	if (status == GS_STATUS_OK)
		status = gs_sort_verify_keys(state);
	return status == GS_STATUS_OK ? write_sorted(state) : status;
}

/* Copies rows that a device returns unsorted to the engine, in input order. */
static GsStatus
copy_returned(GsSortState *state, GsEngine *device)
{
	const GsKeyLayout *layout = device->request.layout;
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

/* The memory limit of a CPU engine that allows a row of row_bytes. */
static Size
cpu_engine_limit(const GsSortState *state, Size row_bytes)
{
	return Max(gs_sort_engine_limit(state), row_bytes + LEAST_ENGINE_BYTES);
}

/* An empty CPU engine. */
static void
open_cpu_engine(GsSortState *state, const GsEngineRequest *last, Size row_bytes)
{
	GsSortInput *input = &state->input;
	GsEngineRequest request = *last;

	request.memory_limit = cpu_engine_limit(state, row_bytes);
	input->engine = gs_engine_cpu_open(&request);
	if (input->engine == NULL)
		report_no_memory();
}

GsStatus
gs_sort_replace_engine(GsSortState *state, Size row_bytes, bool unsorted)
{
	GsSortInput *input = &state->input;
	GsEngine   *last = input->engine;
	const GsEngineRequest request = last->request;
	GsStatus	status = GS_STATUS_OK;

	if (!last->capabilities->on_device)
	{
		gs_engine_cpu_restart(last, cpu_engine_limit(state, row_bytes));
		return GS_STATUS_OK;
	}
	open_cpu_engine(state, &request, row_bytes);
	if (gs_key_encoder_first_tied(input->key) >= 0)
		gs_sort_compare_ties(state);
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
	if (last->stats.full != NULL)
		gs_stats_add(GS_STAT_REFUSALS_MEMORY, 1);
	gs_sort_close_engine(last);
	return GS_STATUS_OK;
}

GsStatus
gs_sort_write_run(GsSortState *state, Size row_bytes)
{
	GsStatus	status;

	if (state->participants.role == GS_ROLE_PRODUCER)
		return gs_sort_parallel_end_producer(state, row_bytes);
	(void) gs_sort_parallel_end_input(state);
	status = sort_and_write(state);
	if (status == GS_STATUS_OK)
		return gs_sort_replace_engine(state, row_bytes, false);
	if (status == GS_STATUS_FULL && state->input.engine->capabilities->on_device)
		return gs_sort_replace_engine(state, row_bytes, true);
	return status;
}

/* -------------------------------------------------------------------- merge */

/* The rows are in runs only. */
static void
close_engine(GsSortState *state)
{
	if (state->input.engine != NULL)
		gs_sort_close_engine(state->input.engine);
	state->input.engine = NULL;
	state->phase = GS_SORT_RUNS;
}

GsStatus
gs_sort_merge_runs(GsSortState *state)
{
	GsStatus	status = GS_STATUS_OK;

	/* the rows that a device did not take become a run of their own */
	if (state->input.engine->capabilities->on_device)
		status = gs_sort_write_run(state, 0);
	if (status == GS_STATUS_OK)
		status = sort_and_write(state);
	if (status != GS_STATUS_OK)
		return status;
	close_engine(state);
	if (!are_merged_elsewhere(state))
		gs_sort_begin_merge(state);
	return GS_STATUS_OK;
}

/* What the engine leaves for a merge, if its rows are one of the runs. */
static Size
merge_limit(const GsSortInput *input)
{
	const Size	held = input->engine == NULL ? 0 : gs_engine_stats(input->engine)->peak_bytes;

	return input->merge_limit - Min(held, input->merge_limit);
}

void
gs_sort_begin_merge(GsSortState *state)
{
	GsSortInput *input = &state->input;

	gs_run_set_begin_merge(input->runs, merge_limit(input));
	gs_sort_begin_output(state, gs_run_set_stats(input->runs)->nrows + input->nnulls);
}

bool
gs_sort_begin_range(GsSortState *state, int range, int nranges, MinimalTuple *end)
{
	GsSortInput *input = &state->input;

	if (!gs_run_set_begin_range(input->runs, input->merge_limit, range, nranges, end))
		return false;
	gs_sort_begin_output(state, gs_run_set_stats(input->runs)->nrows);
	state->output.partial = true;
	return true;
}

void
gs_sort_set_merge_memory(GsSortState *state, int memory_kb)
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

	if (state->phase == GS_SORT_RUNS)
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
gs_sort_make_run_of_engine(GsSortState *state)
{
	GsSortInput *input = &state->input;

	if (input->nread == 0)
		input->presorted = false;	/* without rows no row lacks a key */
	begin_runs(state);
	gs_run_set_add_engine(input->runs, input->engine);
	state->phase = GS_SORT_RUNS;
}

void
gs_sort_describe_rows(GsSortState *state, GsSharedRows *rows)
{
	const GsSortInput *input = &state->input;

	gs_run_set_describe(input->runs, rows);
	if (gs_run_set_has_keys(input->runs))
	{
		rows->form = gs_key_encoder_fingerprint(input->key);
		rows->first_tied = gs_key_encoder_first_tied(input->key);
	}
	rows->nread = input->nread;
	rows->nnulls = input->nnulls;
}

void
gs_sort_complete_runs(GsSortState *state)
{
	gs_run_set_complete(state->input.runs, merge_limit(&state->input));
}

void
gs_sort_share_runs(GsSortState *state, GsSharedRuns *runs)
{
	gs_run_set_share(state->input.runs, runs);
	gs_sort_describe_rows(state, &runs->rows);
}

/* Do both have keys, and do these mean the same in both processes? */
static bool
has_equal_keys(const GsSortState *state, const GsSharedRows *rows)
{
	const GsSortInput *input = &state->input;

	return gs_run_set_has_keys(input->runs) && rows->layout.ncolumns > 0 &&
		rows->form == gs_key_encoder_fingerprint(input->key);
}

bool
gs_sort_merges_alike(const GsSortState *state, const GsSharedRows *rows)
{
	return has_equal_keys(state, rows) ||
		!(gs_run_set_has_keys(state->input.runs) || rows->layout.ncolumns > 0);
}

/* Makes the order of all rows one that also orders those of another process. */
static void
adopt_order(GsSortState *state, const GsSharedRows *rows)
{
	GsSortInput *input = &state->input;

	if (has_equal_keys(state, rows))
	{
		gs_key_layout_merge(gs_key_encoder_layout(input->key), &rows->layout);
		if (rows->first_tied >= 0)
		{
			gs_key_encoder_tie_from(input->key, rows->first_tied);
			gs_sort_compare_ties(state);
		}
	}
	else if (rows->layout.keys_only)
		report_no_memory();		/* keys only, of the same form in all processes; only without memory this one has rows */
	else
	{
		const GsMergeOrder order = gs_sort_compared_order(state);

		gs_run_set_drop_keys(input->runs, &order);
	}
	input->nread += rows->nread;
	input->nnulls += rows->nnulls;
}

void
gs_sort_adopt_runs(GsSortState *state, const GsSharedRuns *runs, const GsRunPlace *where)
{
	adopt_order(state, &runs->rows);
	gs_run_set_adopt(state->input.runs, runs, where);
}

void
gs_sort_adopt_stream(GsSortState *state, const GsSharedRows *rows, GsRunStream *stream, dsa_area *memory)
{
	adopt_order(state, rows);
	gs_run_set_adopt_stream(state->input.runs, rows, stream, memory);
}
