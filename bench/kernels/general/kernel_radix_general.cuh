/*-------------------------------------------------------------------------
 *
 * kernel_radix_general.cuh
 *	  The radix sort for other types and with options: count and pass.
 *
 * The kernels are those of cuda/kernel_radix_count.cuh and cuda/kernel_radix_pass.cuh,
 * which explain them, plus what gpusortd does not need:
 *
 *	- keys of 8 to 64 bits and values of 32 and 64,
 *	- options: those of device_sort_general.h,
 *	- staged: values go with the keys, through shared memory of their own,
 *	- ablate: parts that sweep.cu leaves out to measure their cost.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KERNEL_RADIX_GENERAL_CUH
#define GPUSORT_KERNEL_RADIX_GENERAL_CUH

#include "../../../cuda/kernel_radix_launch.cuh"
#include "../../../cuda/keys_only.cuh"
#include "device_sort_general.h"

#define GS_ABLATE_LOOKBACK 0x01 /* uses the sums that a full pass left in the rows */
#define GS_ABLATE_RANK     0x02 /* keys stay at their places in the tile */
#define GS_ABLATE_SCATTER  0x04 /* tiles stay at their places */

typedef struct GsRadixGeneralPlan
{
	GsRadixPlan plan;      /* must be first; its d_keys and d_values are of any type */
	const void *d_keys_in; /* input of pass 0 */
	const void *d_values_in;
	uint32_t flags;          /* GS_RADIX_* */
	uint32_t separate_input; /* d_keys_in is none of d_keys */
	uint32_t row_bits;
	uint64_t key_min;
} GsRadixGeneralPlan;

/*
 * The tiles for many keys, from bench/kernels/run sweep: 100 M u32 1.87 ms, CUB 2.39; u32 +
 * u32 2.75, CUB 2.81; u64 + u64 8.96, CUB 9.26 (H200, 2026-11-21).  Types that were not
 * measured have the tile of the most similar ones.
 */
template <int key_bytes, int value_bytes>
struct GsRadixGeneralLarge : GsRadixShape<384, 24, 2, 2> /* 1, 2 or 4 + 4 */
{
	static const bool staged = true;
};

template <int key_bytes>
struct GsRadixGeneralLarge<key_bytes, 0> : GsRadixShape<512, 40, 2, 4> /* 1, 2 or 4 */
{
	static const bool staged = false;
};

template <int key_bytes>
struct GsRadixGeneralLarge<key_bytes, 8> : GsRadixShape<384, 16, 2, 2> /* 1, 2, 4 or 8 + 8 */
{
	static const bool staged = false;
};

template <>
struct GsRadixGeneralLarge<8, 0> : GsRadixLarge<false>
{
	static const bool staged = false;
};

template <>
struct GsRadixGeneralLarge<8, 4> : GsRadixLarge<true>
{
	static const bool staged = false;
};

/* GS_RADIX_PACK_ROWS: the key to sort, from the input word and the row number. */
template <typename Key>
static __device__ __forceinline__ Key
gs_pack_row(const GsRadixGeneralPlan &general, Key raw, uint64_t row)
{
	return (Key) (((uint64_t) raw - general.key_min) << general.row_bits | row);
}

