/*-------------------------------------------------------------------------
 *
 * kernel_rows.cu
 *	  Gathers rows in sorted order into batches for the client.
 *
 * row_end_offsets is a prefix sum over the lengths of the rows in sorted order.  Each block sums
 * its tile, one scan (kernel_scan.cu) computes the sum before each tile, which is then added.  So
 * the lengths, which are at random places, are read once.
 *
 * gather: rows have between 8 bytes and 2 megabytes, so threads or blocks cannot
 * have a fixed number of rows.  Instead each block has a fixed part of the output,
 * GS_GATHER_TILE units of 8 bytes:
 *
 *	rows		|  a   |    b     |c|      d       |
 *	blocks		|   0     |    1     |    2     |
 *
 * All threads of a block search the row end offsets for the first row of its part: first near the
 * row that it would be if all rows had the same length, and if it is not there, at 256 places
 * spread over the rest, until it is found.  Then they process up to 256 rows at a time, one for
 * each thread: its offset in the output and its source.  Then each thread fills pieces of 16
 * bytes, adjacent within a warp, and finds the row of each by a search in shared memory.  So
 * writes are complete and coalesced for all row lengths, and reads are except at row borders.
 * Rows are aligned to 8 bytes on both sides, so a piece of 16 bytes may have halves of two rows.
 *
 *-------------------------------------------------------------------------
 */
#include "block_scan.cuh"
#include "device_steps.cuh"
#include "row_record.cuh"

#define GS_ENDS_TILE   (GS_STEP_THREADS * GS_END_OFFSETS_ITEMS)
#define GS_GATHER_TILE (2 * GS_GATHER_ITEMS * GS_GATHER_THREADS)

/* ------------------------------------------------------------------------- row end offsets */

/* End offsets within each tile, and the sums of tiles. */
static __global__ void
__launch_bounds__(GS_STEP_THREADS)
	gs_tile_ends_kernel(const uint64_t n, const uint64_t *d_words, const int row_bits,
						const uint64_t *d_locations, uint64_t *d_end_offsets, uint64_t *d_sums)
{
	/* the sum of a tile fits: at most 2 * 2^18 for each row */
	__shared__ uint32_t s_ends[GS_ENDS_TILE];
	__shared__ uint32_t s_sums[GS_STEP_THREADS / GS_WARP_SIZE];
	const uint64_t start = (uint64_t) blockIdx.x * GS_ENDS_TILE;
	uint32_t mine[GS_END_OFFSETS_ITEMS];
	uint32_t sum = 0;
	uint32_t total;

	static_assert((UINT64_C(2) << GS_LOCATION_LENGTH_BITS) * GS_ENDS_TILE <= UINT64_C(1) << 32, "");
#pragma unroll
	for (uint32_t item = 0; item < GS_END_OFFSETS_ITEMS; item++)
	{
		const uint32_t i = item * GS_STEP_THREADS + threadIdx.x;
		uint32_t end = 0;

		if (start + i < n)
		{
			const uint64_t row = gs_row_of_word(d_words[start + i], row_bits);

			end = 2 * GS_LOCATION_LENGTH(d_locations[row]) + 1;
		}
		s_ends[i] = end;
	}
	__syncthreads();
#pragma unroll
	for (uint32_t item = 0; item < GS_END_OFFSETS_ITEMS; item++)
	{
		mine[item] = s_ends[threadIdx.x * GS_END_OFFSETS_ITEMS + item];
		sum += mine[item];
	}
	sum = gs_block_inclusive_sum<GS_STEP_THREADS>(sum, s_sums, &total) - sum;
#pragma unroll
	for (uint32_t item = 0; item < GS_END_OFFSETS_ITEMS; item++)
	{
		sum += mine[item];
		s_ends[threadIdx.x * GS_END_OFFSETS_ITEMS + item] = sum;
	}
	__syncthreads();
#pragma unroll
	for (uint32_t item = 0; item < GS_END_OFFSETS_ITEMS; item++)
	{
		const uint32_t i = item * GS_STEP_THREADS + threadIdx.x;

		if (start + i < n)
			d_end_offsets[start + i] = s_ends[i];
	}
	if (threadIdx.x == 0)
		d_sums[blockIdx.x] = total;
}

