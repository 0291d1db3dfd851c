/*-------------------------------------------------------------------------
 *
 * sort_reload.c
 *	  Gives other keys to the rows that an engine has.
 *
 * Which keys are best is known only after some rows:
 *
 *	  - presorted rows have no keys; the first row out of order, or full memory,
 *		makes keys necessary;
 *	  - keys end before a column of variable width, and many rows tie: longer keys
 *		are better;
 *	  - truncated keys, or codes of a collation, are equal for too many rows:
 *		full keys are better;
 *	  - a column has few distinct values: a dictionary is better;
 *	  - a dictionary is full: other keys are needed;
 *	  - keys by which a device has sorted were disproved: the CPU engine can compare.
 *
 * Then the rows in the engine are added again, in input order, to a new engine.
 * This costs a copy of each row, so it is done only while few rows are there;
 * for presorted rows, PostgreSQL's test for sorted input costs as much.  Rows that a
 * device has sorted are added in its order; equal ones have equal keys, and so are in
 * input order, too.
 *
 * The new engine may reach its memory limit and write runs, or fall back to a
 * tuplesort: rows that are added again go the way of all rows.  After ERROR and
 * cancel both engines are freed with the sort's memory context.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sort/sort_fallback.h"
#include "sort/sort_estimate.h"
#include "sort/sort_order.h"
#include "sort/sort_presorted.h"
#include "sort/sort_space.h"
#include "sort/sort_reload.h"
#include "sort_parts/sort_statistics.h"
#include "sort_parts/sort_tied.h"
#include "sort_parts/engine_drain.h"
#include "sort_parts/sort_device.h"

#include "utils/memutils.h"

/* How many rows will be sorted together, as far as the planner and memory tell. */
static double
expected_rows(const GsSortState *state)
{
	const GsSortInput *input = &state->input;
	double		nrows = gs_topn_expected_rows(&input->top, state->spec.expected_rows);

	return gs_sort_device_is_likely(state) ? nrows : Min(nrows, input->memory_limit / gs_sort_row_bytes(state));
}

static GsTiedColumn
tied_column(const GsSortState *state)
{
	const GsSortSpec *spec = &state->spec;
	const GsKeyEncoder *key = state->input.key;

	return (GsTiedColumn) {
		.desc = spec->desc,.attno = spec->columns[gs_key_encoder_first_tied(key)].attno,
		.is_expensive = gs_key_encoder_more_is_expensive(key)
	};
}

bool
gs_sort_few_want_other_keys(const GsSortState *state)
{
	const GsSortSpec *spec = &state->spec;
	const GsSortInput *input = &state->input;
	const int	first_tied = gs_key_encoder_first_tied(input->key);
	GsTiedColumn column;

	if (!gs_key_encoder_can_key_more(input->key))
		return false;
	column = tied_column(state);
	return gs_tied_few_want_keys(&column, input->few, input->compare, first_tied, expected_rows(state),
								 gs_statistics_rows_of_key(spec->child, spec->columns, first_tied));
}

/* Do so many rows tie that the column by which these would be compared should be keyed, too? */
static bool
ties_want_keys(GsSortState *state)
{
	GsSortInput *input = &state->input;
	GsShared   *shared = state->participants.shared;
	const int	first_tied = gs_key_encoder_first_tied(input->key);
	GsTiedColumn column;

	if (input->presorted || !gs_key_encoder_can_key_more(input->key))
		return false;
	if (shared != NULL && gs_shared_nkeyed(shared) > first_tied)
		return true;
	if (input->nread < input->tied_check)
		return false;
	while (input->tied_check <= input->nread)
		input->tied_check *= GS_TIED_CHECK_FACTOR;
	if (input->tied_check > GS_TIED_LAST_CHECK)
		input->tied_check = PG_UINT64_MAX;
	column = tied_column(state);
	if (!gs_tied_rows_want_keys(&column, input->engine, expected_rows(state)))
		return false;
	if (shared != NULL && !gs_shared_is_wanted(shared))
		gs_shared_key_more(shared, first_tied + 1);
	return true;
}

/*
 * Not if some rows are elsewhere or were dropped, nor if memory may not hold two copies.  Shortly before
 * that limit is the last time to decide.
 */
