/*-------------------------------------------------------------------------
 *
 * kernel_pack.cu
 *	  Converts records to sort words, and validates them.
 *
 * The problem: before the first sort, the record of each row must be read to compute its word, to
 * locate its row, and to validate it; and the sort needs the counts of digits.  All of this is
 * done in one read of the records and one write of the words.
 *
 * The records of a batch are in descending order of entries, so adjacent threads read adjacent
 * records.  A block processes tile after tile of rows.  Two searches find the batches of the
 * first and the last row of a tile, which are mostly the same; then threads need not search.
 *
 * Digits are counted in shared memory, as in kernel_radix_count.cuh, at the places
 * of a sort by the bits of the chunk, which gs_radix_places() determines for both.
 *
 * The keys of ties are the same bits for single rows, by row number.
 *
 *-------------------------------------------------------------------------
 */
#include "device_steps.cuh"
#include "kernel_radix_plan.cuh"
#include "row_record.cuh"

typedef struct GsPack
{
	GsDeviceRows rows;
	int chunk; /* less than 0: none */
	int row_bits;
	uint64_t *d_words;
	GsPackResults *d_results;
	GsRadixControl *d_control; /* NULL: does not count digits */
} GsPack;

typedef struct GsPackShared
{
	GsKeyPacking packing;
	uint32_t counts[GS_MAX_PLACES][GS_NDIGITS];
	GsPlace places[GS_MAX_PLACES];
	uint32_t nplaces;
	uint32_t batches[2]; /* of the first and the last row of the tile */
	GsPackResults properties;
} GsPackShared;

/* The location of a row; a valid one even if the record is invalid. */
static __device__ __forceinline__ uint64_t
gs_locate_row(const GsDeviceRows &rows, const GsDeviceBatch &batch, uint64_t row,
			  const uint64_t *record, GsPackResults *properties)
{
	const uint32_t nwords = rows.record_bytes / sizeof(uint64_t) - 1;
	const uint32_t entry = (uint32_t) (row - batch.first_row);
	uint32_t start = (uint32_t) (record[nwords] >> 32);
	uint32_t end = batch.nunits;
	uint32_t length;

	/* the record of the next entry precedes this one in memory */
	if (entry + 1 < batch.nrows)
		end = (uint32_t) (*(record - 1) >> 32);
	length = end - start;
	if (start >= end || end > batch.nunits || length > rows.max_row_units)
	{
		properties->nfaults++;
		start = 0;
		length = batch.nunits > 0;
	}
	properties->max_row_units = max(properties->max_row_units, length);
	return ((uint64_t) (uintptr_t) batch.d_rows / GS_ROW_ALIGN + start) << GS_LOCATION_LENGTH_BITS |
		length;
}

