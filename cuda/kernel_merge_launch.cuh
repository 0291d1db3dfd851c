/*-------------------------------------------------------------------------
 *
 * kernel_merge_launch.cuh
 *	  Queues the kernels of a merge sort of one value type: tiles, then rounds.
 *
 * Rounds alternate between the two pairs of arrays.  The number of rounds is known in advance; if
 * it is odd, the tiles are written to the other pair, so that the result is always in d_keys[0].
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KERNEL_MERGE_LAUNCH_CUH
#define GPUSORT_KERNEL_MERGE_LAUNCH_CUH

#include <algorithm>

#include "kernel_merge.cuh"
#include "launch.cuh"

#define GS_SPLIT_THREADS 128

/* The number of pieces of all groups in a round; *group_pieces is that of a complete group. */
template <typename Shape>
static uint64_t
gs_round_pieces(uint64_t nitems, uint64_t run, uint64_t *group_pieces)
{
	const uint64_t ngroups = (nitems + run * GS_MERGE_WAYS - 1) / (run * GS_MERGE_WAYS);
	const GsGroup last = gs_merge_group(nitems, run, ngroups - 1);

	*group_pieces = gs_group_pieces<Shape>(gs_merge_group(nitems, run, 0));
	return (ngroups - 1) * *group_pieces + gs_group_pieces<Shape>(last);
}

template <typename Shape>
static size_t
gs_merge_temp(uint64_t nitems)
{
	uint64_t most = 0;

	for (uint64_t run = Shape::tile; run < nitems; run *= GS_MERGE_WAYS)
	{
		uint64_t group_pieces;
		uint64_t npieces = gs_round_pieces<Shape>(nitems, run, &group_pieces);

		if (npieces > most)
			most = npieces;
	}
	return (size_t) (most + 1) * GS_MERGE_WAYS * sizeof(uint64_t);
}

template <typename Value, bool has_tails, typename Shape>
static GsDeviceStatus
gs_merge_typed(const GsMergeSort *sort, const GsDeviceProperties *properties, void *d_temp,
			   size_t temp_bytes, void *stream)
{
	static GsKernelOccupancy tile_known;
	static GsKernelOccupancy piece_known;
	const void *tile_kernel = (const void *) gs_merge_tile_kernel<Value, has_tails, Shape>;
	const void *piece_kernel = (const void *) gs_merge_piece_kernel<Value, has_tails, Shape>;
	const void *split_kernel = (const void *) gs_merge_split_kernel<Value, has_tails, Shape>;
	const size_t shared_bytes = sizeof(GsMergeShared<Value, Shape>);
	const uint64_t ntiles = (sort->nitems + Shape::tile - 1) / Shape::tile;
	const uint64_t split_threads =
		(sort->nitems + Shape::stride - 1) / Shape::stride * GS_MERGE_WAYS;
	const bool early = properties->capability >= 90 && sort->nitems <= GS_EARLY_LAUNCH_KEYS;
	uint64_t nitems = sort->nitems;
	GsTails tails = {sort->d_tails, sort->d_tail_order};
	GsMergeRound round = {};
	GsDeviceStatus status;
	uint32_t resident;
	int nrounds = 0;
	int to;

	if (temp_bytes < gs_merge_temp<Shape>(nitems))
		return GS_DEVICE_TEMP_TOO_SMALL;
	for (uint64_t run = Shape::tile; run < nitems; run *= GS_MERGE_WAYS)
		nrounds++;
	to = nrounds % 2;

	status = gs_kernel_resident_blocks(&tile_known, properties, tile_kernel, Shape::threads,
									   shared_bytes, &resident);
	if (status == GS_DEVICE_OK)
		status = gs_kernel_resident_blocks(&piece_known, properties, piece_kernel, Shape::threads,
										   shared_bytes, &resident);
	if (status == GS_DEVICE_OK)
	{
		const uint64_t *d_keys_from = sort->d_keys[0];
		const Value *d_values_from = (const Value *) sort->d_values[0];
		uint64_t *d_keys_to = sort->d_keys[to];
		Value *d_values_to = (Value *) sort->d_values[to];
		void *args[] = {&nitems, &d_keys_from, &d_values_from, &d_keys_to, &d_values_to, &tails};

		status = gs_launch(tile_kernel, (uint32_t) ntiles, Shape::threads, shared_bytes, stream,
						   early, args);
	}
	round.nitems = nitems;
	round.d_splits = (uint64_t *) d_temp;
	round.tails = tails;
	for (round.run = Shape::tile; status == GS_DEVICE_OK && round.run < nitems;
		 round.run *= GS_MERGE_WAYS)
	{
		const uint64_t npieces = gs_round_pieces<Shape>(nitems, round.run, &round.group_pieces);
		void *args[] = {&round};

		round.d_keys_from = sort->d_keys[to];
		round.d_values_from = sort->d_values[to];
		to = 1 - to;
		round.d_keys_to = sort->d_keys[to];
		round.d_values_to = sort->d_values[to];
		status = gs_launch(split_kernel, gs_blocks(split_threads, GS_SPLIT_THREADS),
						   GS_SPLIT_THREADS, 0, stream, early, args);
		if (status == GS_DEVICE_OK)
			status = gs_launch(piece_kernel, (uint32_t) npieces, Shape::threads, shared_bytes,
							   stream, early, args);
	}
	return status;
}

