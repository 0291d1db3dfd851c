/*-------------------------------------------------------------------------
 *
 * key_distinct.h
 *	  Estimates how many of the values seen so far are distinct.
 *
 * HyperLogLog with 1,024 registers, an error of about 3 %. An estimate takes a pass over the
 * registers, so callers ask for one at n values, 2n, 4n and so on.  It is made here:
 * estimateHyperLogLog() calls pow() for each register, which takes as long as to sort 100 rows.
 *
 * Two others count for themselves: a type's SortSupport with abbreviated keys of its own
 * (abbrev_abort), and engine/word_sort.c, which needs the exact answer whether equal words come
 * from equal records.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_DISTINCT_H
#define GPUSORT_KEY_DISTINCT_H

#include <math.h>

#include "common/hashfn.h"
#include "lib/hyperloglog.h"

/* No register of HyperLogLog is higher: it is the position of a bit among 32 bits. */
#define GS_DISTINCT_MAX_RANK	33

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
gs_distinct_add_hash(GsDistinct *distinct, uint32 hash)
{
	distinct->nvalues++;
	addHyperLogLog(&distinct->registers, hash);
}

static inline void
gs_distinct_add(GsDistinct *distinct, const void *value, Size nbytes)
{
	gs_distinct_add_hash(distinct, hash_bytes(value, (int) nbytes));
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

/*
 * Few values are estimated by the number of registers that are zero (linear counting).  There is
 * no correction for collisions of 32-bit hash values: there are never so many values.
 */
static inline double
gs_distinct_estimate(const GsDistinct *distinct)
{
	const hyperLogLogState *state = &distinct->registers;
	uint64		sum = 0;		/* of 2^-register, as fixed-point numbers */
	int			nzero = 0;
	double		estimate;

	for (Size i = 0; i < state->nRegisters; i++)
	{
		sum += UINT64_C(1) << (GS_DISTINCT_MAX_RANK - state->hashesArr[i]);
		nzero += state->hashesArr[i] == 0;
	}
	estimate = state->alphaMM / ldexp((double) sum, -GS_DISTINCT_MAX_RANK);
	if (estimate <= 2.5 * state->nRegisters && nzero > 0)
		return state->nRegisters * log((double) state->nRegisters / nzero);
	return estimate;
}

#endif							/* GPUSORT_KEY_DISTINCT_H */
