/*-------------------------------------------------------------------------
 *
 * read_tied.h
 *	  Estimates how many rows have the same key, by the first rows or by statistics.
 *
 * A key may end before a column of variable width (key_encoder.h).  Then only rows that tie
 * are compared by that column, as in PostgreSQL's sort.  If most rows tie, to make keys of it costs
 * less.  So the rows are examined a few times while they arrive, and read again with longer
 * keys if these pay.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_READ_TIED_H
#define GPUSORT_READ_TIED_H

#include "nodes/execnodes.h"

#include "engine/engine.h"
#include "key/key_columns.h"
#include "order/order_compare.h"
#include "store/store_few.h"

/* The numbers of rows at which they are examined: the first, eight times as many, and so on. */
#define GS_TIED_FIRST_CHECK		64
#define GS_TIED_CHECK_FACTOR	8
#define GS_TIED_LAST_CHECK		32768

/* The column by which tied rows are compared. */
typedef struct GsTiedColumn
{
	TupleDesc	desc;			/* of the rows */
	AttrNumber	attno;
	bool		is_expensive;	/* its key costs as much as several comparisons */
} GsTiedColumn;

/*
 * Will so many of nrows_expected rows tie that keys of the column cost less than to compare tied
 * rows by it?  Of the rows of an engine of this process that has not sorted.  Memory is allocated
 * in the current context.
 */
extern bool gs_tied_rows_want_keys(const GsTiedColumn *column, const GsEngine *engine,
								   double nrows_expected);

/*
 * Answers this for rows that have no keys yet, which tie if they are equal in the first ncolumns
 * sort columns.  If these show too few ties to tell, but some, it depends on how many rows have the
 * same key, on average, as statistics tell; 0: they do not.
 */
extern bool gs_tied_few_want_keys(const GsTiedColumn *column, const GsFew *few,
								  GsOrderCompare *compare, int ncolumns,
								  double nrows_expected, double nrows_of_key);

/*
 * How many rows are equal in the first ncolumns sort columns, on average, as far as statistics
 * tell; without NULLs.  A plan that returns more rows than the table has, such as a join, repeats
 * them.  0: not known, because none is a column of a table that has statistics.
 */
extern double gs_tied_rows_of_key(const PlanState *child, const GsSortColumn *columns,
								  int ncolumns);

/*
 * How many of the sort columns a device keys, whatever they cost.  None: statistics tell that
 * hardly any rows tie in the columns before the first one of variable width, so the key may end
 * there.  Otherwise all, or those before the first one whose keys are expensive, for which the rows
 * will show it.  desc: of the rows of child.
 *
 * in_job: participants share the sort, and their keys have to be chosen before a row is known.
 */
extern int	gs_tied_keyed_on_device(const PlanState *child, const GsSortColumn *columns,
									int ncolumns, TupleDesc desc, bool in_job);

#endif							/* GPUSORT_READ_TIED_H */
