/*-------------------------------------------------------------------------
 *
 * warp_bitonic.cuh
 *	  A warp sorts 128 keys in registers, without a barrier.
 *
 * Batcher's bitonic network, a warp to a sequence, as GPU-Warpsort has it (Ye
 * et al., 2010, step 1).  There the warp's lockstep took the place of
 * barriers and shared memory held the keys; lockstep is no longer promised
 * (sm_70), so lanes exchange by shuffles, and keys stay in registers.
 *
 * Element e of the sequence is item e / 32 of lane e % 32.  So of the seven
 * distances 1 .. 64 the upper two are between items of the same lane, which
 * costs no exchange.  All 32 lanes do the same number of compare-exchanges at
 * every step (two pairs each), none diverges: that is why 128 is the least.
 *
 * Bitonic networks are not stable: the element's number, its place in the
 * input, is the last key, and makes all elements different.
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

/*
 * less(a, b) is a strict total order of elements.  All lanes call it.
 */
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
				const uint32_t apart = distance / lanes;

#pragma unroll
				for (uint32_t item = 0; item < GS_BITONIC_ITEMS; item++)
				{
					if ((item & apart) == 0)
					{
						/* both in this lane; up is the same for all lanes */
						const bool up = (item * lanes & length) == 0;
						GsElement low = elements[item];
						GsElement high = elements[item + apart];

						if (less(high, low) == up)
						{
							elements[item] = high;
							elements[item + apart] = low;
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
					/* the lower place keeps the smaller if the order is up */
					if (less(other, elements[item]) == (lower == up))
						elements[item] = other;
				}
			}
		}
	}
}

#endif /* GPUSORT_WARP_BITONIC_CUH */
