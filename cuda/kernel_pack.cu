/*-------------------------------------------------------------------------
 *
 * kernel_pack.cu
 *	  Records become sort words, and what is wrong with them shows.
 *
 * The problem: before the first sort each row's record must be read once, to
 * make its word, to learn where its row is, and to check that; and the sort
 * then wants to know how often each digit occurs.  All of that in one read of
 * the records and one write of the words.
 *
 * Records of a batch stand in descending slots, so neighbouring threads read
 * neighbouring records, in the one order or the other.  A block takes tile
 * after tile of rows; two searches find the batches of its first and its last
 * row, which mostly are one, so that threads have nothing to search.
 *
 * Digits are counted in shared memory, as kernel_radix_count.cuh does, at the
 * places that a sort of the level's bits will have: both ask
 * gs_radix_places().
 *
 * The same bits of single rows, by their numbers, are the keys of ties.
 *
 *-------------------------------------------------------------------------
 */
#include "device_steps.cuh"
#include "kernel_radix_plan.cuh"
#include "launch.cuh"
#include "row_record.cuh"
#include "tuning.cuh"

typedef struct GsPack
{
	GsDeviceRows rows;
	int level; /* below 0: none */
	int row_bits;
	uint64_t *d_words;
	GsPackFacts *d_facts;
	GsRadixControl *d_control; /* NULL: digits are not counted */
} GsPack;

typedef struct GsPackShared
{
	GsKeyPacking packing;
	uint32_t counts[GS_MAX_PLACES][GS_NDIGITS];
	GsPlace places[GS_MAX_PLACES];
	uint32_t nplaces;
	uint32_t batches[2]; /* of the tile's first row and of its last */
	GsPackFacts facts;
} GsPackShared;

/* Where a row is, whatever its record says. */
static __device__ __forceinline__ uint64_t
gs_locate_row(const GsDeviceRows &rows, const GsDeviceBatch &batch, uint64_t row,
			  const uint64_t *record, GsPackFacts *facts)
{
	const uint32_t nwords = rows.record_bytes / sizeof(uint64_t) - 1;
	const uint32_t slot = (uint32_t) (row - batch.first_row);
	uint32_t start = (uint32_t) (record[nwords] >> 32);
	uint32_t end = batch.nunits;
	uint32_t length;

	/* the next slot's record stands below this one */
	if (slot + 1 < batch.nrows)
		end = (uint32_t) (*(record - 1) >> 32);
	length = end - start;
	if (start >= end || end > batch.nunits || length > rows.max_row_units)
	{
		facts->nfaults++;
		start = 0;
		length = batch.nunits > 0;
	}
	facts->max_row_units = max(facts->max_row_units, length);
	return ((uint64_t) (uintptr_t) batch.d_rows / GS_ROW_ALIGN + start) << GS_LOCATION_LENGTH_BITS | length;
}

template <bool is_range, bool counted>
static __device__ __forceinline__ void
gs_pack_tile(const GsPack &pack, GsPackShared &s, uint64_t start, uint64_t end, GsPackFacts *facts)
{
	const GsDeviceRows &rows = pack.rows;
	const uint32_t first_batch = s.batches[0];
	const uint32_t last_batch = s.batches[1];
	GsDeviceBatch batch = rows.d_batches[first_batch];

	for (uint64_t row = start + threadIdx.x; row < end; row += GS_PACK_THREADS)
	{
		uint64_t bits = 0;
		uint64_t word;

		if (first_batch != last_batch)
			batch = rows.d_batches[gs_find_batch(rows.d_batches, first_batch, last_batch, row)];

		const uint64_t *record = gs_record_in(rows, batch, row);

		if (is_range)
			bits = gs_range_value(s.packing, s.packing.levels[pack.level], record);
		else if (pack.level >= 0)
			bits = gs_level_value(&s.packing, &s.packing.levels[pack.level], record, gs_squeeze);
		word = bits << pack.row_bits | row;
		pack.d_words[row] = word;
		if (!rows.keys_only)
			rows.d_locations[row] = gs_locate_row(rows, batch, row, record, facts);
		if (counted)
		{
#pragma unroll
			for (uint32_t place = 0; place < GS_MAX_PLACES; place++)
				if (place < s.nplaces)
					atomicAdd(&s.counts[place][gs_digit(word, s.places[place])], 1);
		}
	}
}

