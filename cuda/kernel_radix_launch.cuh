/*-------------------------------------------------------------------------
 *
 * kernel_radix_launch.cuh
 *	  Queues the kernels of a radix sort with tiles of one size: a count
 *	  (kernel_radix_count.cuh), and one pass for each digit place
 *	  (kernel_radix_pass.cuh).
 *
 * The kernels are arguments, so that bench/kernels can try other tile sizes, and sort
 * other types with kernels of its own.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KERNEL_RADIX_LAUNCH_CUH
#define GPUSORT_KERNEL_RADIX_LAUNCH_CUH

#include "kernel_radix_count.cuh"
#include "kernel_radix_pass.cuh"
#include "launch.cuh"
#include "tuning.cuh"

typedef struct GsRadixKernels
{
	const void *count;
	const void *plan; /* instead of count, if the digits have been counted (kernel_pack.cu) */
	const void *pass;
	uint32_t key_bytes;
	int nthreads; /* of a pass */
	uint32_t ntile;
	size_t shared_bytes;
	GsKernelOccupancy count_known;
	GsKernelOccupancy pass_known;
} GsRadixKernels;

/* Those for 64-bit keys, and 32-bit values if has_values. */
template <bool has_values, typename Shape>
static GsRadixKernels *
gs_radix_kernels(void)
{
	static GsRadixKernels kernels = {
		(const void *) gs_radix_count_kernel<GS_COUNT_THREADS>,
		(const void *) gs_radix_plan_kernel<GS_COUNT_THREADS>,
		(const void *) gs_radix_pass_kernel<has_values, Shape>,
		sizeof(uint64_t),
		Shape::threads,
		Shape::tile,
		sizeof(GsRadixShared<has_values, Shape>),
		{},
		{},
	};

	return &kernels;
}

/* The layout of temporary memory (kernel_radix_plan.cuh), for tiles of ntile keys. */
typedef struct GsRadixTemp
{
	uint32_t portion_tiles;
	uint32_t nportions;
	size_t rows_offset[2];
	size_t nbytes;
} GsRadixTemp;

static inline GsRadixTemp
gs_radix_temp(uint64_t nitems, uint32_t ntile)
{
	GsRadixTemp temp;
	uint64_t ntiles = (nitems + ntile - 1) / ntile;
	size_t rows_bytes;

	/*
	 * Portions have equal sizes, because each also clears the rows of its successor, which would
	 * take long in a small last one (0.6 ms for each pass at 2^28 keys, H200, 2026-11-21).
	 */
	temp.nportions = (uint32_t) (ntiles / (GS_PORTION_KEYS / ntile) + 1);
	temp.portion_tiles = (uint32_t) ((ntiles + temp.nportions - 1) / temp.nportions);
	temp.nportions = (uint32_t) ((ntiles + temp.portion_tiles - 1) / temp.portion_tiles);
	/* for the largest portion, so that more items never need less */
	rows_bytes = (size_t) (temp.nportions > 1 ? GS_PORTION_KEYS / ntile : temp.portion_tiles) *
		GS_NDIGITS * sizeof(uint32_t);
	temp.rows_offset[0] = (sizeof(GsRadixControl) + 255) / 256 * 256;
	temp.rows_offset[1] = temp.rows_offset[0] + rows_bytes;
	temp.nbytes = temp.rows_offset[1] + rows_bytes;
	return temp;
}

/* Divides temporary memory for a plan. */
static inline void
gs_radix_divide_temp(GsRadixPlan *plan, const GsRadixTemp *temp, void *d_temp)
{
	plan->d_control = (GsRadixControl *) d_temp;
	for (int i = 0; i < 2; i++)
		plan->d_rows[i] = (uint32_t *) ((char *) d_temp + temp->rows_offset[i]);
	plan->nrows = plan->portion_tiles = temp->portion_tiles;
	plan->nportions = temp->nportions;
}

/* Queues the sort.  counted: the digits have been counted in d_temp (kernel_pack.cu). */
static inline GsDeviceStatus
gs_radix_queue(GsRadixPlan *plan, bool counted, GsRadixKernels *kernels,
			   const GsDeviceProperties *properties, void *d_temp, size_t temp_bytes, void *stream)
{
	const uint64_t count_step = (uint64_t) GS_COUNT_THREADS * 4 * 16 / kernels->key_bytes;
	const uint64_t nsteps = (plan->nitems + count_step - 1) / count_step;
	const bool early = properties->capability >= 90 && plan->nitems <= GS_EARLY_LAUNCH_KEYS;
	const GsRadixTemp temp = gs_radix_temp(plan->nitems, kernels->ntile);
	GsDeviceStatus status;
	size_t cleared;
	uint32_t nblocks;
	uint32_t pass;
	uint32_t portion;
	void *args[] = {plan, &pass, &portion};

	if (temp_bytes < temp.nbytes)
		return GS_DEVICE_TEMP_TOO_SMALL;
	gs_radix_divide_temp(plan, &temp, d_temp);

	/* the control block was cleared before the digits were counted */
	cleared = counted ? temp.rows_offset[0] : 0;
	status = gs_cuda_status(cudaMemsetAsync((char *) d_temp + cleared, 0,
											temp.rows_offset[1] - cleared, (cudaStream_t) stream));
	if (status != GS_DEVICE_OK)
		return status;

	status = gs_kernel_resident_blocks(&kernels->count_known, properties, kernels->count,
									   GS_COUNT_THREADS, 0, &nblocks);
	if (status != GS_DEVICE_OK)
		return status;
	nblocks = (uint32_t) (nsteps < nblocks ? nsteps : nblocks);
	if (counted)
		status = gs_launch(kernels->plan, 1, GS_COUNT_THREADS, 0, stream, false, args);
	else
		status = gs_launch(kernels->count, nblocks, GS_COUNT_THREADS, 0, stream, false, args);
	if (status != GS_DEVICE_OK)
		return status;

	status = gs_kernel_resident_blocks(&kernels->pass_known, properties, kernels->pass,
									   kernels->nthreads, kernels->shared_bytes, &nblocks);
	if (status != GS_DEVICE_OK)
		return status;
	if (plan->nrows < nblocks)
		nblocks = plan->nrows;
	for (pass = 0; pass < plan->nplaces; pass++)
		for (portion = 0; portion < temp.nportions; portion++)
		{
			status = gs_launch(kernels->pass, nblocks, kernels->nthreads, kernels->shared_bytes,
							   stream, early, args);
			if (status != GS_DEVICE_OK)
				return status;
		}
	return GS_DEVICE_OK;
}

#endif /* GPUSORT_KERNEL_RADIX_LAUNCH_CUH */
