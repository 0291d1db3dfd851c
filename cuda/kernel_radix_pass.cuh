/*-------------------------------------------------------------------------
 *
 * kernel_radix_pass.cuh
 *	  One pass of the radix sort: moves all keys to their place by one digit.
 *
 * The problem: a stable partition of n keys (and values) by 256 digits at memory
 * speed, reading each once and writing each once.
 *
 * The idea (the scan-and-scatter of Merrill & Grimshaw, in one kernel since
 * Onesweep, Adinets & Merrill 2022): the counts give the output place of the
 * first key of each digit (kernel_radix_count.cuh).  Blocks process tiles of some
 * thousand keys, which they get by a dynamic tile ID:
 *
 *	A copy the tile's keys to shared memory			(warp_copy.cuh)
 *	B rank the keys by digit within the tile		(block_rank.cuh)
 *	  publish the tile's count of each digit		(block_lookback.cuh)
 *	C scatter the keys in shared memory by rank
 *	D look back: how many keys with each digit precede?
 *	E write runs of equal digits to their output places
 *
 * After C, neighbors in shared memory are neighbors in the output, except at the
 * borders between digits.  So the writes of E are coalesced, the better the larger
 * the tile is.  Keys are in registers only in C, when few other registers are in
 * use, so a thread can have many keys.
 *
 * Values take one of two paths (GsRadixTile::staged): with the keys, through
 * shared memory of their own; or *deferred*, from device memory to registers
 * before D, and after the keys have been written through the shared memory of
 * the keys, which allows larger tiles.
 *
 * The grid has as many blocks as the device can hold at the same time.  So a pass
 * over a place that does not vary costs the launch of these blocks, which end at
 * once, not of one block for each tile.
 *
 * A block takes its next tile ID only after E.  Taking it earlier, while E still
 * writes, hides the latency but costs more: all later tiles wait until this one
 * has counted (u64 keys on an H200: 7.2 ms instead of 5.2).
 *
 * Invariants: the partition is stable, because slices, warps, tiles and portions
 * are ranked in input order.  Padding keys of the last tile have all bits set;
 * they are the last of the last digit, and only places below the number of valid
 * keys are written.  Output offsets have 64 bits.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KERNEL_RADIX_PASS_CUH
#define GPUSORT_KERNEL_RADIX_PASS_CUH

#include "block_lookback.cuh"
#include "kernel_radix_plan.cuh"
#include "tuning.cuh"
#include "warp_copy.cuh"

/* For bench/kernels: leaves out a part to measure its cost. */
#define GS_ABLATE_LOOKBACK 0x01 /* uses the sums that a full pass left in the rows */
#define GS_ABLATE_RANK     0x02 /* keys stay at their places in the tile */
#define GS_ABLATE_SCATTER  0x04 /* tiles stay at their places */

template <typename Key, typename Value, int nthreads, int nitems, bool staged>
struct GsRadixShared
{
	static const int ntile = nthreads * nitems;
	static const bool has_values = GsHasValue<Value>::yes;

	union
	{
		alignas(16) Key keys[ntile];
		alignas(16) Value deferred_values[has_values && !staged ? ntile : 1];
	};
	alignas(16) Value values[has_values && staged ? ntile : 1];
	alignas(16) uint16_t counters[nthreads / GS_WARP_SIZE][GS_NDIGITS];
	uint32_t counts[GS_NDIGITS]; /* of the tile */
	uint64_t first[GS_NDIGITS];  /* by digit: output place minus place in the tile */
	uint32_t sums[GS_DIGIT_WARPS];
	uint32_t tile_id;
};

