/*-------------------------------------------------------------------------
 *
 * kernel_merge_general.cu
 *	  The merge sort also with 64-bit values.
 *
 *-------------------------------------------------------------------------
 */
#include "../../../cuda/kernel_merge_launch.cuh"
#include "device_sort_general.h"

/* 100 M u64 + u64: 14.19 ms, CUB 17.26 (H200, 2026-11-21). */
template <>
struct GsMergeLarge<8> : GsMergeShape<640, 9, 2, 128>
{
};

size_t
gs_device_merge_general_temp_bytes(const GsMergeSort *sort)
{
	return sort->value_bytes == 8 ? gs_merge_valued_temp_bytes<uint64_t>(sort->nitems) :
									gs_device_merge_temp_bytes(sort->nitems, sort->value_bytes);
}

GsDeviceStatus
gs_device_merge_general_sort(const GsMergeSort *sort, void *d_temp, size_t temp_bytes, void *stream)
{
	GsDeviceProperties properties;
	GsDeviceStatus status;

	if (sort->value_bytes != 8)
		return gs_device_merge_sort(sort, d_temp, temp_bytes, stream);
	if (sort->d_tails != NULL)
		return GS_DEVICE_BAD_ARGUMENT;
	status = gs_merge_check(sort, d_temp);
	if (status == GS_DEVICE_OK)
		status = gs_device_properties(&properties);
	if (status != GS_DEVICE_OK || sort->nitems == 0)
		return status;
	return gs_merge_valued<uint64_t, false>(sort, &properties, d_temp, temp_bytes, stream);
}
