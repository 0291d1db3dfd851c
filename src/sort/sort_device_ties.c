/*-------------------------------------------------------------------------
 *
 * sort_device_ties.c
 *	  Orders the rows that a device leaves tied, as they are returned or written to a run.
 *
 * A device sorts by keys, and calls no comparison function.  If the key ends before the last
 * column (key_encoder.h), it sorts by the columns before.  Rows that are equal in these are a
 * group: they follow each other, in input order, and comparators order them.
 *
 * Few rows are sorted where few rows always are (store_few.c), by the other columns.  A larger
 * group is a sort of its own by all columns, in the CPU engine, which may write runs as any sort.
 * To begin one takes 20 us, so it also gets the groups that follow, until it has as many rows as a
 * batch of read_groups.c.  ORDER BY a bigint and by a function of the user, 10 M rows.  No rows
 * tie: the CPU engine 1.67 s, a device with this 1.10 s.  Groups of 10,000 rows: 3.92 and 3.87 s
 * (medians of 6; H200, Intel Xeon, PostgreSQL 15.20, 2026-11-26).
 *
 * Each row is compared with the next one by the columns that the keys have.  Rows of the engine
 * are valid until the next ones are fetched, so the last row of a window is copied then.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key/key_stored_row.h"
#include "sort/sort.h"
#include "store/store_fetch.h"

#include "miscadmin.h"
#include "utils/memutils.h"

/* The last row of a window is copied, so it is larger than those of a sort without ties. */
#define TIES_WINDOW	64

struct GsSortTies
{
	/* the rows of the engine */
	const void *window[TIES_WINDOW];
	int64		window_start;
	int			window_rows;
	int64		position;		/* of the next row to return, or to add to the group */
	MinimalTuple row;			/* this row, in the window */
	GsOrderCompare *compare;		/* by the columns that the keys have */
	GsRowCopy	last;			/* of the window before */

	/* a group, unless it is only one row */
	int64		nleft;			/* rows that were not returned yet */
	GsFew	   *few;
	int			few_at;			/* the next one of these */
	bool		is_sort;		/* they are in the sort instead, with groups that follow */
	GsSortState sort;
	MemoryContext few_context;	/* of comparisons of few */
	TupleTableSlot *slot;		/* a row that is added */
	MemoryContext context;		/* of all this */
	bool		failed;			/* the engine has: there are no more rows */
};

/* A sort of some groups. */
static GsSortSpec
spec_of_groups(const GsSortState *state)
{
	GsSortSpec	spec = state->spec;

	spec.child = NULL;
	spec.expected_rows = GS_GROUPS_BATCH_ROWS;
	spec.limit = NULL;
	spec.ngrouped = 0;			/* all rows are counted */
	spec.group_limit = 0;
	spec.verify_output = false;
	spec.of_ties = true;
	spec.parent_context = CurrentMemoryContext;
	return spec;
}

/* Moves the window to a row. */
static GsStatus
fetch(GsSortState *state, int64 position)
{
	GsSortTies *ties = state->output.ties;
	size_t		nrows;
	const GsStatus status =
		gs_engine_fetch(state->store.engine, position, TIES_WINDOW, ties->window, &nrows);

	ties->window_start = position;
	ties->window_rows = status == GS_STATUS_OK ? (int) nrows : 0;
	return status;
}

/* Goes to a row of the window. */
static void
go_to(GsSortTies *ties, int64 position)
{
	ties->position = position;
	ties->row = (MinimalTuple) unconstify(void *, ties->window[position - ties->window_start]);
}

