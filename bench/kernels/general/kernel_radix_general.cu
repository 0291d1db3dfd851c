/*-------------------------------------------------------------------------
 *
 * kernel_radix_general.cu
 *	  The radix sort for all pairs of types and all options.
 *
 * There is no sort by one block: few keys are sorted by passes with small tiles.
 *
 *-------------------------------------------------------------------------
 */
#include <algorithm>

#include "kernel_radix_general.cuh"

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

template <typename Key, typename Value>
static GsRadixKernels *
gs_radix_general_by_size(uint64_t nitems, const GsDeviceProperties *properties)
{
	typedef GsRadixGeneralLarge<sizeof(Key), GsHasValue<Value>::yes ? sizeof(Value) : 0> Large;
	const size_t shared_bytes = properties->shared_bytes;
	GsRadixKernels *large = gs_radix_general_kernels<true, Key, Value, Large, Large::staged>();
	GsRadixKernels *middle = gs_radix_general_kernels<true, Key, Value, GsRadixMiddle, false>();

	if (nitems > GS_RADIX_MIDDLE_KEYS && large->shared_bytes <= shared_bytes)
		return large;
	if (nitems > GS_RADIX_SMALL_KEYS && middle->shared_bytes <= shared_bytes)
		return middle;
	return gs_radix_general_kernels<true, Key, Value, GsRadixSmall, false>();
}

template <typename Key>
static GsRadixKernels *
gs_radix_general_keyed(const GsRadixSortGeneral *sort, uint64_t nitems,
					   const GsDeviceProperties *properties)
{
	switch (sort->value_bytes)
	{
		case 0:
			return gs_radix_general_by_size<Key, GsNoValue>(nitems, properties);
		case 4:
			return gs_radix_general_by_size<Key, uint32_t>(nitems, properties);
		default:
			return gs_radix_general_by_size<Key, uint64_t>(nitems, properties);
	}
}

/* The kernels for the types of the sort and a number of items. */
static GsRadixKernels *
gs_radix_general_choose(const GsRadixSortGeneral *sort, uint64_t nitems,
						const GsDeviceProperties *properties)
{
	switch (sort->key_bytes)
	{
		case 1:
			return gs_radix_general_keyed<uint8_t>(sort, nitems, properties);
		case 2:
			return gs_radix_general_keyed<uint16_t>(sort, nitems, properties);
		case 4:
			return gs_radix_general_keyed<uint32_t>(sort, nitems, properties);
		default:
			return gs_radix_general_keyed<uint64_t>(sort, nitems, properties);
	}
}

