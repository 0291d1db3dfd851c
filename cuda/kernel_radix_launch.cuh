/*-------------------------------------------------------------------------
 *
 * kernel_radix_launch.cuh
 *	  Plans a radix sort of one pair of types, and queues its kernels.
 *
 * Depending on the number of keys, a sort is
 *	- one block and one launch (kernel_radix_block.cuh), or
 *	- a count (kernel_radix_count.cuh) and one pass for each digit place
 *	  (kernel_radix_pass.cuh), with tiles of three sizes (tuning.cuh).
 *
 * These are templates, so that each translation unit instantiates the types that
 * it needs, and bench/kernels can try other tile sizes.
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

#define GS_BLOCK_SORT (GS_BLOCK_SORT_THREADS * GS_BLOCK_SORT_ITEMS)

/* The layout of temporary memory (kernel_radix_plan.cuh), for tiles of ntile keys. */
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
	 * Portions have equal sizes, because each also clears the rows of its
	 * successor, which would take long in a small last one (0.6 ms for each pass
	 * at 2^28 keys).
	 */
	temp->nportions = (uint32_t) (ntiles / (GS_PORTION_KEYS / ntile) + 1);
	temp->portion_tiles = (uint32_t) ((ntiles + temp->nportions - 1) / temp->nportions);
	temp->nportions = (uint32_t) ((ntiles + temp->portion_tiles - 1) / temp->portion_tiles);
	temp->nrows = temp->portion_tiles;
	/* for the largest portion, so that more items never need less */
	rows_bytes = (size_t) (temp->nportions > 1 ? GS_PORTION_KEYS / ntile : temp->nrows) *
		GS_NDIGITS * sizeof(uint32_t);
	temp->rows_offset[0] = control_bytes;
	temp->rows_offset[1] = control_bytes + rows_bytes;
	temp->nbytes = control_bytes + 2 * rows_bytes;
}

/* One block sorts all keys; plan->nitems must not exceed its tile. */
template <bool general, typename Key, typename Value, int nthreads, int nitems>
static GsDeviceStatus
gs_radix_launch_block(GsRadixPlan *plan, const GsDeviceProperties *properties, void *stream)
{
	static GsKernelOccupancy known;
	const void *kernel = (const void *) gs_radix_block_kernel<general, Key, Value, nthreads,
															  nitems>;
	const size_t shared_bytes = sizeof(GsRadixShared<Key, Value, nthreads, nitems, true>);
	GsDeviceStatus status;
	uint32_t nblocks;
	void *args[] = {plan};

	status = gs_kernel_resident_blocks(&known, properties, kernel, nthreads, shared_bytes,
									   &nblocks);
	if (status != GS_DEVICE_OK)
		return status;
	return gs_launch(kernel, 1, nthreads, shared_bytes, stream, false, args);
}

/*
 * Queues a sort with tiles of a given size.  counted: the digits have been counted
 * in d_temp (kernel_pack.cu).
 */
template <bool general, typename Key, typename Value, int nthreads, int nitems, int nblocks_sm,
		  int lookback_width, bool staged, int rank_method>
