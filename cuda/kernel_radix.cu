/*-------------------------------------------------------------------------
 *
 * kernel_radix.cu
 *	  The radix sort of gpusortd: 64-bit keys, alone or with 32-bit values.
 *
 *-------------------------------------------------------------------------
 */
#include "kernel_radix_launch.cuh"

static void
gs_radix_plan(GsRadixPlan *plan, const GsRadixSort *sort)
{
	*plan = GsRadixPlan();
	plan->nitems = sort->nitems;
	plan->d_keys_in = sort->d_keys[0];
	plan->d_values_in = sort->d_values[0];
	for (int i = 0; i < 2; i++)
	{
		plan->d_keys[i] = sort->d_keys[i];
		plan->d_values[i] = sort->d_values[i];
	}
	plan->d_selector = sort->d_selector;
	plan->nplaces = gs_radix_places(plan->places, sort->begin_bit, sort->end_bit);
}

static GsDeviceStatus
gs_radix_dispatch(const GsRadixSort *sort, void *d_temp, size_t temp_bytes, void *stream,
				  size_t *temp_needed)
{
	GsDeviceProperties properties;
	GsDeviceStatus status = gs_device_properties(&properties);
	GsRadixPlan plan;

	if (status != GS_DEVICE_OK)
		return status;
	gs_radix_plan(&plan, sort);
	if (sort->has_values)
		return gs_radix_by_size<false, uint64_t, uint32_t>(&plan, sort->counted, &properties, d_temp,
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
		if (sort->nitems > 0 && (sort->d_keys[i] == NULL || (sort->has_values && sort->d_values[i] == NULL)))
			return GS_DEVICE_BAD_ARGUMENT;
	}
	return GS_DEVICE_OK;
}

size_t
gs_device_radix_temp_bytes(const GsRadixSort *sort)
{
	if (gs_radix_check_shape(sort) != GS_DEVICE_OK)
		return 0;
	return gs_radix_most_temp_bytes(sort->nitems, [&](uint64_t nitems, size_t *nbytes) {
		GsRadixSort smaller = *sort;

		smaller.nitems = nitems;
		return gs_radix_dispatch(&smaller, NULL, 0, NULL, nbytes);
	});
}

GsDeviceStatus
gs_device_radix_sort(const GsRadixSort *sort, void *d_temp, size_t temp_bytes, void *stream)
{
	GsDeviceStatus status = gs_radix_check_shape(sort);

	if (status == GS_DEVICE_OK)
		status = gs_radix_check_pointers(sort);
	if (status != GS_DEVICE_OK)
		return status;
	if (sort->nitems == 0)
		return gs_radix_sort_nothing(sort->d_selector, stream);
	if (d_temp == NULL || gs_is_misaligned(d_temp))
		return GS_DEVICE_BAD_ARGUMENT;
	return gs_radix_dispatch(sort, d_temp, temp_bytes, stream, NULL);
}
