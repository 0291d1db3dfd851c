/*-------------------------------------------------------------------------
 *
 * sort_space.c
 *	  Space for the next row: in the CPU engine, on a device, or freed by a run.
 *
 * The rows of a serial sort start in the CPU engine.  When the batch is full:
 *
 *	  1. a top-N sort drops the rows that are not needed (sort_topn.c);
 *	  2. if there are now enough rows, they move to a device (sort_device.c);
 *	  3. the engine gives another batch, if its memory limit allows;
 *	  4. if it does not, 1 and 2 are tried again, whatever they gain;
 *	  5. if that does not help, the rows are written as a run, and an empty
 *		 engine gives the batch.
 *
 * If all of this fails, the caller falls back to a tuplesort.
 *
 * After a run was written, the CPU engine begins again in the same memory, or an empty one takes
 * the place of a device:
 *
 *		CPU engine ---> device ---> run		or		CPU engine ---> run
 *			 ^						 |					  ^			 |
 *			 +-----------------------+					  +----------+
 *
 * A device that is full has not taken its last batches.  They are still in the shared buffers, and
 * are copied to the next engine first.  If the device would leave ties (sort_ties.c), the CPU engine
 * takes all its rows, unsorted, and writes them as runs.
 *
 * A producer of a shared job does not write runs when the device is full: the rows that the device
 * took belong to the consumer, and the producer sorts the rest (sort_parallel.c).
 *
 * Each step leaves all rows in place if it fails, or if an ERROR or a cancel
 * interrupts it: then everything is in the sort's memory context.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "guc.h"
#include "sort/sort_estimate.h"
#include "sort/sort_failure.h"
#include "sort/sort_order.h"
#include "sort/sort_space.h"
#include "sort_parts/sort_device.h"
#include "sort_parts/sort_runtime.h"

#include "miscadmin.h"
#include "utils/memutils.h"

/* Rows that arrive in order leave the rest of the memory for keys, in case they are needed. */
#define PRESORTED_SHARE	0.75

/* Space for some more rows than expected costs less than another batch. */
#define EXPECTED_FACTOR	1.125

/* What an engine needs for itself, to hold one row. */
#define LEAST_ENGINE_BYTES	((Size) 32 << 10)

/* ------------------------------------------------------------------ engines */

static Size
engine_limit(const GsSortState *state)
{
	const GsSortInput *input = &state->input;
	Size		limit = input->memory_limit - gs_sort_compared_bytes(state);

	if (input->runs != NULL)
		limit -= gs_run_set_writer_bytes(limit);
	return input->presorted ? limit * PRESORTED_SHARE : limit;
}

GsEngineRequest
gs_sort_make_request(GsSortState *state)
{
	const GsSortInput *input = &state->input;
	GsEngineRequest request = {
		.layout = gs_key_encoder_layout(input->key),
		.memory_limit = engine_limit(state),
			.expected_bytes = input->top.may_prune ? 0 :
			Min(state->spec.expected_rows * gs_sort_row_bytes(state) * EXPECTED_FACTOR, PG_INT32_MAX)
	};

	gs_sort_runtime_init(&request.runtime, state->context);
	if (gs_key_encoder_first_tied(input->key) >= 0)
	{
		request.compare = &gs_sort_compare_tied;
		request.compare_arg = state;
	}
	return request;
}

/* Opens an engine for rows without keys, which it keeps as they arrive; NULL: out of memory. */
static GsEngine *
open_unkeyed(const GsEngineRequest *request)
{
	GsEngineRequest unkeyed = *request;

	unkeyed.layout = palloc(sizeof(GsKeyLayout));
	gs_key_layout_init(unkeyed.layout);
	unkeyed.compare = NULL;
	return gs_engine_cpu_open(&unkeyed);
}

void
gs_sort_open_engine(GsSortState *state)
{
	const GsEngineRequest request = gs_sort_make_request(state);

	state->input.engine = state->input.presorted ? open_unkeyed(&request) : gs_engine_cpu_open(&request);
}

const char *
gs_sort_status_reason(const GsSortInput *input, GsStatus status)
{
	switch (status)
	{
		case GS_STATUS_FULL:
			return input->engine->stats.full != NULL ?
				input->engine->stats.full : "the rows exceed work_mem";
		case GS_STATUS_OOM:
			return "out of memory";
		case GS_STATUS_DISPROVED:
			return gs_key_encoder_mismatch_reason(input->key);
		case GS_STATUS_FAILED:
			return "the engine failed";
		case GS_STATUS_OK:
		case GS_STATUS_REFUSED: /* by an engine that was not opened */
			break;
	}
	elog(ERROR, "unexpected status of a sort engine: %d", (int) status);
}

/* ------------------------------------------------------------------ devices */

/* Moves the rows to a device, if there is one and it has the memory.  Tried once only. */
static bool
move_to_device(GsSortState *state)
{
	GsSortInput *input = &state->input;
	double		nrows = gs_topn_expected_rows(&input->top, state->spec.expected_rows);
	GsEngine   *engine;

	input->may_use_device = false;
	engine = gs_device_move(input->engine, state->context,
							Max(nrows, (double) gs_topn_rows_of_engine(input->engine)),
							gs_sort_row_bytes(state), gs_sort_may_order_ties(state), &input->device_reason);
	if (engine == NULL)
		return false;
	input->engine = engine;
	gs_key_encoder_keep_full(input->key);
	input->top.may_prune &= engine->capabilities->can_prune;
	input->device_reason = NULL;
	return true;
}

