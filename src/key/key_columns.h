/*-------------------------------------------------------------------------
 *
 * key_columns.h
 *	  Which sort columns can be encoded, and what their keys will be like.
 *
 * The questions that a plan is made by.  None encodes a value or opens a locale
 * of the C library.  May ereport what catalog lookups, and opening a locale of ICU, report.
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
 * Finds the order of a column and whether it is descending.  Returns false, and
 * sets *why_not to a reason for the user (palloc'd or constant), if the column
 * cannot be encoded.  Allocates in the current memory context.
 */
extern bool gs_key_columns_order(const GsSortColumn *column, GsKeyOrder *order, bool *descending,
								 char **why_not);

/* Can all these columns be encoded in one record?  *why_not as above. */
extern bool gs_key_columns_can_encode(const GsSortColumn *columns, int ncolumns, char **why_not);

/* Does the order by the keys of one of these columns have to be verified? */
extern bool gs_key_columns_are_approximate(const GsSortColumn *columns, int ncolumns);

/* Is one of these columns text under a collation of the C library? */
extern bool gs_key_columns_use_libc(const GsSortColumn *columns, int ncolumns);

/* Can rows with equal full keys differ, so that they have to be compared? */
extern bool gs_key_columns_leave_ties(const GsSortColumn *columns, int ncolumns);

/*
 * The estimated number of bytes that collation keys add to a row whose values
 * have `width` bytes in total; 0 if all texts are compared byte by byte.
 */
extern double gs_key_columns_collated_bytes(const GsSortColumn *columns, int ncolumns, int width);

#endif							/* GPUSORT_KEY_COLUMNS_H */
