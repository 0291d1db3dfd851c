/*-------------------------------------------------------------------------
 *
 * key_distinct.h
 *	  Estimates how many of the values seen so far are distinct.
 *
 * Whether a kind of key pays depends on the values: a dictionary needs few
 * distinct texts, a truncated or abbreviated key many distinct beginnings.  The
 * encoder therefore counts the distinct ones among the first values
 * (HyperLogLog with 1,024 registers, an error of about 3 %).  An estimate takes
 * a pass over the registers, so callers ask for one at n values, 2n, 4n and so on.
 *
 * Two others count for themselves: a type's SortSupport with abbreviated keys of
 * its own (abbrev_abort), and engine/word_sort.c, which is ISO C and needs the
 * exact answer whether equal words come from equal records.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_DISTINCT_H
#define GPUSORT_KEY_DISTINCT_H

#include "common/hashfn.h"
#include "lib/hyperloglog.h"

typedef struct GsDistinct
{
	int64		nvalues;
	int64		next_check;		/* at this number of values */
	hyperLogLogState registers;
} GsDistinct;

/* Allocates 1 kB in the current memory context. */
static inline void
gs_distinct_init(GsDistinct *distinct, int64 first_check)
{
	distinct->nvalues = 0;
	distinct->next_check = first_check;
	initHyperLogLog(&distinct->registers, 10);
}

static inline void
gs_distinct_free(GsDistinct *distinct)
{
	freeHyperLogLog(&distinct->registers);
}

static inline void
gs_distinct_add(GsDistinct *distinct, const void *value, Size nbytes)
{
	distinct->nvalues++;
	addHyperLogLog(&distinct->registers, hash_bytes(value, (int) nbytes));
}

/* Is an estimate due?  If so, the next one is due at twice as many values. */
static inline bool
gs_distinct_check_is_due(GsDistinct *distinct)
{
	if (distinct->nvalues < distinct->next_check)
		return false;
	distinct->next_check *= 2;
	return true;
}

static inline double
gs_distinct_estimate(GsDistinct *distinct)
{
	return estimateHyperLogLog(&distinct->registers);
}

#endif							/* GPUSORT_KEY_DISTINCT_H */
