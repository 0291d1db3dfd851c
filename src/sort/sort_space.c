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
 *		 engine gives the batch (sort_runs.c).
 *
 * If all of this fails, the caller falls back to a tuplesort.
 *
 * Each step leaves all rows in place if it fails, or if an ERROR or a cancel
 * interrupts it: then everything is in the sort's memory context.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "guc.h"
#include "sort/sort_runs.h"
#include "sort/sort_order.h"
#include "sort/sort_space.h"
#include "sort/sort_presorted.h"
#include "sort/sort_ties.h"
#include "sort_parts/sort_device.h"
#include "sort_parts/sort_runtime.h"

#include "access/htup_details.h"

/* Rows that arrive in order leave the rest of the memory for keys, in case they are needed. */
#define PRESORTED_SHARE	0.75

/* Space for some more rows than expected costs less than another batch. */
#define EXPECTED_FACTOR	1.125

/* ------------------------------------------------------------------ engines */

Size
gs_sort_engine_limit(const GsSortState *state)
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
		.memory_limit = gs_sort_engine_limit(state),
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

void
gs_sort_open_engine(GsSortState *state)
{
	const GsEngineRequest request = gs_sort_make_request(state);

	state->input.engine = state->input.presorted ?
		gs_presorted_open(&request) : gs_engine_cpu_open(&request);
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

double
gs_sort_row_bytes(const GsSortState *state)
{
	const GsKeyLayout *layout = gs_key_encoder_layout(state->input.key);
	double		row_bytes = gs_record_bytes(layout);

	if (!layout->keys_only)
		row_bytes += MAXALIGN(SizeofMinimalTupleHeader) + MAXALIGN(state->spec.expected_width);
	return row_bytes;
}

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

bool
gs_sort_device_is_likely(const GsSortState *state)
{
	const GsSortSpec *spec = &state->spec;

	return state->input.may_use_device && gs_device_is_likely(spec->expected_rows) &&
		(gs_sort_returns_in_turn(state) ? !gs_key_columns_are_compared(spec->columns, spec->ncolumns) :
		 !gs_key_columns_leave_ties(spec->columns, spec->ncolumns));
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

GsStatus
gs_sort_reserve(GsSortState *state, Size row_bytes)
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
	status = gs_sort_reserve(state, row_bytes);
	input->space_status = status;
	return status == GS_STATUS_OK ? NULL : gs_sort_status_reason(input, status);
}
