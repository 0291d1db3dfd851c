/*-------------------------------------------------------------------------
 *
 * block_scan.cuh
 *	  Prefix sums over the first 256 threads of a block, one for each digit.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BLOCK_SCAN_CUH
#define GPUSORT_BLOCK_SCAN_CUH

#include "warp_scan.cuh"

#define GS_NDIGITS     256
#define GS_DIGIT_WARPS (GS_NDIGITS / GS_WARP_SIZE)

/*
 * Exclusive prefix sum over threads 0 .. 255, in two steps with a barrier of the block between
 * them.  Only these threads call both.  s_sums has GS_DIGIT_WARPS elements.
 *
 * (A barrier of only the 256 threads, so that other warps can go on, gains nothing,
 * and racecheck of CUDA 13.0 does not support it.)
 */
template <typename T>
static __device__ __forceinline__ T
gs_digit_sum_begin(T x, T *s_sums)
{
	T inclusive = gs_warp_inclusive_sum(x);

	if (gs_lane() == GS_WARP_SIZE - 1)
		s_sums[threadIdx.x / GS_WARP_SIZE] = inclusive;
	return inclusive - x;
}

/* begun is the result of the first step. */
template <typename T>
static __device__ __forceinline__ T
gs_digit_sum_end(T begun, const T *s_sums)
{
	const uint32_t warp = threadIdx.x / GS_WARP_SIZE;

#pragma unroll
	for (uint32_t other = 0; other < GS_DIGIT_WARPS - 1; other++)
	{
		T sum = s_sums[other];

		if (other < warp)
			begun += sum;
	}
	return begun;
}

#endif /* GPUSORT_BLOCK_SCAN_CUH */
