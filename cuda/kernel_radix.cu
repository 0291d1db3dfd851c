/*-------------------------------------------------------------------------
 *
 * kernel_radix.cu
 *	  The radix sort of gpusortd: 64-bit keys, alone or with 32-bit values.
 *
 *-------------------------------------------------------------------------
 */
#include "kernel_radix_call.cuh"

static GsDeviceStatus
gs_radix_dispatch(const GsRadixSort *sort, void *d_temp, size_t temp_bytes, void *stream,
				  size_t *temp_needed)
{
	GsDeviceProperties properties;
	GsDeviceStatus status = gs_device_properties(&properties);
	GsRadixPlan plan;

	if (status != GS_DEVICE_OK)
		return status;
	gs_radix_begin_plan(&plan, sort);
	if (sort->has_values)
		return gs_radix_by_size<false, uint64_t, uint32_t>(&plan, sort->counted, &properties,
														   d_temp,
														   temp_bytes, stream, temp_needed);
	return gs_radix_by_size<false, uint64_t, GsNoValue>(&plan, sort->counted, &properties, d_temp,
														temp_bytes, stream, temp_needed);
}

static GsDeviceStatus
gs_radix_check_shape(const GsRadixSort *sort)
{
	if (sort->begin_bit > sort->end_bit || sort->end_bit > 64)
		return GS_DEVICE_BAD_ARGUMENT;
	return sort->nitems > GS_DEVICE_MAX_ITEMS ? GS_DEVICE_TOO_MANY_ITEMS : GS_DEVICE_OK;
}

static GsDeviceStatus
gs_radix_check_pointers(const GsRadixSort *sort)
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
	return GS_DEVICE_OK;
}

size_t
gs_device_radix_temp_bytes(const GsRadixSort *sort)
{
	return gs_radix_most_temp_bytes(sort);
}

GsDeviceStatus
gs_device_radix_sort(const GsRadixSort *sort, void *d_temp, size_t temp_bytes, void *stream)
{
	return gs_radix_check_and_sort(sort, d_temp, temp_bytes, stream);
}
