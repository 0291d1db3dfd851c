/*-------------------------------------------------------------------------
 *
 * key_compare.cuh
 *	  The order of two keys of a merge sort, including tails.
 *
 * A key is a 64-bit word.  With tails, equal words are resolved by comparing the
 * strings that the values of the keys refer to (device_sort.h).
 *
 * Strings are compared eight bytes at a time, as big-endian numbers, which is the
 * order of memcmp().  A string may begin anywhere but loads are aligned, so a number
 * is assembled from one or two aligned words.  Words without a byte of the string
 * are never read, so nothing outside its memory is.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_COMPARE_CUH
#define GPUSORT_KEY_COMPARE_CUH

#include <stdint.h>

#include "device_sort.h"

/* Bytes of a string in its prefix; the tail begins after them. */
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

/* The first 8 of nbytes (1 or more) at address as a number, padded with zeros. */
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
 * Compares two strings whose first skip bytes, 8 or more, are equal.  Returns a number less than,
 * equal to, or greater than 0, as memcmp().  Compares only up to the end of the shorter one, so
 * the padding does not matter.  *common becomes the number of equal bytes, at least skip.
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

/* The sort order of the strings that two values refer to. */
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