template <bool is_range, bool counted>
static __device__ __forceinline__ void
gs_pack_tile(const GsPack &pack, GsPackShared &s, uint64_t start, uint64_t end,
			 GsPackResults *properties)
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
			bits = gs_range_value(s.packing, s.packing.chunks[pack.chunk], record);
		else if (pack.chunk >= 0)
			bits = gs_key_chunk_value(&s.packing, &s.packing.chunks[pack.chunk], record,
									  gs_extract_bits);
		word = bits << pack.row_bits | row;
		pack.d_words[row] = word;
		if (!rows.keys_only)
			rows.d_locations[row] = gs_locate_row(rows, batch, row, record, properties);
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
	GsPackResults properties = {0, 0};
	bool is_range;

	if (pack.chunk >= 0)
		gs_share_packing(&s.packing, pack.rows.d_packing);
	if (counted)
		for (uint32_t i = threadIdx.x; i < GS_MAX_PLACES * GS_NDIGITS; i += GS_PACK_THREADS)
			(&s.counts[0][0])[i] = 0;
	if (threadIdx.x == 0)
		s.properties = properties;
	__syncthreads();
	is_range = pack.chunk >= 0 && gs_chunk_is_range(s.packing, s.packing.chunks[pack.chunk]);
	if (threadIdx.x == 0)
	{
		s.nplaces = 0;
		if (pack.chunk >= 0)
			s.nplaces = gs_radix_places(s.places, pack.row_bits,
										pack.row_bits + s.packing.chunks[pack.chunk].bits);
	}

	for (uint64_t start = blockIdx.x * ntile; start < pack.rows.nrows; start += gridDim.x * ntile)
	{
		const uint64_t end = min(start + ntile, pack.rows.nrows);

		__syncthreads();
		if (threadIdx.x < 2)
			s.batches[threadIdx.x] = gs_find_batch(pack.rows.d_batches, 0, pack.rows.nbatches - 1,
												   threadIdx.x == 0 ? start : end - 1);
		__syncthreads();
		if (is_range)
			gs_pack_tile<true, counted>(pack, s, start, end, &properties);
		else
			gs_pack_tile<false, counted>(pack, s, start, end, &properties);
	}

	atomicAdd(&s.properties.nfaults, properties.nfaults);
	atomicMax(&s.properties.max_row_units, properties.max_row_units);
	__syncthreads();
	if (threadIdx.x == 0)
	{
		if (s.properties.nfaults != 0)
			atomicAdd(&pack.d_results->nfaults, s.properties.nfaults);
		atomicMax(&pack.d_results->max_row_units, s.properties.max_row_units);
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
	gs_tie_keys_kernel(const __grid_constant__ GsDeviceRows rows,
					   const __grid_constant__ GsTies ties,
					   const int chunk_number, uint64_t *d_keys)
{
	__shared__ GsKeyPacking s_packing;
	const uint64_t stride = (uint64_t) gridDim.x * GS_STEP_THREADS;
	uint64_t k = (uint64_t) blockIdx.x * GS_STEP_THREADS + threadIdx.x;

	gs_share_packing(&s_packing, rows.d_packing);
	__syncthreads();

	const GsKeyChunk &chunk = s_packing.chunks[chunk_number];

	for (; k < ties.nties; k += stride)
	{
		const uint64_t bits = gs_key_chunk_value(&s_packing, &chunk,
												 gs_record_of(rows, ties.d_rows[k]),
												 gs_extract_bits);

		/* a chunk of 64 bits leaves no bits for the group, so there is only one */
		d_keys[k] = chunk.bits == 64 ? bits : (uint64_t) ties.d_groups[k] << chunk.bits | bits;
	}
}

size_t
gs_pack_temp_bytes(void)
{
	return sizeof(GsRadixControl);
}

/* Launches a kernel for n elements, ntile to a tile, with at most as many blocks as fit at once. */
static GsDeviceStatus
gs_launch_resident(void *stream, GsKernelOccupancy *known, const void *kernel, uint64_t n,
				   uint32_t ntile, uint32_t nthreads, void **args)
{
	const uint32_t needed = gs_blocks(n, ntile);
	GsDeviceProperties properties;
	GsDeviceStatus status = gs_device_properties(&properties);
	uint32_t nblocks;

	if (status == GS_DEVICE_OK)
		status = gs_kernel_resident_blocks(known, &properties, kernel, nthreads, 0, &nblocks);
	return status != GS_DEVICE_OK ? status :
									gs_launch(kernel, needed < nblocks ? needed : nblocks, nthreads,
											  0, stream, false, args);
}

GsDeviceStatus
gs_device_pack(void *stream, const GsDeviceRows *rows, int chunk, int row_bits, uint64_t *d_words,
			   GsPackResults *d_results, void *d_temp, size_t temp_bytes)
{
	static GsKernelOccupancy known[2];
	const bool counted = d_temp != NULL && chunk >= 0;
	const void *kernel =
		counted ? (const void *) gs_pack_kernel<true> : (const void *) gs_pack_kernel<false>;
	GsPack pack = {*rows, chunk, row_bits, d_words, d_results, (GsRadixControl *) d_temp};
	GsDeviceStatus status = GS_DEVICE_OK;
	void *args[] = {&pack};

	if (d_temp != NULL && temp_bytes < gs_pack_temp_bytes())
		return GS_DEVICE_TEMP_TOO_SMALL;
	if (d_temp != NULL)
		status = gs_cuda_status(cudaMemsetAsync(d_temp, 0, sizeof(GsRadixControl),
												(cudaStream_t) stream));
	return status != GS_DEVICE_OK ? status :
									gs_launch_resident(stream, &known[counted], kernel, rows->nrows,
													   GS_PACK_THREADS * GS_PACK_ITEMS,
													   GS_PACK_THREADS, args);
}

GsDeviceStatus
gs_device_tie_keys(void *stream, const GsDeviceRows *rows, const GsTies *ties, int chunk,
				   uint64_t *d_keys)
{
	static GsKernelOccupancy known;
	void *args[] = {(void *) rows, (void *) ties, &chunk, &d_keys};

	if (ties->nties == 0)
		return GS_DEVICE_OK;
	return gs_launch_resident(stream, &known, (const void *) gs_tie_keys_kernel, ties->nties,
							  GS_STEP_THREADS, GS_STEP_THREADS, args);
}
