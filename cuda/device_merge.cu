/*-------------------------------------------------------------------------
 *
 * device_merge.cu
 *	  Host side of the merge sort: checks the arguments, chooses kernels and queues them.
 *	  The kernels: kernel_merge.cuh.
 *
 * Keys have 64 bits, alone or with 32-bit values and the tails of strings.
 *
 *-------------------------------------------------------------------------
 */
#include "kernel_merge_launch.cuh"

size_t
gs_device_merge_temp_bytes(uint64_t nitems, uint32_t value_bytes)
{
	if (value_bytes == 4)
		return gs_merge_valued_temp_bytes<uint32_t>(nitems);
	return value_bytes == 0 ? gs_merge_valued_temp_bytes<GsNoValue>(nitems) : 0;
}

GsDeviceStatus
gs_device_merge_sort(const GsMergeSort *sort, void *d_temp, size_t temp_bytes, void *stream)
{
	GsDeviceProperties properties;
	GsDeviceStatus status = gs_merge_check(sort, d_temp);

	if (sort->value_bytes != 4 && (sort->value_bytes != 0 || sort->d_tails != NULL))
		return GS_DEVICE_BAD_ARGUMENT;
	if (status == GS_DEVICE_OK)
		status = gs_device_properties(&properties);
	if (status != GS_DEVICE_OK || sort->nitems == 0)
		return status;
	if (sort->d_tails != NULL)
		return gs_merge_valued<uint32_t, true>(sort, &properties, d_temp, temp_bytes, stream);
	if (sort->value_bytes == 4)
		return gs_merge_valued<uint32_t, false>(sort, &properties, d_temp, temp_bytes, stream);
	return gs_merge_valued<GsNoValue, false>(sort, &properties, d_temp, temp_bytes, stream);
}
