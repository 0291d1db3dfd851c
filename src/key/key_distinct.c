/*-------------------------------------------------------------------------
 *
 * key_distinct.c
 *	  Which values are the same as they are stored, and how many are distinct.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "key/key_distinct.h"

/*
 * hash_bytes() takes 0.4 ns a byte, which is more than a sort of few distinct long values takes for
 * all else.  So the bytes of a long value go through four multiplications side by side, eight bytes
 * each, and hash_bytes() hashes the results.
 */
#define NLANES		4
#define LANES_BYTES	(NLANES * sizeof(uint64))

/* An odd number with as many ones as zeros in no pattern: 2^64 divided by the golden ratio. */
#define MULTIPLIER	UINT64CONST(0x9E3779B97F4A7C15)

/* The rotation brings the high bits, which a multiplication does not mix, to the low ones. */
static inline uint64
mix_lane(uint64 lane, const unsigned char *bytes)
{
	uint64		word;

	memcpy(&word, bytes, sizeof(word));
	word ^= lane;
	return (word << 29 | word >> 35) * MULTIPLIER;
}

static uint32
hash_long(const unsigned char *bytes, Size nbytes)
{
	uint64		lanes[NLANES] = {0, 1, 2, 3};

	for (; nbytes >= LANES_BYTES; bytes += LANES_BYTES, nbytes -= LANES_BYTES)
	{
		for (int i = 0; i < NLANES; i++)
			lanes[i] = mix_lane(lanes[i], bytes + i * sizeof(uint64));
	}
	return hash_combine(hash_bytes((const unsigned char *) lanes, sizeof(lanes)),
						hash_bytes(bytes, nbytes));
}

uint32
gs_stored_hash(const char *bytes, Size nbytes)
{
	return nbytes >= 2 * LANES_BYTES ? hash_long((const unsigned char *) bytes, nbytes) :
		hash_bytes((const unsigned char *) bytes, nbytes);
}

/* No register of HyperLogLog is higher: it is the position of a bit among 32 bits. */
#define GS_DISTINCT_MAX_RANK	33

/*
 * estimateHyperLogLog() calls pow() for each register, which takes as long as to sort 100 rows.
 *
 * Few values are estimated by the number of registers that are zero (linear counting).  There is
 * no correction for collisions of 32-bit hash values: there are never so many values.
 */
double
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