template <bool counted>
static __global__ void
__launch_bounds__(GS_PACK_THREADS)
	gs_pack_kernel(const __grid_constant__ GsPack pack)
{
	__shared__ GsPackShared s;
	const uint64_t ntile = GS_PACK_THREADS * GS_PACK_ITEMS;
	GsPackFacts facts = {0, 0};
	bool is_range;

	if (pack.level >= 0)
		gs_share_packing(&s.packing, pack.rows.d_packing);
	if (counted)
		for (uint32_t i = threadIdx.x; i < GS_MAX_PLACES * GS_NDIGITS; i += GS_PACK_THREADS)
			(&s.counts[0][0])[i] = 0;
	if (threadIdx.x == 0)
		s.facts = facts;
	__syncthreads();
	is_range = pack.level >= 0 && gs_level_is_range(s.packing, s.packing.levels[pack.level]);
	if (threadIdx.x == 0)
		s.nplaces = pack.level < 0 ? 0 :
									 gs_radix_places(s.places, pack.row_bits, pack.row_bits + s.packing.levels[pack.level].bits);

	for (uint64_t start = blockIdx.x * ntile; start < pack.rows.nrows; start += gridDim.x * ntile)
	{
		const uint64_t end = min(start + ntile, pack.rows.nrows);

		__syncthreads();
		if (threadIdx.x < 2)
			s.batches[threadIdx.x] = gs_find_batch(pack.rows.d_batches, 0, pack.rows.nbatches - 1,
												   threadIdx.x == 0 ? start : end - 1);
		__syncthreads();
		if (is_range)
			gs_pack_tile<true, counted>(pack, s, start, end, &facts);
		else
			gs_pack_tile<false, counted>(pack, s, start, end, &facts);
	}

	atomicAdd(&s.facts.nfaults, facts.nfaults);
	atomicMax(&s.facts.max_row_units, facts.max_row_units);
	__syncthreads();
	if (threadIdx.x == 0)
	{
		if (s.facts.nfaults != 0)
			atomicAdd(&pack.d_facts->nfaults, s.facts.nfaults);
		atomicMax(&pack.d_facts->max_row_units, s.facts.max_row_units);
	}
	if (counted)
	{
		for (uint32_t i = threadIdx.x; i < s.nplaces * GS_NDIGITS; i += GS_PACK_THREADS)
		{
			const uint32_t count = (&s.counts[0][0])[i];

			if (count != 0)
				atomicAdd((unsigned long long *) &(&pack.d_control->counts[0][0])[i], count);
		}
	}
}

static __global__ void
__launch_bounds__(GS_STEP_THREADS)
	gs_tie_keys_kernel(const __grid_constant__ GsDeviceRows rows, const __grid_constant__ GsTies ties,
					   const int level_number, uint64_t *d_keys)
{
	__shared__ GsKeyPacking s_packing;
	const uint64_t stride = (uint64_t) gridDim.x * GS_STEP_THREADS;

	gs_share_packing(&s_packing, rows.d_packing);
	__syncthreads();

	const GsLevel &level = s_packing.levels[level_number];

	for (uint64_t k = (uint64_t) blockIdx.x * GS_STEP_THREADS + threadIdx.x; k < ties.nties; k += stride)
	{
		const uint64_t bits = gs_level_value(&s_packing, &level, gs_record_of(rows, ties.d_rows[k]),
											 gs_squeeze);

		/* 64 bits leave room for no group but the first */
		d_keys[k] = level.bits == 64 ? bits : (uint64_t) ties.d_groups[k] << level.bits | bits;
	}
}

size_t
gs_pack_temp_bytes(void)
{
	return sizeof(GsRadixControl);
}

GsDeviceStatus
gs_device_pack(const GsDeviceRows *rows, int level, int row_bits, uint64_t *d_words,
			   GsPackFacts *d_facts, void *d_temp, void *stream)
{
	static GsKernelFacts known[2];
	const bool counted = d_temp != NULL && level >= 0;
	const void *kernel = counted ? (const void *) gs_pack_kernel<true> : (const void *) gs_pack_kernel<false>;
	const uint64_t ntile = GS_PACK_THREADS * GS_PACK_ITEMS;
	const uint64_t ntiles = (rows->nrows + ntile - 1) / ntile;
	GsPack pack = {*rows, level, row_bits, d_words, d_facts, (GsRadixControl *) d_temp};
	GsDeviceFacts facts;
	GsDeviceStatus status;
	uint32_t nblocks;
	void *args[] = {&pack};

	status = gs_device_facts(&facts);
	if (status == GS_DEVICE_OK && d_temp != NULL)
		status = gs_cuda_status(cudaMemsetAsync(d_temp, 0, sizeof(GsRadixControl), (cudaStream_t) stream));
	if (status == GS_DEVICE_OK)
		status = gs_kernel_resident_blocks(&known[counted], &facts, kernel, GS_PACK_THREADS, 0, &nblocks);
	if (status == GS_DEVICE_OK)
		status = gs_launch(kernel, (uint32_t) (ntiles < nblocks ? ntiles : nblocks), GS_PACK_THREADS, 0,
						   stream, false, args);
	return status;
}

GsDeviceStatus
gs_device_tie_keys(const GsDeviceRows *rows, const GsTies *ties, int level, uint64_t *d_keys, void *stream)
{
	static GsKernelFacts known;
	const void *kernel = (const void *) gs_tie_keys_kernel;
	const uint64_t needed = (ties->nties + GS_STEP_THREADS - 1) / GS_STEP_THREADS;
	GsDeviceFacts facts;
	GsDeviceStatus status;
	uint32_t nblocks;
	void *args[] = {(void *) rows, (void *) ties, &level, &d_keys};

	if (ties->nties == 0)
		return GS_DEVICE_OK;
	status = gs_device_facts(&facts);
	if (status == GS_DEVICE_OK)
		status = gs_kernel_resident_blocks(&known, &facts, kernel, GS_STEP_THREADS, 0, &nblocks);
	if (status != GS_DEVICE_OK)
		return status;
	return gs_launch(kernel, (uint32_t) (needed < nblocks ? needed : nblocks), GS_STEP_THREADS, 0, stream,
					 false, args);
}
