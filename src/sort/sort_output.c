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

pg_noinline TupleTableSlot *
gs_sort_find_next(GsSortState *state, bool forward)
{
	TupleTableSlot *slot;

	if (!state->output.leaves_ties)
		return gs_store_fetch_next(&state->store, forward);
	if (!gs_store_step(&state->store, forward))
		return ExecClearTuple(state->spec.slot);
	slot = gs_sort_device_ties_next(state);
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

int
gs_sort_next_rows(GsSortState *state, int nwanted, MinimalTuple *rows)
{
	const bool	verify = state->spec.verify_output && !state->store.partial;
	TupleTableSlot *slot;

	if (state->store.phase == GS_STORE_RUNS && !verify)
		return gs_store_next_merged(&state->store, rows);
	slot = verify ? gs_sort_next_verified(state, true) : gs_sort_next(state, true);
	if (TupIsNull(slot))
		return 0;
	rows[0] = ((MinimalTupleTableSlot *) slot)->mintuple;
	return verify ? 1 : 1 + gs_store_take_window(&state->store, nwanted - 1, rows + 1);
}

/* ---------------------------------------------------------------- positions */

bool
gs_sort_can_rewind(const GsSortState *state)
{
	const GsTopN *top = &state->store.top;
	int64		bound;

	if (!state->spec.random_access)
		return false;
	bound = gs_read_limit_compute(state->spec.limit, state->spec.econtext);
	if (state->store.phase == GS_STORE_FEW || state->store.phase == GS_STORE_ENGINE)
		return bound <= gs_topn_nrows(top);
	return bound <= top->bound;
}

void
gs_sort_rewind(GsSortState *state)
{
	gs_store_rewind(&state->store);
	if (state->output.verification != NULL)
		gs_verify_output_restart(state->output.verification, true);
}

void
gs_sort_restore(GsSortState *state)
{
	gs_store_restore(&state->store);
	if (state->output.verification != NULL)
		gs_verify_output_restart(state->output.verification, false);
}

/* --------------------------------------------------------------------- reset */

void
gs_sort_reset(GsSortState *state)
{
	if (state->output.ties != NULL)
		gs_sort_device_ties_end(state); /* may own files */
	gs_sort_clear(state);
}
