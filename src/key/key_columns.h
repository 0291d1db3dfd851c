/*-------------------------------------------------------------------------
 *
 * key_columns.h
 *	  Which sort columns can be encoded, and what their keys will be like.
 *
 * The questions that a plan is made by.  None opens a locale of the C library.  May ereport what
 * catalog lookups, and opening a locale of ICU, report.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_COLUMNS_H
#define GPUSORT_KEY_COLUMNS_H

#include "access/attnum.h"

#include "key/key_order.h"

/* One column of an ORDER BY, as a plan has it. */
typedef struct GsSortColumn
{
	AttrNumber	attno;			/* in the row that is sorted */
	Oid			type;
	Oid			sort_operator;
	Oid			collation;
	bool		nulls_first;
} GsSortColumn;

/*
 * As gs_key_order_of_operator() of the column; an order without a code becomes that of abbreviated
 * keys, if the type has any.
 */
extern bool gs_key_columns_order(const GsSortColumn *column, GsKeyOrder *order, bool *descending,
								 char **why_not);

/* Can rows be sorted by these columns, by their keys or by comparisons?  *why_not as above. */
extern bool gs_key_columns_can_encode(const GsSortColumn *columns, int ncolumns, char **why_not);

/* What the keys of some columns are like, up to the first one that leaves ties. */
typedef struct GsKeyTraits
{
	bool		compared;		/* the first column has no code, so all rows are compared */
	bool		collated;		/* a collation makes keys: they cost more than a few comparisons */
	bool		leave_ties;		/* rows with equal full keys can differ, and have to be compared */
} GsKeyTraits;

extern GsKeyTraits gs_key_columns_traits(const GsSortColumn *columns, int ncolumns);

/* Does the order by the keys of one of these columns have to be verified? */
extern bool gs_key_columns_are_approximate(const GsSortColumn *columns, int ncolumns);

/* Is one of these columns text of a collation for which gs_icu_disagrees()? */
extern bool gs_key_columns_icu_disagrees(const GsSortColumn *columns, int ncolumns);

/* Why these columns could not be encoded with gpusort.libc_collations = off; NULL: they could. */
extern char *gs_key_columns_libc_off(const GsSortColumn *columns, int ncolumns);

/* gs_key_order_is_variable(), and gs_key_order_is_expensive(), of the column's order. */
extern bool gs_key_columns_is_variable(const GsSortColumn *column, TupleDesc desc);
extern bool gs_key_columns_is_expensive(const GsSortColumn *column);

/* The estimated bytes of the collation keys of a row whose values have `width` bytes in total. */
extern double gs_key_columns_collated_bytes(const GsSortColumn *columns, int ncolumns, int width);

#endif							/* GPUSORT_KEY_COLUMNS_H */
