/*-------------------------------------------------------------------------
 *
 * key_compare.cuh
 *	  The order of two keys of a merge sort, tails included.
 *
 * A key is a 64-bit word.  Without tails the word is all; with tails equal
 * words ask the strings themselves, which the keys' values name
 * (device_sort.h).
 *
 * Strings are compared eight bytes at a time, as big-endian numbers: that is
 * memcmp's order.  A string begins anywhere, loads are aligned: so a number is
 * put together from one or two aligned words.  Words that hold no byte of the
 * string are never read, so nothing outside the memory that the string is in.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_COMPARE_CUH
#define GPUSORT_KEY_COMPARE_CUH

#include <stdint.h>

#include "device_sort.h"

/* Bytes of a string that its prefix holds; a tail begins behind them. */
#define GS_PREFIX_BYTES 8

typedef struct GsTails
{
	const GsTail *d_tails;
	const GsTailOrder *d_order;
} GsTails;

static __device__ __forceinline__ uint64_t
gs_swap_bytes(uint64_t word)
{
	const uint32_t low = (uint32_t) word;
	const uint32_t high = (uint32_t) (word >> 32);

	return (uint64_t) __byte_perm(low, 0, 0x0123) << 32 | __byte_perm(high, 0, 0x0123);
}

/* The nbytes (1 or more; 8 count) at address as a number, zero padded. */
static __device__ __forceinline__ uint64_t
gs_load_string(uint64_t address, uint32_t nbytes)
{
	const uint64_t *word = (const uint64_t *) (address & ~UINT64_C(7));
	const uint32_t skipped = (uint32_t) address & 7;
	uint64_t number = word[0] >> (8 * skipped);

	if (skipped != 0 && skipped + nbytes > 8)
		number |= word[1] << (64 - 8 * skipped);
	number = gs_swap_bytes(number);
	if (nbytes < 8)
		number &= ~(~UINT64_C(0) >> (8 * nbytes));
	return number;
}

/*
 * Strings whose first skip bytes, 8 or more, are equal: below, at or above 0 as
 * a sorts before, with or after b.  Beyond the shorter one's end nothing is
 * compared, so zero padding never passes for content.  *common becomes the
 * number of equal bytes, at least skip.
 */
static __device__ __forceinline__ int
gs_compare_tails(const GsTail &a, const GsTail &b, uint32_t skip, uint32_t *common)
{
	const uint32_t shorter = min(a.length, b.length);

	for (uint32_t i = skip; i < shorter; i += 8)
	{
		uint64_t number_a = gs_load_string(a.address + i - GS_PREFIX_BYTES, shorter - i);
		uint64_t number_b = gs_load_string(b.address + i - GS_PREFIX_BYTES, shorter - i);

		if (number_a != number_b)
		{
			*common = i + __clzll((long long) (number_a ^ number_b)) / 8;
			return number_a < number_b ? -1 : 1;
		}
	}
	*common = max(shorter, skip);
	return a.length < b.length ? -1 : a.length > b.length;
}

/* The order of the strings that two values name, as they are to be sorted. */
static __device__ inline int
gs_tails_order(const GsTails &tails, uint64_t value_a, uint64_t value_b)
{
	uint32_t common;
	const int order = gs_compare_tails(tails.d_tails[value_a], tails.d_tails[value_b],
									   tails.d_order->skip, &common);

	return tails.d_order->descends ? -order : order;
}

template <bool has_tails>
static __device__ __forceinline__ bool
gs_key_less(const GsTails &tails, uint64_t a, uint64_t value_a, uint64_t b, uint64_t value_b)
{
	if (!has_tails || a != b)
		return a < b;
	return gs_tails_order(tails, value_a, value_b) < 0;
}

#endif /* GPUSORT_KEY_COMPARE_CUH */
