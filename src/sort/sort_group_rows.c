/*-------------------------------------------------------------------------
 *
 * sort_group_rows.c
 *	  Which rows of each group a GpuSort by ranges returns.
 *
 * The nodes above may need only the first rows of each group, or those in its middle.  A comparison
 * with the first row of the group costs less than what they do with a row.
 *
 * The median of n values, in order, is the average of those at (n - 1) / 2 and n / 2, counted from
 * 0, or the first of the two for percentile_disc(0.5); so it is also the median of these one or two
 * rows alone.  NULLs do not count.  While the rows of a group arrive, those from the lower middle
 * on are kept: every second row that is added moves it by one.
 *
 * If they exceed half of work_mem, a tuplestore gets them and all that follow.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sort/sort_group_rows.h"
#include "store/store_groups.h"

#include "access/htup_details.h"
#include "access/tupmacs.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

/* Between two interrupt checks. */
#define ROWS_SKIPPED	10000

struct GsGroupRows
{
	GsNextRow	next_row;
	MinimalTuple first;			/* a copy of the first row of the group */
	Size		first_bytes;	/* allocated; 0: there is no group yet */
	uint64		nrows;			/* rows of the group so far; in search of the middle, those with
								 * a value */

	/* in search of the middle */
	const void *next;			/* the first row of the next group; NULL: not read yet */
	bool		at_end;			/* there is no next group */
	char	   *kept;			/* rows from the lower middle on, each MAXALIGNed */
	Size		allocated;
	Size		start;			/* of the first row that is kept */
	Size		end;			/* of the last one */
	int			nreturned;		/* how many of those that are kept are yet to be returned */
};

static void
enlarge(GsSortState *state, void *memory, Size *bytes, Size needed)
{
	void	  **place = memory;

	*bytes = needed * 2;
	*place = *place == NULL ? MemoryContextAllocHuge(state->store.context, *bytes) :
		repalloc_huge(*place, *bytes);
}

/* A row is the first of a group. */
static void
begin_group(GsSortState *state, const MinimalTupleData *row)
{
	GsGroupRows *rows = state->participants.group_rows;

	if (rows->first_bytes < row->t_len)
		enlarge(state, &rows->first, &rows->first_bytes, row->t_len);
	memcpy(rows->first, row, row->t_len);
	rows->nrows = 0;
}

static bool
is_of_group(GsSortState *state, const void *row)
{
	const GsGroupRows *rows = state->participants.group_rows;

	return rows->first_bytes > 0 && gs_store_is_one_group(&state->store, rows->first, row);
}

/* The next row that is one of the first of its group. */
static const void *
next_of_first(GsSortState *state)
{
	GsGroupRows *rows = state->participants.group_rows;
	const void *row;

	while ((row = rows->next_row(state)) != NULL)
	{
		if (!is_of_group(state, row))
			begin_group(state, row);
		if (rows->nrows++ < (uint64) state->spec.group_limit || state->spec.group_limit == 0)
			break;
		CHECK_FOR_INTERRUPTS();
	}
	return row;
}

/* -------------------------------------------------------------------- middle */

/*
 * The column after those of the group has the values.  A row may lack columns that were added to
 * its table later.
 */
static bool
has_value(const GsSortState *state, const MinimalTupleData *row)
{
	const int	attribute = state->spec.columns[state->spec.ngrouped].attno - 1;

	if (attribute >= HeapTupleHeaderGetNatts(row))
		return TupleDescAttr(state->spec.desc, attribute)->atthasmissing;
	return (row->t_infomask & HEAP_HASNULL) == 0 || !att_isnull(attribute, row->t_bits);
}

/* Half of what is allocated may be of rows that were dropped, so that few are moved for each. */
static void
make_space(GsSortState *state, Size bytes)
{
	GsGroupRows *rows = state->participants.group_rows;

	if (rows->start > 0)
		memmove(rows->kept, rows->kept + rows->start, rows->end - rows->start);
	rows->end -= rows->start;
	rows->start = 0;
	if (rows->end + bytes > rows->allocated / 2)
		enlarge(state, &rows->kept, &rows->allocated, rows->end + bytes);
}

static void
keep(GsSortState *state, const MinimalTupleData *row)
{
	GsGroupRows *rows = state->participants.group_rows;
	const Size	bytes = MAXALIGN(row->t_len);

	if (rows->end + bytes > rows->allocated)
		make_space(state, bytes);
	memcpy(rows->kept + rows->end, row, row->t_len);
	rows->end += bytes;
}

static const MinimalTupleData *
first_kept(const GsGroupRows *rows)
{
	return (const MinimalTupleData *) (rows->kept + rows->start);
}

static void
drop_first(GsGroupRows *rows)
{
	rows->start += MAXALIGN(first_kept(rows)->t_len);
}