template <bool options, typename Key>
static __global__ void
__launch_bounds__(GS_COUNT_THREADS)
	gs_radix_general_count_kernel(const __grid_constant__ GsRadixGeneralPlan general)
{
	constexpr uint32_t nvector = sizeof(uint4) / sizeof(Key);
	constexpr uint32_t nunroll = 4;
	constexpr uint32_t nthreads = GS_COUNT_THREADS;

	__shared__ uint32_t s_counts[sizeof(Key)][GS_NDIGITS];

	const GsRadixPlan &plan = general.plan;
	const uint4 *d_vectors = (const uint4 *) general.d_keys_in;
	const uint64_t nvectors = plan.nitems / nvector;
	const uint64_t step = (uint64_t) nthreads * nunroll;
	const bool pack = options && (general.flags & GS_RADIX_PACK_ROWS);

#if __CUDA_ARCH__ >= 900
	cudaTriggerProgrammaticLaunchCompletion();
#endif
	for (uint32_t i = threadIdx.x; i < sizeof(Key) * GS_NDIGITS; i += nthreads)
		(&s_counts[0][0])[i] = 0;
	__syncthreads();

	for (uint64_t start = blockIdx.x * step; start < nvectors; start += gridDim.x * step)
	{
		union
		{
			uint4 vector;
			Key keys[nvector];
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
				{
					Key key = loaded[i].keys[j];

					/* the places to sort by do not include the row number, so 0 will do */
					gs_count_key(plan, s_counts, pack ? gs_pack_row(general, key, 0) : key);
				}
			}
		}
	}
	if (blockIdx.x == 0 && nvectors * nvector + threadIdx.x < plan.nitems)
	{
		Key key = ((const Key *) general.d_keys_in)[nvectors * nvector + threadIdx.x];

		gs_count_key(plan, s_counts, pack ? gs_pack_row(general, key, 0) : key);
	}
	__syncthreads();
	gs_add_counts<nthreads>(plan, s_counts);
}

template <typename Key, typename Value, typename Shape, bool staged>
struct GsRadixGeneralShared
{
	static const bool has_values = GsHasValue<Value>::yes;

	union
	{
		alignas(16) Key keys[Shape::tile];
		alignas(16) Value deferred_values[has_values && !staged ? Shape::tile : 1];
	};
	alignas(16) Value values[has_values && staged ? Shape::tile : 1];
	alignas(16) uint16_t counters[Shape::threads / GS_WARP_SIZE][GS_NDIGITS];
	uint32_t counts[GS_NDIGITS];
	uint64_t first[GS_NDIGITS];
	uint32_t sums[GS_DIGIT_WARPS];
	uint32_t tile_id;
};

/* No place varies, so the output is the input: applies the options. */
template <typename Key, typename Value>
static __device__ void
gs_radix_copy_input(const GsRadixGeneralPlan &general)
{
	const GsRadixPlan &plan = general.plan;
	const bool rows = general.flags & GS_RADIX_ROW_NUMBERS;
	const bool pack = general.flags & GS_RADIX_PACK_ROWS;
	const uint64_t stride = (uint64_t) gridDim.x * blockDim.x;
	uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x;

	for (; i < plan.nitems; i += stride)
	{
		if (general.separate_input || pack)
		{
			Key key = ((const Key *) general.d_keys_in)[i];

			((Key *) plan.d_keys[0])[i] = pack ? gs_pack_row(general, key, i) : key;
		}
		if constexpr (GsHasValue<Value>::yes)
		{
			if (rows)
				((Value *) plan.d_values[0])[i] = (Value) i;
			else if (general.separate_input)
				((Value *) plan.d_values[0])[i] = ((const Value *) general.d_values_in)[i];
		}
	}
}

/*
 * The index of the arrays that a pass writes.  They alternate if the input is in
 * d_keys[0]; with a separate input, the last pass must write d_keys[0].
 */
template <bool options>
static __device__ __forceinline__ uint32_t
gs_pass_output(const GsRadixGeneralPlan &general, uint32_t pass, uint32_t npasses)
{
	return options && general.separate_input ? (npasses - 1 - pass) % 2 : (pass + 1) % 2;
}

