/*-------------------------------------------------------------------------
 *
 * warp_bitonic.cuh
 *	  A warp sorts 128 keys in registers, without a barrier.
 *
 * This is a bitonic network (Batcher), one warp for each sequence, as in
 * GPU-Warpsort (Ye et al. 2010, step 1).  There, the lockstep of a warp replaced
 * barriers, and keys were in shared memory.  Since sm_70 there is no lockstep, so
 * lanes exchange keys by shuffles, and keys stay in registers.
 *
 * Element e of the sequence is item e / 32 of lane e % 32.  So of the seven distances 1 .. 64,
 * the upper two are between items of the same lane and need no exchange.  In every step all 32
 * lanes perform the same number of compare-exchanges (two pairs each) without divergence;
 * therefore 128 keys are the minimum.
 *
 * Bitonic networks are not stable.  Therefore the number of an element, its place
 * in the input, is the last sort key, so that all elements differ.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_WARP_BITONIC_CUH
#define GPUSORT_WARP_BITONIC_CUH

#include "key_compare.cuh"
#include "warp_match.cuh"

#define GS_BITONIC_ITEMS 4
#define GS_BITONIC_KEYS  (GS_BITONIC_ITEMS * GS_WARP_SIZE)

typedef struct GsElement
{
	uint64_t key;
	uint32_t number;
} GsElement;

/* less(a, b) must be a strict total order.  All lanes call it. */
template <typename Less>
static __device__ __forceinline__ void
gs_warp_bitonic_sort(GsElement (&elements)[GS_BITONIC_ITEMS], Less less)
{
#pragma unroll
	for (uint32_t length = 2; length <= GS_BITONIC_KEYS; length *= 2)
	{
#pragma unroll
		for (uint32_t distance = length / 2; distance > 0; distance /= 2)
		{
			if (distance >= GS_WARP_SIZE)
			{
				constexpr uint32_t lanes = GS_WARP_SIZE;
				const uint32_t step = distance / lanes;

#pragma unroll
				for (uint32_t item = 0; item < GS_BITONIC_ITEMS; item++)
				{
					if ((item & step) == 0)
					{
						/* both are in this lane; up is the same for all lanes */
						const bool up = (item * lanes & length) == 0;
						GsElement low = elements[item];
						GsElement high = elements[item + step];

						if (less(high, low) == up)
						{
							elements[item] = high;
							elements[item + step] = low;
						}
					}
				}
			}
			else
			{
#pragma unroll
				for (uint32_t item = 0; item < GS_BITONIC_ITEMS; item++)
				{
					const uint32_t place = item * GS_WARP_SIZE + gs_lane();
					const bool up = (place & length) == 0;
					const bool lower = (place & distance) == 0;
					GsElement other;

					other.key = __shfl_xor_sync(GS_ALL_LANES, elements[item].key, distance);
					other.number = __shfl_xor_sync(GS_ALL_LANES, elements[item].number, distance);
					/* the lower place gets the smaller element if up */
					if (less(other, elements[item]) == (lower == up))
						elements[item] = other;
				}
			}
		}
	}
}

#endif /* GPUSORT_WARP_BITONIC_CUH */
