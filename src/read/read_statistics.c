/*-------------------------------------------------------------------------
 *
 * read_statistics.c
 *	  What ANALYZE has found out of the rows that a sort will read.
 *
 * A device leaves tied rows to the server, which finds them as it returns rows: this takes less
 * time than keys of a column of variable width, unless many rows tie.  Rows that tie with one other
 * row are too many, and the first thousands of millions of rows do not show them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "read/read_statistics.h"

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "catalog/pg_statistic.h"
#include "executor/executor.h"
#include "nodes/primnodes.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "utils/syscache.h"

/*
 * From so many rows with the same key on, many rows tie; if keys of the next column are expensive,
 * and otherwise.  ORDER BY a bigint and b, 2 M rows of 170 bytes, one process, medians of 3 by
 * turns (H200, PostgreSQL 18.6, 2026-11-27), in ms:
 *
 *	 rows of a value of a					1			2
 *	 keys of b, text "C" of 32 bytes		335			236
 *	 without keys							203			725
 */
#define MANY_ROWS_EXPENSIVE		1.5
#define MANY_ROWS				1.1

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

/*
 * How many of nrows rows, at least of those of the table, have the same value in a column, on
 * average; 0: not known.
 */
static double
rows_of_value(Oid table, AttrNumber attno, double nrows)
{
	HeapTuple	tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(table),
										Int16GetDatum(attno),
										BoolGetDatum(false));
	const double ntable = rows_of_table(table);
	double		ndistinct = 0;

	if (HeapTupleIsValid(tuple))
	{
		ndistinct = ((Form_pg_statistic) GETSTRUCT(tuple))->stadistinct;
		ReleaseSysCache(tuple);
	}
	if (ndistinct < 0)			/* a share of the rows */
		ndistinct *= -ntable;
	return ndistinct > 0 ? Max(nrows, ntable) / ndistinct : 0;
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
			rows_of_value(entry->relid, var->varattno, child->plan->plan_rows);

		if (nrows > 0 && (least == 0 || nrows < least))
			least = nrows;
	}
	return least;
}

int
gs_statistics_keyed_on_device(const PlanState *child, const GsSortColumn *columns, int ncolumns,
							  TupleDesc desc, bool in_job)
{
	int			n = 1;
	bool		expensive;
	double		nrows;

	while (n < ncolumns && !gs_key_columns_is_variable(&columns[n], desc))
		n++;
	if (n == ncolumns)
		return ncolumns;
	expensive = gs_key_columns_is_expensive(&columns[n]);
	/* all participants make cheap keys, while one alone looks for ties */
	if (in_job && !expensive)
		return ncolumns;
	nrows = gs_statistics_rows_of_key(child, columns, n);
	if (nrows > 0 && nrows < (expensive ? MANY_ROWS_EXPENSIVE : MANY_ROWS))
		return 0;
	while (n < ncolumns &&
		   !(gs_key_columns_is_variable(&columns[n], desc) &&
			 gs_key_columns_is_expensive(&columns[n])))
		n++;
	return in_job ? ncolumns : n;
}
