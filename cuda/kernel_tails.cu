/*-------------------------------------------------------------------------
 *
 * kernel_tails.cu
 *	  Ties of strings with equal first bytes: which are equal, and their order.
 *
 * Locating a string takes three dependent reads at random places: the location of
 * the row, its batch, and its record.  A comparison must not repeat that, so the
 * sort first makes a list of the strings and moves their numbers.
 *
 * The sort key is the tie group and the next 4 bytes after those that are known to
 * be equal, padded with zeros:
 *
 *	   63                   32 31                    0
 *	  | group                 | next 4 bytes          |		complemented if DESC
 *
 * If these differ, as for most rows, no string is read.  Known to be equal are the first 8 bytes,
 * and the common prefix within each group after them: the minimum of the number of bytes that
 * each string has in common with the previous one.  URLs, for example, or names of a word and a
 * number, have more than 8 common bytes.  (2 M strings with 12: 3.0 ms, and 9.5 without that step;
 * H200, 2026-11-21.)
 *
 *-------------------------------------------------------------------------
 */
#include "device_steps.cuh"
#include "row_record.cuh"
#include "warp_match.cuh"

/* Each element needs its own string and the previous one. */
static __global__ void
__launch_bounds__(GS_STEP_THREADS)
	gs_same_tails_kernel(const __grid_constant__ GsDeviceRows rows,
						 const __grid_constant__ GsTies ties, const int component, uint8_t *d_same)
{
	__shared__ GsTail s_tails[GS_STEP_THREADS];
	const uint64_t k = (uint64_t) blockIdx.x * GS_STEP_THREADS + threadIdx.x;
	const bool same_group = k > 0 && k < ties.nties && ties.d_groups[k] == ties.d_groups[k - 1];
	GsTail before = {};
	uint32_t common;

	if (k < ties.nties)
		s_tails[threadIdx.x] = gs_row_tail(rows, component, ties.d_rows[k]);
	__syncthreads();
	if (k >= ties.nties)
		return;
	if (same_group)
		before = threadIdx.x > 0 ? s_tails[threadIdx.x - 1] :
								   gs_row_tail(rows, component, ties.d_rows[k - 1]);
	d_same[k] = same_group &&
		gs_compare_tails(before, s_tails[threadIdx.x], GS_PREFIX_BYTES, &common) == 0;
}

static __global__ void
__launch_bounds__(GS_STEP_THREADS)
	gs_list_tails_kernel(const __grid_constant__ GsDeviceRows rows,
						 const __grid_constant__ GsTies ties, const int component, GsTail *d_tails)
{
	const uint64_t k = (uint64_t) blockIdx.x * GS_STEP_THREADS + threadIdx.x;

	if (k < ties.nties)
		d_tails[k] = gs_row_tail(rows, component, ties.d_rows[k]);
}

/* d_order->skip is initially greater than all lengths. */
static __global__ void
__launch_bounds__(GS_STEP_THREADS)
	gs_tail_order_kernel(const __grid_constant__ GsTies ties, const GsTail *d_tails,
						 const GsComponent *d_component, GsTailOrder *d_order)
{
	__shared__ uint32_t s_common;
	const uint64_t k = (uint64_t) blockIdx.x * GS_STEP_THREADS + threadIdx.x;
	uint32_t common = UINT32_MAX;

	if (threadIdx.x == 0)
		s_common = common;
	__syncthreads();
	if (k > 0 && k < ties.nties && ties.d_groups[k] == ties.d_groups[k - 1])
		gs_compare_tails(d_tails[k - 1], d_tails[k], GS_PREFIX_BYTES, &common);
#pragma unroll
	for (int step = GS_WARP_SIZE / 2; step > 0; step /= 2)
		common = min(common, __shfl_xor_sync(GS_ALL_LANES, common, step));
	if (gs_lane() == 0)
		atomicMin(&s_common, common);
	__syncthreads();
	if (threadIdx.x == 0)
		atomicMin(&d_order->skip, s_common);
	if (k == 0)
		d_order->descends = d_component->descending;
}

static __global__ void
__launch_bounds__(GS_STEP_THREADS)
	gs_tail_keys_kernel(const __grid_constant__ GsTies ties, const GsTail *d_tails,
						const GsTailOrder *d_order, uint64_t *d_keys, uint32_t *d_numbers)
{
	const uint64_t k = (uint64_t) blockIdx.x * GS_STEP_THREADS + threadIdx.x;

	if (k < ties.nties)
	{
		const GsTail tail = d_tails[k];
		const GsTailOrder order = *d_order;
		uint32_t next = 0;

		if (tail.length > order.skip)
			next = (uint32_t) (gs_load_string(tail.address + order.skip - GS_PREFIX_BYTES,
											  tail.length - order.skip) >>
							   32);
		d_keys[k] = (uint64_t) ties.d_groups[k] << 32 | (order.descends ? ~next : next);
		d_numbers[k] = (uint32_t) k;
	}
}