/* Is a device faster for the rest?  Not while most of the rows will soon be dropped. */
static bool
device_pays(const GsSortState *state, bool all_read)
{
	const GsSortInput *input = &state->input;

	return input->may_use_device &&
		gs_device_pays(gs_topn_rows_of_engine(input->engine)) &&
		(all_read || !gs_topn_will_prune(&input->top, state->spec.expected_rows));
}

void
gs_sort_consider_device(GsSortState *state, bool all_read)
{
	if (device_pays(state, all_read))
		(void) move_to_device(state);
}

/* ------------------------------------------------------------------- memory */

/*
 * Sorts the rows of the CPU engine, to drop some of them.  False: their order is not certain, and they
 * are not sorted.
 */
static bool
sort_and_verify(GsSortState *state)
{
	if (gs_sort_order_rows(state) != GS_STATUS_OK)
		return false;
	if (gs_sort_verify_keys(state) == GS_STATUS_OK)
		return true;
	gs_engine_cpu_unsort(state->input.engine);
	return false;
}

/* Drops rows that a LIMIT cannot return, if there are many.  True: it did; the batch is not valid any more. */
static bool
drop_rows(GsSortState *state, bool memory_is_short)
{
	GsSortInput *input = &state->input;
	GsTopN	   *top = &input->top;

	if (!gs_topn_should_prune(top, input->engine, memory_is_short))
		return false;
	if (top->compare != NULL)
		top->may_prune = sort_and_verify(state);
	return top->may_prune && gs_topn_prune(top, input->engine, state->context);
}

/* Memory is full: makes space in the engine, or moves to one that has it. */
static bool
make_space(GsSortState *state)
{
	GsSortInput *input = &state->input;

	return drop_rows(state, true) ||
		(input->may_use_device && gpusort_engine != GS_ENGINE_CPU && move_to_device(state));
}

/* ------------------------------------------------------------------------- runs */

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

void
gs_sort_begin_runs(GsSortState *state)
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

GsStatus
gs_sort_write_sorted(GsSortState *state)
{
	GsSortInput *input = &state->input;

	if (input->engine->stats.nrows == 0)
		return GS_STATUS_OK;
	gs_sort_begin_runs(state);
	state->output.nordered += input->engine->stats.compared_rows;
	return gs_run_set_write_run(input->runs, input->engine, input->presorted);
}

GsStatus
gs_sort_append_run(GsSortState *state)
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
	return status == GS_STATUS_OK ? gs_sort_write_sorted(state) : status;
}

/* Like gs_sort_begin_batch(), but does not ask first whether a device is faster. */
static GsStatus reserve(GsSortState *state, Size row_bytes);

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
				reserve(state, row_bytes) != GS_STATUS_OK)
				gs_sort_report_no_memory();
			gs_batch_push_copy(input->batch, from, layout, i, row_bytes);
		}
	}
	return status;
}

/* The memory limit of a CPU engine that allows a row of row_bytes. */
static Size
cpu_engine_limit(const GsSortState *state, Size row_bytes)
{
	return Max(engine_limit(state), row_bytes + LEAST_ENGINE_BYTES);
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
		gs_sort_report_no_memory();
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
	gs_device_close(last);
	return GS_STATUS_OK;
}

GsStatus
gs_sort_write_run(GsSortState *state, Size row_bytes)
{
	const GsSortParticipants *participants = &state->participants;
	GsStatus	status;

	if (participants->end_input != NULL && participants->end_input(state, row_bytes, &status))
		return status;
	/* a run has no ties, and only this process could order them */
	if (gs_sort_leaves_ties(state))
		return gs_sort_replace_engine(state, row_bytes, true);
	status = gs_sort_append_run(state);
	if (status == GS_STATUS_OK)
		return gs_sort_replace_engine(state, row_bytes, false);
	if (status == GS_STATUS_FULL && state->input.engine->capabilities->on_device)
		return gs_sort_replace_engine(state, row_bytes, true);
	return status;
}

static GsStatus
reserve(GsSortState *state, Size row_bytes)
{
	GsSortInput *input = &state->input;
	GsStatus	status = gs_engine_reserve(input->engine, row_bytes, &input->batch);

	if (status == GS_STATUS_FULL && make_space(state))
		status = gs_engine_reserve(input->engine, row_bytes, &input->batch);
	if ((status == GS_STATUS_FULL || status == GS_STATUS_OOM) && gs_sort_may_write_run(state))
	{
		status = gs_sort_write_run(state, row_bytes);
		if (status == GS_STATUS_OK)
			status = gs_engine_reserve(input->engine, row_bytes, &input->batch);
	}
	return status;
}

const char *
gs_sort_begin_batch(GsSortState *state, Size row_bytes)
{
	GsSortInput *input = &state->input;
	GsStatus	status;

	(void) drop_rows(state, false);
	gs_sort_consider_device(state, false);
	status = reserve(state, row_bytes);
	input->space_status = status;
	return status == GS_STATUS_OK ? NULL : gs_sort_status_reason(input, status);
}
