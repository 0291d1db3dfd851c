/*-------------------------------------------------------------------------
 *
 * sort_output.c
 *	  Returns the rows of a sort in order.
 *
 * Those that a device has left tied are ordered on the way.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sort/sort.h"
#include "sort/sort_ties.h"
#include "store/store_failure.h"

pg_noinline TupleTableSlot *
gs_sort_find_next(GsSortState *state, bool forward)
{
	TupleTableSlot *slot;

	if (!state->output.leaves_ties)
		return gs_store_fetch_next(&state->store, forward);
	if (!gs_store_step(&state->store, forward))
		return ExecClearTuple(state->spec.slot);
	slot = gs_sort_ties_next(state);
	if (slot == NULL)
		gs_store_report_failure(&state->store);
	return slot;
}

TupleTableSlot *
gs_sort_next_verified(GsSortState *state, bool forward)
{
	GsOutputVerification *verification = state->output.verification;
	TupleTableSlot *slot = gs_sort_next(state, forward);

	if (!forward)
		gs_verify_output_restart(verification, false);
	else if (!TupIsNull(slot))
		gs_verify_output_row(verification, slot);
	else if (state->store.top.bound == GS_UNBOUNDED)
		gs_verify_output_end(verification, state->spec.groups != NULL ? state->spec.groups->nrows :
							 state->store.nread);
	return slot;
}

/* --------------------------------------------------------------- stored rows */

/* Rows of the window after the one just returned, up to nwanted. */
static int
take_from_window(GsStore *store, int nwanted, MinimalTuple *rows)
{
	int64		next = store->position + 1 - store->window_start;
	int			nrows = 0;

	while (nrows < nwanted && (uint64) next < (uint64) store->window_rows)
		rows[nrows++] = (MinimalTuple) unconstify(void *, store->window[next++]);
	store->position += nrows;
	return nrows;
}

int
gs_sort_next_rows(GsSortState *state, int nwanted, MinimalTuple *rows)
{
	const bool	verify = state->spec.verify_output && !state->store.partial;
	TupleTableSlot *slot;

	if (state->store.phase == GS_SORT_RUNS && !verify)
	{
		/* a slot for each row would cost a tenth of the merge */
		rows[0] = (MinimalTuple) unconstify(void *, gs_run_set_next(state->store.runs));
		if (rows[0] == NULL)
			return 0;
		state->store.position++;
		return 1;
	}
	slot = verify ? gs_sort_next_verified(state, true) : gs_sort_next(state, true);
	if (TupIsNull(slot))
		return 0;
	rows[0] = ((MinimalTupleTableSlot *) slot)->mintuple;
	return verify ? 1 : 1 + take_from_window(&state->store, nwanted - 1, rows + 1);
}

/* The position at which a range begins. */
static int64
range_start(const GsStore *store, int range, int nranges)
{
	return store->nrows / nranges * range + Min((uint64) range, store->nrows % nranges);
}

void
gs_sort_begin_range_of_engine(GsSortState *state, int range, int nranges, MinimalTuple *end)
{
	GsStore    *store = &state->store;
	const int64 start = range_start(store, range, nranges);
	const int64 next = range_start(store, range + 1, nranges);

	*end = NULL;
	if (next < (int64) store->nrows)
	{
		const MinimalTupleData *row = gs_store_row_at(store, next, true);

		*end = memcpy(palloc(row->t_len), row, row->t_len);
	}
	store->position = start - 1;
	store->window_rows = 0;
	store->partial = true;
}

/* ---------------------------------------------------------------- positions */

bool
gs_sort_can_rewind(const GsSortState *state)
{
	const GsTopN *top = &state->store.top;
	int64		bound;

	if (!state->spec.random_access)
		return false;
	bound = gs_sort_limit_compute(state->spec.limit, state->spec.econtext);
	if (state->store.phase == GS_SORT_FEW || state->store.phase == GS_SORT_ENGINE)
		return bound <= gs_topn_nrows(top);
	return bound <= top->bound;
}

void
gs_sort_rewind(GsSortState *state)
{
	ExecClearTuple(state->spec.slot);
	if (state->store.phase == GS_SORT_FALLBACK)
		tuplesort_rescan(state->store.fallback.state);
	if (state->output.verification != NULL)
		gs_verify_output_restart(state->output.verification, true);
	state->store.position = -1;
}

void
gs_sort_mark(GsSortState *state)
{
	if (state->store.phase == GS_SORT_FALLBACK)
		tuplesort_markpos(state->store.fallback.state);
	else
		state->store.mark = state->store.position;
}

void
gs_sort_restore(GsSortState *state)
{
	if (state->store.phase == GS_SORT_FALLBACK)
		tuplesort_restorepos(state->store.fallback.state);
	else
		state->store.position = state->store.mark;
	if (state->output.verification != NULL)
		gs_verify_output_restart(state->output.verification, false);
}

/* --------------------------------------------------------------------- reset */

void
gs_sort_reset(GsSortState *state)
{
	if (state->output.ties != NULL)
		gs_sort_ties_end(state);	/* may own files */
	gs_sort_clear(state);
}
