/*-------------------------------------------------------------------------
 *
 * sort_ranges.c
 *	  A GpuSort in a parallel plan: each participant returns ranges of the rows of all.
 *
 * The nodes above, such as a WindowAgg, handle groups of rows with equal leading columns one by
 * one.  So it does not matter which participant returns a group, if it returns all of it, in order.
 * share_ranges.c has the phases; README.md, "Ranges", has the reasons.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "order/order.h"
#include "sort/sort.h"
#include "sort/sort_group_rows.h"
#include "sort/sort_parallel.h"
#include "sort/sort_ranges.h"
#include "store/store_fetch.h"
#include "store/store_merge.h"

#include "access/parallel.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* All rows of the range that was taken were returned. */
static void
end_range(GsSortState *state)
{
	GsStore    *store = &state->store;
	const uint64 end = store->phase == GS_STORE_RUNS ? store->position + 1 : store->nrows;

	gs_share_ranges_end(state->participants.ranges, end - state->participants.range_start,
						gs_store_nneeded(store));
}

/* Takes the next range.  False: there is none. */
static bool
take_range(GsSortState *state)
{
	GsShareRanges *ranges = state->participants.ranges;
	GsStore    *store = &state->store;
	const int	range = gs_share_ranges_next(ranges);

	if (range < 0)
		return false;
	if (gs_store_begin_groups(store, range, gs_share_ranges_count(ranges)))
	{
		state->participants.range_start = store->position + 1;
		return true;
	}
	/* they cannot be divided: the first range is all rows, and the others are empty */
	state->participants.range_start = 0;
	if (range == 0)
		gs_store_begin_merge(store);
	else
		gs_share_ranges_end(ranges, 0, gs_store_nneeded(store));
	return range == 0 || take_range(state);
}

/* Does the participant have the rows of all that it and others have sent to a device? */
static bool
is_in_job(const GsSortState *state)
{
	return state->participants.job.token != 0 && !IsParallelWorker() &&
		gs_store_is_on_device(&state->store) && state->store.runs == NULL &&
		!state->output.leaves_ties;
}

/* Reads the rows of all from the leader's job.  False: it cannot. */
static bool
read_job(GsSortState *state)
{
	if (!IsParallelWorker())
		return true;
	if (!gs_sort_parallel_open_reader(state))
		return false;
	gs_sort_parallel_begin_reading(state, gs_share_ranges_in_job(state->participants.ranges));
	return true;
}

void
gs_sort_ranges_share(GsSortState *state)
{
	GsSortParticipants *participants = &state->participants;
	GsStore    *store = &state->store;

	if (participants->reads)
		gs_share_ranges_sorted(participants->ranges, store->nread, is_in_job(state));
	participants->in_ranges = !gs_share_ranges_alone(participants->ranges);
	if (!participants->in_ranges)
	{
		if (store->phase == GS_STORE_RUNS)
			gs_store_begin_merge(store);
		return;
	}
	if (gs_share_ranges_in_job(participants->ranges) > 0)
		participants->in_ranges = read_job(state) && take_range(state);
	else
	{
		const bool	has_rows = store->nread > 0;

		if (!gs_share_ranges_exchange(participants->ranges, ParallelWorkerNumber + 1, store))
			gs_store_report_failure(store);
		/* without rows its keys may differ from those of the others, and so the bounds */
		participants->in_ranges = has_rows && take_range(state);
	}
	if (!participants->in_ranges)
		gs_store_begin_output(store, 0);
}

/* The next row of a range; NULL: there is none. */
static const void *
next_in_range(GsStore *store)
{
	MinimalTuple row;

	if (store->phase == GS_STORE_RUNS)
		return gs_store_next_merged(store, &row) == 0 ? NULL : row;
	return gs_store_step(store, true) ? gs_store_row_at(store, store->position, true) : NULL;
}

/* The next row of ranges; after the last one of a range, that of the next range. */
static const void *
next_of_ranges(GsSortState *state)
{
	const void *row;

	while ((row = next_in_range(&state->store)) == NULL)
	{
		end_range(state);
		if (!take_range(state))
			break;
	}
	return row;
}

/* The next row, with ranges or without. */
static const void *
next_row(GsSortState *state)
{
	TupleTableSlot *slot;

	if (state->participants.in_ranges)
		return next_of_ranges(state);
	slot = gs_sort_next(state, true);
	return TupIsNull(slot) ? NULL : ((MinimalTupleTableSlot *) slot)->mintuple;
}

/* Are there no ranges, as the plan does not run in parallel or one participant has read all? */
static bool
returns_all(const GsSortParticipants *participants)
{
	return participants->ranges == NULL || gs_share_ranges_alone(participants->ranges);
}

/* The next row, whose order and number are verified (gpusort.verify). */
static const void *
next_verified(GsSortState *state)
{
	GsOutputVerification *verification = state->output.verification;
	const void *row = next_row(state);

	/* a participant takes its ranges in their order */
	if (row != NULL)
		gs_verify_output_row(verification,
							 gs_store_row_to_slot(&state->store, row, state->spec.slot));
	else if (returns_all(&state->participants))
		gs_verify_output_end(verification, gs_store_nneeded(&state->store));
	return row;
}

TupleTableSlot *
gs_sort_ranges_next(GsSortState *state)
{
	const void *row = gs_sort_group_rows_next(state, state->output.verification != NULL ?
											  next_verified : next_row);

	if (row != NULL)
		return gs_store_row_to_slot(&state->store, row, state->spec.slot);
	if (state->participants.in_ranges)
	{
		state->participants.in_ranges = false;
		gs_store_begin_output(&state->store, 0);
	}
	return ExecClearTuple(state->spec.slot);
}
