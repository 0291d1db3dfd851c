/*-------------------------------------------------------------------------
 *
 * sort_statistics.h
 *	  What ANALYZE has found out of the rows that a sort will read.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_STATISTICS_H
#define GPUSORT_SORT_STATISTICS_H

#include "nodes/execnodes.h"

#include "key/key_columns.h"

/*
 * How many rows are equal in the first ncolumns sort columns, on average, in the tables that have these columns; without
 * NULLs, and before a join repeats rows.  0: not known, because none is a column of a table that has statistics.
 */
extern double gs_statistics_rows_of_key(const PlanState *child, const GsSortColumn *columns, int ncolumns);

#endif							/* GPUSORT_SORT_STATISTICS_H */
