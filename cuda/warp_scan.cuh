/*-------------------------------------------------------------------------
 *
 * warp_scan.cuh
 *	  Prefix sums over the lanes of a warp, by shuffles.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_WARP_SCAN_CUH
#define GPUSORT_WARP_SCAN_CUH

#include "warp_match.cuh"

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

#endif /* GPUSORT_WARP_SCAN_CUH */