bool
gs_sort_wants_other_keys(GsSortState *state, bool all_read)
{
	GsSortInput *input = &state->input;
	GsSortGroups *groups = state->spec.groups;
	Size		nbytes;
	bool		crowded;

	if (state->phase != GS_SORT_ENGINE || input->engine->capabilities->on_device ||
		input->runs != NULL || input->top.dropped > 0)
		return false;
	if (groups != NULL)
	{
		/* a batch has too few rows to encode them twice; the next one can do better */
		groups->full_keys |= all_read && gs_key_encoder_wants_full_keys(input->key, true);
		if (all_read && ties_want_keys(state))
			groups->nkeyed = gs_key_encoder_first_tied(input->key) + 1;
		return false;
	}
	nbytes = gs_engine_stats(input->engine)->peak_bytes;
	input->counting = gs_key_encoder_is_counting(input->key);
	crowded = nbytes >= input->memory_limit / 8;
	return nbytes < input->memory_limit / 4 &&
		(gs_key_encoder_wants_dictionary(input->key, crowded) ||
		 gs_key_encoder_wants_full_keys(input->key, all_read || crowded) ||
		 ties_want_keys(state));
}

/* Chooses other keys.  Runs that have the old ones are merged by comparisons. */
static void
begin_other_keys(GsSortState *state)
{
	const GsSortSpec *spec = &state->spec;
	GsSortInput *input = &state->input;
	MemoryContext old = MemoryContextSwitchTo(state->context);

	gs_sort_use_keys(state, gs_key_encoder_create_next(spec->columns, spec->ncolumns, spec->desc, input->key));
	input->counting = gs_key_encoder_is_counting(input->key);
	if (input->runs != NULL)
	{
		const GsMergeOrder order = gs_sort_compared_order(state);

		gs_run_set_drop_keys(input->runs, &order);
	}
	MemoryContextSwitchTo(old);
}

/* A row is added again. */
typedef struct RowAdder
{
	GsSortState *state;
	TupleTableSlot *slot;
	GsAddRow	add;
} RowAdder;

static bool
add_again(void *arg, const void *row)
{
	const RowAdder *adder = arg;

	ExecStoreMinimalTuple((MinimalTuple) unconstify(void *, row), adder->slot, false);
	return adder->add(adder->state, adder->slot);
}

/* Moves the rows of the engine to a new one. */
static bool
move_rows(GsSortState *state, GsAddRow add)
{
	GsSortInput *input = &state->input;
	GsEngine   *from = input->engine;
	RowAdder	adder = {.state = state,.add = add};
	GsStatus	status;
	bool		added;

	/* the rows that the LIMIT has kept must not be dropped as equal to the last of them */
	gs_topn_forget_cutoff(&input->top);
	/* a device's rows may be many; they stay in this process now */
	input->may_use_device &= !from->capabilities->on_device;
	input->batch = NULL;
	gs_sort_open_engine(state);
	if (input->engine == NULL)
	{
		input->engine = from;
		return gs_sort_fall_back(state, GS_STATUS_OOM, "out of memory");
	}

	adder.slot = MakeSingleTupleTableSlot(state->spec.desc, &TTSOpsMinimalTuple);
	status = gs_engine_drain(from, add_again, &adder, &added);
	ExecDropSingleTupleTableSlot(adder.slot);
	if (status != GS_STATUS_OK)
	{
		if (input->engine != NULL)	/* a fallback closes it */
			gs_engine_close(input->engine);
		input->engine = from;
		return false;
	}
	gs_device_close(from);
	return added;
}

bool
gs_sort_reload(GsSortState *state, GsAddRow add)
{
	GsSortInput *input = &state->input;

	if (input->presorted)
	{
		if (input->runs != NULL)
			gs_key_encoder_keep_low_cardinality(input->key);	/* a tuplesort would read the run again */
		gs_presorted_end(input);
	}
	else
		begin_other_keys(state);
	return move_rows(state, add);
}

bool
gs_sort_take_back(GsSortState *state, GsAddRow add)
{
	const GsSortSpec *spec = &state->spec;
	GsSortInput *input = &state->input;
	MemoryContext old = MemoryContextSwitchTo(state->context);

	input->device_reason = gs_key_encoder_mismatch_reason(input->key);
	/* the same keys, which have not counted the rows yet */
	gs_sort_use_keys(state, gs_key_encoder_create_same(spec->columns, spec->ncolumns, spec->desc, input->key));
	MemoryContextSwitchTo(old);
	return move_rows(state, add);
}
