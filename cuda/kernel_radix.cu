/*-------------------------------------------------------------------------
 *
 * kernel_radix.cu
 *	  The radix sort's front: checks what is asked, picks types and tile sizes.
 *
 * Which way a sort goes:
 *	- up to GS_BLOCK_SORT keys: one block, one launch (kernel_radix_block.cuh);
 *	- else counting (kernel_radix_count.cuh), then one pass a digit place
 *	  (kernel_radix_pass.cuh), with tiles of three sizes (tuning.cuh).
 *
 * See kernel_radix_plan.cuh for what host and device decide.
 *
 *-------------------------------------------------------------------------
 */
#include "kernel_radix_launch.cuh"

#define GS_BLOCK_SORT (GS_BLOCK_SORT_THREADS * GS_BLOCK_SORT_ITEMS)

/* What a sort comes to for one pair of types; two questions, one answer. */
template <typename Key, typename Value>
static GsDeviceStatus
gs_radix_typed(const GsRadixSort *sort, const GsDeviceFacts *properties, void *d_temp,
			   size_t temp_bytes, void *stream, size_t *temp_needed)
{
	typedef GsRadixTile<sizeof(Key), GsHasValue<Value>::yes ? sizeof(Value) : 0> Tile;
	const size_t shared_bytes = properties->shared_bytes;
	const bool many = sort->nitems > GS_SOME_KEYS &&
		sizeof(GsRadixShared<Key, Value, Tile::threads, Tile::items, Tile::staged>) <= shared_bytes;
	const bool some = !many && sort->nitems > GS_FEW_KEYS &&
		sizeof(GsRadixShared<Key, Value, GS_SOME_THREADS, GS_SOME_ITEMS, GS_FEW_STAGED>) <= shared_bytes;

	if (temp_needed != NULL)
	{
		GsRadixTemp temp = {};
		uint32_t ntile = GS_FEW_THREADS * GS_FEW_ITEMS;

		if (many)
			ntile = Tile::threads * Tile::items;
		else if (some)
			ntile = GS_SOME_THREADS * GS_SOME_ITEMS;

		/* never 0, which says that the arguments are wrong */
		temp.nbytes = 256;
		if (sort->nitems > GS_BLOCK_SORT)
			gs_radix_temp(&temp, sort->nitems, ntile);
		*temp_needed = temp.nbytes;
		return GS_DEVICE_OK;
	}
	if (sort->nitems <= GS_BLOCK_SORT)
		return gs_radix_launch_block<Key, Value, GS_BLOCK_SORT_THREADS, GS_BLOCK_SORT_ITEMS>(sort, properties, stream);
	if (many)
		return gs_radix_launch<Key, Value, Tile::threads, Tile::items, Tile::blocks,
							   Tile::lookback, Tile::staged, GS_RANK_METHOD>(sort, properties, d_temp, temp_bytes, stream);
	if (some)
		return gs_radix_launch<Key, Value, GS_SOME_THREADS, GS_SOME_ITEMS, GS_SOME_BLOCKS,
							   GS_SOME_LOOKBACK, GS_FEW_STAGED,
							   GS_RANK_METHOD>(sort, properties, d_temp, temp_bytes, stream);
	return gs_radix_launch<Key, Value, GS_FEW_THREADS, GS_FEW_ITEMS, 1, GS_FEW_LOOKBACK, GS_FEW_STAGED,
						   GS_RANK_METHOD>(sort, properties, d_temp, temp_bytes, stream);
}

template <typename Key>
static GsDeviceStatus
gs_radix_keyed(const GsRadixSort *sort, const GsDeviceFacts *properties, void *d_temp,
			   size_t temp_bytes, void *stream, size_t *temp_needed)
{
	switch (sort->value_bytes)
	{
		case 0:
			return gs_radix_typed<Key, GsNoValue>(sort, properties, d_temp, temp_bytes, stream, temp_needed);
		case 4:
			return gs_radix_typed<Key, uint32_t>(sort, properties, d_temp, temp_bytes, stream, temp_needed);
		default:
			return gs_radix_typed<Key, uint64_t>(sort, properties, d_temp, temp_bytes, stream, temp_needed);
	}
}

