/*-------------------------------------------------------------------------
 *
 * order_compare.h
 *	  Compares two stored rows by PostgreSQL's comparators.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ORDER_COMPARE_H
#define GPUSORT_ORDER_COMPARE_H

#include "access/htup_details.h"
#include "access/tupdesc.h"

#include "engine/engine.h"
#include "key/key_columns.h"

typedef struct GsOrderCompare GsOrderCompare;

/*
 * Are two values of variable width the same, as they are stored?  Then they are equal in every
 * order.
 */
static inline bool
gs_have_same_bytes(Datum a, Datum b)
{
	const char *a_bytes = DatumGetPointer(a);
	const char *b_bytes = DatumGetPointer(b);
	const Size	nbytes = VARSIZE_ANY(a_bytes);
	uint64		a_last;
	uint64		b_last;

	if (nbytes != VARSIZE_ANY(b_bytes))
		return false;
	/* in an order, values next to each other often begin alike, but they seldom end alike */
	if (nbytes >= sizeof(uint64))
	{
		memcpy(&a_last, a_bytes + nbytes - sizeof(uint64), sizeof(uint64));
		memcpy(&b_last, b_bytes + nbytes - sizeof(uint64), sizeof(uint64));
		if (a_last != b_last)
			return false;
	}
	return memcmp(a_bytes, b_bytes, nbytes) == 0;
}

/* In the current memory context, in which the comparators also run. */
extern GsOrderCompare *gs_order_compare_create(const GsSortColumn *columns, int ncolumns,
											   TupleDesc desc);

/* A hash of the sort columns from `first` to before `end`, as they are stored. */
extern uint32 gs_order_compare_hash(GsOrderCompare *compare, const void *row, int first, int end);

/* Where comparators run.  Comparisons take less if it is the current context. */
extern MemoryContext gs_order_compare_context(const GsOrderCompare *compare);

/*
 * The share of the memory of rows, which take row_bytes each, that is to reserve for copies of the
 * values of column `first`; 0: they are compared where they are.
 */
extern double gs_order_compare_copies_share(const GsOrderCompare *compare, int first,
											double row_bytes);

/*
 * From now on, locating a row copies such values, and fetches those that comparisons would, into at
 * most `nbytes` bytes; they are valid until the next call of this function.  0: no
 * longer.  Returns how many bytes the copies took until now.
 */
extern Size gs_order_compare_keep(GsOrderCompare *compare, Size nbytes);

/* < 0, 0 or > 0 as row a sorts before, like or after row b. */
extern int	gs_order_compare_rows(GsOrderCompare *compare, const void *a, const void *b);

/*
 * For a sequence of rows: begin with the first, then compare each row with the
 * one before, which must still be valid.  The same result as
 * gs_order_compare_rows(before, row), for half of the work.
 */
extern void gs_order_compare_begin(GsOrderCompare *compare, const void *row);
extern int	gs_order_compare_next(GsOrderCompare *compare, const void *row);

/* The column that decided the last comparison. */
extern int	gs_order_compare_decisive(const GsOrderCompare *compare);

/* ------------------------------------------------------------- order_guess.c */

/* The number of guesses, of any type. */
#define GS_GUESSES	18

/*
 * The code of a value, not NULL, of a column, by a guess from 0 to GS_GUESSES - 1.  Equal bytes
 * have equal codes.  A value that is compressed or out of line is fetched in part; may ereport.
 */
extern uint64 gs_guess_code(Form_pg_attribute column, Datum value, int guess);

#endif							/* GPUSORT_ORDER_COMPARE_H */
