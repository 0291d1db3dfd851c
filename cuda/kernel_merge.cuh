/*-------------------------------------------------------------------------
 *
 * kernel_merge.cuh
 *	  The kernels of the merge sort: sort tiles, split runs, merge pieces.
 *
 * The problem: a comparison sort, for keys of any length, that reads and writes
 * memory as few times as possible.
 *
 * The idea (GPU-Warpsort, Ye et al. 2010, with differences):
 *	1. Warps sort 128 keys each by a bitonic network in registers
 *	   (warp_bitonic.cuh), and a block merges them in shared memory into a sorted
 *	   tile (block_merge.cuh), which is a run.
 *	2. Each round merges groups of GS_MERGE_WAYS adjacent runs.  (The paper merges
 *	   pairs of runs until there are few, and only then splits all runs by sampled
 *	   splitters into pieces that are merged independently.)  Here every round
 *	   splits, so a round reads and writes all rows once for any number of ways,
 *	   and pieces fit in shared memory.
 *	3. The splitters: every stride-th element of a run is a sample, and every k-th
 *	   of the ordered samples of a group is a splitter.  (The paper samples at
 *	   random.)  Regular samples bound the size of a piece (Shi & Schaeffer 1992):
 *	   with w runs, k * stride + w * (stride - 1) elements.  So no piece exceeds a
 *	   tile, for any data.
 *
 * Example, two runs, stride 2, a splitter every 2 samples (stars mark samples):
 *		run 0: *1  4 *6  9		run 1: *2  3 *5  7
 *		samples in order 1 2 5 6; splitters 1 and 5
 *		pieces {1 4 | 2 3} and {6 9 | 5 7}, merged independently.
 *
 * Ties: elements are ordered by key, then run, then place.  So equal keys are split
 * consistently, and the sort is stable.  Without values, equal keys cannot be told
 * apart, and places in a tile are not kept.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KERNEL_MERGE_CUH
#define GPUSORT_KERNEL_MERGE_CUH

#include "block_merge.cuh"
#include "keys_only.cuh"
#include "tuning.cuh"
#include "warp_bitonic.cuh"

/* One round: merges runs of from into runs of to, which are GS_MERGE_WAYS times as long. */
typedef struct GsMergeRound
{
	uint64_t nitems;
	uint64_t run;          /* elements in a run; the last run may have fewer */
	uint64_t group_pieces; /* pieces of a complete group of runs */
	const uint64_t *d_keys_from;
	const void *d_values_from;
	uint64_t *d_keys_to;
	void *d_values_to;
	uint64_t *d_splits; /* [piece][GS_MERGE_WAYS]: its begin in each run of its group */
	GsTails tails;
} GsMergeRound;

typedef struct GsGroup
{
	uint64_t start; /* its first element */
	uint64_t nitems;
	uint32_t nruns;
} GsGroup;

static __host__ __device__ __forceinline__ GsGroup
gs_merge_group(uint64_t nitems, uint64_t run, uint64_t number)
{
	GsGroup group;

	group.start = number * run * GS_MERGE_WAYS;
	group.nitems = nitems - group.start < run * GS_MERGE_WAYS ? nitems - group.start :
																run * GS_MERGE_WAYS;
	group.nruns = (uint32_t) ((group.nitems + run - 1) / run);
	return group;
}

static __host__ __device__ __forceinline__ uint64_t
gs_run_length(GsGroup group, uint64_t run, uint32_t number)
{
	return number + 1 < group.nruns ? run : group.nitems - (group.nruns - 1) * run;
}

template <typename Shape>
static __host__ __device__ __forceinline__ uint64_t
gs_group_pieces(GsGroup group)
{
	/* all runs but the last consist of complete strides */
	uint64_t nsamples = (group.nitems + Shape::stride - 1) / Shape::stride;

	return (nsamples + Shape::samples - 1) / Shape::samples;
}

template <typename Value, typename Shape>
struct GsMergeShared
{
	static const bool has_values = GsHasValue<Value>::yes;

	uint64_t keys[Shape::tile + 2]; /* two more are read, but not used */
	Value values[has_values ? Shape::tile : 1];
	uint32_t begins[GS_MERGE_WAYS + 1];
	uint64_t source[GS_MERGE_WAYS]; /* of begins[i], in device memory */
	uint64_t target;
	uint16_t numbers[has_values ? Shape::tile : 1];
};