static __global__ void
__launch_bounds__(GS_STEP_THREADS)
	gs_rows_of_tails_kernel(const __grid_constant__ GsTies ties, const GsTail *d_tails,
							const uint32_t *d_numbers)
{
	const uint64_t k = (uint64_t) blockIdx.x * GS_STEP_THREADS + threadIdx.x;

	if (k < ties.nties)
		ties.d_rows[k] = d_tails[d_numbers[k]].row;
}

GsDeviceStatus
gs_device_same_tails(void *stream, const GsDeviceRows *rows, const GsTies *ties, int component,
					 uint8_t *d_same)
{
	return gs_launch_step(stream, gs_same_tails_kernel, ties->nties, GS_STEP_THREADS, *rows, *ties,
						  component, d_same);
}

/* The layout of temporary storage, aligned to 256 bytes. */
typedef struct GsTailsTemp
{
	size_t keys[2];
	size_t numbers[2];
	size_t tails;
	size_t order;
	size_t sort;
	size_t nbytes;
} GsTailsTemp;

static GsTailsTemp
gs_tails_temp(uint64_t n)
{
	GsTailsTemp temp = {};
	auto take = [&](size_t nbytes) {
		size_t at = temp.nbytes;

		temp.nbytes += (nbytes + 255) / 256 * 256;
		return at;
	};

	for (int i = 0; i < 2; i++)
	{
		temp.keys[i] = take(n * sizeof(uint64_t));
		temp.numbers[i] = take(n * sizeof(uint32_t));
	}
	temp.tails = take(n * sizeof(GsTail));
	temp.order = take(sizeof(GsTailOrder));
	temp.sort = take(gs_device_merge_temp_bytes(n, sizeof(uint32_t)));
	return temp;
}

size_t
gs_sort_tails_temp_bytes(uint64_t n)
{
	return gs_tails_temp(n).nbytes;
}

GsDeviceStatus
gs_device_sort_tails(void *stream, const GsDeviceRows *rows, const GsTies *ties, int component,
					 void *d_temp, size_t temp_bytes)
{
	const uint64_t n = ties->nties;
	const GsTailsTemp temp = gs_tails_temp(n);
	GsTail *d_tails = (GsTail *) ((char *) d_temp + temp.tails);
	GsTailOrder *d_order = (GsTailOrder *) ((char *) d_temp + temp.order);
	uint32_t *d_numbers = (uint32_t *) ((char *) d_temp + temp.numbers[0]);
	GsMergeSort sort = {};
	GsDeviceStatus status;

	if (temp_bytes < temp.nbytes)
		return GS_DEVICE_TEMP_TOO_SMALL;
	if (n == 0)
		return GS_DEVICE_OK;
	sort.nitems = n;
	sort.value_bytes = sizeof(uint32_t);
	for (int i = 0; i < 2; i++)
	{
		sort.d_keys[i] = (uint64_t *) ((char *) d_temp + temp.keys[i]);
		sort.d_values[i] = (char *) d_temp + temp.numbers[i];
	}
	sort.d_tails = d_tails;
	sort.d_tail_order = d_order;
	status = gs_cuda_status(cudaMemsetAsync(d_order, 0xff, sizeof(*d_order),
											(cudaStream_t) stream));
	if (status == GS_DEVICE_OK)
		status = gs_launch_step(stream, gs_list_tails_kernel, n, GS_STEP_THREADS, *rows, *ties,
								component, d_tails);
	if (status == GS_DEVICE_OK)
		status = gs_launch_step(stream, gs_tail_order_kernel, n, GS_STEP_THREADS, *ties, d_tails,
								&rows->d_packing->components[component], d_order);
	if (status == GS_DEVICE_OK)
		status = gs_launch_step(stream, gs_tail_keys_kernel, n, GS_STEP_THREADS, *ties, d_tails,
								d_order, sort.d_keys[0], d_numbers);
	if (status == GS_DEVICE_OK)
		status = gs_device_merge_sort(&sort, (char *) d_temp + temp.sort, temp.nbytes - temp.sort,
									  stream);
	if (status == GS_DEVICE_OK)
		status = gs_launch_step(stream, gs_rows_of_tails_kernel, n, GS_STEP_THREADS, *ties, d_tails,
								d_numbers);
	return status;
}
