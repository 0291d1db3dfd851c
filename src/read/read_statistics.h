/*-------------------------------------------------------------------------
 *
 * read_statistics.h
 *	  What ANALYZE has found out of the rows that a sort will read.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_READ_STATISTICS_H
#define GPUSORT_READ_STATISTICS_H

#include "nodes/execnodes.h"

#include "key/key_columns.h"

/*
 * How many rows are equal in the first ncolumns sort columns, on average, as far as statistics
 * tell; without NULLs.  A plan that returns more rows than the table has, such as a join, repeats
 * them.  0: not known, because none is a column of a table that has statistics.
 */
extern double gs_statistics_rows_of_key(const PlanState *child, const GsSortColumn *columns,
										int ncolumns);

/*
 * How many of the sort columns a device keys, whatever they cost.  None: statistics tell that
 * hardly any rows tie in the columns before the first one of variable width, so the key may end
 * there.  Otherwise all, or those before the first one whose keys are expensive, for which the rows
 * will show it.  desc: of the rows of child.
 *
 * in_job: participants share the sort, and their keys have to be chosen before a row is known.
 */
extern int	gs_statistics_keyed_on_device(const PlanState *child, const GsSortColumn *columns,
										  int ncolumns, TupleDesc desc,
										  bool in_job);

#endif							/* GPUSORT_READ_STATISTICS_H */
