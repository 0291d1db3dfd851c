/*-------------------------------------------------------------------------
 *
 * warp_match.cuh
 *	  Which lanes of a warp have the same digit?
 *
 * The result is a mask of lanes, from one ballot for each bit: a lane keeps the votes that agree
 * with its own bit.  So the cost is the number of bits, independent of the data.  The instruction
 * match.any takes longer, because the hardware executes it one distinct value after another (100
 * M u64 keys: 18.7 ms instead of 11.4, H200, in the first version of the radix sort, 2026-11-21).
 *
 * Ballots derive from the split of the local sorts of Merrill & Grimshaw, the mask of
 * lanes from Ashkiani's multisplit (2016) and Onesweep (Adinets & Merrill, 2022).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_WARP_MATCH_CUH
#define GPUSORT_WARP_MATCH_CUH

#include <stdint.h>

#define GS_WARP_SIZE 32
#define GS_ALL_LANES 0xffffffffu

static __device__ __forceinline__ uint32_t
gs_lane(void)
{
	return threadIdx.x % GS_WARP_SIZE;
}

static __device__ __forceinline__ uint32_t
gs_lanes_below(void)
{
	uint32_t mask;

	asm("mov.u32 %0, %%lanemask_lt;"
		: "=r"(mask));
	return mask;
}

static __device__ __forceinline__ uint32_t
gs_lanes_above(void)
{
	uint32_t mask;

	asm("mov.u32 %0, %%lanemask_gt;"
		: "=r"(mask));
	return mask;
}

/* The lanes with the same digit, of 8 bits, as this one.  All lanes call it. */
static __device__ __forceinline__ uint32_t
gs_warp_peers(uint32_t digit)
{
	uint32_t peers = GS_ALL_LANES;

#pragma unroll
	for (int bit = 0; bit < 8; bit++)
	{
		uint32_t agree;

		/*
		 * Assembly, because most instructions of a pass are in this loop: four for
		 * each bit, and seven when compiled from C.
		 */
		asm volatile("{\n"
					 "	.reg .pred mine;\n"
					 "	.reg .b32 one;\n"
					 "	and.b32 one, %1, %2;\n"
					 "	setp.ne.u32 mine, one, 0;\n"
					 "	vote.sync.ballot.b32 %0, mine, 0xffffffff;\n"
					 "	@!mine not.b32 %0, %0;\n"
					 "}"
					 : "=r"(agree)
					 : "r"(digit), "r"(1u << bit));
		peers &= agree;
	}
	return peers;
}

#endif /* GPUSORT_WARP_MATCH_CUH */
