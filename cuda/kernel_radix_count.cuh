/*-------------------------------------------------------------------------
 *
 * kernel_radix_count.cuh
 *	  Counts the digits of the keys at all digit places, in one read.
 *
 * A pass does not change how often a digit occurs at a place, so all places are counted before
 * the first pass.  Each block counts in shared memory and adds to the counts in device memory.
 * The last block to do so computes what the passes need: the output place of the first key of
 * each digit, and the list of places that vary.  A place where all keys have the same digit is
 * not in the list (the early exit of back40computing, but before the pass instead of in it).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KERNEL_RADIX_COUNT_CUH
#define GPUSORT_KERNEL_RADIX_COUNT_CUH

#include "kernel_radix_plan.cuh"

template <typename Key>
static __device__ __forceinline__ void
gs_count_key(const GsRadixPlan &plan, uint32_t (*s_counts)[GS_NDIGITS], Key key)
{
#pragma unroll
	for (uint32_t place = 0; place < sizeof(Key); place++)
		if (place < plan.nplaces)
			atomicAdd(&s_counts[place][gs_digit(key, plan.places[place])], 1);
}

/*
 * The last block: prefix sums of the counts, and the list of passes.  All places
 * are processed at the same time, because one memory latency for each would slow
 * small sorts down: groups of 256 threads, one for each digit, share the places.
 */
template <int nthreads>
static __device__ __forceinline__ void
gs_plan_passes(const GsRadixPlan &plan)
{
	constexpr uint32_t ngroups = nthreads / GS_NDIGITS;
	constexpr uint32_t nshare = GS_MAX_PLACES / ngroups;

	static_assert(nthreads % GS_NDIGITS == 0 && GS_MAX_PLACES % ngroups == 0, "");
	__shared__ uint64_t s_sums[GS_MAX_PLACES][GS_DIGIT_WARPS];
	__shared__ bool s_varies[GS_MAX_PLACES];
	GsRadixControl *control = plan.d_control;
	const uint32_t digit = threadIdx.x % GS_NDIGITS;
	const uint32_t group = threadIdx.x / GS_NDIGITS;
	const uint32_t warp = digit / GS_WARP_SIZE;
	uint64_t counts[nshare];
	uint64_t inclusive[nshare];

	if (threadIdx.x < GS_MAX_PLACES)
		s_varies[threadIdx.x] = threadIdx.x < plan.nplaces;
#pragma unroll
	for (uint32_t i = 0; i < nshare; i++)
	{
		uint32_t place = i * ngroups + group;

		counts[i] = place < plan.nplaces ?
			__ldcg((const unsigned long long *) &control->counts[place][digit]) :
			0;
	}
#pragma unroll
	for (uint32_t i = 0; i < nshare; i++)
	{
		inclusive[i] = gs_warp_inclusive_sum<uint64_t>(counts[i]);
		if (gs_lane() == GS_WARP_SIZE - 1)
			s_sums[i * ngroups + group][warp] = inclusive[i];
	}
	__syncthreads();
#pragma unroll
	for (uint32_t i = 0; i < nshare; i++)
	{
		uint32_t place = i * ngroups + group;

		if (place < plan.nplaces)
		{
			uint64_t before = inclusive[i] - counts[i];

			for (uint32_t other = 0; other < warp; other++)
				before += s_sums[place][other];
			control->first[place][0][digit] = before;
			if (counts[i] == plan.nitems)
				s_varies[place] = false;
		}
	}
	__syncthreads();
	if (threadIdx.x == 0)
	{
		uint32_t npasses = 0;

		for (uint32_t place = 0; place < plan.nplaces; place++)
			if (s_varies[place])
				control->place_of[npasses++] = place;
		control->npasses = npasses;
		*plan.d_selector = npasses % 2;
	}
}

/*
 * Adds the counts of a block to those in device memory; the last block then plans the
 * passes.  All threads call it, after a barrier.
 */
template <int nthreads>
static __device__ __forceinline__ void
gs_add_counts(const GsRadixPlan &plan, const uint32_t (*s_counts)[GS_NDIGITS])
{
	__shared__ bool s_last;

	for (uint32_t i = threadIdx.x; i < plan.nplaces * GS_NDIGITS; i += nthreads)
	{
		uint32_t count = (&s_counts[0][0])[i];

		if (count != 0)
			atomicAdd((unsigned long long *) &(&plan.d_control->counts[0][0])[i], count);
	}
	__threadfence();
	__syncthreads();
	if (threadIdx.x == 0)
		s_last = atomicAdd(&plan.d_control->ncounted, 1) + 1 == gridDim.x;
	__syncthreads();
	if (s_last)
	{
		__threadfence();
		gs_plan_passes<nthreads>(plan);
	}
}

template <int nthreads>
static __global__ void
__launch_bounds__(nthreads)
	gs_radix_count_kernel(const __grid_constant__ GsRadixPlan plan)
{
	constexpr uint32_t nvector = sizeof(uint4) / sizeof(uint64_t);
	constexpr uint32_t nunroll = 4;

	__shared__ uint32_t s_counts[GS_MAX_PLACES][GS_NDIGITS];

	const uint4 *d_vectors = (const uint4 *) plan.d_keys[0];
	const uint64_t nvectors = plan.nitems / nvector;
	const uint64_t step = (uint64_t) nthreads * nunroll;

#if __CUDA_ARCH__ >= 900
	/* lets the first pass start early; it waits for this kernel itself */
	cudaTriggerProgrammaticLaunchCompletion();
#endif
	for (uint32_t i = threadIdx.x; i < GS_MAX_PLACES * GS_NDIGITS; i += nthreads)
		(&s_counts[0][0])[i] = 0;
	__syncthreads();

	for (uint64_t start = blockIdx.x * step; start < nvectors; start += gridDim.x * step)
	{
		union
		{
			uint4 vector;
			uint64_t keys[nvector];
		} loaded[nunroll];

#pragma unroll
		for (uint32_t i = 0; i < nunroll; i++)
		{
			uint64_t at = start + i * nthreads + threadIdx.x;

			if (at < nvectors)
				loaded[i].vector = d_vectors[at];
		}
#pragma unroll
		for (uint32_t i = 0; i < nunroll; i++)
		{
			if (start + i * nthreads + threadIdx.x < nvectors)
			{
#pragma unroll
				for (uint32_t j = 0; j < nvector; j++)
					gs_count_key(plan, s_counts, loaded[i].keys[j]);
			}
		}
	}
	if (blockIdx.x == 0 && nvectors * nvector + threadIdx.x < plan.nitems)
		gs_count_key(plan, s_counts, plan.d_keys[0][nvectors * nvector + threadIdx.x]);
	__syncthreads();
	gs_add_counts<nthreads>(plan, s_counts);
}

/* For one block, if another kernel has counted (kernel_pack.cu). */
template <int nthreads>
static __global__ void
__launch_bounds__(nthreads)
	gs_radix_plan_kernel(const __grid_constant__ GsRadixPlan plan)
{
	gs_plan_passes<nthreads>(plan);
}

#endif /* GPUSORT_KERNEL_RADIX_COUNT_CUH */
