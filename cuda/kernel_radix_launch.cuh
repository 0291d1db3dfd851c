/*-------------------------------------------------------------------------
 *
 * kernel_radix_launch.cuh
 *	  Plans a radix sort for given tile sizes, and queues its kernels.
 *
 * A template, so that bench/kernels can try other tile sizes than those of
 * tuning.cuh.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KERNEL_RADIX_LAUNCH_CUH
#define GPUSORT_KERNEL_RADIX_LAUNCH_CUH

#include "kernel_radix_block.cuh"
#include "kernel_radix_count.cuh"
#include "kernel_radix_pass.cuh"
#include "launch.cuh"
#include "tuning.cuh"

/* Temporary memory as kernel_radix_plan.cuh draws it, for tiles of ntile. */
typedef struct GsRadixTemp
{
	uint32_t portion_tiles;
	uint32_t nportions;
	uint32_t nrows;
	size_t rows_offset[2];
	size_t nbytes;
} GsRadixTemp;

static inline void
gs_radix_temp(GsRadixTemp *temp, uint64_t nitems, uint32_t ntile)
{
	uint64_t ntiles = (nitems + ntile - 1) / ntile;
	size_t control_bytes = (sizeof(GsRadixControl) + 255) / 256 * 256;
	size_t rows_bytes;

	/*
	 * Portions of equal size: each also clears its successor's rows, and a
	 * small last one would take long for that (0.6 ms a pass at 2^28 keys).
	 */
	temp->nportions = (uint32_t) (ntiles / (GS_PORTION_KEYS / ntile) + 1);
	temp->portion_tiles = (uint32_t) ((ntiles + temp->nportions - 1) / temp->nportions);
	temp->nportions = (uint32_t) ((ntiles + temp->portion_tiles - 1) / temp->portion_tiles);
	temp->nrows = temp->portion_tiles;
	/* as of the largest portion, so that more items never need less */
	rows_bytes = (size_t) (temp->nportions > 1 ? GS_PORTION_KEYS / ntile : temp->nrows) *
		GS_NDIGITS * sizeof(uint32_t);
	temp->rows_offset[0] = control_bytes;
	temp->rows_offset[1] = control_bytes + rows_bytes;
	temp->nbytes = control_bytes + 2 * rows_bytes;
}

static inline void
gs_radix_plan(GsRadixPlan *plan, const GsRadixSort *sort)
{
	*plan = GsRadixPlan();
	plan->nitems = sort->nitems;
	plan->input_apart = sort->d_keys_in != NULL;
	plan->d_keys_in = plan->input_apart ? sort->d_keys_in : sort->d_keys[0];
	plan->d_values_in = plan->input_apart ? sort->d_values_in : sort->d_values[0];
	for (int i = 0; i < 2; i++)
	{
		plan->d_keys[i] = sort->d_keys[i];
		plan->d_values[i] = sort->d_values[i];
	}
	plan->d_selector = sort->d_selector;
	plan->flags = sort->flags;
	plan->row_bits = sort->row_bits;
	plan->key_min = sort->key_min;
	plan->nplaces = gs_radix_places(plan->places, sort->begin_bit, sort->end_bit);
}

/* All in one block; its tile holds sort->nitems. */
template <typename Key, typename Value, int nthreads, int nitems>
static GsDeviceStatus
gs_radix_launch_block(const GsRadixSort *sort, const GsDeviceFacts *properties, void *stream)
{
	static GsKernelFacts known;
	const void *kernel = (const void *) gs_radix_block_kernel<Key, Value, nthreads, nitems>;
	const size_t shared_bytes = sizeof(GsRadixShared<Key, Value, nthreads, nitems, true>);
	GsRadixPlan plan;
	GsDeviceStatus status;
	uint32_t nblocks;
	void *args[] = {&plan};

	gs_radix_plan(&plan, sort);
	status = gs_kernel_resident_blocks(&known, properties, kernel, nthreads, shared_bytes, &nblocks);
	if (status != GS_DEVICE_OK)
		return status;
	return gs_launch(kernel, 1, nthreads, shared_bytes, stream, false, args);
}