static __global__ void
__launch_bounds__(GS_STEP_THREADS)
	gs_add_before_kernel(const uint64_t n, const uint64_t *d_before, uint64_t *d_end_offsets)
{
	const uint64_t start = (uint64_t) blockIdx.x * GS_ENDS_TILE;
	const uint64_t before = d_before[blockIdx.x];

#pragma unroll
	for (uint32_t item = 0; item < GS_END_OFFSETS_ITEMS; item++)
	{
		const uint64_t i = start + item * GS_STEP_THREADS + threadIdx.x;

		if (i < n)
			d_end_offsets[i] += before;
	}
}

/* One thread for each boundary. */
static __global__ void
__launch_bounds__(GS_STEP_THREADS)
	gs_find_boundaries_kernel(const uint64_t nrows, const uint64_t *d_end_offsets,
							  const uint64_t step, const uint32_t nboundaries,
							  uint64_t *d_boundaries)
{
	const uint64_t b = (uint64_t) blockIdx.x * GS_STEP_THREADS + threadIdx.x;
	uint64_t low = 0;
	uint64_t high = nrows;

	if (b >= nboundaries)
		return;
	while (low < high)
	{
		const uint64_t middle = low + (high - low) / 2;

		if (d_end_offsets[middle] <= b * step)
			low = middle + 1;
		else
			high = middle;
	}
	d_boundaries[b] = low;
}

/* --------------------------------------------------------------------------------- gather */

typedef struct GsGather
{
	const uint64_t *d_words;
	int row_bits;
	const uint64_t *d_locations;
	const uint64_t *d_end_offsets;
	uint64_t first;
	uint32_t nrows;
	uint32_t max_units; /* size of the output */
	uint64_t *d_to;
	uint32_t *d_offsets_top; /* that of the first row is below it */
} GsGather;

/* Size in units of the rows before row i in sorted order. */
static __device__ __forceinline__ uint64_t
gs_units_before(const uint64_t *d_end_offsets, uint64_t i)
{
	return i == 0 ? 0 : (d_end_offsets[i - 1] - i) / 2;
}

/* The first row that ends after a unit; all threads call it. */
static __device__ __forceinline__ uint32_t
gs_first_row_behind(const GsGather &gather, uint64_t base, uint64_t nunits, uint32_t unit)
{
	const uint32_t guess = (uint32_t) (unit * (uint64_t) gather.nrows / nunits);
	uint32_t first = guess - min(guess, GS_GATHER_THREADS / 2);
	uint32_t step = 1;
	uint32_t low = 0;
	uint32_t high = gather.nrows;

	while (low < high)
	{
		const uint64_t asked = first + (uint64_t) threadIdx.x * step;
		const uint64_t next = gather.first + asked + 1;
		const uint32_t nbefore = __syncthreads_count(
			asked < high && gs_units_before(gather.d_end_offsets, next) - base <= unit);

		/* it is between the last such place and the next one */
		if (nbefore > 0)
			low = first + (nbefore - 1) * step + 1;
		if (nbefore < GS_GATHER_THREADS)
			high = min(high, first + nbefore * step);
		first = low;
		step = (high - low + GS_GATHER_THREADS - 1) / GS_GATHER_THREADS;
	}
	return low;
}

/* The last row that begins at or before the unit. */
static __device__ __forceinline__ uint32_t
gs_row_of_unit(const uint32_t *s_starts, uint32_t unit)
{
	uint32_t row = 0;

#pragma unroll
	for (uint32_t step = GS_GATHER_THREADS / 2; step > 0; step /= 2)
		if (s_starts[row + step] <= unit)
			row += step;
	return row;
}

