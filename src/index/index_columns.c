/*-------------------------------------------------------------------------
 *
 * index_columns.c
 *	  The key columns of a btree as columns of an ORDER BY.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "build/build_sort.h"
#include "index/index_columns.h"
#include "pg_compat.h"

#include "access/nbtree.h"
#include "access/stratnum.h"
#include "catalog/pg_index.h"
#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

/*
 * Would ORDER BY with an operator of an operator family have the order of that family?  The
 * operator can belong to others, too, of which PostgreSQL's sort, and so gpusort's, takes any: the
 * same comparison function decides then, or they have different orders.
 */
static bool
has_order_of_family(Oid operator, Oid family, Oid type, bool descending)
{
	Oid			found_family;
	Oid			found_type;
	bool		found_descending;

	return gs_ordering_operator(operator, &found_family, &found_type, &found_descending) &&
		found_type == type && found_descending == descending &&
		get_opfamily_proc(found_family, type, type,
						  BTORDER_PROC) == get_opfamily_proc(family, type, type, BTORDER_PROC);
}

/*
 * Key column i of an index as a column of an ORDER BY.  The operator is invalid if
 * ORDER BY with it would have another order.
 */
static GsSortColumn
index_column(Relation index, int i)
{
	const int16 options = index->rd_indoption[i];
	const bool	descending = (options & INDOPTION_DESC) != 0;
	const Oid	family = index->rd_opfamily[i];
	const Oid	type = index->rd_opcintype[i];
	GsSortColumn column = {.attno = i + 1};

	/* an index of names stores them as cstrings */
	column.type = TupleDescAttr(RelationGetDescr(index), i)->atttypid;
	if (column.type == CSTRINGOID)
		column.type = type;
	column.sort_operator = get_opfamily_member(family, type, type,
											   descending ? BTGreaterStrategyNumber :
											   BTLessStrategyNumber);
	if (!has_order_of_family(column.sort_operator, family, type, descending))
		column.sort_operator = InvalidOid;
	column.collation = index->rd_indcollation[i];
	column.nulls_first = (options & INDOPTION_NULLS_FIRST) != 0;
	return column;
}

GsSortColumn *
gs_index_columns(Relation index, int *nkeys)
{
	GsSortColumn *columns;

	*nkeys = IndexRelationGetNumberOfKeyAttributes(index);
	columns = palloc(sizeof(GsSortColumn) * (*nkeys + 1));
	for (int i = 0; i < *nkeys; i++)
		columns[i] = index_column(index, i);
	columns[*nkeys] = (GsSortColumn) {
		.attno = IndexRelationGetNumberOfAttributes(index) + 1,
			.type = INT8OID,
			.sort_operator = Int8LessOperator
	};
	return columns;
}

char *
gs_index_columns_why_not(Relation index, double nrows)
{
	int			ncolumns;
	GsSortColumn *columns = gs_index_columns(index, &ncolumns);
	char	   *reason;

	for (int i = 0; i < ncolumns; i++)
	{
		if (!OidIsValid(columns[i].sort_operator))
			return psprintf("sort column %d: the operator has the order of another operator family",
							i + 1);
	}
	if (!gs_key_columns_can_encode(columns, ncolumns, &reason))
		return reason;
	return gs_build_few_rows(nrows);
}
