/*-------------------------------------------------------------------------
 *
 * kernel_check.cu
 *	  Checks the result of a sort: see check_order() in src/device/device.h.
 *
 * One pass over the words, which is bound by memory: 8 bytes a row.  The number of
 * blocks is limited, since each of them adds to the same two sums.
 *
 *-------------------------------------------------------------------------
 */
#include "block_scan.cuh"
#include "device_steps.cuh"

#define GS_CHECK_ITEMS 4 /* for each thread in a tile */

/* Elements start .. start + GS_CHECK_ITEMS, as far as there are any; their number. */
static __device__ __forceinline__ int
gs_load_words(uint64_t n, const uint64_t *d_words, uint64_t start, uint64_t *words)
{
	if (start + GS_CHECK_ITEMS <= n)
	{
		const ulonglong2 *d_pairs = (const ulonglong2 *) (d_words + start);
		const ulonglong2 low = d_pairs[0];
		const ulonglong2 high = d_pairs[1];

		words[0] = low.x;
		words[1] = low.y;
		words[2] = high.x;
		words[3] = high.y;
		return GS_CHECK_ITEMS;
	}
	for (uint64_t i = start; i < n; i++)
		words[i - start] = d_words[i];
	return (int) (n - start);
}

static __global__ void
__launch_bounds__(GS_STEP_THREADS)
	gs_check_order_kernel(const uint64_t n, const uint64_t *d_words, const int row_bits,
						  const uint32_t *d_rows, GsOrderCheck *d_check)
{
	__shared__ uint64_t s_sums[2][GS_STEP_THREADS / GS_WARP_SIZE];
	const uint64_t row_mask = ((uint64_t) 1 << row_bits) - 1;
	const uint64_t step = (uint64_t) gridDim.x * GS_STEP_THREADS * GS_CHECK_ITEMS;
	uint64_t row_sum = 0;
	uint64_t nmisplaced = 0;

	for (uint64_t start = ((uint64_t) blockIdx.x * GS_STEP_THREADS + threadIdx.x) * GS_CHECK_ITEMS;
		 start < n; start += step)
	{
		uint64_t words[GS_CHECK_ITEMS];
		const int nitems = gs_load_words(n, d_words, start, words);
		uint64_t last = start > 0 ? d_words[start - 1] : 0;
		uint32_t last_row = start > 0 && d_rows != NULL ? d_rows[start - 1] : 0;

#pragma unroll
		for (int i = 0; i < GS_CHECK_ITEMS; i++)
		{
			if (i == nitems)
				break;

			/* without d_rows, the row is a part of the word */
			const uint32_t row =
				d_rows != NULL ? d_rows[start + i] : (uint32_t) (words[i] & row_mask);
			const uint64_t key = d_rows != NULL ? words[i] >> row_bits : words[i];
			const uint64_t last_key = d_rows != NULL ? last >> row_bits : last;
			const bool is_above =
				key > last_key || (d_rows != NULL && key == last_key && row > last_row);

			nmisplaced += start + i > 0 && !is_above;
			row_sum += gs_row_hash(row) - gs_row_hash(start + i);
			last = words[i];
			last_row = row;
		}
	}

	uint64_t total_sum;
	uint64_t total_misplaced;

	gs_block_inclusive_sum<GS_STEP_THREADS>(row_sum, s_sums[0], &total_sum);
	gs_block_inclusive_sum<GS_STEP_THREADS>(nmisplaced, s_sums[1], &total_misplaced);
	if (threadIdx.x == 0)
	{
		atomicAdd((unsigned long long *) &d_check->row_sum, (unsigned long long) total_sum);
		if (total_misplaced > 0)
			atomicAdd((unsigned long long *) &d_check->nmisplaced,
					  (unsigned long long) total_misplaced);
	}
}

GsDeviceStatus
gs_device_check_order(void *stream, uint64_t n, const uint64_t *d_words, int row_bits,
					  const uint32_t *d_rows, GsOrderCheck *d_check)
{
	void *args[] = {&n, &d_words, &row_bits, &d_rows, &d_check};
	const uint32_t nblocks = gs_blocks(n, GS_CHECK_ITEMS * GS_STEP_THREADS);

	if (n == 0)
		return GS_DEVICE_OK;
	return gs_launch((const void *) gs_check_order_kernel,
					 nblocks < GS_CHECK_BLOCKS ? nblocks : GS_CHECK_BLOCKS,
					 GS_STEP_THREADS, 0, stream, false, args);
}
