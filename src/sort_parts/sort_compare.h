/*-------------------------------------------------------------------------
 *
 * sort_compare.h
 *	  Compares two stored rows by PostgreSQL's comparators.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_COMPARE_H
#define GPUSORT_SORT_COMPARE_H

#include "access/htup_details.h"
#include "access/tupdesc.h"

#include "key/key_columns.h"

typedef struct GsSortCompare GsSortCompare;

/* In the current memory context, in which the comparators also run. */
extern GsSortCompare *gs_sort_compare_create(const GsSortColumn *columns, int ncolumns,
											 TupleDesc desc);

/*
 * < 0, 0 or > 0 as row a sorts before, like or after row b; the columns before
 * `first` are known to be equal.  Comparators may raise errors.
 */
extern int	gs_sort_compare_rows(GsSortCompare *compare, MinimalTuple a, MinimalTuple b,
								 int first);

/*
 * For a sequence of rows: begin with the first, then compare each row with the
 * one before, which must still be valid.  The same result as
 * gs_sort_compare_rows(before, row, 0), for half of the work.
 */
extern void gs_sort_compare_begin(GsSortCompare *compare, MinimalTuple row);
extern int	gs_sort_compare_next(GsSortCompare *compare, MinimalTuple row);

/* The column that decided the last comparison. */
extern int	gs_sort_compare_decisive(const GsSortCompare *compare);

#endif							/* GPUSORT_SORT_COMPARE_H */
