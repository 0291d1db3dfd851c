/*-------------------------------------------------------------------------
 *
 * store_few.c
 *	  Sorts few rows by comparisons, without keys and without an engine.
 *
 * To set up an encoder, an engine and its memory takes more time than to sort three rows
 * (src/sort/README.md).
 *
 * Rows are stored one after the other in a small block.  Each has an entry with its first sort
 * column, abbreviated if the type supports that, as in a tuplesort, unless ICU orders abbreviated
 * keys otherwise (gs_key_columns_icu_disagrees()); if these are equal, the columns are extracted
 * from the rows.  A binary insertion sort by PostgreSQL's comparators orders the entries.  It makes
 * fewer comparisons than a quicksort, and is stable.
 *
 * Memory and comparators are kept for the next sort of the node.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key/key_distinct.h"
#include "key/key_stored_row.h"
#include "key/key_sortsupport.h"
#include "store/store_fetch.h"
#include "store/store_few.h"

#include "access/htup_details.h"
#include "miscadmin.h"

/*
 * Processor time of a sort below a nested loop by an integer.  3 rows: PostgreSQL 1.5 us, this
 * 1.2 us, an engine 2.2 to 2.9 us.  60 rows: PostgreSQL 10.2 us, this 9.8 us.  An engine takes as
 * long as PostgreSQL from about 40 rows on (Zen 5, PostgreSQL 15.20, 2026-11).
 */
#define FEW_ROWS	64
#define FEW_BYTES	((Size) 32 << 10)

/* A row and its first sort column, which the sort abbreviates. */
typedef struct Entry
{
	MinimalTuple row;			/* NULL: the value is the whole row */
	Datum		value;			/* of a row: from the sort on; may point into it */
	bool		is_null;
} Entry;

struct GsFew
{
	const GsSortColumn *columns;
	int			ncolumns;
	TupleDesc	desc;
	bool		values_only;	/* rows have one column, passed by value */
	bool		variable;		/* the first sort column is of variable width */
	SortSupport orders;			/* of the columns; NULL before the first sort */
	bool		abbreviated;	/* the first one compares abbreviated values */
	MemoryContext context;		/* of this */
	int			nrows;
	Size		nbytes;			/* of the rows */
	Entry		entries[FEW_ROWS];
	char		bytes[FEW_BYTES] pg_attribute_aligned(MAXIMUM_ALIGNOF);
};

GsFew *
gs_few_create(const GsSortColumn *columns, int ncolumns, TupleDesc desc)
{
	GsFew	   *few = palloc(sizeof(GsFew));

	few->columns = columns;
	few->ncolumns = ncolumns;
	few->desc = desc;
	few->values_only = desc->natts == 1 && TupleDescAttr(desc, 0)->attbyval;
	few->variable = TupleDescAttr(desc, columns[0].attno - 1)->attlen == -1;
	few->orders = NULL;
	few->context = CurrentMemoryContext;
	gs_few_clear(few);
	return few;
}

/* A sort column of a stored row. */
static inline Datum
column_of(const GsFew *few, MinimalTuple row, int column, bool *is_null)
{
	HeapTupleData tuple = gs_row_tuple(row);

	return heap_getattr(&tuple, few->columns[column].attno, few->desc, is_null);
}

/* Stores the slot's row.  False: there is no space. */
static inline bool
store_row(GsFew *few, TupleTableSlot *slot, Entry *entry)
{
	GsRowSource source;

	gs_row_source_init(&source, slot, NULL);
	if (source.nbytes > FEW_BYTES - few->nbytes)
		return false;
	entry->row = (MinimalTuple) (few->bytes + few->nbytes);
	gs_row_store(&source, slot, (char *) entry->row);
	few->nbytes += MAXALIGN(source.nbytes);
	return true;
}

bool
gs_few_put(GsFew *few, TupleTableSlot *slot)
{
	Entry	   *entry = &few->entries[few->nrows];

	if (few->nrows == FEW_ROWS)
		return false;
	if (few->values_only)
	{
		entry->row = NULL;
		entry->value = slot_getattr(slot, 1, &entry->is_null);
	}
	else if (!store_row(few, slot, entry))
		return false;
	few->nrows++;
	return true;
}

