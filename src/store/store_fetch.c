/*-------------------------------------------------------------------------
 *
 * store_fetch.c
 *	  Finds the rows of a sort by their positions.
 *
 * Where the rows are decides how they are found (GsStorePhase):
 *
 *	  FEW		by position
 *	  ENGINE	by position, through a window: rows of the engine are fetched a
 *				few at a time, so that it can prefetch the following ones
 *	  RUNS		forward only, as they are merged, each row once
 *	  FALLBACK	as the tuplesort returns them; it also keeps position and mark
 *
 * A sort of keys only has stored no NULLs.  They come before or after the values.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "store/store_fallback.h"
#include "store/store_fetch.h"

#include "miscadmin.h"

/* ------------------------------------------------------------------- window */

void
gs_store_begin_output(GsStore *store, uint64 nrows)
{
	store->nrows = nrows;
	store->position = -1;
	store->window_rows = 0;
}

GsStatus
gs_store_fill_window(GsStore *store, int64 position)
{
	int64		end = gs_topn_nrows(&store->top);
	size_t		fetched;
	GsStatus	status = gs_engine_fetch(store->engine, position, GS_STORE_WINDOW,
										 store->window, &fetched);

	if (store->partial)			/* those after a range are not returned */
		end = Min(end, (int64) store->nrows);
	store->window_start = position;
	store->window_rows = status != GS_STATUS_OK ? 0 : (int) Min((int64) fetched, end - position);
	return status;
}

/* Moves the window to a position; backward, to what comes before it, too. */
static pg_noinline void
move_window(GsStore *store, int64 position, bool forward)
{
	int64		start = forward ? position : Max(position - (GS_STORE_WINDOW - 1), 0);

	do
	{
		if (gs_store_fill_window(store, start) != GS_STATUS_OK)
			gs_store_report_failure(store);
		start += store->window_rows;
	} while (position >= start);
}

/* -------------------------------------------------------------------- slots */

/* The row at a position; of a merge, the next one. */
const void *
gs_store_row_at(GsStore *store, int64 position, bool forward)
{
	if (store->phase == GS_STORE_RUNS)
		return gs_run_set_next(store->runs);
	if (position < store->window_start ||
		position >= store->window_start + store->window_rows)
		move_window(store, position, forward);
	return store->window[position - store->window_start];
}

/* The row at a position if keys_only, where NULLs are only counted; returns NULL for them. */
static const void *
value_at(GsStore *store, int64 position, bool forward)
{
	const int64 nnulls = store->nnulls;
	const int64 nvalues = store->nrows - nnulls;

	if (store->spec->columns[0].nulls_first)
		position -= nnulls;
	return position < 0 || position >= nvalues ? NULL : gs_store_row_at(store, position, forward);
}

/* Moves the position by a row.  Returns false if no row is there. */
bool
gs_store_step(GsStore *store, bool forward)
{
	const int64 nrows = store->nrows;

	if (forward)
	{
		if (store->position < nrows)
			store->position++;
	}
	else if (store->position >= 0)
		store->position--;
	if (store->position >= gs_topn_nrows(&store->top))
		elog(ERROR, "more rows were requested from a sort than its LIMIT allows");
	return store->position >= 0 && store->position < nrows;
}

TupleTableSlot *
gs_store_fetch_next(GsStore *store, bool forward)
{
	TupleTableSlot *slot = store->spec->slot;
	int64		position;

	if (store->phase == GS_STORE_FALLBACK)
	{
		gs_store_get_fallback(store, forward, slot);
		return slot;
	}
	if (!gs_store_step(store, forward))
		return ExecClearTuple(slot);
	position = store->position;
	if (store->phase == GS_STORE_FEW)
		gs_few_get(store->few, position, slot);
	else
		gs_store_row_to_slot(store, store->order.keys_only ? value_at(store, position, forward) :
							gs_store_row_at(store, position, forward), slot);
	return slot;
}

/* --------------------------------------------------------------- stored rows */

int
gs_store_take_window(GsStore *store, int nwanted, MinimalTuple *rows)
{
	int64		next = store->position + 1 - store->window_start;
	int			nrows = 0;

	while (nrows < nwanted && (uint64) next < (uint64) store->window_rows)
		rows[nrows++] = (MinimalTuple) unconstify(void *, store->window[next++]);
	store->position += nrows;
	return nrows;
}

int
gs_store_next_merged(GsStore *store, MinimalTuple *row)
{
	*row = (MinimalTuple) unconstify(void *, gs_run_set_next(store->runs));
	if (*row == NULL)
		return 0;
	store->position++;
	return 1;
}

/* The position at which a range begins. */
static int64
range_start(const GsStore *store, int range, int nranges)
{
	return store->nrows / nranges * range + Min((uint64) range, store->nrows % nranges);
}

/*
 * Where the group ends that begins before a position; the position, if it begins another group.
 * Doubles the distance until it is past the end, and bisects.
 */
static int64
group_end(GsStore *store, int64 position, GsOrderCompare *groups)
{
	const int64 nrows = store->nread;
	const MinimalTupleData *stored;
	MinimalTuple before;
	int64		inside = position - 1;
	int64		past;
	int64		step = 1;

	if (position <= 0 || position >= nrows)
		return Min(position, nrows);
	stored = gs_store_row_at(store, inside, true);
	before = memcpy(palloc(stored->t_len), stored, stored->t_len);
	for (past = position; past < nrows; past = Min(inside + step, nrows), step *= 2)
	{
		CHECK_FOR_INTERRUPTS();
		if (gs_order_compare_rows(groups, before, gs_store_row_at(store, past, true)) != 0)
			break;
		inside = past;
	}
	while (past - inside > 1)
	{
		const int64 middle = inside + (past - inside) / 2;

		CHECK_FOR_INTERRUPTS();
		if (gs_order_compare_rows(groups, before, gs_store_row_at(store, middle, true)) != 0)
			past = middle;
		else
			inside = middle;
	}
	pfree(before);
	return past;
}

void
gs_store_begin_groups_of_engine(GsStore *store, int range, int nranges, GsOrderCompare *groups)
{
	int64		start;
	int64		end;

	store->nrows = store->nread;
	start = group_end(store, range_start(store, range, nranges), groups);
	end = group_end(store, range_start(store, range + 1, nranges), groups);
	store->position = start - 1;
	store->nrows = end;
	store->window_rows = 0;
	store->partial = true;
}

void
gs_store_begin_range_of_engine(GsStore *store, int range, int nranges, MinimalTuple *end)
{
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

void
gs_store_rewind(GsStore *store)
{
	ExecClearTuple(store->spec->slot);
	if (store->phase == GS_STORE_FALLBACK)
		tuplesort_rescan(store->fallback);
	store->position = -1;
}

void
gs_store_mark(GsStore *store)
{
	if (store->phase == GS_STORE_FALLBACK)
		tuplesort_markpos(store->fallback);
	else
		store->mark = store->position;
}

void
gs_store_restore(GsStore *store)
{
	if (store->phase == GS_STORE_FALLBACK)
		tuplesort_restorepos(store->fallback);
	else
		store->position = store->mark;
}