static GsDeviceStatus
gs_radix_launch(GsRadixPlan *plan, bool counted, const GsDeviceProperties *properties, void *d_temp,
				size_t temp_bytes, void *stream)
{
	static GsKernelOccupancy count_known;
	static GsKernelOccupancy pass_known;
	const void *count_kernel = (const void *) gs_radix_count_kernel<general, Key, GS_COUNT_THREADS>;
	const void *plan_kernel = (const void *) gs_radix_plan_kernel<GS_COUNT_THREADS>;
	const void *pass_kernel = (const void *)
		gs_radix_pass_kernel<general, Key, Value, nthreads, nitems, nblocks_sm, lookback_width,
							 staged,
							 rank_method>;
	const size_t shared_bytes = sizeof(GsRadixShared<Key, Value, nthreads, nitems, staged>);
	const uint64_t count_step = (uint64_t) GS_COUNT_THREADS * 4 * 16 / sizeof(Key);
	const uint64_t nsteps = (plan->nitems + count_step - 1) / count_step;
	const bool early = properties->capability >= 90 && plan->nitems <= GS_EARLY_LAUNCH_KEYS;
	GsRadixTemp temp;
	GsDeviceStatus status;
	size_t cleared;
	uint32_t nblocks;
	uint32_t pass;
	uint32_t portion;
	void *args[] = {plan, &pass, &portion};

	gs_radix_temp(&temp, plan->nitems, nthreads * nitems);
	if (temp_bytes < temp.nbytes)
		return GS_DEVICE_TEMP_TOO_SMALL;
	plan->d_control = (GsRadixControl *) d_temp;
	for (int i = 0; i < 2; i++)
		plan->d_rows[i] = (uint32_t *) ((char *) d_temp + temp.rows_offset[i]);
	plan->nrows = temp.nrows;
	plan->portion_tiles = temp.portion_tiles;
	plan->nportions = temp.nportions;

	/* the control block was cleared before the digits were counted */
	cleared = counted ? temp.rows_offset[0] : 0;
	status = gs_cuda_status(cudaMemsetAsync((char *) d_temp + cleared, 0,
											temp.rows_offset[1] - cleared, (cudaStream_t) stream));
	if (status != GS_DEVICE_OK)
		return status;

	status = gs_kernel_resident_blocks(&count_known, properties, count_kernel, GS_COUNT_THREADS, 0,
									   &nblocks);
	if (status != GS_DEVICE_OK)
		return status;
	nblocks = (uint32_t) (nsteps < nblocks ? nsteps : nblocks);
	if (counted)
		status = gs_launch(plan_kernel, 1, GS_COUNT_THREADS, 0, stream, false, args);
	else
		status = gs_launch(count_kernel, nblocks, GS_COUNT_THREADS, 0, stream, false, args);
	if (status != GS_DEVICE_OK)
		return status;

	status = gs_kernel_resident_blocks(&pass_known, properties, pass_kernel, nthreads, shared_bytes,
									   &nblocks);
	if (status != GS_DEVICE_OK)
		return status;
	if (temp.nrows < nblocks)
		nblocks = temp.nrows;
	/* without places there is still pass 0, which may have to copy the input */
	for (pass = 0; pass < plan->nplaces || pass == 0; pass++)
		for (portion = 0; portion < temp.nportions; portion++)
		{
			status = gs_launch(pass_kernel, nblocks, nthreads, shared_bytes, stream, early, args);
			if (status != GS_DEVICE_OK)
				return status;
		}
	return GS_DEVICE_OK;
}

/*
 * Queues a sort with the tile size for the number of keys; or, if temp_needed is
 * not NULL, only stores the size of its temporary storage.
 */
template <bool general, typename Key, typename Value>
static GsDeviceStatus
gs_radix_by_size(GsRadixPlan *plan, bool counted, const GsDeviceProperties *properties,
				 void *d_temp,
				 size_t temp_bytes, void *stream, size_t *temp_needed)
{
	typedef GsRadixTile<sizeof(Key), GsHasValue<Value>::yes ? sizeof(Value) : 0> Tile;
	const size_t shared_bytes = properties->shared_bytes;
	const bool many = plan->nitems > GS_SOME_KEYS &&
		sizeof(GsRadixShared<Key, Value, Tile::threads, Tile::items, Tile::staged>) <= shared_bytes;
	const bool some = !many && plan->nitems > GS_FEW_KEYS &&
		sizeof(GsRadixShared<Key, Value, GS_SOME_THREADS, GS_SOME_ITEMS,
							 GS_FEW_STAGED>) <= shared_bytes;

	if (temp_needed != NULL)
	{
		GsRadixTemp temp = {};
		uint32_t ntile = GS_FEW_THREADS * GS_FEW_ITEMS;

		if (many)
			ntile = Tile::threads * Tile::items;
		else if (some)
			ntile = GS_SOME_THREADS * GS_SOME_ITEMS;

		/* never 0, which means wrong arguments */
		temp.nbytes = 256;
		if (plan->nitems > GS_BLOCK_SORT)
			gs_radix_temp(&temp, plan->nitems, ntile);
		*temp_needed = temp.nbytes;
		return GS_DEVICE_OK;
	}
	if (plan->nitems <= GS_BLOCK_SORT)
		return gs_radix_launch_block<general, Key, Value, GS_BLOCK_SORT_THREADS,
									 GS_BLOCK_SORT_ITEMS>(plan, properties, stream);
	if (many)
		return gs_radix_launch<general, Key, Value, Tile::threads, Tile::items, Tile::blocks,
							   Tile::lookback,
							   Tile::staged, GS_RANK_METHOD>(plan, counted, properties, d_temp,
															 temp_bytes, stream);
	if (some)
		return gs_radix_launch<general, Key, Value, GS_SOME_THREADS, GS_SOME_ITEMS, GS_SOME_BLOCKS,
							   GS_SOME_LOOKBACK, GS_FEW_STAGED,
							   GS_RANK_METHOD>(plan, counted, properties, d_temp, temp_bytes,
											   stream);
	return gs_radix_launch<general, Key, Value, GS_FEW_THREADS, GS_FEW_ITEMS, 1, GS_FEW_LOOKBACK,
						   GS_FEW_STAGED,
						   GS_RANK_METHOD>(plan, counted, properties, d_temp, temp_bytes, stream);
}

#endif /* GPUSORT_KERNEL_RADIX_LAUNCH_CUH */