/* Checks everything but pointers. */
static GsDeviceStatus
gs_radix_check_shape(const GsRadixSortGeneral *sort)
{
	const uint32_t values = GS_RADIX_ROW_NUMBERS | GS_RADIX_NO_KEYS_OUT;
	const bool pack = sort->flags & GS_RADIX_PACK_ROWS;
	const bool rows = sort->flags & GS_RADIX_ROW_NUMBERS;

	if (sort->key_bytes != 1 && sort->key_bytes != 2 && sort->key_bytes != 4 &&
		sort->key_bytes != 8)
		return GS_DEVICE_BAD_ARGUMENT;
	if (sort->value_bytes != 0 && sort->value_bytes != 4 && sort->value_bytes != 8)
		return GS_DEVICE_BAD_ARGUMENT;
	if (sort->begin_bit > sort->end_bit || sort->end_bit > 8 * sort->key_bytes)
		return GS_DEVICE_BAD_ARGUMENT;
	if (sort->flags & ~(values | GS_RADIX_PACK_ROWS))
		return GS_DEVICE_BAD_ARGUMENT;
	if (sort->value_bytes == 0 && (sort->flags & values))
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

static bool
gs_is_misaligned(const void *pointer)
{
	return (uintptr_t) pointer % 16 != 0;
}

static GsDeviceStatus
gs_radix_check_pointers(const GsRadixSortGeneral *sort, const void *d_temp)
{
	const bool separate = sort->d_keys_in != NULL;
	const bool rows = sort->flags & GS_RADIX_ROW_NUMBERS;

	if (sort->d_selector == NULL || (uintptr_t) sort->d_selector % sizeof(uint32_t) != 0 ||
		gs_is_misaligned(sort->d_keys_in) || gs_is_misaligned(sort->d_values_in))
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
	if (sort->nitems > 0 && (d_temp == NULL || gs_is_misaligned(d_temp)))
		return GS_DEVICE_BAD_ARGUMENT;
	return GS_DEVICE_OK;
}

static void
gs_radix_general_plan(GsRadixGeneralPlan *general, const GsRadixSortGeneral *sort)
{
	GsRadixPlan *plan = &general->plan;

	*general = GsRadixGeneralPlan();
	plan->nitems = sort->nitems;
	for (int i = 0; i < 2; i++)
	{
		plan->d_keys[i] = (uint64_t *) sort->d_keys[i];
		plan->d_values[i] = (uint32_t *) sort->d_values[i];
	}
	plan->d_selector = sort->d_selector;
	plan->nplaces = gs_radix_places(plan->places, sort->begin_bit, sort->end_bit);
	/* a pass applies the options, so there is one place at least; this one does not vary */
	if (plan->nplaces == 0)
		plan->nplaces = 1;
	general->separate_input = sort->d_keys_in != NULL;
	general->d_keys_in = general->separate_input ? sort->d_keys_in : sort->d_keys[0];
	general->d_values_in = general->separate_input ? sort->d_values_in : sort->d_values[0];
	general->flags = sort->flags;
	general->row_bits = sort->row_bits;
	general->key_min = sort->key_min;
}

/* A simple sort needs no more than this: it has the same tiles, or is one block. */
size_t
gs_device_radix_general_temp_bytes(const GsRadixSortGeneral *sort)
{
	const uint64_t limits[] = {GS_DEVICE_MAX_ITEMS, GS_RADIX_MIDDLE_KEYS, GS_RADIX_SMALL_KEYS};
	GsDeviceProperties properties;
	size_t most = 0;

	if (gs_radix_check_shape(sort) != GS_DEVICE_OK ||
		gs_device_properties(&properties) != GS_DEVICE_OK)
		return 0;
	for (uint64_t limit : limits)
	{
		/* never 0, which means wrong arguments */
		const uint64_t nitems = std::max<uint64_t>(std::min(sort->nitems, limit), 1);
		const GsRadixKernels *kernels = gs_radix_general_choose(sort, nitems, &properties);

		most = std::max(most, gs_radix_temp(nitems, kernels->ntile).nbytes);
	}
	return most;
}

GsDeviceStatus
gs_device_radix_general_sort(const GsRadixSortGeneral *sort, void *d_temp, size_t temp_bytes,
							 void *stream)
{
	GsDeviceProperties properties;
	GsRadixGeneralPlan general;
	GsRadixSort simple;
	GsDeviceStatus status;

	if (gs_radix_is_simple(sort, &simple))
		return gs_device_radix_sort(&simple, d_temp, temp_bytes, stream);
	status = gs_radix_check_shape(sort);
	if (status == GS_DEVICE_OK)
		status = gs_radix_check_pointers(sort, d_temp);
	if (status == GS_DEVICE_OK)
		status = gs_device_properties(&properties);
	if (status != GS_DEVICE_OK)
		return status;
	if (sort->nitems > 0)
	{
		gs_radix_general_plan(&general, sort);
		status = gs_radix_queue(&general.plan, false,
								gs_radix_general_choose(sort, sort->nitems, &properties),
								&properties, d_temp, temp_bytes, stream);
	}
	/* the passes set it as if the input were in d_keys[0] */
	if (status == GS_DEVICE_OK && (sort->nitems == 0 || sort->d_keys_in != NULL))
		status = gs_cuda_status(cudaMemsetAsync(sort->d_selector, 0, sizeof(uint32_t),
												(cudaStream_t) stream));
	return status;
}
