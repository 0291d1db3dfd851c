/*-------------------------------------------------------------------------
 *
 * sort_order.c
 *	  What decides the order of a sort's rows: keys, comparisons, or both.
 *
 *	  keys				decide					rows are compared
 *	  full				everything				never
 *	  truncated			all but ties			if their keys are equal
 *	  approximate		nothing for certain		neighbors, after the sort, or by the caller
 *	  none (presorted)	nothing					as they arrive
 *
 * An engine sorts by keys, and by gs_sort_compare_tied() where these are equal.
 * Runs are merged in the same way; by approximate keys a block ahead, whose order is
 * verified (run/run_block.h), unless the caller verifies it.  If some run has no keys,
 * only comparisons decide.
 *
 * Comparators may raise errors, and check for interrupts as they do in a
 * tuplesort.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "engine/word_sort.h"
#include "sort/sort_estimate.h"
#include "sort/sort_order.h"
#include "sort_parts/sort_guess.h"

#include "utils/memutils.h"

static uint64
locate_first(void *arg, const void *row)
{
	GsSortState *state = arg;

	return gs_sort_compare_locate(state->input.compare, row, 0);
}

static uint64
locate_tied(void *arg, const void *row)
{
	GsSortState *state = arg;

	return gs_sort_compare_locate(state->input.compare, row,
								  gs_key_encoder_first_tied(state->input.key));
}

static int
compare_values(void *arg, uint64 a, uint64 b)
{
	GsSortState *state = arg;

	return gs_sort_compare_values(state->input.compare, a, b);
}

static bool
are_addresses(void *arg)
{
	GsSortState *state = arg;

	return gs_sort_compare_has_addresses(state->input.compare);
}

static uint64
guess_tied(void *arg, const void *row, int guess)
{
	GsSortState *state = arg;

	return gs_sort_compare_guess(state->input.compare, row,
								 gs_key_encoder_first_tied(state->input.key), guess);
}

static int
compare_rows(void *arg, GsLocatedRow a, GsLocatedRow b)
{
	GsSortState *state = arg;

	return gs_sort_compare_located(state->input.compare, a, b);
}

static uint32
hash_tied(void *arg, const void *row)
{
	GsSortState *state = arg;

	return gs_sort_compare_hash(state->input.compare, row, gs_key_encoder_first_tied(state->input.key),
								state->spec.ncolumns);
}

static bool
are_same_tied(void *arg, const void *a, const void *b)
{
	GsSortState *state = arg;

	return gs_sort_compare_are_same(state->input.compare, a, b, gs_key_encoder_first_tied(state->input.key));
}

const GsRowCompare gs_sort_compare_tied =
{
	locate_tied, compare_values, are_addresses, compare_rows, hash_tied, are_same_tied, GS_GUESSES, guess_tied
};

const GsRowCompare gs_sort_compare_all =
{
	.locate = locate_first,.compare_values = compare_values,.are_addresses = are_addresses,.compare_rows = compare_rows
};

static void
create_comparator(GsSortState *state)
{
	const GsSortSpec *spec = &state->spec;
	MemoryContext old;

	if (state->input.compare != NULL)
		return;
	old = MemoryContextSwitchTo(state->context);
	state->input.compare = gs_sort_compare_create(spec->columns, spec->ncolumns, spec->desc);
	MemoryContextSwitchTo(old);
}

void
gs_sort_use_keys(GsSortState *state, GsKeyEncoder *key)
{
	GsSortInput *input = &state->input;

	input->key = key;
	input->direct_key = gs_key_encoder_is_direct(key);
	input->keys_only = gs_key_encoder_layout(key)->keys_only;
	if (!gs_key_encoder_decides(key))
		create_comparator(state);
	/* no row is dropped by them */
	if (gs_key_encoder_is_approximate(key))
		gs_topn_compare_rows(&input->top, &gs_sort_compare_all, state);
}

void
gs_sort_compare_ties(GsSortState *state)
{
	GsSortInput *input = &state->input;

	create_comparator(state);
	if (input->engine != NULL)
	{
		input->engine->request.compare = &gs_sort_compare_tied;
		input->engine->request.compare_arg = state;
	}
	if (input->runs != NULL)
		gs_run_set_compare_ties(input->runs, &gs_sort_compare_tied, state);
}

Size
gs_sort_compared_bytes(const GsSortState *state)
{
	const GsSortInput *input = &state->input;
	const int	first = gs_key_encoder_first_tied(input->key);

	if (first < 0 || input->compare == NULL || gs_key_encoder_can_key_more(input->key))
		return 0;
	return input->memory_limit *
		gs_sort_compare_copies_share(input->compare, first, gs_sort_row_bytes(state) + gs_word_sort_row_bytes(true));
}

