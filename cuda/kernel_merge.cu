/*-------------------------------------------------------------------------
 *
 * kernel_merge.cu
 *	  The merge sort of gpusortd: 64-bit keys, alone or with 32-bit values and
 *	  the tails of strings.
 *
 *-------------------------------------------------------------------------
 */
#include "kernel_merge_launch.cuh"

static GsDeviceStatus
gs_merge_check_shape(const GsMergeSort *sort)
{
	if (sort->value_bytes != 0 && sort->value_bytes != 4)
		return GS_DEVICE_BAD_ARGUMENT;
	if (sort->d_tails != NULL && sort->value_bytes != 4)
		return GS_DEVICE_BAD_ARGUMENT;
	return sort->nitems > GS_DEVICE_MAX_ITEMS ? GS_DEVICE_TOO_MANY_ITEMS : GS_DEVICE_OK;
}

static GsDeviceStatus
gs_merge_dispatch(const GsMergeSort *sort, void *d_temp, size_t temp_bytes, void *stream,
				  size_t *temp_needed)
{
	GsDeviceProperties properties;
	GsDeviceStatus status = gs_device_properties(&properties);

	if (status != GS_DEVICE_OK)
		return status;
	if (sort->d_tails != NULL)
		return gs_merge_valued<uint32_t,
							   true>(sort, &properties, d_temp, temp_bytes, stream, temp_needed);
	if (sort->value_bytes == 4)
		return gs_merge_valued<uint32_t,
							   false>(sort, &properties, d_temp, temp_bytes, stream, temp_needed);
	return gs_merge_valued<GsNoValue,
						   false>(sort, &properties, d_temp, temp_bytes, stream, temp_needed);
}

size_t
gs_device_merge_temp_bytes(const GsMergeSort *sort)
{
	size_t nbytes = 0;

	if (gs_merge_check_shape(sort) != GS_DEVICE_OK)
		return 0;
	if (gs_merge_dispatch(sort, NULL, 0, NULL, &nbytes) != GS_DEVICE_OK)
		return 0;
	return nbytes;
}

GsDeviceStatus
gs_device_merge_sort(const GsMergeSort *sort, void *d_temp, size_t temp_bytes, void *stream)
{
	GsDeviceStatus status = gs_merge_check_shape(sort);

	if (status != GS_DEVICE_OK || sort->nitems == 0)
		return status;
	status = gs_merge_check(sort, d_temp);
	return status != GS_DEVICE_OK ? status :
									gs_merge_dispatch(sort, d_temp, temp_bytes, stream, NULL);
}
