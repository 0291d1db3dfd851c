/*-------------------------------------------------------------------------
 *
 * kernel_radix_general.cu
 *	  The radix sort for all pairs of types and all options.
 *
 *-------------------------------------------------------------------------
 */
#include "../kernel_radix_call.cuh"

/* Does device_sort.h support the sort?  Then *simple describes it. */
static bool
gs_radix_is_simple(const GsRadixSortGeneral *sort, GsRadixSort *simple)
{
	if (sort->key_bytes != 8 || (sort->value_bytes != 0 && sort->value_bytes != 4) ||
		sort->flags != 0 || sort->d_keys_in != NULL)
		return false;
	*simple = GsRadixSort();
	simple->nitems = sort->nitems;
	simple->begin_bit = sort->begin_bit;
	simple->end_bit = sort->end_bit;
	simple->has_values = sort->value_bytes != 0;
	for (int i = 0; i < 2; i++)
	{
		simple->d_keys[i] = (uint64_t *) sort->d_keys[i];
		simple->d_values[i] = (uint32_t *) sort->d_values[i];
	}
	simple->d_selector = sort->d_selector;
	return true;
}

static void
gs_radix_general_plan(GsRadixPlan *plan, const GsRadixSortGeneral *sort)
{
	gs_radix_begin_plan(plan, sort);
	plan->separate_input = sort->d_keys_in != NULL;
	if (plan->separate_input)
	{
		plan->d_keys_in = sort->d_keys_in;
		plan->d_values_in = sort->d_values_in;
	}
	plan->flags = sort->flags;
	plan->row_bits = sort->row_bits;
	plan->key_min = sort->key_min;
}

template <typename Key>
static GsDeviceStatus
gs_radix_general_keyed(const GsRadixSortGeneral *sort, GsRadixPlan *plan,
					   const GsDeviceProperties *properties,
					   void *d_temp, size_t temp_bytes, void *stream, size_t *temp_needed)
{
	switch (sort->value_bytes)
	{
		case 0:
			return gs_radix_by_size<true, Key,
									GsNoValue>(plan, false, properties, d_temp, temp_bytes, stream, temp_needed);
		case 4:
			return gs_radix_by_size<true, Key,
									uint32_t>(plan, false, properties, d_temp, temp_bytes, stream, temp_needed);
		default:
			return gs_radix_by_size<true, Key,
									uint64_t>(plan, false, properties, d_temp, temp_bytes, stream, temp_needed);
	}
}

static GsDeviceStatus
gs_radix_dispatch(const GsRadixSortGeneral *sort, void *d_temp, size_t temp_bytes, void *stream,
				  size_t *temp_needed)
{
	GsDeviceProperties properties;
	GsDeviceStatus status = gs_device_properties(&properties);
	GsRadixPlan plan;

	if (status != GS_DEVICE_OK)
		return status;
	gs_radix_general_plan(&plan, sort);
	switch (sort->key_bytes)
	{
		case 1:
			return gs_radix_general_keyed<uint8_t>(sort, &plan, &properties, d_temp, temp_bytes,
												   stream, temp_needed);
		case 2:
			return gs_radix_general_keyed<uint16_t>(sort, &plan, &properties, d_temp, temp_bytes,
													stream, temp_needed);
		case 4:
			return gs_radix_general_keyed<uint32_t>(sort, &plan, &properties, d_temp, temp_bytes,
													stream, temp_needed);
		default:
			return gs_radix_general_keyed<uint64_t>(sort, &plan, &properties, d_temp, temp_bytes,
													stream, temp_needed);
	}
}

/* Checks everything but pointers. */
static GsDeviceStatus
gs_radix_check_shape(const GsRadixSortGeneral *sort)
{
	const bool pack = sort->flags & GS_RADIX_PACK_ROWS;
	const bool rows = sort->flags & GS_RADIX_ROW_NUMBERS;

	if (sort->key_bytes != 1 && sort->key_bytes != 2 && sort->key_bytes != 4 &&
		sort->key_bytes != 8)
		return GS_DEVICE_BAD_ARGUMENT;
	if (sort->value_bytes != 0 && sort->value_bytes != 4 && sort->value_bytes != 8)
		return GS_DEVICE_BAD_ARGUMENT;
	if (sort->begin_bit > sort->end_bit || sort->end_bit > 8 * sort->key_bytes)
		return GS_DEVICE_BAD_ARGUMENT;
	if (sort->flags & ~(uint32_t) (GS_RADIX_ROW_NUMBERS | GS_RADIX_NO_KEYS_OUT | GS_RADIX_PACK_ROWS))
		return GS_DEVICE_BAD_ARGUMENT;
	if (sort->value_bytes == 0 && (sort->flags & (GS_RADIX_ROW_NUMBERS | GS_RADIX_NO_KEYS_OUT)))
		return GS_DEVICE_BAD_ARGUMENT;
	if (pack && (sort->key_bytes != 8 || sort->row_bits >= 64 || sort->begin_bit < sort->row_bits))
		return GS_DEVICE_BAD_ARGUMENT;
	if (sort->nitems > GS_DEVICE_MAX_ITEMS)
		return GS_DEVICE_TOO_MANY_ITEMS;
	if (pack && sort->nitems > UINT64_C(1) << sort->row_bits)
		return GS_DEVICE_TOO_MANY_ITEMS;
	if (rows && sort->value_bytes == 4 && sort->nitems > UINT64_C(1) << 32)
		return GS_DEVICE_TOO_MANY_ITEMS;
	return GS_DEVICE_OK;
}

static GsDeviceStatus
gs_radix_check_pointers(const GsRadixSortGeneral *sort)
{
	const bool separate = sort->d_keys_in != NULL;
	const bool rows = sort->flags & GS_RADIX_ROW_NUMBERS;

	if (!separate && sort->d_selector == NULL)
		return GS_DEVICE_BAD_ARGUMENT;
	if ((uintptr_t) sort->d_selector % sizeof(uint32_t) != 0 || gs_is_misaligned(sort->d_keys_in) ||
		gs_is_misaligned(sort->d_values_in))
		return GS_DEVICE_BAD_ARGUMENT;
	if (separate && sort->value_bytes != 0 && !rows && sort->d_values_in == NULL &&
		sort->nitems > 0)
		return GS_DEVICE_BAD_ARGUMENT;
	for (int i = 0; i < 2; i++)
	{
		if (gs_is_misaligned(sort->d_keys[i]) || gs_is_misaligned(sort->d_values[i]))
			return GS_DEVICE_BAD_ARGUMENT;
		if (sort->nitems > 0 && sort->d_keys[i] == NULL)
			return GS_DEVICE_BAD_ARGUMENT;
		if (sort->nitems > 0 && sort->value_bytes != 0 && sort->d_values[i] == NULL)
			return GS_DEVICE_BAD_ARGUMENT;
	}
	return GS_DEVICE_OK;
}

size_t
gs_device_radix_general_temp_bytes(const GsRadixSortGeneral *sort)
{
	GsRadixSort simple;

	if (gs_radix_is_simple(sort, &simple))
		return gs_device_radix_temp_bytes(&simple);
	return gs_radix_most_temp_bytes(sort);
}

GsDeviceStatus
gs_device_radix_general_sort(const GsRadixSortGeneral *sort, void *d_temp, size_t temp_bytes,
							 void *stream)
{
	GsRadixSort simple;

	if (gs_radix_is_simple(sort, &simple))
		return gs_device_radix_sort(&simple, d_temp, temp_bytes, stream);
	return gs_radix_check_and_sort(sort, d_temp, temp_bytes, stream);
}
