/*-------------------------------------------------------------------------
 *
 * kernel_ties.cu
 *	  Finds rows that are still equal, lists them, and sorts the list.
 *
 * The list is made in three steps: each block counts the ties of its tile, one scan
 * (kernel_scan.cu) computes the number before each tile, and each block writes its
 * part.  A block assembles its part in shared memory, so that adjacent threads
 * write to adjacent places even if few rows are tied.
 *
 * A thread has 16 elements, whose flags are the bits of one number: flag i is bit
 * i, and bit 16 is the flag of the next element:
 *
 *		same		0 0 1 1 0 1 0 | 0		equal to the previous one
 *		tied		0 1 1 1 1 1 0			same, or the next one is
 *		starts		0 1 0 0 1 0 0			tied and not same: a group begins
 *
 *-------------------------------------------------------------------------
 */
#include "block_scan.cuh"
#include "device_steps.cuh"
#include "row_record.cuh"

#define GS_FLAGS     16 /* for each thread */
#define GS_TIES_TILE (GS_STEP_THREADS * GS_FLAGS)

/* ------------------------------------------------------------ flags */

static __global__ void
__launch_bounds__(GS_STEP_THREADS)
	gs_same_words_kernel(const uint64_t n, const uint64_t *d_words, const int low_bit,
						 uint8_t *d_same)
{
	constexpr uint32_t nitems = 4; /* one write of four flags */
	const uint64_t start = ((uint64_t) blockIdx.x * GS_STEP_THREADS + threadIdx.x) * nitems;

	if (start + nitems <= n)
	{
		const ulonglong2 *d_pairs = (const ulonglong2 *) (d_words + start);
		const ulonglong2 low = d_pairs[0];
		const ulonglong2 high = d_pairs[1];
		const uint64_t last = start > 0 ? d_words[start - 1] >> low_bit : 0;
		const bool first_same = start > 0 && low.x >> low_bit == last;

		((uchar4 *) d_same)[start / nitems] =
			make_uchar4(first_same, low.y >> low_bit == low.x >> low_bit,
						high.x >> low_bit == low.y >> low_bit,
						high.y >> low_bit == high.x >> low_bit);
	}
	else
	{
		for (uint64_t i = start; i < n; i++)
			d_same[i] = i > 0 && d_words[i] >> low_bit == d_words[i - 1] >> low_bit;
	}
}

/* ----------------------------------------------------------------------------- list */

/* The flags of elements start .. start + 16; 0 from n on. */
static __device__ __forceinline__ uint32_t
gs_load_flags(uint64_t n, const uint8_t *d_same, uint64_t start)
{
	uint32_t flags = 0;

	if (start + GS_FLAGS < n)
	{
		const uint4 bytes = *(const uint4 *) (d_same + start);
		const uint32_t words[4] = {bytes.x, bytes.y, bytes.z, bytes.w};

		/* the product has the lowest bit of byte i at 24 + i */
#pragma unroll
		for (int i = 0; i < 4; i++)
			flags |= (words[i] * 0x01020408u >> 24 & 0xf) << (4 * i);
		flags |= (uint32_t) d_same[start + GS_FLAGS] << GS_FLAGS;
	}
	else
	{
		for (uint64_t i = start; i < n; i++)
			flags |= (uint32_t) d_same[i] << (i - start);
	}
	return flags;
}

static __device__ __forceinline__ uint32_t
gs_tied(uint32_t same)
{
	return (same | same >> 1) & 0xffff;
}

static __device__ __forceinline__ uint32_t
gs_group_starts(uint32_t same)
{
	return (~same & same >> 1) & 0xffff;
}

/* d_sums: the number of ties of each tile, then the number of groups of each. */
static __global__ void
__launch_bounds__(GS_STEP_THREADS)
	gs_count_ties_kernel(const uint64_t n, const uint8_t *d_same, uint64_t *d_sums)
{
	__shared__ uint32_t s_sums[GS_STEP_THREADS / GS_WARP_SIZE];
	const uint64_t start = (uint64_t) blockIdx.x * GS_TIES_TILE + threadIdx.x * GS_FLAGS;
	const uint32_t same = gs_load_flags(n, d_same, start);
	uint32_t both = __popc(gs_tied(same)) | __popc(gs_group_starts(same)) << 16;
	uint32_t total;

	static_assert(GS_TIES_TILE < 65536, "");
	gs_block_inclusive_sum<GS_STEP_THREADS>(both, s_sums, &total);
	if (threadIdx.x == 0)
	{
		d_sums[blockIdx.x] = total & 0xffff;
		d_sums[(uint64_t) gridDim.x + blockIdx.x] = total >> 16;
	}
}

