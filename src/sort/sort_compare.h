/*-------------------------------------------------------------------------
 *
 * sort_compare.h
 *	  Which of two stored rows comes first, by PostgreSQL's own comparators.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_COMPARE_H
#define GPUSORT_SORT_COMPARE_H

#include "access/htup_details.h"
#include "access/tupdesc.h"

#include "key/key_columns.h"

typedef struct GsSortCompare GsSortCompare;

/* In the current memory context, where comparators run, too. */
extern GsSortCompare *gs_sort_compare_create(const GsSortColumn *columns, int ncolumns,
											 TupleDesc desc);

/*
 * < 0, 0 or > 0 as row a sorts before, like or after row b; columns before
 * `first` are taken for equal.  May ereport what comparators report.
 */
extern int	gs_sort_compare_rows(GsSortCompare *compare, MinimalTuple a, MinimalTuple b,
								 int first);

/*
 * A stream of rows: begin with one, then compare each with the one before,
 * which must still be there.  The same result as gs_sort_compare_rows(before, row, 0),
 * for half of its work.
 */
extern void gs_sort_compare_begin(GsSortCompare *compare, MinimalTuple row);
extern int	gs_sort_compare_next(GsSortCompare *compare, MinimalTuple row);

/* The column that decided the last comparison. */
extern int	gs_sort_compare_decisive(const GsSortCompare *compare);

#endif							/* GPUSORT_SORT_COMPARE_H */
