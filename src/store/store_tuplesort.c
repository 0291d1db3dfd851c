/*-------------------------------------------------------------------------
 *
 * store_tuplesort.c
 *	  PostgreSQL's tuplesort, for rows that no engine can sort.
 *
 * This chooses between two forms as PostgreSQL's Sort node does: a single column
 * that is passed by value is sorted without tuples.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pg_compat.h"
#include "store/sort_spec.h"
#include "store/store_tuplesort.h"

void
gs_tuplesort_begin(GsTuplesort *fallback, const GsSortColumn *columns, int ncolumns,
			   TupleDesc desc, int memory_kb, int64 bound, bool random_access)
{
	int			options = random_access ? TUPLESORT_RANDOMACCESS : TUPLESORT_NONE;

	if (bound != GS_UNBOUNDED)
		options |= TUPLESORT_ALLOWBOUNDED;
	fallback->datum_sort = desc->natts == 1 && TupleDescAttr(desc, 0)->attbyval;
	if (fallback->datum_sort)
	{
		Assert(ncolumns == 1 && columns[0].attno == 1);
		fallback->state = tuplesort_begin_datum(TupleDescAttr(desc, 0)->atttypid,
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
		fallback->state = tuplesort_begin_heap(desc, ncolumns, attnos, operators,
											collations, nulls_first,
											memory_kb, NULL, options);
	}
	if (bound != GS_UNBOUNDED)
		tuplesort_set_bound(fallback->state, bound);
}

void
gs_tuplesort_put(GsTuplesort *fallback, TupleTableSlot *slot)
{
	if (fallback->datum_sort)
	{
		slot_getsomeattrs(slot, 1);
		tuplesort_putdatum(fallback->state, slot->tts_values[0], slot->tts_isnull[0]);
	}
	else
		tuplesort_puttupleslot(fallback->state, slot);
}

void
gs_tuplesort_perform(GsTuplesort *fallback)
{
	tuplesort_performsort(fallback->state);
}

void
gs_tuplesort_get(GsTuplesort *fallback, bool forward, TupleTableSlot *slot)
{
	if (!fallback->datum_sort)
	{
		(void) tuplesort_gettupleslot(fallback->state, forward, false, slot, NULL);
		return;
	}
	ExecClearTuple(slot);
	if (gs_get_tuplesort_datum(fallback->state, forward, &slot->tts_values[0],
							  &slot->tts_isnull[0]))
		ExecStoreVirtualTuple(slot);
}

void
gs_tuplesort_end(GsTuplesort *fallback)
{
	tuplesort_end(fallback->state);
	fallback->state = NULL;
}
