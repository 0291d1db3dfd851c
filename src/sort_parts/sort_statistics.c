/*-------------------------------------------------------------------------
 *
 * sort_statistics.c
 *	  What ANALYZE has found out of the rows that a sort will read.
 *
 * The participants of a parallel plan send their rows to one job of a device from the first row on,
 * so their keys have to be chosen before a row is known.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sort_parts/sort_statistics.h"

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "catalog/pg_statistic.h"
#include "executor/executor.h"
#include "nodes/primnodes.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "utils/syscache.h"

/* The column of a table that a plan returns as attno; NULL: it computes it, or reads no table. */
static const Var *
find_column(const Plan *plan, AttrNumber attno)
{
	while (plan != NULL)
	{
		const TargetEntry *entry = get_tle_by_resno(plan->targetlist, attno);
		const Var  *var = entry == NULL ? NULL : (const Var *) entry->expr;

		if (var == NULL || !IsA(var, Var))
			return NULL;
		if (var->varno != OUTER_VAR && var->varno != INNER_VAR)
			return IS_SPECIAL_VARNO(var->varno) || var->varattno <= 0 ? NULL : var;
		plan = var->varno == OUTER_VAR ? outerPlan(plan) : innerPlan(plan);
		attno = var->varattno;
	}
	return NULL;
}

static double
rows_of_table(Oid table)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(table));
	double		nrows = 0;

	if (HeapTupleIsValid(tuple))
	{
		nrows = ((Form_pg_class) GETSTRUCT(tuple))->reltuples;
		ReleaseSysCache(tuple);
	}
	return nrows;
}

/* How many rows of a table have the same value in a column, on average; 0: not known. */
static double
rows_of_value(Oid table, AttrNumber attno)
{
	HeapTuple	tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(table), Int16GetDatum(attno),
										BoolGetDatum(false));
	double		ndistinct = 0;

	if (HeapTupleIsValid(tuple))
	{
		ndistinct = ((Form_pg_statistic) GETSTRUCT(tuple))->stadistinct;
		ReleaseSysCache(tuple);
	}
	/* < 0: a share of the rows */
	return ndistinct < 0 ? -1 / ndistinct : ndistinct > 0 ? rows_of_table(table) / ndistinct : 0;
}

double
gs_statistics_rows_of_key(const PlanState *child, const GsSortColumn *columns, int ncolumns)
{
	double		least = 0;

	for (int i = 0; i < ncolumns; i++)
	{
		const Var  *var = find_column(child->plan, columns[i].attno);
		const RangeTblEntry *entry = var == NULL ? NULL : exec_rt_fetch(var->varno, child->state);
		const double nrows = entry == NULL || entry->rtekind != RTE_RELATION ? 0 :
			rows_of_value(entry->relid, var->varattno);

		if (nrows > 0 && (least == 0 || nrows < least))
			least = nrows;
	}
	return least;
}
