/*-------------------------------------------------------------------------
 *
 * block_sum.cuh
 *	  Prefix sums over all threads of a block.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BLOCK_SUM_CUH
#define GPUSORT_BLOCK_SUM_CUH

#include "warp_scan.cuh"

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

#endif /* GPUSORT_BLOCK_SUM_CUH */
