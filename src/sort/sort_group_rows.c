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
 * If they exceed half of work_mem, all that are kept are returned, and those that follow.  In
 * place of each row that is no longer there, the first row of these is returned once more.  It
 * sorts after all of them, and not after the middle, which so remains where it was.
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
	uint64		nrepeats;		/* how often the first row that is kept is yet to be returned in
								 * place of others */
	uint64		nreturned;		/* how many of those that are kept are yet to be returned */
	bool		returns_rest;	/* after them, the other rows of the group are */
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
		if (rows->nrows++ < (uint64) state->spec.group_limit)
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

/* Reads a group, or of one of which too many rows would be kept, a part.  False: there is none. */
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
		add_row(state, row);
		if (is_full(rows))
		{
			rows->nrepeats = (rows->nrows - 1) / 2;
			rows->nreturned = rows->nrows - rows->nrepeats;
			rows->returns_rest = true;
			return true;
		}
		CHECK_FOR_INTERRUPTS();
		row = rows->next_row(state);
	} while (row != NULL && is_of_group(state, row));
	rows->next = row;
	rows->at_end = row == NULL;
	rows->nreturned = rows->nrows > 0 && rows->nrows % 2 == 0 ? 2 : 1;
	return true;
}

/* The next row that keeps the middle of its group where it is. */
static const void *
next_of_middle(GsSortState *state)
{
	GsGroupRows *rows = state->participants.group_rows;
	const void *row;

	if (rows->returns_rest && rows->nreturned == 0)
	{
		row = rows->next_row(state);
		if (row != NULL && is_of_group(state, row))
			return row;
		rows->returns_rest = false;
		rows->next = row;
		rows->at_end = row == NULL;
	}
	if (rows->nreturned == 0 && (rows->at_end || !read_group(state)))
		return NULL;
	row = first_kept(rows);
	if (rows->nrepeats > 0)
		rows->nrepeats--;
	else
	{
		drop_first(rows);
		rows->nreturned--;
	}
	return row;
}

const void *
gs_sort_group_rows_next(GsSortState *state, GsNextRow next_row)
{
	GsSortParticipants *participants = &state->participants;

	if (state->spec.group_limit == 0)
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