static __global__ void
__launch_bounds__(GS_GATHER_THREADS)
	gs_gather_kernel(const __grid_constant__ GsGather gather)
{
	/* rows that do not exist begin after everything */
	__shared__ uint32_t s_starts[GS_GATHER_THREADS + 1];
	/* the address of unit 0 of the output if it belonged to this row */
	__shared__ uint64_t s_sources[GS_GATHER_THREADS];
	__shared__ uint32_t s_end;

#if __CUDA_ARCH__ >= 900
	/* blocks of the next batch may start when blocks of this one end */
	cudaTriggerProgrammaticLaunchCompletion();
	cudaGridDependencySynchronize();
#endif

	const uint64_t base = gs_units_before(gather.d_end_offsets, gather.first);
	const uint64_t nunits =
		gs_units_before(gather.d_end_offsets, gather.first + gather.nrows) - base;
	const uint32_t tile_start = blockIdx.x * GS_GATHER_TILE;
	const uint32_t tile_end = (uint32_t) min(min((uint64_t) tile_start + GS_GATHER_TILE, nunits),
											 (uint64_t) gather.max_units);

	if (tile_start >= tile_end)
		return;
	if (threadIdx.x == 0)
		s_starts[GS_GATHER_THREADS] = UINT32_MAX;

	uint32_t row = gs_first_row_behind(gather, base, nunits, tile_start);

	for (;;)
	{
		const uint32_t mine = row + threadIdx.x;
		uint32_t start = UINT32_MAX;

		__syncthreads();
		if (mine < gather.nrows && mine >= row)
		{
			const uint64_t i = gather.first + mine;
			const uint64_t location =
				gather.d_locations[gs_row_of_word(gather.d_words[i], gather.row_bits)];

			start = (uint32_t) (gs_units_before(gather.d_end_offsets, i) - base);
			s_sources[threadIdx.x] = GS_LOCATION_ADDRESS(location) - sizeof(uint64_t) * start;
			if (start >= tile_start && start < tile_end)
				gather.d_offsets_top[-(int64_t) mine - 1] = start;
			if (threadIdx.x == GS_GATHER_THREADS - 1 || mine == gather.nrows - 1)
				s_end = start + GS_LOCATION_LENGTH(location);
		}
		s_starts[threadIdx.x] = start;
		__syncthreads();

		const uint32_t from = max(tile_start, s_starts[0]);
		const uint32_t to = min(tile_end, s_end);
		ulonglong2 pieces[GS_GATHER_ITEMS];

#pragma unroll
		for (uint32_t item = 0; item < GS_GATHER_ITEMS; item++)
		{
			const uint32_t unit = tile_start + 2 * (item * GS_GATHER_THREADS + threadIdx.x);

			if (unit + 1 >= from && unit < to)
			{
				uint32_t owner = gs_row_of_unit(s_starts, max(unit, from));

				if (unit >= from)
					pieces[item].x = ((const uint64_t *) s_sources[owner])[unit];
				if (unit >= from && s_starts[owner + 1] <= unit + 1)
					owner++;
				if (unit + 1 < to)
					pieces[item].y = ((const uint64_t *) s_sources[owner])[unit + 1];
			}
		}
#pragma unroll
		for (uint32_t item = 0; item < GS_GATHER_ITEMS; item++)
		{
			const uint32_t unit = tile_start + 2 * (item * GS_GATHER_THREADS + threadIdx.x);

			if (unit >= from && unit + 1 < to)
				*(ulonglong2 *) (gather.d_to + unit) = pieces[item];
			else if (unit >= from && unit < to)
				gather.d_to[unit] = pieces[item].x;
			else if (unit + 1 == from && unit + 1 < to)
				gather.d_to[unit + 1] = pieces[item].y;
		}
		if (s_end >= tile_end || gather.nrows - row <= GS_GATHER_THREADS)
			break;
		row += GS_GATHER_THREADS;
	}
}