template <typename Key, typename Value, int nthreads, int nitems, int nblocks_sm,
		  int lookback_width, bool staged, int rank_method>
static GsDeviceStatus
gs_radix_launch(const GsRadixSort *sort, const GsDeviceFacts *properties, void *d_temp,
				size_t temp_bytes, void *stream)
{
	static GsKernelFacts count_known;
	static GsKernelFacts pass_known;
	const void *count_kernel = (const void *) gs_radix_count_kernel<Key, GS_COUNT_THREADS>;
	const void *plan_kernel = (const void *) gs_radix_plan_kernel<GS_COUNT_THREADS>;
	const void *pass_kernel = (const void *)
		gs_radix_pass_kernel<Key, Value, nthreads, nitems, nblocks_sm, lookback_width, staged,
							 rank_method>;
	const size_t shared_bytes = sizeof(GsRadixShared<Key, Value, nthreads, nitems, staged>);
	const uint64_t count_step = (uint64_t) GS_COUNT_THREADS * 4 * 16 / sizeof(Key);
	const uint64_t nsteps = (sort->nitems + count_step - 1) / count_step;
	const bool counted = sort->flags & GS_RADIX_COUNTED;
	const bool early = properties->capability >= 90 && sort->nitems <= GS_EARLY_LAUNCH_KEYS;
	GsRadixPlan plan;
	GsRadixTemp temp;
	GsDeviceStatus status;
	size_t cleared;
	uint32_t nblocks;
	uint32_t pass;
	uint32_t portion;
	void *args[] = {&plan, &pass, &portion};

	gs_radix_temp(&temp, sort->nitems, nthreads * nitems);
	if (temp_bytes < temp.nbytes)
		return GS_DEVICE_TEMP_TOO_SMALL;
	gs_radix_plan(&plan, sort);
	plan.d_control = (GsRadixControl *) d_temp;
	for (int i = 0; i < 2; i++)
		plan.d_rows[i] = (uint32_t *) ((char *) d_temp + temp.rows_offset[i]);
	plan.nrows = temp.nrows;
	plan.portion_tiles = temp.portion_tiles;
	plan.nportions = temp.nportions;

	/* the control block was cleared before what is counted already */
	cleared = counted ? temp.rows_offset[0] : 0;
	status = gs_cuda_status(cudaMemsetAsync((char *) d_temp + cleared, 0,
											temp.rows_offset[1] - cleared, (cudaStream_t) stream));
	if (status != GS_DEVICE_OK)
		return status;

	status = gs_kernel_resident_blocks(&count_known, properties, count_kernel, GS_COUNT_THREADS, 0, &nblocks);
	if (status != GS_DEVICE_OK)
		return status;
	nblocks = (uint32_t) (nsteps < nblocks ? nsteps : nblocks);
	if (counted)
		status = gs_launch(plan_kernel, 1, GS_COUNT_THREADS, 0, stream, false, args);
	else
		status = gs_launch(count_kernel, nblocks, GS_COUNT_THREADS, 0, stream, false, args);
	if (status != GS_DEVICE_OK)
		return status;

	status = gs_kernel_resident_blocks(&pass_known, properties, pass_kernel, nthreads, shared_bytes, &nblocks);
	if (status != GS_DEVICE_OK)
		return status;
	if (temp.nrows < nblocks)
		nblocks = temp.nrows;
	/* pass 0 also brings the input to the output where nothing is to sort by */
	for (pass = 0; pass < plan.nplaces || pass == 0; pass++)
		for (portion = 0; portion < temp.nportions; portion++)
		{
			status = gs_launch(pass_kernel, nblocks, nthreads, shared_bytes, stream, early, args);
			if (status != GS_DEVICE_OK)
				return status;
		}
	return GS_DEVICE_OK;
}

#endif /* GPUSORT_KERNEL_RADIX_LAUNCH_CUH */
