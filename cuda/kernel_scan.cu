/*-------------------------------------------------------------------------
 *
 * kernel_scan.cu
 *	  Prefix sums over the sums of tiles of a large array.
 *
 * Tiles of some thousand elements have one number each.  So even 2^32 elements have
 * few enough tiles for one block, which takes about a microsecond for each
 * GS_SCAN_THREADS * GS_SCAN_ITEMS of them.  Steps that use it (reduce, scan, then
 * each tile independently) need no block to wait for another.
 *
 *-------------------------------------------------------------------------
 */
#include "block_scan.cuh"
#include "device_steps.cuh"

/* One block for each array. */
static __global__ void
__launch_bounds__(GS_SCAN_THREADS)
	gs_scan_kernel(const uint64_t n, uint64_t *d_sums, uint64_t *d_totals)
{
	constexpr uint32_t nitems = GS_SCAN_ITEMS;

	__shared__ uint64_t s_sums[GS_SCAN_THREADS / GS_WARP_SIZE];
	uint64_t *d_array = d_sums + blockIdx.x * n;
	uint64_t before = 0;

	for (uint64_t start = 0; start < n; start += GS_SCAN_THREADS * nitems)
	{
		const uint64_t mine = start + threadIdx.x * nitems;
		uint64_t numbers[nitems];
		uint64_t sum = 0;
		uint64_t total;

#pragma unroll
		for (uint32_t item = 0; item < nitems; item++)
		{
			numbers[item] = mine + item < n ? d_array[mine + item] : 0;
			sum += numbers[item];
		}
		sum = before + gs_block_inclusive_sum<GS_SCAN_THREADS>(sum, s_sums, &total) - sum;
#pragma unroll
		for (uint32_t item = 0; item < nitems; item++)
		{
			if (mine + item < n)
				d_array[mine + item] = sum;
			sum += numbers[item];
		}
		before += total;
		__syncthreads();
	}
	if (threadIdx.x == 0 && d_totals != NULL)
		d_totals[blockIdx.x] = before;
}

GsDeviceStatus
gs_device_scan(void *stream, uint64_t n, uint32_t narrays, uint64_t *d_sums, uint64_t *d_totals)
{
	void *args[] = {&n, &d_sums, &d_totals};

	return gs_launch((const void *) gs_scan_kernel, narrays, GS_SCAN_THREADS, 0, stream, false,
					 args);
}
