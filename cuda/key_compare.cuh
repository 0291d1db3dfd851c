/*-------------------------------------------------------------------------
 *
 * key_compare.cuh
 *	  The order of two keys of a merge sort, tails included.
 *
 * A key is a 64-bit word and the row it belongs to.  Without tails the word
 * is all; with tails it is the first 8 bytes of a byte string, zero padded,
 * and equal words ask the strings themselves (device_sort.h).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_COMPARE_CUH
#define GPUSORT_KEY_COMPARE_CUH

#include <stdint.h>

typedef struct GsTails
{
	const uint8_t *d_bytes;
	const uint64_t *d_offset;
	const uint32_t *d_length;
} GsTails;

/*
 * Equal first words: does the string of row a sort before that of row b?
 * Beyond the shorter one's end nothing is compared, so zero padding never
 * passes for content.
 */
static __host__ __device__ inline bool
gs_tail_less(const GsTails &tails, uint64_t row_a, uint64_t row_b)
{
	const uint32_t length_a = tails.d_length[row_a];
	const uint32_t length_b = tails.d_length[row_b];
	const uint32_t shorter = length_a < length_b ? length_a : length_b;
	const uint8_t *a = tails.d_bytes + tails.d_offset[row_a];
	const uint8_t *b = tails.d_bytes + tails.d_offset[row_b];

	for (uint32_t i = 0; i + 8 < shorter; i++)
		if (a[i] != b[i])
			return a[i] < b[i];
	return length_a < length_b;
}

template <bool has_tails>
static __host__ __device__ __forceinline__ bool
gs_key_less(const GsTails &tails, uint64_t a, uint64_t row_a, uint64_t b, uint64_t row_b)
{
	if (!has_tails || a != b)
		return a < b;
	return gs_tail_less(tails, row_a, row_b);
}

#endif							/* GPUSORT_KEY_COMPARE_CUH */