/* Adds a row of the group, and keeps those from the lower middle on. */
static void
add_row(GsSortState *state, const MinimalTupleData *row)
{
	GsGroupRows *rows = state->participants.group_rows;

	if (has_value(state, row))
	{
		if (rows->nrows++ == 0)
			rows->start = rows->end = 0;	/* of a row without a value */
		keep(state, row);
		if (rows->nrows % 2 == 1 && rows->nrows > 1)
			drop_first(rows);
	}
	else if (rows->end == 0)
		keep(state, row);		/* the group must not be empty */
}

/* Do the rows that are kept exceed half of work_mem, so that what is allocated may exceed it? */
static bool
is_full(const GsGroupRows *rows)
{
	return rows->nrows > 0 && rows->end - rows->start > (Size) work_mem * 1024 / 2;
}

/* Skips rows of a tuplestore. */
static void
skip(Tuplestorestate *stored, uint64 count)
{
	while (count > 0)
	{
		const uint64 some = Min(count, ROWS_SKIPPED);

		CHECK_FOR_INTERRUPTS();
		(void) tuplestore_skiptuples(stored, some, true);
		count -= some;
	}
}

static void
store_row(Tuplestorestate *stored, const MinimalTupleData *row, TupleTableSlot *slot)
{
	ExecStoreMinimalTuple(unconstify(MinimalTupleData *, row), slot, false);
	tuplestore_puttupleslot(stored, slot);
}

/* How many rows are in the middle of the group. */
static int
middle_rows(const GsGroupRows *rows)
{
	return rows->nrows > 0 && rows->nrows % 2 == 0 ? 2 : 1;
}

/*
 * Reads the rest of a group that exceeds memory, and keeps the rows in its middle.  Returns the
 * first row of the next group.
 */
static const void *
read_large_group(GsSortState *state)
{
	GsGroupRows *rows = state->participants.group_rows;
	const uint64 ndropped = (rows->nrows - 1) / 2;
	MemoryContext old = MemoryContextSwitchTo(state->store.context);
	TupleTableSlot *slot = MakeSingleTupleTableSlot(state->spec.desc, &TTSOpsMinimalTuple);
	Tuplestorestate *stored = tuplestore_begin_heap(false, false, work_mem);
	const void *row;

	MemoryContextSwitchTo(old);
	for (; rows->start < rows->end; drop_first(rows))
		store_row(stored, first_kept(rows), slot);
	pfree(rows->kept);
	rows->kept = NULL;
	rows->allocated = rows->start = rows->end = 0;
	while ((row = rows->next_row(state)) != NULL && is_of_group(state, row))
	{
		CHECK_FOR_INTERRUPTS();
		if (!has_value(state, row))
			continue;
		store_row(stored, row, slot);
		rows->nrows++;
	}
	skip(stored, (rows->nrows - 1) / 2 - ndropped);
	for (int i = 0; i < middle_rows(rows); i++)
	{
		if (!tuplestore_gettupleslot(stored, true, false, slot))
			elog(ERROR, "could not read the middle of a group");
		keep(state, ((MinimalTupleTableSlot *) slot)->mintuple);
	}
	ExecDropSingleTupleTableSlot(slot);
	tuplestore_end(stored);
	return row;
}

/* Reads a group, and keeps the rows in its middle.  False: there is none. */
static bool
read_group(GsSortState *state)
{
	GsGroupRows *rows = state->participants.group_rows;
	const void *row = rows->next != NULL ? rows->next : rows->next_row(state);

	if (row == NULL)
		return false;
	begin_group(state, row);
	rows->start = rows->end = 0;
	do
	{
		CHECK_FOR_INTERRUPTS();
		add_row(state, row);
		row = is_full(rows) ? read_large_group(state) : rows->next_row(state);
	} while (row != NULL && is_of_group(state, row));
	rows->next = row;
	rows->at_end = row == NULL;
	rows->nreturned = middle_rows(rows);
	return true;
}

/* The next row in the middle of its group. */
static const void *
next_of_middle(GsSortState *state)
{
	GsGroupRows *rows = state->participants.group_rows;
	const void *row;

	if (rows->nreturned == 0 && (rows->at_end || !read_group(state)))
		return NULL;
	row = first_kept(rows);
	drop_first(rows);
	rows->nreturned--;
	return row;
}

const void *
gs_sort_group_rows_next(GsSortState *state, GsNextRow next_row)
{
	GsSortParticipants *participants = &state->participants;

	if (state->spec.group_limit == 0 && !state->spec.numbers_rows)
		return next_row(state);
	if (participants->group_rows == NULL)
	{
		participants->group_rows = MemoryContextAllocZero(state->store.context,
														  sizeof(GsGroupRows));
		participants->group_rows->next_row = next_row;
	}
	return state->spec.group_limit == GS_GROUP_MIDDLE ? next_of_middle(state) :
		next_of_first(state);
}

int64
gs_sort_group_rows_number(const GsSortState *state)
{
	return (int64) state->participants.group_rows->nrows;
}
