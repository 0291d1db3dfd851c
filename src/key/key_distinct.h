/*-------------------------------------------------------------------------
 *
 * key_distinct.h
 *	  Which values are the same as they are stored, and how many are distinct.
 *
 * Values that are stored alike, with the same bytes and both toasted or neither, are equal in every
 * order.  A value that is compressed need not be decompressed for this.  Values that are equal can
 * be stored differently: the numerics 1.0 and 1.00, or with other compression.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_DISTINCT_H
#define GPUSORT_KEY_DISTINCT_H

#include "pg_compat.h"

#include "common/hashfn.h"
#include "lib/hyperloglog.h"

/* ------------------ stored values, not passed by value; attlen as in pg_attribute */

/* Is a value compressed or out of line?  Then its header tells more than its length. */
static inline bool
gs_is_toasted(int16 attlen, Datum value)
{
	const void *at = DatumGetPointer(value);

	return attlen == -1 && (VARATT_IS_COMPRESSED(at) || VARATT_IS_EXTERNAL(at));
}

/* The bytes of a value, without a header that tells only their number. */
static inline const char *
gs_stored_bytes(int16 attlen, Datum value, Size *nbytes)
{
	const char *at = DatumGetPointer(value);

	if (attlen == -1 && !gs_is_toasted(attlen, value))
	{
		*nbytes = VARSIZE_ANY_EXHDR(at);
		return VARDATA_ANY(at);
	}
	*nbytes = attlen > 0 ? attlen : attlen == -1 ? VARSIZE_ANY(at) : strlen(at);
	return at;
}

/* A hash of such bytes. */
extern uint32 gs_stored_hash(const char *bytes, Size nbytes);

/* ------------------------------------- an estimate of the number of distinct values */

/*
 * HyperLogLog with 1,024 registers, an error of about 3 %.  An estimate takes a pass over the
 * registers, so callers ask for one at n values, 2n, 4n and so on.
 */
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

extern double gs_distinct_estimate(const GsDistinct *distinct);

#endif							/* GPUSORT_KEY_DISTINCT_H */