static GsDeviceStatus
gs_radix_dispatch(const GsRadixSort *sort, void *d_temp, size_t temp_bytes, void *stream,
				  size_t *temp_needed)
{
	GsDeviceFacts properties;
	GsDeviceStatus status = gs_device_facts(&properties);

	if (status != GS_DEVICE_OK)
		return status;
	switch (sort->key_bytes)
	{
		case 1:
			return gs_radix_keyed<uint8_t>(sort, &properties, d_temp, temp_bytes, stream, temp_needed);
		case 2:
			return gs_radix_keyed<uint16_t>(sort, &properties, d_temp, temp_bytes, stream, temp_needed);
		case 4:
			return gs_radix_keyed<uint32_t>(sort, &properties, d_temp, temp_bytes, stream, temp_needed);
		default:
			return gs_radix_keyed<uint64_t>(sort, &properties, d_temp, temp_bytes, stream, temp_needed);
	}
}

static bool
gs_is_misaligned(const void *pointer)
{
	return (uintptr_t) pointer % 16 != 0;
}

/* Everything that needs no pointer. */
static GsDeviceStatus
gs_radix_check_shape(const GsRadixSort *sort)
{
	const bool pack = sort->flags & GS_RADIX_PACK_ROWS;
	const bool rows = sort->flags & GS_RADIX_ROW_NUMBERS;

	if (sort->key_bytes != 1 && sort->key_bytes != 2 && sort->key_bytes != 4 && sort->key_bytes != 8)
		return GS_DEVICE_BAD_ARGUMENT;
	if (sort->value_bytes != 0 && sort->value_bytes != 4 && sort->value_bytes != 8)
		return GS_DEVICE_BAD_ARGUMENT;
	if (sort->begin_bit > sort->end_bit || sort->end_bit > 8 * sort->key_bytes)
		return GS_DEVICE_BAD_ARGUMENT;
	if (sort->flags & ~(uint32_t) (GS_RADIX_ROW_NUMBERS | GS_RADIX_NO_KEYS_OUT | GS_RADIX_PACK_ROWS | GS_RADIX_COUNTED))
		return GS_DEVICE_BAD_ARGUMENT;
	if (sort->value_bytes == 0 && (sort->flags & (GS_RADIX_ROW_NUMBERS | GS_RADIX_NO_KEYS_OUT)))
		return GS_DEVICE_BAD_ARGUMENT;
	if (pack && (sort->flags & GS_RADIX_COUNTED))
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
gs_radix_check_pointers(const GsRadixSort *sort)
{
	const bool apart = sort->d_keys_in != NULL;
	const bool rows = sort->flags & GS_RADIX_ROW_NUMBERS;

	if (!apart && sort->d_selector == NULL)
		return GS_DEVICE_BAD_ARGUMENT;
	if ((uintptr_t) sort->d_selector % sizeof(uint32_t) != 0 || gs_is_misaligned(sort->d_keys_in) ||
		gs_is_misaligned(sort->d_values_in))
		return GS_DEVICE_BAD_ARGUMENT;
	if (apart && sort->value_bytes != 0 && !rows && sort->d_values_in == NULL && sort->nitems > 0)
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
gs_device_radix_temp_bytes(const GsRadixSort *sort)
{
	const uint64_t limits[] = {GS_DEVICE_MAX_ITEMS, GS_SOME_KEYS, GS_FEW_KEYS};
	size_t most = 0;

	if (gs_radix_check_shape(sort) != GS_DEVICE_OK)
		return 0;
	/* below a limit tiles are smaller: fewer items may need more */
	for (uint64_t limit : limits)
	{
		GsRadixSort smaller = *sort;
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

GsDeviceStatus
gs_device_radix_sort(const GsRadixSort *sort, void *d_temp, size_t temp_bytes, void *stream)
{
	GsDeviceStatus status = gs_radix_check_shape(sort);

	if (status == GS_DEVICE_OK)
		status = gs_radix_check_pointers(sort);
	if (status != GS_DEVICE_OK)
		return status;
	if (sort->nitems == 0)
	{
		if (sort->d_selector == NULL)
			return GS_DEVICE_OK;
		return gs_cuda_status(cudaMemsetAsync(sort->d_selector, 0, sizeof(uint32_t),
											  (cudaStream_t) stream));
	}
	if (d_temp == NULL || gs_is_misaligned(d_temp))
		return GS_DEVICE_BAD_ARGUMENT;
	return gs_radix_dispatch(sort, d_temp, temp_bytes, stream, NULL);
}