typedef struct GsTieList
{
	uint64_t n;
	const uint8_t *d_same;
	const uint64_t *d_sums;  /* number of ties, and of groups, before each tile */
	const uint64_t *d_words; /* the elements are these words ... */
	int row_bits;
	bool is_list; /* ... or this list */
	GsTies from;
	GsTies to;
} GsTieList;

static __global__ void
__launch_bounds__(GS_STEP_THREADS)
	gs_list_ties_kernel(const __grid_constant__ GsTieList list)
{
	/* element of the tile, and the number of its group in the tile, from 1 */
	__shared__ uint32_t s_ties[GS_TIES_TILE];
	__shared__ uint32_t s_sums[GS_STEP_THREADS / GS_WARP_SIZE];
	const uint64_t start = (uint64_t) blockIdx.x * GS_TIES_TILE;
	const uint32_t same = gs_load_flags(list.n, list.d_same, start + threadIdx.x * GS_FLAGS);
	const uint32_t tied = gs_tied(same);
	const uint32_t starts = gs_group_starts(same);
	const uint32_t both = __popc(tied) | __popc(starts) << 16;
	const uint64_t ties_before = list.d_sums[blockIdx.x];
	const uint64_t groups_before = list.d_sums[(uint64_t) gridDim.x + blockIdx.x];
	uint32_t total;
	const uint32_t before = gs_block_inclusive_sum<GS_STEP_THREADS>(both, s_sums, &total) - both;
	const uint32_t nties = total & 0xffff;
	uint32_t next = before & 0xffff;
	uint32_t group = before >> 16;

#pragma unroll
	for (uint32_t item = 0; item < GS_FLAGS; item++)
	{
		group += starts >> item & 1;
		if (tied >> item & 1)
			s_ties[next++] = group << 16 | (threadIdx.x * GS_FLAGS + item);
	}
	__syncthreads();
	for (uint32_t k = threadIdx.x; k < nties; k += GS_STEP_THREADS)
	{
		const uint64_t i = start + (s_ties[k] & 0xffff);
		const uint64_t to = ties_before + k;

		list.to.d_places[to] = list.is_list ? list.from.d_places[i] : (uint32_t) i;
		list.to.d_rows[to] = list.is_list ? list.from.d_rows[i] :
											(uint32_t) gs_row_of_word(list.d_words[i],
																	  list.row_bits);
		list.to.d_groups[to] = (uint32_t) (groups_before + (s_ties[k] >> 16) - 1);
	}
}

/* --------------------------------------------------------------------------- order */

/* Copies the result of a radix sort if it is in the second arrays. */
static __global__ void
__launch_bounds__(GS_STEP_THREADS)
	gs_copy_back_kernel(const uint64_t n, const uint32_t *d_selector, const uint64_t *d_keys_from,
						const uint32_t *d_rows_from, uint64_t *d_keys, uint32_t *d_rows)
{
	const uint64_t i = (uint64_t) blockIdx.x * GS_STEP_THREADS + threadIdx.x;

	if (i < n && *d_selector == 1)
	{
		d_keys[i] = d_keys_from[i];
		d_rows[i] = d_rows_from[i];
	}
}

static __global__ void
__launch_bounds__(GS_STEP_THREADS)
	gs_place_ties_kernel(const __grid_constant__ GsTies ties, uint64_t *d_words)
{
	const uint64_t k = (uint64_t) blockIdx.x * GS_STEP_THREADS + threadIdx.x;

	if (k < ties.nties)
		d_words[ties.d_places[k]] = ties.d_rows[k];
}

/* ----------------------------------------------------------------------------- host */

GsDeviceStatus
gs_device_same_words(void *stream, uint64_t n, const uint64_t *d_words, int low_bit,
					 uint8_t *d_same)
{
	return gs_launch_step(stream, gs_same_words_kernel, n, 4 * GS_STEP_THREADS, n, d_words, low_bit,
						  d_same);
}

size_t
gs_ties_temp_bytes(uint64_t n)
{
	return 2 * sizeof(uint64_t) * gs_blocks(n, GS_TIES_TILE);
}

