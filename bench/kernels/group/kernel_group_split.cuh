/*-------------------------------------------------------------------------
 *
 * kernel_group_split.cuh
 *	  Where ranges of ranks begin in each of several sorted runs.
 *
 * The problem: for a rank r, find how many of the first r items of all runs are in
 * each run.  Items are ordered by key, then run, then place, so they all differ, and
 * the answer is unique and makes a merge stable.
 *
 * The idea: each run has a window of items that are still undecided.  The item in the
 * middle of the largest window is the pivot.  A search in all windows finds how many
 * items precede it.  If those are fewer than r, the pivot and all of them belong to
 * the first r, otherwise the pivot and its successors do not.  Either way the largest
 * window is halved, and the others usually, too.  (Varman et al., "Merging multiple
 * lists on hierarchical-memory multiprocessors", 1991, has such a selection.)
 *
 * The bottleneck is the latency of dependent reads, of other devices' memory at that.
 * So a warp searches a window by 32 probes at once: six steps for a billion items.
 * One block works for each rank.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KERNEL_GROUP_SPLIT_CUH
#define GPUSORT_KERNEL_GROUP_SPLIT_CUH

#include "../../../cuda/warp_match.cuh"

/* Runs of one sort: at most this many. */
#define GS_GROUP_MAX_RUNS 256

#define GS_GROUP_SPLIT_THREADS 512

/* The bits of a key that it is sorted by, for comparisons. */
typedef struct GsKeyBits
{
	uint32_t left; /* to shift left, and then right */
	uint32_t right;
} GsKeyBits;

template <typename Key>
static __host__ __device__ __forceinline__ Key
gs_key_bits(GsKeyBits bits, Key key)
{
	return (Key) ((Key) (key << bits.left) >> bits.right);
}

/* A sorted run, by addresses that the device of the kernel can read. */
typedef struct GsRunView
{
	const void *d_keys;
	const void *d_values;
	uint64_t nitems;
} GsRunView;

/*
 * The number of items of the window that precede the pivot, by all lanes of a warp:
 * keys below the pivot's, and equal ones if equal_precede.
 */
template <typename Key>
static __device__ __forceinline__ uint64_t
gs_warp_count_before(const Key *d_keys, uint64_t low, uint64_t high, GsKeyBits bits, Key pivot,
					 bool equal_precede)
{
	while (low < high)
	{
		const uint64_t n = high - low;
		const uint64_t step = n <= GS_WARP_SIZE ? 1 : n / (GS_WARP_SIZE + 1);
		const uint64_t probe = n <= GS_WARP_SIZE ? low + gs_lane() : low + (gs_lane() + 1) * step;
		bool precedes = false;
		uint32_t nbefore;

		if (probe < high)
		{
			const Key key = gs_key_bits(bits, d_keys[probe]);

			precedes = key < pivot || (equal_precede && key == pivot);
		}
		nbefore = __popc(__ballot_sync(GS_ALL_LANES, precedes));
		if (n <= GS_WARP_SIZE)
			return low + nbefore;
		if (nbefore < GS_WARP_SIZE)
			high = low + (nbefore + 1) * step;
		if (nbefore > 0)
			low += nbefore * step + 1;
	}
	return low;
}

/* d_splits[b * nruns + r]: of the first d_ranks[b] items, how many are in run r. */
template <typename Key>
static __global__ void
__launch_bounds__(GS_GROUP_SPLIT_THREADS)
	gs_group_split_kernel(const GsRunView *d_runs, uint32_t nruns, const uint64_t *d_ranks,
						  GsKeyBits bits, uint64_t *d_splits)
{
	__shared__ uint64_t s_low[GS_GROUP_MAX_RUNS];
	__shared__ uint64_t s_high[GS_GROUP_MAX_RUNS];
	__shared__ uint64_t s_before[GS_GROUP_MAX_RUNS];
	__shared__ uint32_t s_pivot_run; /* nruns: all windows are empty */
	__shared__ Key s_pivot;
	__shared__ unsigned long long s_nbefore;
	const uint64_t rank = d_ranks[blockIdx.x];
	const uint32_t warp = threadIdx.x / GS_WARP_SIZE;

	for (uint32_t run = threadIdx.x; run < nruns; run += blockDim.x)
	{
		s_low[run] = 0;
		s_high[run] = d_runs[run].nitems;
	}
	for (;;)
	{
		__syncthreads();
		if (warp == 0)
		{
			uint64_t largest = 0;
			uint32_t its_run = nruns;

			for (uint32_t run = gs_lane(); run < nruns; run += GS_WARP_SIZE)
				if (s_high[run] - s_low[run] > largest)
				{
					largest = s_high[run] - s_low[run];
					its_run = run;
				}
			for (uint32_t lanes = GS_WARP_SIZE / 2; lanes > 0; lanes /= 2)
			{
				const uint64_t other = __shfl_xor_sync(GS_ALL_LANES, largest, lanes);
				const uint32_t other_run = __shfl_xor_sync(GS_ALL_LANES, its_run, lanes);

				if (other > largest || (other == largest && other_run < its_run))
				{
					largest = other;
					its_run = other_run;
				}
			}
			if (gs_lane() == 0)
			{
				s_pivot_run = its_run;
				s_nbefore = 0;
				if (its_run < nruns)
				{
					const Key *d_keys = (const Key *) d_runs[its_run].d_keys;

					s_pivot = gs_key_bits(bits, d_keys[s_low[its_run] + largest / 2]);
				}
			}
		}
		__syncthreads();

		const uint32_t pivot_run = s_pivot_run;

		if (pivot_run == nruns)
			break;

		const uint64_t middle = s_low[pivot_run] + (s_high[pivot_run] - s_low[pivot_run]) / 2;

		for (uint32_t run = warp; run < nruns; run += GS_GROUP_SPLIT_THREADS / GS_WARP_SIZE)
		{
			uint64_t before = middle;

			if (run != pivot_run)
				before = gs_warp_count_before((const Key *) d_runs[run].d_keys, s_low[run],
											  s_high[run], bits, s_pivot, run < pivot_run);
			if (gs_lane() == 0)
			{
				s_before[run] = before;
				atomicAdd(&s_nbefore, (unsigned long long) before);
			}
		}
		__syncthreads();
		for (uint32_t run = threadIdx.x; run < nruns; run += blockDim.x)
		{
			if (s_nbefore < rank)
				s_low[run] = s_before[run] + (run == pivot_run);
			else
				s_high[run] = s_before[run];
		}
	}
	for (uint32_t run = threadIdx.x; run < nruns; run += blockDim.x)
		d_splits[(uint64_t) blockIdx.x * nruns + run] = s_low[run];
}

#endif /* GPUSORT_KERNEL_GROUP_SPLIT_CUH */