GsStatus
gs_sort_order_rows(GsSortState *state)
{
	const GsSortInput *input = &state->input;
	GsEngine   *engine = input->engine;
	const Size	nbytes = engine->request.compare != NULL ? gs_sort_compared_bytes(state) : 0;
	MemoryContext old = CurrentMemoryContext;
	GsStatus	status;

	if (input->compare != NULL)
		MemoryContextSwitchTo(gs_sort_compare_context(input->compare));
	if (nbytes > 0)
		(void) gs_sort_compare_keep(input->compare, nbytes);
	status = gs_engine_sort(engine);
	if (nbytes > 0)
		engine->stats.peak_bytes += gs_sort_compare_keep(input->compare, 0);
	MemoryContextSwitchTo(old);
	return status;
}

GsMergeOrder
gs_sort_compared_order(GsSortState *state)
{
	static const GsKeyLayout no_keys = {0};

	create_comparator(state);
	return (GsMergeOrder) {
		.layout = &no_keys,.compare = &gs_sort_compare_all,.compare_arg = state
	};
}

/*
 * A tuplesort returns rows without keys, so runs of its rows have none; and keys that leave all rows tied are not worth
 * being made again.
 */
GsMergeOrder
gs_sort_merge_order(GsSortState *state)
{
	const GsSortInput *input = &state->input;
	const GsRowCompare *verify;

	if (input->presorted || state->phase == GS_SORT_FALLBACK ||
		gs_key_columns_are_compared(state->spec.columns, state->spec.ncolumns))
		return gs_sort_compared_order(state);
	if (!gs_key_encoder_decides(input->key))
		create_comparator(state);
	verify = gs_key_encoder_is_approximate(input->key) ? &gs_sort_compare_all : NULL;
	return (GsMergeOrder) {
		.layout = gs_key_encoder_layout(input->key),
			.keys_decide = true,
			.compare = gs_key_encoder_first_tied(input->key) < 0 ? NULL :
			verify != NULL ? verify : &gs_sort_compare_tied,
			.verify = state->spec.caller_verifies ? NULL : verify,
			.instead = verify,
			.compare_arg = state
	};
}

/* --------------------------------------------------------------------- ties */

bool
gs_sort_may_order_ties(const GsSortState *state)
{
	GsKeyEncoder *key = state->input.key;
	const int	first_tied = gs_key_encoder_first_tied(key);

	return gs_sort_returns_in_turn(state) && first_tied > 0 && !gs_key_encoder_is_approximate(key) &&
		first_tied == gs_key_encoder_layout(key)->ncolumns;
}

bool
gs_sort_leaves_ties(const GsSortState *state)
{
	const GsEngine *engine = state->input.engine;

	return engine->capabilities->on_device && gs_key_encoder_first_tied(state->input.key) >= 0 &&
		!engine->stats.all_differ;
}

/* ------------------------------------------------------------- verification */

bool
gs_sort_verifies_keys(const GsSortState *state)
{
	return gs_key_encoder_is_approximate(state->input.key) && !state->spec.caller_verifies;
}

/* Is it still unknown whether the engine's order is right? */
static bool
needs_verification(const GsSortState *state)
{
	const GsSortInput *input = &state->input;

	return gs_sort_verifies_keys(state) &&
		!(input->engine->stats.all_compared && gs_key_encoder_first_tied(input->key) == 0);
}

/* What was found as presorted rows arrived: each was compared with the one before. */
static GsKeyVerification
verification_of_presorted(const GsSortInput *input)
{
	const uint64 nrows = input->engine->stats.nrows;

	return (GsKeyVerification) {
		.succeeded = true,
			.ncomparisons = nrows - (input->runs == NULL && nrows > 0 ? 1 : 0)
	};
}

GsStatus
gs_sort_verify_keys(GsSortState *state)
{
	GsSortInput *input = &state->input;
	GsKeyVerification *total = &input->verification;
	GsKeyVerification found = {.succeeded = true};
	MemoryContext old = MemoryContextSwitchTo(state->context);
	GsStatus	status = GS_STATUS_OK;

	if (input->presorted)
		found = verification_of_presorted(input);
	else if (needs_verification(state))
		status = gs_verify_keys(input->engine, input->key, input->compare, &found);
	if (!found.succeeded && input->engine->capabilities->can_compare &&
		gs_engine_cpu_resort(input->engine, &gs_sort_compare_all, state) == GS_STATUS_OK)
	{
		found.succeeded = true;
		total->ncorrected++;
		gs_stats_add(GS_STAT_REPAIRS, 1);
	}
	MemoryContextSwitchTo(old);
	total->ncomparisons += found.ncomparisons;
	total->us += found.us;
	return status == GS_STATUS_OK && !found.succeeded ? GS_STATUS_DISPROVED : status;
}