/* Prepares to return the rows that the engine has sorted.  OK or FAILED. */
static GsStatus
begin(GsSortState *state)
{
	const GsSortSpec *spec = &state->spec;
	const int	first = gs_key_encoder_facts(state->store.order.key)->first_tied;
	MemoryContext context =
		AllocSetContextCreate(state->store.context, "GpuSort ties", ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	GsSortTies *ties = palloc0(sizeof(GsSortTies));
	const GsSortSpec of_groups = spec_of_groups(state);
	GsStatus	status = GS_STATUS_OK;

	state->output.ties = ties;
	ties->context = context;
	ties->compare = gs_order_compare_create(spec->columns, first, spec->desc);
	ties->last.context = context;
	ties->few = gs_few_create(spec->columns + first, spec->ncolumns - first, spec->desc);
	ties->few_context = AllocSetContextCreate(context, "GpuSort few ties", ALLOCSET_SMALL_SIZES);
	ties->slot = MakeSingleTupleTableSlot(CreateTupleDescCopy(spec->desc), &TTSOpsMinimalTuple);
	gs_sort_init(&ties->sort, &of_groups);
	MemoryContextSwitchTo(old);
	if (state->store.nrows > 0)
		status = fetch(state, 0);
	if (ties->window_rows > 0)
	{
		go_to(ties, 0);
		gs_order_compare_begin(ties->compare, ties->row);
	}
	return status;
}

/*
 * Goes to the next row, and moves the window, if necessary: then *row, the row before, is a copy.
 * False: it differs from that row, or there is none, or the engine failed.
 */
static bool
advance(GsSortState *state, MinimalTuple *row)
{
	GsSortTies *ties = state->output.ties;
	const int64 next = ties->position + 1;

	*row = ties->row;
	if (next == (int64) state->store.nrows)
	{
		ties->position = next;
		return false;
	}
	if (next == ties->window_start + ties->window_rows)
	{
		CHECK_FOR_INTERRUPTS();
		*row = gs_row_copy(&ties->last, *row);
		gs_order_compare_begin(ties->compare, *row);
		if (fetch(state, next) != GS_STATUS_OK)
		{
			ties->failed = true;
			return false;
		}
	}
	go_to(ties, next);
	return gs_order_compare_next(ties->compare, ties->row) == 0;
}

/* ------------------------------------------------------------------- groups */

static void
add_to_sort(GsSortTies *ties)
{
	if (!gs_sort_add(&ties->sort, ties->slot))
		elog(ERROR, "could not sort tied rows");
}

/* Moves the few rows to a sort. */
static void
begin_sort(GsSortTies *ties)
{
	gs_sort_begin(&ties->sort, work_mem);
	gs_sort_disable_device(&ties->sort);
	ties->is_sort = true;
	for (int i = 0; i < gs_few_count(ties->few); i++)
	{
		gs_few_get(ties->few, i, ties->slot);
		add_to_sort(ties);
	}
	gs_few_clear(ties->few);
}

static void
add_to_group(GsSortTies *ties, MinimalTuple row)
{
	gs_slot_store_row(ties->slot, row);
	if (!ties->is_sort)
	{
		if (gs_few_put(ties->few, ties->slot))
			return;
		begin_sort(ties);
		gs_slot_store_row(ties->slot, row);
	}
	add_to_sort(ties);
}

static void
sort_group(GsSortTies *ties)
{
	if (!ties->is_sort)
	{
		MemoryContext old = MemoryContextSwitchTo(ties->few_context);
		const bool	sorted = gs_few_sort(ties->few);

		MemoryContextSwitchTo(old);
		if (sorted)
			return;
		begin_sort(ties);
	}
	if (!gs_sort_perform(&ties->sort))
		elog(ERROR, "could not sort tied rows");
}

static TupleTableSlot *
next_of_group(GsSortState *state)
{
	GsSortTies *ties = state->output.ties;

	ties->nleft--;
	if (ties->is_sort)
		return gs_store_fetch_next(&ties->sort.store, true);
	gs_few_get(ties->few, ties->few_at++, state->spec.slot);
	return state->spec.slot;
}

/* Its last row was returned, and is no longer needed. */
static void
end_group(GsSortState *state)
{
	GsSortTies *ties = state->output.ties;

	ExecClearTuple(state->spec.slot);
	if (ties->is_sort)
		gs_sort_clear(&ties->sort);
	ties->is_sort = false;
	gs_few_clear(ties->few);
	ties->few_at = 0;
	MemoryContextReset(ties->few_context);
}

/* Is a sort worth another group, if there is one? */
static bool
wants_next_group(const GsSortState *state, int64 nrows)
{
	const GsSortTies *ties = state->output.ties;

	return ties->is_sort && nrows < GS_GROUPS_BATCH_ROWS &&
		ties->position < (int64) state->store.nrows && !ties->failed;
}

/* Reads a group that begins with the row, and has more rows. */
static void
read_group(GsSortState *state, MinimalTuple row)
{
	GsSortTies *ties = state->output.ties;
	const int64 first = ties->position - 1;
	bool		tied;

	add_to_group(ties, row);
	do
	{
		tied = advance(state, &row);
		add_to_group(ties, row);
	} while (tied || wants_next_group(state, ties->position - first));
	ties->nleft = ties->position - first;
	gs_store_count_ordered(&state->store, ties->nleft);
	if (!ties->failed)
		sort_group(ties);
}

TupleTableSlot *
gs_sort_device_ties_next(GsSortState *state)
{
	GsSortTies *ties;
	MinimalTuple row;

	if (state->output.ties == NULL && begin(state) != GS_STATUS_OK)
		return NULL;
	ties = state->output.ties;
	if (ties->nleft > 0)
		return next_of_group(state);
	if (ties->few_at > 0 || ties->is_sort)
		end_group(state);
	if (!advance(state, &row))
		return ties->failed ? NULL : gs_slot_store_row(state->spec.slot, row);
	read_group(state, row);
	return ties->failed ? NULL : next_of_group(state);
}

void
gs_sort_device_ties_end(GsSortState *state)
{
	GsSortTies *ties = state->output.ties;

	ExecClearTuple(state->spec.slot);
	if (ties->is_sort)
		gs_sort_clear(&ties->sort);
	MemoryContextDelete(ties->context);
	state->output.ties = NULL;
}

GsStatus
gs_sort_device_ties_write(void *sort)
{
	GsSortState *state = sort;
	GsStore    *store = &state->store;
	GsStatus	status;

	gs_store_begin_output(store, store->engine->stats.nrows);
	status = begin(state);
	if (status != GS_STATUS_OK)
		return status;
	gs_run_set_begin_run(store->runs, store->engine);
	for (uint64 i = 0; i < store->nrows && status == GS_STATUS_OK; i++)
	{
		const TupleTableSlot *slot = gs_sort_device_ties_next(state);

		if (slot != NULL)
			gs_run_set_write_tuple(store->runs, ((const MinimalTupleTableSlot *) slot)->mintuple);
		else
			status = GS_STATUS_FAILED;
	}
	gs_sort_device_ties_end(state);
	gs_store_begin_output(store, 0);
	return status;
}