/* Of two places of the tile, a in the left sequence: must b come first? */
template <bool has_tails, typename Value, typename Shape>
static __device__ __forceinline__ bool
gs_merge_precedes(const GsMergeShared<Value, Shape> &s, const GsTails &tails, uint64_t key_b,
				  uint32_t b, uint64_t key_a, uint32_t a)
{
	if constexpr (has_tails)
	{
		if (key_b == key_a)
			return gs_tails_order(tails, s.values[s.numbers[b]], s.values[s.numbers[a]]) < 0;
	}
	return key_b < key_a;
}

/* Writes the sorted keys of shared memory, and the values by their numbers. */
template <typename Value, typename Shape>
static __device__ __forceinline__ void
gs_merge_write(const GsMergeShared<Value, Shape> &s, uint32_t nvalid,
			   uint64_t *d_keys, Value *d_values)
{
#pragma unroll
	for (int item = 0; item < Shape::items; item++)
	{
		uint32_t i = item * Shape::threads + threadIdx.x;

		if (i < nvalid)
		{
			d_keys[i] = s.keys[i];
			if constexpr (GsHasValue<Value>::yes)
				d_values[i] = s.values[s.numbers[i]];
		}
	}
}

/*
 * A kernel of a small sort starts early (launch.cuh): its successor may, too, and it
 * waits until its predecessor has ended.
 */
static __device__ __forceinline__ void
gs_merge_await_predecessor(void)
{
#if __CUDA_ARCH__ >= 900
	cudaTriggerProgrammaticLaunchCompletion();
	cudaGridDependencySynchronize();
#endif
}

/* Step 1: sorts tiles, in place or not. */
template <typename Value, bool has_tails, typename Shape>
static __global__ void
__launch_bounds__(Shape::threads, GS_MIN_BLOCKS(Shape::threads, Shape::blocks))
	gs_merge_tile_kernel(uint64_t n, const uint64_t *d_keys_from, const Value *d_values_from,
						 uint64_t *d_keys_to, Value *d_values_to, const GsTails tails)
{
	constexpr uint32_t ntile = Shape::tile;
	constexpr int nthreads = Shape::threads;
	constexpr int nitems = Shape::items;
	constexpr uint32_t nsequences = ntile / GS_BITONIC_KEYS;
	constexpr bool has_values = GsHasValue<Value>::yes;

	static_assert(ntile % GS_BITONIC_KEYS == 0 && ntile <= 65535, "");

	extern __shared__ __align__(16) unsigned char s_memory[];
	GsMergeShared<Value, Shape> &s = *(GsMergeShared<Value, Shape> *) s_memory;
	const uint64_t start = (uint64_t) blockIdx.x * ntile;
	const uint32_t nvalid = (uint32_t) min((uint64_t) ntile, n - start);

	gs_merge_await_predecessor();
	if constexpr (has_values)
	{
#pragma unroll
		for (int item = 0; item < nitems; item++)
		{
			uint32_t i = item * nthreads + threadIdx.x;

			if (i < nvalid)
				s.values[i] = d_values_from[start + i];
		}
	}
	if (has_tails)
		__syncthreads();

	for (uint32_t first = threadIdx.x / GS_WARP_SIZE * GS_BITONIC_KEYS; first < nvalid;
		 first += nthreads / GS_WARP_SIZE * GS_BITONIC_KEYS)
	{
		GsElement elements[GS_BITONIC_ITEMS];

#pragma unroll
		for (uint32_t item = 0; item < GS_BITONIC_ITEMS; item++)
		{
			uint32_t i = first + item * GS_WARP_SIZE + gs_lane();

			/* padding sorts to the end of the last sequence, by its number */
			elements[item].number = i;
			elements[item].key = i < nvalid ? d_keys_from[start + i] : ~UINT64_C(0);
		}
		gs_warp_bitonic_sort(elements, [&](const GsElement &a, const GsElement &b) {
			if (a.key != b.key)
				return a.key < b.key;
			if constexpr (has_tails)
			{
				if (a.number < nvalid && b.number < nvalid)
				{
					const int order = gs_tails_order(tails, s.values[a.number], s.values[b.number]);

					if (order != 0)
						return order < 0;
				}
			}
			return a.number < b.number;
		});
#pragma unroll
		for (uint32_t item = 0; item < GS_BITONIC_ITEMS; item++)
		{
			uint32_t i = first + item * GS_WARP_SIZE + gs_lane();

			s.keys[i] = elements[item].key;
			if constexpr (has_values)
				s.numbers[i] = (uint16_t) elements[item].number;
		}
	}
	__syncthreads();

	for (uint32_t width = 1; width < nsequences; width *= 2)
		gs_block_merge_level<nthreads, nitems, has_values>(
			s.keys, s.numbers, nvalid, nsequences, width,
			[&](uint32_t i) { return min(i * GS_BITONIC_KEYS, nvalid); },
			[&](uint64_t key_b, uint32_t b, uint64_t key_a, uint32_t a) {
				return gs_merge_precedes<has_tails>(s, tails, key_b, b, key_a, a);
			});
	gs_merge_write<Value, Shape>(s, nvalid, d_keys_to + start, d_values_to + start);
}

