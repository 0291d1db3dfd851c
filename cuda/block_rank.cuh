/*-------------------------------------------------------------------------
 *
 * block_rank.cuh
 *	  The rank of each key of a tile among the keys of the tile, by one digit.
 *
 * The problem: a stable counting sort of some thousand keys in shared memory.
 *
 * The idea (the multi-scan of Merrill & Grimshaw 2010, with the warp-wide match of
 * later radix sorts): warp w has the w-th contiguous slice of the tile and a row of
 * 256 counters; lane l has the elements l, l + 32, ... of the slice.
 *	1. gs_warp_rank(): for each item, the lanes with equal digits find each other.
 *	   Each lane takes the counter plus the number of lower lanes with its digit,
 *	   and the highest lane stores the increased counter.  So each key gets the
 *	   number of keys with its digit that precede it in the slice.
 *	2. gs_digit_column(): thread d adds the counters of digit d over the warps.  A
 *	   prefix sum over the digits follows, and gs_digit_rows() replaces each counter
 *	   by the place of the first such key of that warp.
 *	3. rank = counter of (warp, digit) + the number of step 1.
 *
 * Counters and ranks have 16 bits: a tile has at most 65535 keys.
 *
 * Synchronization: __syncwarp() orders all accesses of a warp to its row; between
 * warps, the caller needs a barrier after step 1 and after step 2.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BLOCK_RANK_CUH
#define GPUSORT_BLOCK_RANK_CUH

#include "block_scan.cuh"

/* The digit place of a pass. */
typedef struct GsPlace
{
	uint32_t shift;
	uint32_t mask; /* 2^bits - 1; at most 255 */
} GsPlace;

template <typename Key>
static __device__ __forceinline__ uint32_t
gs_digit(Key key, GsPlace place)
{
	return (uint32_t) (key >> place.shift) & place.mask;
}

/* Step 1.  s_counters is the row of the warp and must be zero.  A word of ranks has two items. */
template <int nitems, typename Key>
static __device__ __forceinline__ void
gs_warp_rank(const Key *s_slice, uint16_t *s_counters, GsPlace place,
			 uint32_t (&ranks)[(nitems + 1) / 2])
{
	const uint32_t below = gs_lanes_below();
	const uint32_t above = gs_lanes_above();

#pragma unroll
	for (int item = 0; item < nitems; item++)
	{
		uint32_t digit = gs_digit(s_slice[item * GS_WARP_SIZE + gs_lane()], place);
		uint32_t peers = gs_warp_peers(digit);
		uint32_t rank = s_counters[digit] + __popc(peers & below);

		__syncwarp();
		if ((peers & above) == 0)
			s_counters[digit] = (uint16_t) (rank + 1);
		__syncwarp();
		if (item % 2 == 0)
			ranks[item / 2] = rank;
		else
			ranks[item / 2] |= rank << 16;
	}
}

/*
 * Step 2, first half, by thread d of the first 256: stores the counters of digit d
 * of all warps and returns their sum.
 */
template <int nwarps>
static __device__ __forceinline__ uint32_t
gs_digit_column(const uint16_t *s_counters, uint32_t (&column)[nwarps])
{
	uint32_t total = 0;

#pragma unroll
	for (int warp = 0; warp < nwarps; warp++)
	{
		column[warp] = s_counters[warp * GS_NDIGITS + threadIdx.x];
		total += column[warp];
	}
	return total;
}

/* Step 2, second half: first is the place of the first key of the tile with digit d. */
template <int nwarps>
static __device__ __forceinline__ void
gs_digit_rows(uint16_t *s_counters, const uint32_t (&column)[nwarps], uint32_t first)
{
#pragma unroll
	for (int warp = 0; warp < nwarps; warp++)
	{
		s_counters[warp * GS_NDIGITS + threadIdx.x] = (uint16_t) first;
		first += column[warp];
	}
}

/* Clears the counters of the calling warp. */
static __device__ __forceinline__ void
gs_warp_clear_counters(uint16_t *s_counters)
{
	static_assert(GS_NDIGITS * sizeof(uint16_t) == GS_WARP_SIZE * sizeof(uint4), "");
	((uint4 *) s_counters)[gs_lane()] = make_uint4(0, 0, 0, 0);
}

static __device__ __forceinline__ uint32_t
gs_half(const uint32_t *halves, int item)
{
	return item % 2 == 0 ? halves[item / 2] & 0xffff : halves[item / 2] >> 16;
}

/* Step 3: computes the places in the tile. */
template <int nitems, typename Key>
static __device__ __forceinline__ void
gs_finish_ranks(const Key (&keys)[nitems], const uint16_t *s_counters, GsPlace place,
				uint32_t (&ranks)[(nitems + 1) / 2])
{
#pragma unroll
	for (int item = 0; item < nitems; item++)
		ranks[item / 2] += (uint32_t) s_counters[gs_digit(keys[item], place)]
			<< (item % 2 == 0 ? 0 : 16);
}

#endif /* GPUSORT_BLOCK_RANK_CUH */
