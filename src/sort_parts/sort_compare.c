/*-------------------------------------------------------------------------
 *
 * sort_compare.c
 *	  Compares two stored rows by PostgreSQL's comparators.
 *
 * The result is that of a tuplesort, so it decides every order.  It does not use
 * keys: there is a SortSupport without abbreviation for each column.
 *
 * A value that is compressed or out of line is fetched when a comparison reaches
 * its column.  It is kept as long as its row is one of the two rows, so a row that
 * is compared with both its neighbors fetches its values once.
 *
 * Comparators may raise errors and be canceled; all memory is in the context in
 * which the comparator was created.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key/key_deform.h"
#include "sort_parts/sort_compare.h"

#include "fmgr.h"
#include "utils/memutils.h"
#include "utils/sortsupport.h"

/* The sort columns of a row. */
typedef struct RowColumns
{
	Datum	   *values;
	bool	   *nulls;
	MemoryContext context;		/* of fetched values; NULL before the first */
	bool		any_fetched;
} RowColumns;

struct GsSortCompare
{
	int			ncolumns;
	SortSupport columns;
	bool	   *variable;		/* values may have to be fetched */
	TupleDesc	desc;
	GsDeform   *deform;			/* NULL: a column occurs twice, use heap_getattr() */
	RowColumns	before;
	RowColumns	row;
	int			decisive;
	MemoryContext context;		/* in which comparators run; they may keep memory */
};

static void
init_row(RowColumns *row, int ncolumns)
{
	row->values = palloc(sizeof(Datum) * ncolumns);
	row->nulls = palloc(sizeof(bool) * ncolumns);
	row->context = NULL;
	row->any_fetched = false;
}

GsSortCompare *
gs_sort_compare_create(const GsSortColumn *columns, int ncolumns, TupleDesc desc)
{
	GsSortCompare *compare = palloc(sizeof(GsSortCompare));
	AttrNumber *attnos = palloc(sizeof(AttrNumber) * ncolumns);

	compare->ncolumns = ncolumns;
	compare->desc = desc;
	compare->columns = palloc0(sizeof(SortSupportData) * ncolumns);
	compare->variable = palloc(sizeof(bool) * ncolumns);
	for (int i = 0; i < ncolumns; i++)
	{
		SortSupport column = &compare->columns[i];

		column->ssup_cxt = CurrentMemoryContext;
		column->ssup_collation = columns[i].collation;
		column->ssup_nulls_first = columns[i].nulls_first;
		column->ssup_attno = columns[i].attno;
		PrepareSortSupportFromOrderingOp(columns[i].sort_operator, column);
		attnos[i] = columns[i].attno;
		compare->variable[i] = TupleDescAttr(desc, attnos[i] - 1)->attlen == -1;
	}
	compare->deform = gs_deform_create(desc, attnos, ncolumns);
	pfree(attnos);
	init_row(&compare->before, ncolumns);
	init_row(&compare->row, ncolumns);
	compare->decisive = 0;
	compare->context = CurrentMemoryContext;
	return compare;
}

static void
find_columns(const GsSortCompare *compare, MinimalTuple row, RowColumns *found)
{
	HeapTupleHeader header = (HeapTupleHeader) ((char *) row - MINIMAL_TUPLE_OFFSET);
	HeapTupleData tuple;

	if (found->any_fetched)
		MemoryContextReset(found->context);
	found->any_fetched = false;
	if (compare->deform != NULL &&
		gs_deform(compare->deform, header, found->values, found->nulls))
		return;
	tuple.t_len = row->t_len + MINIMAL_TUPLE_OFFSET;
	tuple.t_data = header;
	for (int i = 0; i < compare->ncolumns; i++)
		found->values[i] = heap_getattr(&tuple, compare->columns[i].ssup_attno,
										compare->desc, &found->nulls[i]);
}

static pg_noinline void
fetch_value(RowColumns *row, int i)
{
	MemoryContext old;

	if (row->context == NULL)
		row->context = AllocSetContextCreate(CurrentMemoryContext, "GpuSort compared values",
											 ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(row->context);
	row->values[i] = PointerGetDatum(PG_DETOAST_DATUM_PACKED(row->values[i]));
	row->any_fetched = true;
	MemoryContextSwitchTo(old);
}

/* Fetches a column's value if necessary. */
static inline void
prepare_value(const GsSortCompare *compare, RowColumns *row, int i)
{
	const void *value = DatumGetPointer(row->values[i]);

	if (compare->variable[i] && !row->nulls[i] &&
		(VARATT_IS_COMPRESSED(value) || VARATT_IS_EXTERNAL(value)))
		fetch_value(row, i);
}

/* Compares the two rows from column `first` on. */
static inline int
compare_columns(GsSortCompare *compare, int first)
{
	MemoryContext old = MemoryContextSwitchTo(compare->context);
	int			order = 0;

	for (int i = first; i < compare->ncolumns; i++)
	{
		prepare_value(compare, &compare->before, i);
		prepare_value(compare, &compare->row, i);
		order = ApplySortComparator(compare->before.values[i], compare->before.nulls[i],
									compare->row.values[i], compare->row.nulls[i],
									&compare->columns[i]);
		if (order != 0)
		{
			compare->decisive = i;
			break;
		}
	}
	MemoryContextSwitchTo(old);
	return order;
}

int
gs_sort_compare_rows(GsSortCompare *compare, MinimalTuple a, MinimalTuple b, int first)
{
	find_columns(compare, a, &compare->before);
	find_columns(compare, b, &compare->row);
	return compare_columns(compare, first);
}

void
gs_sort_compare_begin(GsSortCompare *compare, MinimalTuple row)
{
	find_columns(compare, row, &compare->row);
}

int
gs_sort_compare_next(GsSortCompare *compare, MinimalTuple row)
{
	RowColumns	before = compare->row;

	compare->row = compare->before;
	compare->before = before;
	find_columns(compare, row, &compare->row);
	return compare_columns(compare, 0);
}

int
gs_sort_compare_decisive(const GsSortCompare *compare)
{
	return compare->decisive;
}
