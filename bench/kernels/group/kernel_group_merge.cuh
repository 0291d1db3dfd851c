/*-------------------------------------------------------------------------
 *
 * kernel_group_merge.cuh
 *	  Merges two sorted sequences of any length.
 *
 * One kernel finds where each tile of the output begins in both sequences (merge path: Odeh,
 * Green et al. 2012), with one warp for each tile; the other one merges a tile in shared memory
 * (block_merge.cuh).  The merge is stable: of equal keys, those of the first sequence come first.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KERNEL_GROUP_MERGE_CUH
#define GPUSORT_KERNEL_GROUP_MERGE_CUH

#include "../../../cuda/block_merge.cuh"
#include "../../../cuda/keys_only.cuh"
#include "../../../cuda/tuning.cuh"
#include "kernel_group_split.cuh"

typedef struct GsPairMerge
{
	const void *d_keys_from[2];
	const void *d_values_from[2];
	uint64_t nitems[2];
	void *d_keys_to;
	void *d_values_to;
	GsKeyBits bits;
	uint64_t *d_tile_begins; /* one more than tiles: items of the first sequence before each */
} GsPairMerge;

#define GS_PAIR_BEGIN_THREADS 256

/* d_tile_begins, by one warp for each tile. */
template <typename Key, int tile>
static __global__ void
__launch_bounds__(GS_PAIR_BEGIN_THREADS)
	gs_pair_begin_kernel(const __grid_constant__ GsPairMerge merge, uint64_t nbegins)
{
	const Key *d_a = (const Key *) merge.d_keys_from[0];
	const Key *d_b = (const Key *) merge.d_keys_from[1];
	const uint64_t number =
		((uint64_t) blockIdx.x * GS_PAIR_BEGIN_THREADS + threadIdx.x) / GS_WARP_SIZE;
	const uint64_t diagonal = min(number * tile, merge.nitems[0] + merge.nitems[1]);
	uint64_t low = diagonal > merge.nitems[1] ? diagonal - merge.nitems[1] : 0;
	uint64_t high = min(diagonal, merge.nitems[0]);

	if (number >= nbegins)
		return;
	while (low < high)
	{
		/* item i of a precedes the diagonal unless it exceeds its opposite, b[diagonal - 1 - i] */
		const uint64_t n = high - low;
		const uint64_t step = n <= GS_WARP_SIZE ? 1 : n / (GS_WARP_SIZE + 1);
		const uint64_t probe = n <= GS_WARP_SIZE ? low + gs_lane() : low + (gs_lane() + 1) * step;
		const bool before = probe < high &&
			gs_key_bits(merge.bits, d_a[probe]) <=
				gs_key_bits(merge.bits, d_b[diagonal - 1 - probe]);
		const uint32_t nbefore = __popc(__ballot_sync(GS_ALL_LANES, before));

		if (n <= GS_WARP_SIZE)
		{
			low += nbefore;
			break;
		}
		if (nbefore < GS_WARP_SIZE)
			high = low + (nbefore + 1) * step;
		if (nbefore > 0)
			low += nbefore * step + 1;
	}
	if (gs_lane() == 0)
		merge.d_tile_begins[number] = low;
}

template <typename Key, typename Value, typename Shape>
struct GsPairShared
{
	static const bool has_values = GsHasValue<Value>::yes;

	Key keys[Shape::tile + 2]; /* two more are read, but not used */
	Value values[has_values ? Shape::tile : 1];
	uint16_t numbers[has_values ? Shape::tile : 1];
};

/* One block for each tile. */
template <typename Key, typename Value, typename Shape>
static __global__ void
__launch_bounds__(Shape::threads, GS_MIN_BLOCKS(Shape::threads, Shape::blocks))
	gs_pair_merge_kernel(const __grid_constant__ GsPairMerge merge)
{
	constexpr int nthreads = Shape::threads;
	constexpr int nitems = Shape::items;
	constexpr bool has_values = GsHasValue<Value>::yes;

	extern __shared__ __align__(16) unsigned char s_memory[];
	GsPairShared<Key, Value, Shape> &s = *(GsPairShared<Key, Value, Shape> *) s_memory;

	const uint64_t start = (uint64_t) blockIdx.x * Shape::tile;
	const uint32_t nvalid =
		(uint32_t) min((uint64_t) Shape::tile, merge.nitems[0] + merge.nitems[1] - start);
	const uint64_t a = merge.d_tile_begins[blockIdx.x];
	const uint32_t na = (uint32_t) (merge.d_tile_begins[blockIdx.x + 1] - a);
	const Key *d_a = (const Key *) merge.d_keys_from[0] + a;
	const Key *d_b = (const Key *) merge.d_keys_from[1] + (start - a);
	const Value *d_values_a = (const Value *) merge.d_values_from[0] + a;
	const Value *d_values_b = (const Value *) merge.d_values_from[1] + (start - a);
	Key *d_keys_to = (Key *) merge.d_keys_to + start;
	Value *d_values_to = (Value *) merge.d_values_to + start;

#pragma unroll
	for (int item = 0; item < nitems; item++)
	{
		const uint32_t i = item * nthreads + threadIdx.x;

		if (i < nvalid)
		{
			s.keys[i] = i < na ? d_a[i] : d_b[i - na];
			if constexpr (has_values)
			{
				s.values[i] = i < na ? d_values_a[i] : d_values_b[i - na];
				s.numbers[i] = (uint16_t) i;
			}
		}
	}
	__syncthreads();
	gs_block_merge_level<nthreads, nitems, has_values>(
		s.keys, s.numbers, nvalid, 2, 1,
		[&](uint32_t i) { return i == 0 ? 0 : i == 1 ? na :
													   nvalid; },
		[&](Key key_b, uint32_t, Key key_a, uint32_t) {
			return gs_key_bits(merge.bits, key_b) < gs_key_bits(merge.bits, key_a);
		});
#pragma unroll
	for (int item = 0; item < nitems; item++)
	{
		const uint32_t i = item * nthreads + threadIdx.x;

		if (i < nvalid)
		{
			d_keys_to[i] = s.keys[i];
			if constexpr (has_values)
				d_values_to[i] = s.values[s.numbers[i]];
		}
	}
}

#endif /* GPUSORT_KERNEL_GROUP_MERGE_CUH */