static __global__ void
__launch_bounds__(GS_STEP_THREADS)
	gs_gather_keys_kernel(const __grid_constant__ GsDeviceRows rows, const uint64_t *d_words,
						  const int row_bits, const uint64_t first, const uint32_t nrows,
						  uint64_t *d_to)
{
	const uint64_t i = (uint64_t) blockIdx.x * GS_STEP_THREADS + threadIdx.x;

	if (i < nrows)
		d_to[i] = *gs_record_of(rows, gs_row_of_word(d_words[first + i], row_bits));
}

/* -------------------------------------------------------------------------------- host */

size_t
gs_row_end_offsets_temp_bytes(uint64_t n)
{
	return sizeof(uint64_t) * gs_blocks(n, GS_ENDS_TILE);
}

GsDeviceStatus
gs_device_row_end_offsets(void *stream, const GsDeviceRows *rows, const uint64_t *d_words,
						  int row_bits, uint64_t *d_end_offsets, void *d_temp, size_t temp_bytes)
{
	const uint64_t n = rows->nrows;
	uint64_t *d_sums = (uint64_t *) d_temp;
	GsDeviceStatus status;

	if (temp_bytes < gs_row_end_offsets_temp_bytes(n))
		return GS_DEVICE_TEMP_TOO_SMALL;
	status = gs_launch_step(stream, gs_tile_ends_kernel, n, GS_ENDS_TILE, n, d_words, row_bits,
							rows->d_locations, d_end_offsets, d_sums);
	if (status == GS_DEVICE_OK)
		status = gs_device_scan(stream, gs_blocks(n, GS_ENDS_TILE), 1, d_sums, NULL);
	if (status == GS_DEVICE_OK)
		status = gs_launch_step(stream, gs_add_before_kernel, n, GS_ENDS_TILE, n, d_sums,
								d_end_offsets);
	return status;
}

GsDeviceStatus
gs_device_find_boundaries(void *stream, uint64_t nrows, const uint64_t *d_end_offsets,
						  uint64_t step, uint32_t nboundaries, uint64_t *d_boundaries)
{
	return gs_launch_step(stream, gs_find_boundaries_kernel, nboundaries, GS_STEP_THREADS, nrows,
						  d_end_offsets, step, nboundaries, d_boundaries);
}

GsDeviceStatus
gs_device_gather(void *stream, const GsDeviceRows *rows, const uint64_t *d_words, int row_bits,
				 const uint64_t *d_end_offsets, uint64_t first, uint32_t nrows, char *d_to,
				 size_t to_bytes)
{
	const size_t offsets_bytes = nrows * sizeof(uint32_t);
	GsDeviceProperties properties;
	GsDeviceStatus status;
	GsGather gather = {d_words, row_bits, rows->d_locations, d_end_offsets, first, nrows, 0,
					   (uint64_t *) d_to, (uint32_t *) (d_to + to_bytes)};
	void *args[] = {&gather};

	if (nrows == 0)
		return GS_DEVICE_OK;
	if (to_bytes < offsets_bytes || to_bytes > UINT32_MAX)
		return GS_DEVICE_BAD_ARGUMENT;
	gather.max_units = (uint32_t) ((to_bytes - offsets_bytes) / sizeof(uint64_t));
	status = gs_device_properties(&properties);
	if (status != GS_DEVICE_OK || gather.max_units == 0)
		return status;
	return gs_launch((const void *) gs_gather_kernel, gs_blocks(gather.max_units, GS_GATHER_TILE),
					 GS_GATHER_THREADS, 0, stream, properties.capability >= 90, args);
}

GsDeviceStatus
gs_device_gather_keys(void *stream, const GsDeviceRows *rows, const uint64_t *d_words, int row_bits,
					  uint64_t first, uint32_t nrows, uint64_t *d_to)
{
	return gs_launch_step(stream, gs_gather_keys_kernel, nrows, GS_STEP_THREADS, *rows, d_words,
						  row_bits, first, nrows, d_to);
}