/* No place varies, so the output is the input: applies the options. */
template <typename Key, typename Value>
static __device__ void
gs_radix_copy_input(const GsRadixPlan &plan)
{
	const bool has_values = GsHasValue<Value>::yes;
	const bool rows = plan.flags & GS_RADIX_ROW_NUMBERS;
	const bool pack = plan.flags & GS_RADIX_PACK_ROWS;
	const uint64_t stride = (uint64_t) gridDim.x * blockDim.x;

	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < plan.nitems; i += stride)
	{
		if (plan.separate_input || pack)
		{
			Key key = ((const Key *) plan.d_keys_in)[i];

			((Key *) plan.d_keys[0])[i] = pack ? gs_pack_row<Key>(plan, key, i) : key;
		}
		if constexpr (has_values)
		{
			if (rows)
				((Value *) plan.d_values[0])[i] = (Value) i;
			else if (plan.separate_input)
				((Value *) plan.d_values[0])[i] = ((const Value *) plan.d_values_in)[i];
		}
	}
}

template <bool general, typename Key, typename Value, int nthreads, int nitems, int nblocks,
		  int lookback_width, bool staged, int rank_method, int ablate = 0>
static __global__ void
__launch_bounds__(nthreads, nblocks)
	gs_radix_pass_kernel(const __grid_constant__ GsRadixPlan plan, const uint32_t pass,
						 const uint32_t portion)
{
	typedef GsRadixShared<Key, Value, nthreads, nitems, staged> Shared;
	constexpr int ntile = Shared::ntile;
	constexpr int nwarps = nthreads / GS_WARP_SIZE;
	constexpr bool has_values = Shared::has_values;

	static_assert(nthreads >= GS_NDIGITS && ntile <= 65535, "");

	/*
	 * In small sorts the memory latencies of each pass matter; avoiding them needs
	 * registers, which matter in large sorts (tuning.cuh).
	 */
	constexpr bool low_latency = nitems <= GS_FEW_ITEMS;

	extern __shared__ __align__(16) unsigned char s_memory[];
	Shared &s = *(Shared *) s_memory;

#if __CUDA_ARCH__ >= 900
	/* the next pass may start as soon as there is space for its blocks ... */
	cudaTriggerProgrammaticLaunchCompletion();
#endif
	/* next_tile was cleared before any kernel of this sort */
	if (low_latency && threadIdx.x == 0)
		s.tile_id = atomicAdd(&plan.d_control->next_tile[pass][portion], 1);
#if __CUDA_ARCH__ >= 900
	/* ... and, like this one, waits here for its predecessor */
	cudaGridDependencySynchronize();
#endif

	GsRadixControl *control = plan.d_control;
	const uint32_t npasses = control->npasses;
	const uint32_t early_place = low_latency ? control->place_of[pass] : 0;

	if (pass >= npasses)
	{
		if constexpr (general)
			if (pass == 0 && portion == 0)
				gs_radix_copy_input<Key, Value>(plan);
		return;
	}

	const uint32_t place_number = low_latency ? early_place : control->place_of[pass];
	const GsPlace place = plan.places[place_number];
	const uint32_t output = gs_pass_output<general>(plan, pass, npasses);
	const Key *d_keys_from = (const Key *) (pass == 0 ? plan.d_keys_in : plan.d_keys[1 - output]);
	const Value *d_values_from =
		(const Value *) (pass == 0 ? plan.d_values_in : plan.d_values[1 - output]);
	Key *d_keys_to = (Key *) plan.d_keys[output];
	Value *d_values_to = (Value *) plan.d_values[output];
	const bool pack = general && pass == 0 && (plan.flags & GS_RADIX_PACK_ROWS);
	const bool make_rows = general && pass == 0 && (plan.flags & GS_RADIX_ROW_NUMBERS);
	const bool write_keys =
		!(general && pass + 1 == npasses && (plan.flags & GS_RADIX_NO_KEYS_OUT));

	const uint32_t launch = pass * plan.nportions + portion;
	uint32_t *d_rows = plan.d_rows[launch % 2];
	uint32_t *d_next_rows = plan.d_rows[(launch + 1) % 2];
	uint32_t *d_next_tile = &control->next_tile[pass][portion];
	const uint64_t *d_first = control->first[place_number][portion % 2];

	const uint64_t portion_start = (uint64_t) portion * plan.portion_tiles * ntile;
	const uint64_t portion_left = plan.nitems - portion_start;
	const bool last_portion = portion + 1 == plan.nportions;
	const uint32_t ntiles = last_portion ?
		(uint32_t) ((portion_left + ntile - 1) / ntile) :
		plan.portion_tiles;

	const uint32_t warp = threadIdx.x / GS_WARP_SIZE;
	const uint32_t slice = warp * nitems * GS_WARP_SIZE;
	Key *s_slice = &s.keys[slice];
	uint16_t *s_counters = s.counters[warp];

	if (!low_latency && threadIdx.x == 0)
		s.tile_id = atomicAdd(d_next_tile, 1);
	__syncthreads();

	for (;;)
	{
		const uint32_t tile = s.tile_id;

		if (tile >= ntiles)
			break;

		const uint64_t tile_start = portion_start + (uint64_t) tile * ntile;
		const uint32_t nvalid = (uint32_t) min((uint64_t) ntile, plan.nitems - tile_start);
		uint32_t ranks[(nitems + 1) / 2];

		/* A */
		gs_warp_copy_slice<Key, nitems>(s_slice, d_keys_from + tile_start + slice,
										(int64_t) nvalid - slice, (Key) ~(Key) 0);
		gs_warp_copy_commit();
		if constexpr (has_values && staged)
		{
			if (!make_rows)
				gs_warp_copy_slice<Value, nitems>(&s.values[slice],
												  d_values_from + tile_start + slice,
												  (int64_t) nvalid - slice, (Value) 0);
		}
		gs_warp_copy_commit();
		gs_warp_clear_counters(s_counters);
		for (uint32_t row = tile; row < plan.nrows; row += ntiles)
			if (threadIdx.x < GS_NDIGITS)
				d_next_rows[(size_t) row * GS_NDIGITS + threadIdx.x] = 0;
		gs_warp_copy_wait<1>();
		if (pack)
		{
			/* each lane writes only what it will read */
#pragma unroll
			for (int item = 0; item < nitems; item++)
			{
				uint32_t i = item * GS_WARP_SIZE + gs_lane();

				if (slice + i < nvalid)
					s_slice[i] = gs_pack_row<Key>(plan, s_slice[i], tile_start + slice + i);
			}
		}

		/* B */
		if constexpr (!(ablate & GS_ABLATE_RANK))
			gs_warp_rank<Key, nitems, rank_method>(s_slice, s_counters, place, ranks);
		__syncthreads();

		uint32_t before = 0;

		if (threadIdx.x < GS_NDIGITS)
		{
			uint32_t column[nwarps];
			uint32_t count = gs_digit_column<nwarps>(&s.counters[0][0], column);

			if constexpr (!(ablate & GS_ABLATE_LOOKBACK))
				gs_lookback_publish(d_rows, tile, count);
			before = gs_digit_sum_begin(count, s.sums);
			s.counts[threadIdx.x] = count;
		}
		__syncthreads();
		if (threadIdx.x < GS_NDIGITS)
		{
			uint32_t column[nwarps];

			/* reading it again is cheaper than keeping it */
			gs_digit_column<nwarps>(&s.counters[0][0], column);
			before = gs_digit_sum_end(before, s.sums);
			gs_digit_rows<nwarps>(&s.counters[0][0], column, before);
			/* kept for D without a register */
			s.first[threadIdx.x] = before;
		}

		/* C */
		Key keys[nitems];

#pragma unroll
		for (int item = 0; item < nitems; item++)
			keys[item] = s_slice[item * GS_WARP_SIZE + gs_lane()];
		__syncthreads();
		if constexpr (!(ablate & GS_ABLATE_RANK))
			gs_finish_ranks<Key, nitems>(keys, s_counters, place, ranks);
		else
		{
#pragma unroll
			for (int item = 0; item < nitems; item++)
			{
				uint32_t rank = slice + item * GS_WARP_SIZE + gs_lane();

				ranks[item / 2] = item % 2 == 0 ? rank : ranks[item / 2] | rank << 16;
			}
		}
#pragma unroll
		for (int item = 0; item < nitems; item++)
			s.keys[gs_half(ranks, item)] = keys[item];
		if constexpr (has_values && staged)
		{
			Value values[nitems];

			gs_warp_copy_wait<0>();
#pragma unroll
			for (int item = 0; item < nitems; item++)
			{
				uint32_t i = slice + item * GS_WARP_SIZE + gs_lane();

				values[item] = make_rows ? (Value) (tile_start + i) : s.values[i];
			}
			__syncthreads();
#pragma unroll
			for (int item = 0; item < nitems; item++)
				s.values[gs_half(ranks, item)] = values[item];
		}

		Value deferred_values[has_values && !staged ? nitems : 1];

		if constexpr (has_values && !staged)
		{
#pragma unroll
			for (int item = 0; item < nitems; item++)
			{
				uint32_t i = slice + item * GS_WARP_SIZE + gs_lane();

				deferred_values[item] = make_rows ? (Value) (tile_start + i) :
					nvalid == ntile || i < nvalid ? d_values_from[tile_start + i] :
													(Value) 0;
			}
		}

		/* D */
		if (threadIdx.x < GS_NDIGITS)
		{
			uint32_t count = s.counts[threadIdx.x];
			uint32_t sum;

			if constexpr (ablate & GS_ABLATE_LOOKBACK)
				sum = tile == 0 ? 0 :
								  d_rows[(size_t) (tile - 1) * GS_NDIGITS + threadIdx.x] & GS_LOOKBACK_VALUE;
			else
				sum = gs_lookback<lookback_width>(d_rows, tile, count);
			if constexpr (ablate & (GS_ABLATE_RANK | GS_ABLATE_SCATTER))
				s.first[threadIdx.x] = tile_start;
			else
				s.first[threadIdx.x] = d_first[threadIdx.x] + sum - s.first[threadIdx.x];
			if (!last_portion && tile + 1 == ntiles)
				control->first[place_number][(portion + 1) % 2][threadIdx.x] =
					d_first[threadIdx.x] + sum + count;
		}
		__syncthreads();

		/* E */
		uint32_t digits[staged ? 1 : (nitems + 3) / 4];

#pragma unroll
		for (int item = 0; item < nitems; item++)
		{
			uint32_t i = item * nthreads + threadIdx.x;
			uint32_t digit = 0;

			if (nvalid == ntile || i < nvalid)
			{
				Key key = s.keys[i];

				digit = gs_digit(key, place);
				uint64_t to = s.first[digit] + i;

				if (write_keys)
					d_keys_to[to] = key;
				if constexpr (has_values && staged)
					d_values_to[to] = s.values[i];
			}
			if constexpr (has_values && !staged)
				digits[item / 4] = item % 4 == 0 ? digit :
												   digits[item / 4] | digit << (item % 4 * 8);
		}
		if constexpr (has_values && !staged)
		{
			__syncthreads();
#pragma unroll
			for (int item = 0; item < nitems; item++)
				s.deferred_values[gs_half(ranks, item)] = deferred_values[item];
			__syncthreads();
#pragma unroll
			for (int item = 0; item < nitems; item++)
			{
				uint32_t i = item * nthreads + threadIdx.x;

				if (nvalid == ntile || i < nvalid)
				{
					uint32_t digit = digits[item / 4] >> (item % 4 * 8) & 0xff;

					d_values_to[s.first[digit] + i] = s.deferred_values[i];
				}
			}
		}
		if (low_latency && ntiles <= gridDim.x)
			break; /* there is one tile for each block */
		if (threadIdx.x == 0)
			s.tile_id = atomicAdd(d_next_tile, 1);
		__syncthreads();
	}
}

#endif /* GPUSORT_KERNEL_RADIX_PASS_CUH */
