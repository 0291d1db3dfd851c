/*-------------------------------------------------------------------------
 *
 * block_scan.cuh
 *	  Prefix sums over the lanes of a warp, the threads of a block, and the first 256 threads of
 *	  a block, one for each digit.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BLOCK_SCAN_CUH
#define GPUSORT_BLOCK_SCAN_CUH

#include "warp_match.cuh"

#define GS_NDIGITS     256
#define GS_DIGIT_WARPS (GS_NDIGITS / GS_WARP_SIZE)

/* The sum of x over this lane and those below it (Hillis & Steele). */
template <typename T>
static __device__ __forceinline__ T
gs_warp_inclusive_sum(T x)
{
#pragma unroll
	for (uint32_t step = 1; step < GS_WARP_SIZE; step *= 2)
	{
		T below = __shfl_up_sync(GS_ALL_LANES, x, step);

		if (gs_lane() >= step)
			x += below;
	}
	return x;
}

/*
 * Inclusive prefix sum of x over the threads of the block; *total becomes the sum
 * over all threads.  s_sums has an element for each warp and can be reused after
 * the next barrier of the caller.  All threads call it; at most 32 warps.
 */
template <int nthreads, typename T>
static __device__ __forceinline__ T
gs_block_inclusive_sum(T x, T *s_sums, T *total)
{
	constexpr uint32_t nwarps = nthreads / GS_WARP_SIZE;
	const uint32_t warp = threadIdx.x / GS_WARP_SIZE;

	static_assert(nthreads % GS_WARP_SIZE == 0 && nwarps <= GS_WARP_SIZE, "");
	x = gs_warp_inclusive_sum(x);
	if (gs_lane() == GS_WARP_SIZE - 1)
		s_sums[warp] = x;
	__syncthreads();

	/* every warp adds the sums of all warps, which is cheaper than a second barrier */
	T sums = gs_warp_inclusive_sum(gs_lane() < nwarps ? s_sums[gs_lane()] : (T) 0);
	T before = __shfl_sync(GS_ALL_LANES, sums, warp == 0 ? 0 : warp - 1);

	*total = __shfl_sync(GS_ALL_LANES, sums, nwarps - 1);
	return warp == 0 ? x : x + before;
}

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