/* Are tiles used that need more than `least` items for all multiprocessors, and do they fit one? */
template <typename Value, typename Shape>
static bool
gs_merge_takes(uint64_t nitems, uint64_t least, const GsDeviceProperties *properties)
{
	return nitems > least &&
		sizeof(GsMergeShared<Value, Shape>) <= (size_t) properties->shared_bytes;
}

/* Queues a sort with the largest tiles that are used. */
template <typename Value, bool has_tails>
static GsDeviceStatus
gs_merge_valued(const GsMergeSort *sort, const GsDeviceProperties *properties, void *d_temp,
				size_t temp_bytes, void *stream)
{
	typedef GsMergeLarge<GsHasValue<Value>::yes ? sizeof(Value) : 0> Large;
	typedef GsMergeMiddle Middle;
	typedef GsMergeSmall Small;
	const uint64_t n = sort->nitems;

	if (gs_merge_takes<Value, Large>(n, GS_MERGE_MIDDLE_KEYS, properties))
		return gs_merge_typed<Value, has_tails, Large>(sort, properties, d_temp, temp_bytes,
													   stream);
	if (gs_merge_takes<Value, Middle>(n, GS_MERGE_SMALL_KEYS, properties))
		return gs_merge_typed<Value, has_tails, Middle>(sort, properties, d_temp, temp_bytes,
														stream);
	return gs_merge_typed<Value, has_tails, Small>(sort, properties, d_temp, temp_bytes,
												   stream);
}

/* Bytes of temporary storage for at most nitems: smaller tiles of fewer items may need more. */
template <typename Value>
static size_t
gs_merge_valued_temp_bytes(uint64_t nitems)
{
	typedef GsMergeLarge<GsHasValue<Value>::yes ? sizeof(Value) : 0> Large;
	GsDeviceProperties properties;

	if (nitems > GS_DEVICE_MAX_ITEMS || gs_device_properties(&properties) != GS_DEVICE_OK)
		return 0;
	if (gs_merge_takes<Value, Large>(nitems, GS_MERGE_MIDDLE_KEYS, &properties))
		return std::max({gs_merge_temp<Large>(nitems),
						 gs_merge_temp<GsMergeMiddle>(GS_MERGE_MIDDLE_KEYS),
						 gs_merge_temp<GsMergeSmall>(GS_MERGE_SMALL_KEYS)});
	if (gs_merge_takes<Value, GsMergeMiddle>(nitems, GS_MERGE_SMALL_KEYS, &properties))
		return std::max(gs_merge_temp<GsMergeMiddle>(nitems),
						gs_merge_temp<GsMergeSmall>(GS_MERGE_SMALL_KEYS));
	return gs_merge_temp<GsMergeSmall>(nitems);
}

/* Checks everything that does not depend on the value type. */
static inline GsDeviceStatus
gs_merge_check(const GsMergeSort *sort, const void *d_temp)
{
	if (sort->nitems > GS_DEVICE_MAX_ITEMS)
		return GS_DEVICE_TOO_MANY_ITEMS;
	if (sort->nitems == 0)
		return GS_DEVICE_OK;
	for (int i = 0; i < 2; i++)
		if (sort->d_keys[i] == NULL || (sort->value_bytes != 0 && sort->d_values[i] == NULL) ||
			(uintptr_t) sort->d_keys[i] % 16 != 0 || (uintptr_t) sort->d_values[i] % 16 != 0)
			return GS_DEVICE_BAD_ARGUMENT;
	if (d_temp == NULL || (uintptr_t) d_temp % 16 != 0)
		return GS_DEVICE_BAD_ARGUMENT;
	return sort->d_tails != NULL && sort->d_tail_order == NULL ? GS_DEVICE_BAD_ARGUMENT :
																 GS_DEVICE_OK;
}

#endif /* GPUSORT_KERNEL_MERGE_LAUNCH_CUH */
