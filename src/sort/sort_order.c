/*-------------------------------------------------------------------------
 *
 * sort_order.c
 *	  What decides the order of a sort's rows: keys, comparisons, or both.
 *
 *	  keys				decide					rows are compared
 *	  full				everything				never
 *	  truncated			all but ties			if their keys are equal
 *	  approximate		nothing for certain		neighbors, after the sort
 *	  none (presorted)	nothing					as they arrive
 *
 * An engine sorts by keys, and by gs_sort_compare_tied() where these are equal.
 * Runs are merged in the same way, unless their keys are approximate or some
 * run has none: then only comparisons decide.
 *
 * Comparators may raise errors, and check for interrupts as they do in a
 * tuplesort.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sort/sort_order.h"

#include "utils/memutils.h"

/* By the columns from `first` on. */
static int
compare_from(GsSortState *state, const void *a, const void *b, int first)
{
	return gs_sort_compare_rows(state->input.compare, (MinimalTuple) unconstify(void *, a),
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

	return compare_from(state, a, b, gs_key_encoder_first_tied(state->input.key));
}

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
gs_sort_compare_ties(GsSortState *state)
{
	GsSortInput *input = &state->input;

	create_comparator(state);
	if (input->engine != NULL)
	{
		input->engine->job.compare = gs_sort_compare_tied;
		input->engine->job.compare_arg = state;
	}
	if (input->runs != NULL)
		gs_run_set_compare_ties(input->runs, gs_sort_compare_tied, state);
}

GsMergeOrder
gs_sort_compared_order(GsSortState *state)
{
	static const GsKeyLayout no_keys = {0};

	create_comparator(state);
	return (GsMergeOrder) {
		.layout = &no_keys,.compare = compare_rows,.compare_arg = state
	};
}

/* A tuplesort returns rows without keys, so runs of its rows have none. */
GsMergeOrder
gs_sort_merge_order(GsSortState *state)
{
	const GsSortInput *input = &state->input;

	if (input->presorted || state->phase == GS_SORT_FALLBACK ||
		gs_key_encoder_is_approximate(input->key))
		return gs_sort_compared_order(state);
	return (GsMergeOrder) {
		.layout = gs_key_encoder_layout(input->key),
		.keys_decide = true,
		.compare = gs_key_encoder_first_tied(input->key) >= 0 ? gs_sort_compare_tied : NULL,
		.compare_arg = state
	};
}

/* ------------------------------------------------------------- verification */

/* Is it still unknown whether the engine's order is right? */
static bool
needs_verification(const GsSortInput *input)
{
	return gs_key_encoder_is_approximate(input->key) &&
		!(input->engine->stats.all_compared && gs_key_encoder_first_tied(input->key) == 0);
}

/* What was found as presorted rows arrived: each was compared with the one before. */
static GsSortVerification
verification_of_presorted(const GsSortInput *input)
{
	const uint64 nrows = input->engine->stats.nrows;

	return (GsSortVerification) {
		.succeeded = true,
		.ncomparisons = nrows - (input->runs == NULL && nrows > 0 ? 1 : 0),
		.compared = gs_key_encoder_is_approximate(input->key),
		.checksum = input->verification.checksum	/* of all rows so far */
	};
}

GsStatus
gs_sort_verify_order(GsSortState *state)
{
	GsSortInput *input = &state->input;
	GsSortVerification *total = &input->verification;
	GsSortVerification found = {.succeeded = true};
	MemoryContext old = MemoryContextSwitchTo(state->context);
	GsStatus	status = GS_STATUS_OK;

	if (input->presorted)
		found = verification_of_presorted(input);
	else if (needs_verification(input))
		status = gs_sort_verify_rows(input->engine, input->key, input->compare, &found);
	if (!found.succeeded && input->engine->capabilities->can_compare &&
		gs_engine_cpu_resort(input->engine, compare_rows, state) == GS_STATUS_OK)
	{
		found.succeeded = true;
		total->ncorrected++;
	}
	MemoryContextSwitchTo(old);
	total->ncomparisons += found.ncomparisons;
	total->us += found.us;
	total->compared = found.compared;
	total->checksum = found.checksum;
	return status == GS_STATUS_OK && !found.succeeded ? GS_STATUS_DISPROVED : status;
}
