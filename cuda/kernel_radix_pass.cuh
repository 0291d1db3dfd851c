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
 * After C, neighbors in shared memory are neighbors in the output, except at the borders between
 * digits.  So the writes of E are coalesced, the better the larger the tile is.  Keys are in
 * registers only in C, when few other registers are in use, so a thread can have many keys.
 *
 * Values go from device memory to registers before D, and after the keys have been
 * written through the shared memory of the keys.  (Shared memory of their own would
 * make tiles smaller: 7.55 ms instead of 7.20.)
 *
 * The grid has as many blocks as the device can hold at the same time.  So a pass
 * over a place that does not vary costs the launch of these blocks, which end at
 * once, not of one block for each tile.
 *
 * A block takes its next tile ID only after E.  Taking it earlier, while E still
 * writes, hides the latency but costs more: all later tiles wait until this one
 * has counted (7.2 ms instead of 5.2).  Reading keys with an evict-first policy costs
 * more, too (5.17 ms instead of 4.94).  Figures: 100 M keys, H200, 2026-11-21.
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

template <bool has_values, typename Shape>
struct GsRadixShared
{
	union
	{
		alignas(16) uint64_t keys[Shape::tile];
		alignas(16) uint32_t values[has_values ? Shape::tile : 1];
	};
	alignas(16) uint16_t counters[Shape::threads / GS_WARP_SIZE][GS_NDIGITS];
	uint32_t counts[GS_NDIGITS]; /* of the tile */
	uint64_t first[GS_NDIGITS];  /* by digit: output place minus place in the tile */
	uint32_t sums[GS_DIGIT_WARPS];
	uint32_t tile_id;
};

template <bool has_values, typename Shape>
static __global__ void
__launch_bounds__(Shape::threads, Shape::blocks)
	gs_radix_pass_kernel(const __grid_constant__ GsRadixPlan plan, const uint32_t pass,
						 const uint32_t portion)
{
	constexpr int nthreads = Shape::threads;
	constexpr int nitems = Shape::items;
	constexpr int ntile = Shape::tile;
	constexpr int nwarps = nthreads / GS_WARP_SIZE;

	static_assert(nthreads >= GS_NDIGITS && ntile <= 65535, "");

	/*
	 * In small sorts the memory latencies of each pass matter.  Avoiding them needs
	 * registers, which matter in large sorts: 100 M keys and values take 8.65 ms instead
	 * of 7.09 (H200, 2026-11-21).
	 */
	constexpr bool low_latency = nitems <= GsRadixSmall::items;

	extern __shared__ __align__(16) unsigned char s_memory[];
	GsRadixShared<has_values, Shape> &s = *(GsRadixShared<has_values, Shape> *) s_memory;

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
		return;

	const uint32_t place_number = low_latency ? early_place : control->place_of[pass];
	const GsPlace place = plan.places[place_number];
	const bool odd = pass % 2 != 0;
	const uint64_t *d_keys_from = odd ? plan.d_keys[1] : plan.d_keys[0];
	const uint32_t *d_values_from = odd ? plan.d_values[1] : plan.d_values[0];
	uint64_t *d_keys_to = odd ? plan.d_keys[0] : plan.d_keys[1];
	uint32_t *d_values_to = odd ? plan.d_values[0] : plan.d_values[1];

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
	uint64_t *s_slice = &s.keys[slice];
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
		gs_warp_copy_slice<nitems>(s_slice, d_keys_from + tile_start + slice,
								   (int64_t) nvalid - slice, ~UINT64_C(0));
		gs_warp_copy_commit();
		gs_warp_clear_counters(s_counters);
		for (uint32_t row = tile; row < plan.nrows; row += ntiles)
			if (threadIdx.x < GS_NDIGITS)
				d_next_rows[(size_t) row * GS_NDIGITS + threadIdx.x] = 0;
		gs_warp_copy_wait<0>();

		/* B */
		gs_warp_rank<nitems>(s_slice, s_counters, place, ranks);
		__syncthreads();

		uint32_t before = 0;

		if (threadIdx.x < GS_NDIGITS)
		{
			uint32_t column[nwarps];
			uint32_t count = gs_digit_column<nwarps>(&s.counters[0][0], column);

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
		uint64_t keys[nitems];

#pragma unroll
		for (int item = 0; item < nitems; item++)
			keys[item] = s_slice[item * GS_WARP_SIZE + gs_lane()];
		__syncthreads();
		gs_finish_ranks<nitems>(keys, s_counters, place, ranks);
#pragma unroll
		for (int item = 0; item < nitems; item++)
			s.keys[gs_half(ranks, item)] = keys[item];

		uint32_t values[has_values ? nitems : 1];

		if constexpr (has_values)
		{
#pragma unroll
			for (int item = 0; item < nitems; item++)
			{
				uint32_t i = slice + item * GS_WARP_SIZE + gs_lane();

				values[item] = nvalid == ntile || i < nvalid ? d_values_from[tile_start + i] : 0;
			}
		}

		/* D */
		if (threadIdx.x < GS_NDIGITS)
		{
			uint32_t count = s.counts[threadIdx.x];
			uint32_t sum = gs_lookback<Shape::lookback>(d_rows, tile, count);

			s.first[threadIdx.x] = d_first[threadIdx.x] + sum - s.first[threadIdx.x];
			if (!last_portion && tile + 1 == ntiles)
				control->first[place_number][(portion + 1) % 2][threadIdx.x] =
					d_first[threadIdx.x] + sum + count;
		}
		__syncthreads();

		/* E */
		uint32_t digits[has_values ? (nitems + 3) / 4 : 1];

#pragma unroll
		for (int item = 0; item < nitems; item++)
		{
			uint32_t i = item * nthreads + threadIdx.x;
			uint32_t digit = 0;

			if (nvalid == ntile || i < nvalid)
			{
				uint64_t key = s.keys[i];

				digit = gs_digit(key, place);
				d_keys_to[s.first[digit] + i] = key;
			}
			if constexpr (has_values)
				digits[item / 4] = item % 4 == 0 ? digit :
												   digits[item / 4] | digit << (item % 4 * 8);
		}
		if constexpr (has_values)
		{
			__syncthreads();
#pragma unroll
			for (int item = 0; item < nitems; item++)
				s.values[gs_half(ranks, item)] = values[item];
			__syncthreads();
#pragma unroll
			for (int item = 0; item < nitems; item++)
			{
				uint32_t i = item * nthreads + threadIdx.x;

				if (nvalid == ntile || i < nvalid)
				{
					uint32_t digit = digits[item / 4] >> (item % 4 * 8) & 0xff;

					d_values_to[s.first[digit] + i] = s.values[i];
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
