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
 * At most how many rows of the child are equal in the first ncolumns sort columns, on average.  0: not known,
 * because none is a column of a table that has statistics.
 */
extern double gs_statistics_rows_of_key(const PlanState *child, const GsSortColumn *columns, int ncolumns);

#endif							/* GPUSORT_SORT_STATISTICS_H */
