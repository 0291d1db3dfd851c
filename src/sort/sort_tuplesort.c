/*-------------------------------------------------------------------------
 *
 * sort_tuplesort.c
 *	  PostgreSQL's own sort, for what no engine can take.
 *
 * Nothing of tuplesort is repeated here; this only chooses between its two
 * forms as the stock Sort node of PostgreSQL 15 does: a single by-value column
 * is sorted without forming tuples.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sort/sort_limit.h"
#include "sort/sort_tuplesort.h"

void
gs_stock_begin(GsStockSort *stock, const GsSortColumn *columns, int ncolumns,
			   TupleDesc desc, int memory_kb, int64 bound, bool random_access)
{
	int			options = random_access ? TUPLESORT_RANDOMACCESS : TUPLESORT_NONE;

	if (bound != GS_UNBOUNDED)
		options |= TUPLESORT_ALLOWBOUNDED;
	stock->datum_sort = desc->natts == 1 && TupleDescAttr(desc, 0)->attbyval;
	if (stock->datum_sort)
	{
		Assert(ncolumns == 1 && columns[0].attno == 1);
		stock->state = tuplesort_begin_datum(TupleDescAttr(desc, 0)->atttypid,
											 columns[0].sort_operator,
											 columns[0].collation,
											 columns[0].nulls_first,
											 memory_kb, NULL, options);
	}
	else
	{
		AttrNumber *attnos = palloc(sizeof(AttrNumber) * ncolumns);
		Oid		   *operators = palloc(sizeof(Oid) * ncolumns);
		Oid		   *collations = palloc(sizeof(Oid) * ncolumns);
		bool	   *nulls_first = palloc(sizeof(bool) * ncolumns);

		for (int i = 0; i < ncolumns; i++)
		{
			attnos[i] = columns[i].attno;
			operators[i] = columns[i].sort_operator;
			collations[i] = columns[i].collation;
			nulls_first[i] = columns[i].nulls_first;
		}
		stock->state = tuplesort_begin_heap(desc, ncolumns, attnos, operators,
											collations, nulls_first,
											memory_kb, NULL, options);
	}
	if (bound != GS_UNBOUNDED)
		tuplesort_set_bound(stock->state, bound);
}

void
gs_stock_put(GsStockSort *stock, TupleTableSlot *slot)
{
	if (stock->datum_sort)
	{
		slot_getsomeattrs(slot, 1);
		tuplesort_putdatum(stock->state, slot->tts_values[0], slot->tts_isnull[0]);
	}
	else
		tuplesort_puttupleslot(stock->state, slot);
}

void
gs_stock_perform(GsStockSort *stock)
{
	tuplesort_performsort(stock->state);
}

void
gs_stock_get(GsStockSort *stock, bool forward, TupleTableSlot *slot)
{
	if (!stock->datum_sort)
	{
		(void) tuplesort_gettupleslot(stock->state, forward, false, slot, NULL);
		return;
	}
	ExecClearTuple(slot);
	if (tuplesort_getdatum(stock->state, forward, &slot->tts_values[0],
						   &slot->tts_isnull[0], NULL))
		ExecStoreVirtualTuple(slot);
}

void
gs_stock_end(GsStockSort *stock)
{
	tuplesort_end(stock->state);
	stock->state = NULL;
}