/* Looks up the comparators. */
static pg_noinline void
find_orders(GsFew *few)
{
	MemoryContext old = MemoryContextSwitchTo(few->context);

	few->orders = palloc(sizeof(SortSupportData) * few->ncolumns);
	for (int i = 0; i < few->ncolumns; i++)
	{
		const bool	abbreviated = i == 0 && !few->values_only &&
			!(OidIsValid(few->columns[0].collation) &&
			  gs_key_columns_icu_disagrees(few->columns, 1));

		gs_key_sortsupport_prepare(&few->orders[i], &few->columns[i], abbreviated);
	}
	few->abbreviated = few->orders[0].abbrev_converter != NULL;
	MemoryContextSwitchTo(old);
}

/* Extracts the first sort column of each row.  False: a value must be fetched. */
static bool
extract_values(GsFew *few)
{
	for (int i = 0; i < few->nrows; i++)
	{
		Entry	   *entry = &few->entries[i];

		entry->value = column_of(few, entry->row, 0, &entry->is_null);
		if (few->variable && !entry->is_null && gs_is_toasted(-1, entry->value))
			return false;
	}
	return true;
}

/* Abbreviates the first sort column of each row. */
static void
abbreviate(GsFew *few)
{
	SortSupport order = &few->orders[0];

	for (int i = 0; i < few->nrows; i++)
	{
		Entry	   *entry = &few->entries[i];

		if (!entry->is_null)
			entry->value = order->abbrev_converter(entry->value, order);
	}
}

/* Compares two rows by the full values of a sort column. */
static int
compare_column(const GsFew *few, MinimalTuple a, MinimalTuple b, int column)
{
	bool		a_is_null;
	bool		b_is_null;
	Datum		a_value = column_of(few, a, column, &a_is_null);
	Datum		b_value = column_of(few, b, column, &b_is_null);
	SortSupport order = &few->orders[column];

	return column == 0 && few->abbreviated ?
		ApplySortAbbrevFullComparator(a_value, a_is_null, b_value, b_is_null, order) :
		ApplySortComparator(a_value, a_is_null, b_value, b_is_null, order);
}

/* < 0, 0 or > 0 as a row sorts before, like or after another. */
static int
compare(const GsFew *few, const Entry *a, const Entry *b)
{
	int			order = ApplySortComparator(a->value, a->is_null, b->value, b->is_null,
											&few->orders[0]);

	CHECK_FOR_INTERRUPTS();
	for (int i = few->abbreviated ? 0 : 1; i < few->ncolumns && order == 0; i++)
		order = compare_column(few, a->row, b->row, i);
	return order;
}

/* The position of an entry among those before it, which are in order; after equal ones. */
static int
position_of(const GsFew *few, int entry)
{
	const Entry *entries = few->entries;
	int			low = 0;
	int			high = entry - 1;

	/* many rows arrive in order */
	if (compare(few, &entries[high], &entries[entry]) <= 0)
		return entry;
	while (low < high)
	{
		int			middle = (low + high) / 2;

		if (compare(few, &entries[middle], &entries[entry]) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool
gs_few_sort(GsFew *few)
{
	if (few->nrows < 2)
		return true;
	if (!few->values_only && !extract_values(few))
		return false;
	if (few->orders == NULL)
		find_orders(few);
	if (few->abbreviated)
		abbreviate(few);
	for (int i = 1; i < few->nrows; i++)
	{
		const Entry entry = few->entries[i];
		int			position = position_of(few, i);

		memmove(&few->entries[position + 1], &few->entries[position],
				sizeof(Entry) * (i - position));
		few->entries[position] = entry;
	}
	return true;
}

int
gs_few_count(const GsFew *few)
{
	return few->nrows;
}

void
gs_few_get(const GsFew *few, int position, TupleTableSlot *slot)
{
	const Entry *entry = &few->entries[position];

	if (entry->row != NULL)
	{
		gs_slot_store_row(slot, entry->row);
		return;
	}
	ExecClearTuple(slot);
	slot->tts_values[0] = entry->value;
	slot->tts_isnull[0] = entry->is_null;
	ExecStoreVirtualTuple(slot);
}

MinimalTuple
gs_few_row(const GsFew *few, int position)
{
	return few->entries[position].row;
}

Size
gs_few_bytes(const GsFew *few)
{
	return few->nbytes + sizeof(Entry) * few->nrows;
}

void
gs_few_clear(GsFew *few)
{
	few->nrows = 0;
	few->nbytes = 0;
}
