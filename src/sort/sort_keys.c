/*-------------------------------------------------------------------------
 *
 * sort_keys.c
 *	  Gives other keys to the rows that an engine has.
 *
 * Which keys are best is known only after some rows:
 *
 *	  - presorted rows need keys at the first row out of order, or if memory is full;
 *	  - keys end before a column of variable width, and many rows tie: longer keys are better;
 *	  - truncated keys, or codes of a collation, are equal for too many rows: full keys are better;
 *	  - a column has few distinct values: a dictionary is better;
 *	  - a dictionary is full: other keys are needed;
 *	  - keys by which a device has sorted were disproved: the CPU engine can compare.
 *
 * Then the rows in the engine are added again, in input order, to a new engine, which may write
 * runs or fall back as any.  This costs a copy of each row, so it is done only while few rows are
 * there; for presorted rows, PostgreSQL's test for sorted input costs as much.  Rows that a device
 * has sorted are added in its order, in which equal ones are in input order, too.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "read/read_tied.h"
#include "sort/sort_state.h"
#include "store/store_device_choice.h"
#include "store/store_fallback.h"
#include "store/store_space.h"

#include "utils/memutils.h"

/* How many rows will be sorted together, as far as the planner and memory tell. */
static double
expected_rows(const GsSortState *state)
{
	const GsStore *store = &state->store;
	double		nrows = gs_topn_expected_rows(&store->top, state->spec.expected_rows);

	return gs_store_device_is_likely(store) ? nrows :
		Min(nrows, store->memory_limit / gs_store_row_bytes(store));
}

static GsTiedColumn
tied_column(const GsSortState *state)
{
	const GsSortSpec *spec = &state->spec;
	const GsKeyEncoder *key = state->store.order.key;

	return (GsTiedColumn) {
		.desc = spec->desc,.attno = spec->columns[gs_key_encoder_facts(key)->first_tied].attno,
		.is_expensive = gs_key_encoder_facts(key)->more_is_expensive
	};
}

bool
gs_sort_few_want_other_keys(const GsSortState *state)
{
	const GsSortSpec *spec = &state->spec;
	const GsStore *store = &state->store;
	const int	first_tied = gs_key_encoder_facts(store->order.key)->first_tied;
	GsTiedColumn column;

	if (!gs_key_encoder_facts(store->order.key)->can_key_more)
		return false;
	column = tied_column(state);
	return gs_tied_few_want_keys(&column, store->few, store->order.compare, first_tied,
								 expected_rows(state),
								 gs_tied_rows_of_key(spec->child, spec->columns, first_tied));
}

/* Do so many rows tie that the column by which these would be compared should be keyed, too? */
static bool
ties_want_keys(GsSortState *state)
{
	GsStore    *store = &state->store;
	GsShared   *shared = state->participants.shared;
	const int	first_tied = gs_key_encoder_facts(store->order.key)->first_tied;
	GsTiedColumn column;

	if (store->order.presorted || !gs_key_encoder_facts(store->order.key)->can_key_more)
		return false;
	if (shared != NULL && gs_shared_nkeyed(shared) > first_tied)
		return true;
	if (store->nread < state->input.tied_check)
		return false;
	while (state->input.tied_check <= store->nread)
		state->input.tied_check *= GS_TIED_CHECK_FACTOR;
	if (state->input.tied_check > GS_TIED_LAST_CHECK)
		state->input.tied_check = PG_UINT64_MAX;
	column = tied_column(state);
	if (!gs_tied_rows_want_keys(&column, store->engine, expected_rows(state)))
		return false;
	if (shared != NULL && !gs_shared_is_wanted(shared))
		gs_shared_key_more(shared, first_tied + 1);
	return true;
}

/*
 * Not if some rows are elsewhere or were dropped, nor if memory may not hold two copies.  Shortly
 * before that limit is the last time to decide.
 */
bool
gs_sort_wants_other_keys(GsSortState *state, bool all_read)
{
	GsStore    *store = &state->store;
	GsSortGroups *groups = state->spec.groups;
	Size		nbytes;
	bool		crowded;

	if (store->phase != GS_STORE_ENGINE || store->engine->on_device ||
		store->runs != NULL || store->top.dropped > 0)
		return false;
	if (groups != NULL)
	{
		/* a batch has too few rows to encode them twice; the next one can do better */
		groups->full_keys |= all_read && gs_key_encoder_wants_full_keys(store->order.key, true);
		if (all_read && ties_want_keys(state))
			groups->nkeyed = gs_key_encoder_facts(store->order.key)->first_tied + 1;
		return false;
	}
	nbytes = gs_engine_stats(store->engine)->peak_bytes;
	state->input.counting = gs_key_encoder_is_counting(store->order.key);
	crowded = nbytes >= store->memory_limit / 8;
	return nbytes < store->memory_limit / 4 &&
		(gs_key_encoder_wants_dictionary(store->order.key, crowded) ||
		 gs_key_encoder_wants_full_keys(store->order.key, all_read || crowded) ||
		 ties_want_keys(state));
}

/* Chooses other keys.  Runs that have the old ones are merged by comparisons. */
static void
begin_other_keys(GsSortState *state)
{
	const GsSortSpec *spec = &state->spec;
	GsStore    *store = &state->store;
	MemoryContext old = MemoryContextSwitchTo(store->context);

	gs_store_use_keys(store, gs_key_encoder_create_next(spec->columns, spec->ncolumns,
														spec->desc, store->order.key));
	state->input.counting = gs_key_encoder_is_counting(store->order.key);
	if (store->runs != NULL)
	{
		const GsMergeOrder order = gs_order_compared(&store->order);

		gs_run_set_drop_keys(store->runs, &order);
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

/* Adds the rows of the engine to a new one. */
static bool
move_rows(GsSortState *state, GsAddRow add)
{
	RowAdder	adder = {
		.state = state,.add = add,
		.slot = MakeSingleTupleTableSlot(state->spec.desc, &TTSOpsMinimalTuple)
	};
	const bool	moved = gs_store_renew_engine(&state->store, add_again, &adder);

	ExecDropSingleTupleTableSlot(adder.slot);
	return moved;
}

bool
gs_sort_reload(GsSortState *state, GsAddRow add)
{
	GsStore    *store = &state->store;

	if (store->order.presorted)
	{
		if (store->runs != NULL)
			/* a tuplesort would read the run again */
			gs_key_encoder_keep_low_cardinality(store->order.key);
		gs_order_end_presorted(&store->order);
	}
	else
		begin_other_keys(state);
	return move_rows(state, add);
}

bool
gs_sort_take_back(GsSortState *state, GsAddRow add)
{
	const GsSortSpec *spec = &state->spec;
	GsStore    *store = &state->store;
	MemoryContext old = MemoryContextSwitchTo(store->context);

	gs_store_forbid_device(store, gs_key_encoder_facts(store->order.key)->mismatch);
	/* the same keys, which have not counted the rows yet */
	gs_store_use_keys(store, gs_key_encoder_create_same(spec->columns, spec->ncolumns,
														spec->desc, store->order.key));
	MemoryContextSwitchTo(old);
	return move_rows(state, add);
}
