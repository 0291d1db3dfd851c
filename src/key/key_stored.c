/*-------------------------------------------------------------------------
 *
 * key_stored.c
 *	  The bytes of a value as it is stored.
 *
 * hash_bytes() takes 0.4 ns a byte, which is more than a sort of few distinct long
 * values takes for all else.  So the bytes of a long value go through four
 * multiplications side by side, eight bytes each, and hash_bytes() hashes the results.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key/key_stored.h"

#include "common/hashfn.h"

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