template <bool options, typename Key, typename Value, typename Shape, bool staged, int ablate = 0>
static __global__ void
__launch_bounds__(Shape::threads, Shape::blocks)
	gs_radix_general_pass_kernel(const __grid_constant__ GsRadixGeneralPlan general,
								 const uint32_t pass, const uint32_t portion)
{
	typedef GsRadixGeneralShared<Key, Value, Shape, staged> Shared;
	constexpr int nthreads = Shape::threads;
	constexpr int nitems = Shape::items;
	constexpr int ntile = Shape::tile;
	constexpr int nwarps = nthreads / GS_WARP_SIZE;
	constexpr bool has_values = Shared::has_values;
	constexpr bool low_latency = nitems <= GsRadixSmall::items;

	static_assert(nthreads >= GS_NDIGITS && ntile <= 65535, "");

	extern __shared__ __align__(16) unsigned char s_memory[];
	Shared &s = *(Shared *) s_memory;
	const GsRadixPlan &plan = general.plan;

#if __CUDA_ARCH__ >= 900
	cudaTriggerProgrammaticLaunchCompletion();
#endif
	if (low_latency && threadIdx.x == 0)
		s.tile_id = atomicAdd(&plan.d_control->next_tile[pass][portion], 1);
#if __CUDA_ARCH__ >= 900
	cudaGridDependencySynchronize();
#endif

	GsRadixControl *control = plan.d_control;
	const uint32_t npasses = control->npasses;
	const uint32_t early_place = low_latency ? control->place_of[pass] : 0;

	if (pass >= npasses)
	{
		if constexpr (options)
			if (pass == 0 && portion == 0)
				gs_radix_copy_input<Key, Value>(general);
		return;
	}

	const uint32_t place_number = low_latency ? early_place : control->place_of[pass];
	const GsPlace place = plan.places[place_number];
	const uint32_t output = gs_pass_output<options>(general, pass, npasses);
	const Key *d_keys_from =
		(const Key *) (pass == 0 ? general.d_keys_in : plan.d_keys[1 - output]);
	const Value *d_values_from =
		(const Value *) (pass == 0 ? general.d_values_in : plan.d_values[1 - output]);
	Key *d_keys_to = (Key *) plan.d_keys[output];
	Value *d_values_to = (Value *) plan.d_values[output];
	const bool pack = options && pass == 0 && (general.flags & GS_RADIX_PACK_ROWS);
	const bool make_rows = options && pass == 0 && (general.flags & GS_RADIX_ROW_NUMBERS);
	const bool write_keys =
		!(options && pass + 1 == npasses && (general.flags & GS_RADIX_NO_KEYS_OUT));

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
		gs_warp_copy_slice<nitems>(s_slice, d_keys_from + tile_start + slice,
								   (int64_t) nvalid - slice, (Key) ~(Key) 0);
		gs_warp_copy_commit();
		if constexpr (has_values && staged)
		{
			if (!make_rows)
				gs_warp_copy_slice<nitems>(&s.values[slice], d_values_from + tile_start + slice,
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
					s_slice[i] = gs_pack_row(general, s_slice[i], tile_start + slice + i);
			}
		}

		/* B */
		if constexpr (!(ablate & GS_ABLATE_RANK))
			gs_warp_rank<nitems>(s_slice, s_counters, place, ranks);
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

			gs_digit_column<nwarps>(&s.counters[0][0], column);
			before = gs_digit_sum_end(before, s.sums);
			gs_digit_rows<nwarps>(&s.counters[0][0], column, before);
			s.first[threadIdx.x] = before;
		}

		/* C */
		Key keys[nitems];

#pragma unroll
		for (int item = 0; item < nitems; item++)
			keys[item] = s_slice[item * GS_WARP_SIZE + gs_lane()];
		__syncthreads();
		if constexpr (!(ablate & GS_ABLATE_RANK))
			gs_finish_ranks<nitems>(keys, s_counters, place, ranks);
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
			uint32_t sum = 0;

			if constexpr (!(ablate & GS_ABLATE_LOOKBACK))
				sum = gs_lookback<Shape::lookback>(d_rows, tile, count);
			else if (tile > 0)
				sum = d_rows[(size_t) (tile - 1) * GS_NDIGITS + threadIdx.x] & GS_LOOKBACK_VALUE;
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
			break;
		if (threadIdx.x == 0)
			s.tile_id = atomicAdd(d_next_tile, 1);
		__syncthreads();
	}
}

template <bool options, typename Key, typename Value, typename Shape, bool staged, int ablate = 0>
static GsRadixKernels *
gs_radix_general_kernels(void)
{
	static GsRadixKernels kernels = {
		(const void *) gs_radix_general_count_kernel<options, Key>,
		NULL,
		(const void *) gs_radix_general_pass_kernel<options, Key, Value, Shape, staged, ablate>,
		sizeof(Key),
		Shape::threads,
		Shape::tile,
		sizeof(GsRadixGeneralShared<Key, Value, Shape, staged>),
		{},
		{},
	};

	return &kernels;
}

#endif /* GPUSORT_KERNEL_RADIX_GENERAL_CUH */
