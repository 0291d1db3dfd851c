/*-------------------------------------------------------------------------
 *
 * kernel_radix_block.cuh
 *	  Radix sort of keys that fit the shared memory of one block, in one launch.
 *
 * The passes are those of kernel_radix_pass.cuh without look-back, and the keys stay in shared
 * memory between passes (as in the small sort of back40computing).  The bits that vary are the
 * exclusive or of the AND and the OR of all keys, which is computed before the first pass.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KERNEL_RADIX_BLOCK_CUH
#define GPUSORT_KERNEL_RADIX_BLOCK_CUH

#include "kernel_radix_plan.cuh"
#include "tuning.cuh"

#define GS_BLOCK_SORT (GS_BLOCK_SORT_THREADS * GS_BLOCK_SORT_ITEMS)

template <bool has_values>
struct GsRadixBlockShared
{
	alignas(16) uint64_t keys[GS_BLOCK_SORT];
	alignas(16) uint32_t values[has_values ? GS_BLOCK_SORT : 1];
	alignas(16) uint16_t counters[GS_BLOCK_SORT_THREADS / GS_WARP_SIZE][GS_NDIGITS];
	uint32_t sums[GS_DIGIT_WARPS];
};

template <bool has_values>
static __global__ void
__launch_bounds__(GS_BLOCK_SORT_THREADS)
	gs_radix_block_kernel(const __grid_constant__ GsRadixPlan plan)
{
	constexpr int nthreads = GS_BLOCK_SORT_THREADS;
	constexpr int nitems = GS_BLOCK_SORT_ITEMS;
	constexpr int nwarps = nthreads / GS_WARP_SIZE;

	extern __shared__ __align__(16) unsigned char s_memory[];
	__shared__ unsigned long long s_all;
	__shared__ unsigned long long s_any;
	GsRadixBlockShared<has_values> &s = *(GsRadixBlockShared<has_values> *) s_memory;

	const uint32_t nvalid = (uint32_t) plan.nitems;
	const uint32_t warp = threadIdx.x / GS_WARP_SIZE;
	const uint32_t slice = warp * nitems * GS_WARP_SIZE;
	uint64_t *s_slice = &s.keys[slice];
	uint16_t *s_counters = s.counters[warp];
	uint64_t all = ~UINT64_C(0);
	uint64_t any = 0;

	if (threadIdx.x == 0)
	{
		s_all = ~0ull;
		s_any = 0;
	}
	__syncthreads();
#pragma unroll
	for (int item = 0; item < nitems; item++)
	{
		uint32_t i = slice + item * GS_WARP_SIZE + gs_lane();
		uint64_t key = ~UINT64_C(0);

		if (i < nvalid)
		{
			key = plan.d_keys[0][i];
			all &= key;
			any |= key;
			if constexpr (has_values)
				s.values[i] = plan.d_values[0][i];
		}
		s.keys[i] = key;
	}
#pragma unroll
	for (int step = GS_WARP_SIZE / 2; step > 0; step /= 2)
	{
		all &= __shfl_xor_sync(GS_ALL_LANES, all, step);
		any |= __shfl_xor_sync(GS_ALL_LANES, any, step);
	}
	if (gs_lane() == 0)
	{
		atomicAnd(&s_all, all);
		atomicOr(&s_any, any);
	}
	__syncthreads();

	const uint64_t varying = s_all ^ s_any;

	for (uint32_t place_number = 0; place_number < plan.nplaces; place_number++)
	{
		const GsPlace place = plan.places[place_number];
		uint32_t ranks[(nitems + 1) / 2];
		uint64_t keys[nitems];

		if (gs_digit(varying, place) == 0)
			continue;
		gs_warp_clear_counters(s_counters);
		__syncwarp();
		gs_warp_rank<nitems>(s_slice, s_counters, place, ranks);
		__syncthreads();

		uint32_t column[nwarps];
		uint32_t before = 0;

		if (threadIdx.x < GS_NDIGITS)
			before = gs_digit_sum_begin(gs_digit_column<nwarps>(&s.counters[0][0], column), s.sums);
		__syncthreads();
		if (threadIdx.x < GS_NDIGITS)
			gs_digit_rows<nwarps>(&s.counters[0][0], column, gs_digit_sum_end(before, s.sums));
#pragma unroll
		for (int item = 0; item < nitems; item++)
			keys[item] = s_slice[item * GS_WARP_SIZE + gs_lane()];
		__syncthreads();
		gs_finish_ranks<nitems>(keys, s_counters, place, ranks);
#pragma unroll
		for (int item = 0; item < nitems; item++)
			s.keys[gs_half(ranks, item)] = keys[item];
		if constexpr (has_values)
		{
			uint32_t values[nitems];

#pragma unroll
			for (int item = 0; item < nitems; item++)
				values[item] = s.values[slice + item * GS_WARP_SIZE + gs_lane()];
			__syncthreads();
#pragma unroll
			for (int item = 0; item < nitems; item++)
				s.values[gs_half(ranks, item)] = values[item];
		}
		__syncthreads();
	}

	for (uint32_t i = threadIdx.x; i < nvalid; i += nthreads)
	{
		plan.d_keys[0][i] = s.keys[i];
		if constexpr (has_values)
			plan.d_values[0][i] = s.values[i];
	}
	if (threadIdx.x == 0)
		*plan.d_selector = 0;
}

#endif /* GPUSORT_KERNEL_RADIX_BLOCK_CUH */