/* Only comparing strings needs the value. */
template <bool has_tails, typename Value>
static __device__ __forceinline__ uint64_t
gs_merge_value(const Value *d_values, uint64_t i)
{
	if constexpr (has_tails)
		return d_values[i];
	return 0;
}

/*
 * Step 3: GS_MERGE_WAYS lanes for each sample, one for each run of its group.  They
 * find the number of samples of the group that precede it, and if that makes it a
 * splitter, its place in each run.  The reads of a search depend on one another, so
 * one lane for all runs would take several times as long.
 */
template <typename Value, bool has_tails, typename Shape>
static __global__ void
gs_merge_split_kernel(const __grid_constant__ GsMergeRound round)
{
	static_assert(GS_WARP_SIZE % GS_MERGE_WAYS == 0, "");

	gs_merge_await_predecessor();

	const Value *d_values = (const Value *) round.d_values_from;
	const uint64_t thread = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x;
	const uint32_t other = (uint32_t) (thread % GS_MERGE_WAYS);
	const uint32_t lanes = ((1u << GS_MERGE_WAYS) - 1) << (gs_lane() - other);
	const uint64_t place = thread / GS_MERGE_WAYS * Shape::stride;

	if (place >= round.nitems)
		return;

	const uint64_t group_number = place / (round.run * GS_MERGE_WAYS);
	const GsGroup group = gs_merge_group(round.nitems, round.run, group_number);
	const uint32_t my_run = (uint32_t) ((place - group.start) / round.run);
	const uint64_t in_run = place - group.start - my_run * round.run;
	const uint64_t key = round.d_keys_from[place];
	const uint64_t value = gs_merge_value<has_tails>(d_values, place);
	const bool searches = other != my_run && other < group.nruns;
	const uint64_t first = group.start + other * round.run;
	const uint64_t length = searches ? gs_run_length(group, round.run, other) : 0;
	uint64_t nbefore = other == my_run ? in_run / Shape::stride : 0; /* samples of the run */
	uint64_t rank;

	/* does element i of the run precede this sample? */
	auto before = [&](uint64_t i) {
		uint64_t its_key = round.d_keys_from[first + i];
		uint64_t its_value = gs_merge_value<has_tails>(d_values, first + i);

		return other < my_run ?
			!gs_key_less<has_tails>(round.tails, key, value, its_key, its_value) :
			gs_key_less<has_tails>(round.tails, its_key, its_value, key, value);
	};

	if (searches)
	{
		uint64_t high = (length + Shape::stride - 1) / Shape::stride;

		while (nbefore < high)
		{
			uint64_t middle = (nbefore + high) / 2;

			if (before(middle * Shape::stride))
				nbefore = middle + 1;
			else
				high = middle;
		}
	}
	rank = nbefore;
	for (uint32_t step = 1; step < GS_MERGE_WAYS; step *= 2)
		rank += __shfl_xor_sync(lanes, rank, step);
	if (rank % Shape::samples != 0)
		return;

	uint64_t split = other == my_run ? in_run : 0;

	if (searches && nbefore > 0)
	{
		/* between the last preceding sample and the next one */
		uint64_t high = min(nbefore * Shape::stride, length);

		split = (nbefore - 1) * Shape::stride + 1;
		while (split < high)
		{
			uint64_t middle = (split + high) / 2;

			if (before(middle))
				split = middle + 1;
			else
				high = middle;
		}
	}

	const uint64_t piece = group_number * round.group_pieces + rank / Shape::samples;

	round.d_splits[piece * GS_MERGE_WAYS + other] = split;
}

