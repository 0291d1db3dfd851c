/*-------------------------------------------------------------------------
 *
 * index_order.c
 *	  Which of two index tuples comes first, by the index's own comparators.
 *
 * What sort_compare is to rows, this is to index tuples: SortSupport without
 * abbreviation, one for each key column, in the order that a search of the index
 * will expect.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "index_order.h"
#include "pgcompat.h"

#include "access/nbtree.h"
#include "utils/rel.h"
#include "utils/sortsupport.h"

struct GsIndexOrder
{
	TupleDesc	desc;
	int			ncolumns;		/* of the key: not those of INCLUDE */
	SortSupportData columns[FLEXIBLE_ARRAY_MEMBER];
};

GsIndexOrder *
gs_index_order_create(Relation index)
{
	int			ncolumns = IndexRelationGetNumberOfKeyAttributes(index);
	GsIndexOrder *order = palloc0(offsetof(GsIndexOrder, columns) +
								  sizeof(SortSupportData) * ncolumns);

	order->desc = RelationGetDescr(index);
	order->ncolumns = ncolumns;
	for (int i = 0; i < ncolumns; i++)
	{
		SortSupport column = &order->columns[i];
		int16		option = index->rd_indoption[i];

		column->ssup_cxt = CurrentMemoryContext;
		column->ssup_collation = index->rd_indcollation[i];
		column->ssup_nulls_first = (option & INDOPTION_NULLS_FIRST) != 0;
		column->ssup_attno = i + 1;
		gs_prepare_index_comparator(index, (option & INDOPTION_DESC) != 0, column);
	}
	return order;
}

int
gs_index_order_compare(GsIndexOrder *order, IndexTuple a, IndexTuple b)
{
	for (int i = 0; i < order->ncolumns; i++)
	{
		bool		a_null;
		bool		b_null;
		Datum		a_value = index_getattr(a, i + 1, order->desc, &a_null);
		Datum		b_value = index_getattr(b, i + 1, order->desc, &b_null);
		int			result = ApplySortComparator(a_value, a_null, b_value, b_null,
												 &order->columns[i]);

		if (result != 0)
			return result;
	}
	return 0;
}

bool
gs_index_order_has_null(const GsIndexOrder *order, IndexTuple tuple)
{
	for (int i = 0; i < order->ncolumns; i++)
	{
		bool		null;

		(void) index_getattr(tuple, i + 1, order->desc, &null);
		if (null)
			return true;
	}
	return false;
}
