/*-------------------------------------------------------------------------
 *
 * gin_columns.c
 *	  The order of the keys of a GIN index, as that of rows.
 *
 * GIN orders keys by support function 1 of the operator class or, if there is none, by the btree
 * comparison function of the type of the keys.  The rows are sorted by an operator with the same
 * order.  That is "<" of the type, if the function is the type's; some functions compare like that
 * of another type or collation:
 *
 *	  gin_cmp_tslexeme(), gin_compare_jsonb()		  text, byte by byte
 *	  gin_numeric_cmp(), gin_enum_cmp() of btree_gin	  the type, but for what only queries have
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "build/build_sort.h"
#include "gin/gin_columns.h"
#include "guc.h"
#include "key/key_order.h"
#include "pg_compat.h"

#include "access/gin_private.h"
#include "catalog/pg_collation_d.h"
#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/typcache.h"

GsGinLayout
gs_gin_layout(Relation index)
{
	const int	natts = RelationGetNumberOfAttributes(index);
	const int	key = natts > 1;

	return (GsGinLayout) {
		.attribute = natts > 1 ? 0 : -1,
			.key = key,
			.category = key + natts,
			.rest = key + natts + 1,
			.tid = key + natts + 2
	};
}

TupleDesc
gs_gin_row_type(Relation index)
{
	const TupleDesc of_index = RelationGetDescr(index);
	const GsGinLayout layout = gs_gin_layout(index);
	TupleDesc	desc = CreateTemplateTupleDesc(layout.tid + 1);

	if (layout.attribute >= 0)
		TupleDescInitEntry(desc, layout.attribute + 1, "attribute", INT2OID, -1, 0);
	for (int i = 0; i < of_index->natts; i++)
		TupleDescCopyEntry(desc, layout.key + i + 1, of_index, i + 1);
	TupleDescInitEntry(desc, layout.category + 1, "category", CHAROID, -1, 0);
	TupleDescInitEntry(desc, layout.rest + 1, "rest", BYTEAOID, -1, 0);
	TupleDescInitEntry(desc, layout.tid + 1, "tid", INT8OID, -1, 0);
	gs_finish_tuple_desc(desc);
	return desc;
}

/* ------------------------------------------------------------------ the order */

/* "<" of a type, and its comparison function. */
static Oid
less_operator(Oid type, Oid *function)
{
	const TypeCacheEntry *entry = lookup_type_cache(type, TYPECACHE_LT_OPR | TYPECACHE_CMP_PROC);

	if (function != NULL)
		*function = entry->cmp_proc;
	return entry->lt_opr;
}

static bool
compares_bytes(const FmgrInfo *function)
{
	return function->fn_addr == gin_cmp_tslexeme || function->fn_addr == gin_compare_jsonb;
}

/* Does the function of a module compare keys like the type's? */
static bool
compares_like_type(const FmgrInfo *function)
{
	return gs_key_order_is_function(function->fn_oid, "btree_gin", "gin_numeric_cmp") ||
		gs_key_order_is_function(function->fn_oid, "btree_gin", "gin_enum_cmp");
}

/* A column of keys.  Its operator is invalid if their order is not known. */
static GsSortColumn
key_column(const GinState *state, int i)
{
	const FmgrInfo *function = &state->compareFn[i];
	GsSortColumn column = {
		.type = TupleDescAttr(state->origTupdesc, i)->atttypid,
		.collation = state->supportCollation[i]
	};
	Oid			of_type;

	column.sort_operator = less_operator(column.type, &of_type);
	if (compares_bytes(function) && column.type == TEXTOID)
		column.collation = C_COLLATION_OID;
	else if (function->fn_oid != of_type && !compares_like_type(function))
		column.sort_operator = InvalidOid;
	return column;
}

static GsSortColumn
other_column(int attno, Oid type)
{
	return (GsSortColumn) {
		.attno = attno,.type = type,.sort_operator = less_operator(type, NULL)
	};
}

GsSortColumn *
gs_gin_columns(Relation index, int *nkeys)
{
	const GsGinLayout layout = gs_gin_layout(index);
	const int	natts = RelationGetNumberOfAttributes(index);
	GsSortColumn *columns = palloc(sizeof(GsSortColumn) * (layout.tid + 1));
	GinState	state;
	int			n = 0;

	initGinState(&state, index);
	if (layout.attribute >= 0)
		columns[n++] = other_column(layout.attribute + 1, INT2OID);
	for (int i = 0; i < natts; i++)
	{
		columns[n] = key_column(&state, i);
		columns[n++].attno = layout.key + i + 1;
	}
	columns[n++] = other_column(layout.category + 1, CHAROID);
	*nkeys = n;
	columns[n] = other_column(layout.tid + 1, INT8OID);
	return columns;
}

char *
gs_gin_columns_why_not(Relation index, double nrows)
{
	int			ncolumns;
	const GsSortColumn *columns = gs_gin_columns(index, &ncolumns);
	char	   *reason;

	for (int i = 0; i < ncolumns; i++)
	{
		if (!OidIsValid(columns[i].sort_operator))
			return psprintf("the order of keys of type %s by the operator class is not known",
							format_type_be(columns[i].type));
	}
	if (!gs_key_columns_can_encode(columns, ncolumns, &reason))
		return reason;
	return gs_build_few_rows(nrows);
}