/* Step 2: one block for each piece. */
template <typename Value, bool has_tails, typename Shape>
static __global__ void
__launch_bounds__(Shape::threads, GS_MIN_BLOCKS(Shape::threads, Shape::blocks))
	gs_merge_piece_kernel(const __grid_constant__ GsMergeRound round)
{
	constexpr int nthreads = Shape::threads;
	constexpr int nitems = Shape::items;
	constexpr bool has_values = GsHasValue<Value>::yes;

	extern __shared__ __align__(16) unsigned char s_memory[];
	GsMergeShared<Value, Shape> &s = *(GsMergeShared<Value, Shape> *) s_memory;

	const uint64_t group_number = blockIdx.x / round.group_pieces;
	const uint64_t piece = blockIdx.x % round.group_pieces;
	const GsGroup group = gs_merge_group(round.nitems, round.run, group_number);
	const uint64_t npieces = gs_group_pieces<Shape>(group);
	const Value *d_values_from = (const Value *) round.d_values_from;

	gs_merge_await_predecessor();
	if (piece >= npieces)
		return;
	if (threadIdx.x < GS_WARP_SIZE)
	{
		const uint32_t i = threadIdx.x;
		const uint64_t *d_split = round.d_splits + (uint64_t) blockIdx.x * GS_MERGE_WAYS;
		uint64_t begin = 0;
		uint64_t end = 0;
		uint64_t begins_sum;
		uint32_t length;
		uint32_t inclusive;

		if (i < group.nruns)
		{
			begin = d_split[i];
			end = piece + 1 < npieces ? d_split[GS_MERGE_WAYS + i] :
										gs_run_length(group, round.run, i);
		}
		length = (uint32_t) (end - begin);
		inclusive = length;
		begins_sum = begin;
#pragma unroll
		for (uint32_t step = 1; step < GS_MERGE_WAYS; step *= 2)
		{
			uint32_t below = __shfl_up_sync(GS_ALL_LANES, inclusive, step);
			uint64_t other = __shfl_up_sync(GS_ALL_LANES, begins_sum, step);

			if (i >= step)
			{
				inclusive += below;
				begins_sum += other;
			}
		}
		if (i < GS_MERGE_WAYS)
		{
			s.begins[i + 1] = inclusive;
			s.source[i] = group.start + i * round.run + begin - (inclusive - length);
		}
		if (i == 0)
			s.begins[0] = 0;
		if (i == GS_MERGE_WAYS - 1)
			s.target = group.start + begins_sum;
	}
	__syncthreads();

	const uint32_t nvalid = s.begins[GS_MERGE_WAYS];

#pragma unroll
	for (int item = 0; item < nitems; item++)
	{
		uint32_t i = item * nthreads + threadIdx.x;

		if (i < nvalid)
		{
			uint32_t sequence = 0;

#pragma unroll
			for (uint32_t other = 1; other < GS_MERGE_WAYS; other++)
				sequence += i >= s.begins[other];
			s.keys[i] = round.d_keys_from[s.source[sequence] + i];
			if constexpr (has_values)
			{
				s.values[i] = d_values_from[s.source[sequence] + i];
				s.numbers[i] = (uint16_t) i;
			}
		}
	}
	__syncthreads();
	for (uint32_t width = 1; width < group.nruns; width *= 2)
		gs_block_merge_level<nthreads, nitems, has_values>(
			s.keys, s.numbers, nvalid, GS_MERGE_WAYS, width,
			[&](uint32_t i) { return s.begins[i]; },
			[&](uint64_t key_b, uint32_t b, uint64_t key_a, uint32_t a) {
				return gs_merge_precedes<has_tails>(s, round.tails, key_b, b, key_a, a);
			});
	gs_merge_write<Value, Shape>(s, nvalid, round.d_keys_to + s.target,
								 (Value *) round.d_values_to + s.target);
}

#endif /* GPUSORT_KERNEL_MERGE_CUH */
