/*-------------------------------------------------------------------------
 *
 * device_radix.cu
 *	  Host side of the radix sort: checks the arguments, chooses kernels and queues them.
 *	  The kernels: kernel_radix_{block,count,pass}.cuh.
 *
 * Keys have 64 bits, alone or with 32-bit values.  Depending on their number, a sort is one block
 * and one launch, or a count and passes (kernel_radix_launch.cuh) with tiles of three sizes
 * (tuning.cuh).
 *
 *-------------------------------------------------------------------------
 */
#include <algorithm>

#include "kernel_radix_block.cuh"
#include "kernel_radix_launch.cuh"

/* The kernels with the tile size for a number of keys. */
template <bool has_values>
static GsRadixKernels *
gs_radix_kernels_by_size(uint64_t nitems, const GsDeviceProperties *properties)
{
	GsRadixKernels *large = gs_radix_kernels<has_values, GsRadixLarge<has_values>>();
	GsRadixKernels *middle = gs_radix_kernels<has_values, GsRadixMiddle>();

	if (nitems > GS_RADIX_MIDDLE_KEYS && large->shared_bytes <= (size_t) properties->shared_bytes)
		return large;
	if (nitems > GS_RADIX_SMALL_KEYS && middle->shared_bytes <= (size_t) properties->shared_bytes)
		return middle;
	return gs_radix_kernels<has_values, GsRadixSmall>();
}

static GsRadixKernels *
gs_radix_choose_kernels(bool has_values, uint64_t nitems, const GsDeviceProperties *properties)
{
	return has_values ? gs_radix_kernels_by_size<true>(nitems, properties) :
						gs_radix_kernels_by_size<false>(nitems, properties);
}

/* One block sorts all keys: at most GS_BLOCK_SORT. */
template <bool has_values>
static GsDeviceStatus
gs_radix_queue_block(GsRadixPlan *plan, const GsDeviceProperties *properties, void *stream)
{
	static GsKernelOccupancy known;
	const void *kernel = (const void *) gs_radix_block_kernel<has_values>;
	const size_t shared_bytes = sizeof(GsRadixBlockShared<has_values>);
	GsDeviceStatus status;
	uint32_t nblocks;
	void *args[] = {plan};

	status = gs_kernel_resident_blocks(&known, properties, kernel, GS_BLOCK_SORT_THREADS,
									   shared_bytes, &nblocks);
	if (status != GS_DEVICE_OK)
		return status;
	return gs_launch(kernel, 1, GS_BLOCK_SORT_THREADS, shared_bytes, stream, false, args);
}

static GsDeviceStatus
gs_radix_check_shape(const GsRadixSort *sort)
{
	if (sort->begin_bit > sort->end_bit || sort->end_bit > 64)
		return GS_DEVICE_BAD_ARGUMENT;
	return sort->nitems > GS_DEVICE_MAX_ITEMS ? GS_DEVICE_TOO_MANY_ITEMS : GS_DEVICE_OK;
}

/* Arrays must be aligned to 16 bytes. */
static bool
gs_is_misaligned(const void *pointer)
{
	return (uintptr_t) pointer % 16 != 0;
}

static GsDeviceStatus
gs_radix_check_pointers(const GsRadixSort *sort, const void *d_temp)
{
	if (sort->d_selector == NULL || (uintptr_t) sort->d_selector % sizeof(uint32_t) != 0)
		return GS_DEVICE_BAD_ARGUMENT;
	for (int i = 0; i < 2; i++)
	{
		if (gs_is_misaligned(sort->d_keys[i]) || gs_is_misaligned(sort->d_values[i]))
			return GS_DEVICE_BAD_ARGUMENT;
		if (sort->nitems > 0 &&
			(sort->d_keys[i] == NULL || (sort->has_values && sort->d_values[i] == NULL)))
			return GS_DEVICE_BAD_ARGUMENT;
	}
	if (sort->nitems > 0 && (d_temp == NULL || gs_is_misaligned(d_temp)))
		return GS_DEVICE_BAD_ARGUMENT;
	return GS_DEVICE_OK;
}

/* Tiles become smaller below some limits, so fewer items may need more. */
size_t
gs_device_radix_temp_bytes(uint64_t nitems, bool has_values)
{
	const uint64_t limits[] = {GS_DEVICE_MAX_ITEMS, GS_RADIX_MIDDLE_KEYS, GS_RADIX_SMALL_KEYS};
	GsDeviceProperties properties;
	size_t most = 256; /* never 0, which means wrong arguments */

	if (nitems > GS_DEVICE_MAX_ITEMS || gs_device_properties(&properties) != GS_DEVICE_OK)
		return 0;
	for (uint64_t limit : limits)
	{
		const uint64_t n = std::min(nitems, limit);
		const GsRadixKernels *kernels = gs_radix_choose_kernels(has_values, n, &properties);

		if (n > GS_BLOCK_SORT)
			most = std::max(most, gs_radix_temp(n, kernels->ntile).nbytes);
	}
	return most;
}

GsDeviceStatus
gs_device_radix_sort(const GsRadixSort *sort, void *d_temp, size_t temp_bytes, void *stream)
{
	GsDeviceStatus status = gs_radix_check_shape(sort);
	GsDeviceProperties properties;
	GsRadixPlan plan = {};

	if (status == GS_DEVICE_OK)
		status = gs_radix_check_pointers(sort, d_temp);
	if (status == GS_DEVICE_OK)
		status = gs_device_properties(&properties);
	if (status != GS_DEVICE_OK)
		return status;
	if (sort->nitems == 0)
		return gs_cuda_status(cudaMemsetAsync(sort->d_selector, 0, sizeof(uint32_t),
											  (cudaStream_t) stream));

	plan.nitems = sort->nitems;
	for (int i = 0; i < 2; i++)
	{
		plan.d_keys[i] = sort->d_keys[i];
		plan.d_values[i] = sort->d_values[i];
	}
	plan.d_selector = sort->d_selector;
	plan.nplaces = gs_radix_places(plan.places, sort->begin_bit, sort->end_bit);
	if (sort->nitems <= GS_BLOCK_SORT)
		return sort->has_values ? gs_radix_queue_block<true>(&plan, &properties, stream) :
								  gs_radix_queue_block<false>(&plan, &properties, stream);
	return gs_radix_queue(&plan, sort->counted,
						  gs_radix_choose_kernels(sort->has_values, sort->nitems, &properties),
						  &properties, d_temp, temp_bytes, stream);
}
