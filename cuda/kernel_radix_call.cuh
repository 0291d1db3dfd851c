/*-------------------------------------------------------------------------
 *
 * kernel_radix_call.cuh
 *	  The functions of a radix sort around its dispatch: plan, temporary storage,
 *	  checks.
 *
 * There are two radix sorts, that of gpusortd (GsRadixSort) and the general one
 * (GsRadixSortGeneral).  For its type of sort, each defines overloads of
 *
 *		GsDeviceStatus gs_radix_check_shape(sort)		all but the pointers
 *		GsDeviceStatus gs_radix_check_pointers(sort)
 *		GsDeviceStatus gs_radix_dispatch(sort, d_temp, temp_bytes, stream, temp_needed)
 *
 * The last one selects the types of keys and values; with temp_needed it only
 * stores there how many bytes of temporary storage exactly these items need.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KERNEL_RADIX_CALL_CUH
#define GPUSORT_KERNEL_RADIX_CALL_CUH

#include "kernel_radix_launch.cuh"

/* A plan without the options of general sorts. */
template <typename Sort>
static void
gs_radix_begin_plan(GsRadixPlan *plan, const Sort *sort)
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

/*
 * Temporary storage for as many or fewer items; 0 if the arguments are wrong.  Tiles
 * become smaller below some limits, so fewer items may need more.
 */
template <typename Sort>
static size_t
gs_radix_most_temp_bytes(const Sort *sort)
{
	const uint64_t limits[] = {GS_DEVICE_MAX_ITEMS, GS_SOME_KEYS, GS_FEW_KEYS};
	size_t most = 0;

	if (gs_radix_check_shape(sort) != GS_DEVICE_OK)
		return 0;
	for (uint64_t limit : limits)
	{
		Sort smaller = *sort;
		size_t nbytes = 0;

		if (smaller.nitems > limit)
			smaller.nitems = limit;
		if (gs_radix_dispatch(&smaller, NULL, 0, NULL, &nbytes) != GS_DEVICE_OK)
			return 0;
		if (nbytes > most)
			most = nbytes;
	}
	return most;
}

/* Arrays must be aligned to 16 bytes. */
static inline bool
gs_is_misaligned(const void *pointer)
{
	return (uintptr_t) pointer % 16 != 0;
}

/* Without items only the selector is set. */
static inline GsDeviceStatus
gs_radix_sort_nothing(uint32_t *d_selector, void *stream)
{
	if (d_selector == NULL)
		return GS_DEVICE_OK;
	return gs_cuda_status(cudaMemsetAsync(d_selector, 0, sizeof(uint32_t), (cudaStream_t) stream));
}

template <typename Sort>
static GsDeviceStatus
gs_radix_check_and_sort(const Sort *sort, void *d_temp, size_t temp_bytes, void *stream)
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

#endif /* GPUSORT_KERNEL_RADIX_CALL_CUH */