GsDeviceStatus
gs_device_count_ties(void *stream, uint64_t n, const uint8_t *d_same, GsTieCount *d_count,
					 void *d_temp, size_t temp_bytes)
{
	uint64_t *d_sums = (uint64_t *) d_temp;
	GsDeviceStatus status;

	static_assert(offsetof(GsTieCount, nties) == 0 && sizeof(GsTieCount) == 2 * sizeof(uint64_t),
				  "");
	if (temp_bytes < gs_ties_temp_bytes(n))
		return GS_DEVICE_TEMP_TOO_SMALL;
	status = gs_launch_step(stream, gs_count_ties_kernel, n, GS_TIES_TILE, n, d_same, d_sums);
	if (status == GS_DEVICE_OK)
		status = gs_device_scan(stream, gs_blocks(n, GS_TIES_TILE), 2, d_sums,
								(uint64_t *) d_count);
	return status;
}

GsDeviceStatus
gs_device_list_ties(void *stream, uint64_t n, const uint8_t *d_same, const uint64_t *d_words,
					int row_bits, const GsTies *from, const GsTies *out, const void *d_temp,
					size_t temp_bytes)
{
	GsTieList list = {
		n, d_same, (const uint64_t *) d_temp, d_words, row_bits, from != NULL, {}, *out};

	if (temp_bytes < gs_ties_temp_bytes(n))
		return GS_DEVICE_TEMP_TOO_SMALL;
	if (from != NULL)
		list.from = *from;
	return gs_launch_step(stream, gs_list_ties_kernel, n, GS_TIES_TILE, list);
}

/* Temporary storage of a sort of the list: | selector | row numbers | that of the sort |. */
#define GS_SELECTOR_BYTES 256

static size_t
gs_scratch_rows_bytes(uint64_t n)
{
	return (n * sizeof(uint32_t) + 255) / 256 * 256;
}

size_t
gs_sort_ties_temp_bytes(GsAlgorithm algorithm, uint64_t n)
{
	return GS_SELECTOR_BYTES + gs_scratch_rows_bytes(n) +
		(algorithm == GS_ALGORITHM_MERGE ? gs_device_merge_temp_bytes(n, sizeof(uint32_t)) :
										   gs_device_radix_temp_bytes(n, true));
}

GsDeviceStatus
gs_device_sort_ties(void *stream, GsAlgorithm algorithm, const GsTies *ties, int nbits,
					uint64_t *const d_keys[2], void *d_temp, size_t temp_bytes)
{
	const uint64_t n = ties->nties;
	uint32_t *d_scratch_rows = (uint32_t *) ((char *) d_temp + GS_SELECTOR_BYTES);
	char *d_sort_temp = (char *) d_scratch_rows + gs_scratch_rows_bytes(n);
	const size_t sort_temp_bytes = temp_bytes - (size_t) (d_sort_temp - (char *) d_temp);
	GsMergeSort merge = {};
	GsRadixSort radix = {};
	GsDeviceStatus status;

	if (temp_bytes < gs_sort_ties_temp_bytes(algorithm, n))
		return GS_DEVICE_TEMP_TOO_SMALL;
	if (n == 0)
		return GS_DEVICE_OK;
	merge.nitems = radix.nitems = n;
	for (int i = 0; i < 2; i++)
		merge.d_keys[i] = radix.d_keys[i] = d_keys[i];
	merge.d_values[0] = radix.d_values[0] = ties->d_rows;
	merge.d_values[1] = radix.d_values[1] = d_scratch_rows;
	merge.value_bytes = sizeof(uint32_t);
	if (algorithm == GS_ALGORITHM_MERGE)
		return gs_device_merge_sort(&merge, d_sort_temp, sort_temp_bytes, stream);
	radix.has_values = true;
	radix.end_bit = nbits;
	radix.d_selector = (uint32_t *) d_temp;
	status = gs_device_radix_sort(&radix, d_sort_temp, sort_temp_bytes, stream);
	if (status == GS_DEVICE_OK)
		status = gs_launch_step(stream, gs_copy_back_kernel, n, GS_STEP_THREADS, n,
								radix.d_selector, radix.d_keys[1], radix.d_values[1],
								radix.d_keys[0], radix.d_values[0]);
	return status;
}

GsDeviceStatus
gs_device_place_ties(void *stream, const GsTies *ties, uint64_t *d_words)
{
	return gs_launch_step(stream, gs_place_ties_kernel, ties->nties, GS_STEP_THREADS, *ties,
						  d_words);
}
