/*-------------------------------------------------------------------------
 *
 * cub_sorts.cu
 *	  The device sorts of CUB, as the CUDA toolkit has them, for comparison.
 *
 *-------------------------------------------------------------------------
 */
#include <cub/device/device_merge_sort.cuh>
#include <cub/device/device_radix_sort.cuh>

#include "bench_common.cuh"

template <typename Key, typename Value>
static void
pairs(void *d_temp, size_t *temp_bytes, void **d_keys, void **d_values, uint64_t n, bool wide,
	  int begin_bit, int end_bit, int *selector)
{
	cub::DoubleBuffer<Key> keys((Key *) d_keys[0], (Key *) d_keys[1]);
	cub::DoubleBuffer<Value> values((Value *) d_values[0], (Value *) d_values[1]);

	/* the type of n determines whether offsets have 32 or 64 bits */
	if (!wide)
		CHECK(cub::DeviceRadixSort::SortPairs(d_temp, *temp_bytes, keys, values, (uint32_t) n,
											  begin_bit, end_bit));
	else
		CHECK(cub::DeviceRadixSort::SortPairs(d_temp, *temp_bytes, keys, values, n, begin_bit, end_bit));
	*selector = keys.selector;
}

template <typename Key>
static void
keys_only(void *d_temp, size_t *temp_bytes, void **d_keys, uint64_t n, bool wide, int begin_bit, int end_bit,
		  int *selector)
{
	cub::DoubleBuffer<Key> keys((Key *) d_keys[0], (Key *) d_keys[1]);

	if (!wide)
		CHECK(cub::DeviceRadixSort::SortKeys(d_temp, *temp_bytes, keys, (uint32_t) n, begin_bit, end_bit));
	else
		CHECK(cub::DeviceRadixSort::SortKeys(d_temp, *temp_bytes, keys, n, begin_bit, end_bit));
	*selector = keys.selector;
}

void
cub_radix_sort(int key_bytes, int value_bytes, void *d_temp, size_t *temp_bytes, void **d_keys,
			   void **d_values, uint64_t n, bool wide, int begin_bit, int end_bit, int *selector)
{
	int type = key_bytes * 10 + value_bytes;

	if (type == 14)
		pairs<uint8_t, uint32_t>(d_temp, temp_bytes, d_keys, d_values, n, wide, begin_bit, end_bit, selector);
	else if (type == 24)
		pairs<uint16_t, uint32_t>(d_temp, temp_bytes, d_keys, d_values, n, wide, begin_bit, end_bit, selector);
	else if (type == 40)
		keys_only<uint32_t>(d_temp, temp_bytes, d_keys, n, wide, begin_bit, end_bit, selector);
	else if (type == 80)
		keys_only<uint64_t>(d_temp, temp_bytes, d_keys, n, wide, begin_bit, end_bit, selector);
	else if (type == 44)
		pairs<uint32_t, uint32_t>(d_temp, temp_bytes, d_keys, d_values, n, wide, begin_bit, end_bit, selector);
	else if (type == 84)
		pairs<uint64_t, uint32_t>(d_temp, temp_bytes, d_keys, d_values, n, wide, begin_bit, end_bit, selector);
	else if (type == 88)
		pairs<uint64_t, uint64_t>(d_temp, temp_bytes, d_keys, d_values, n, wide, begin_bit, end_bit, selector);
	else
	{
		fprintf(stderr, "no CUB sort of %d+%d bytes is built\n", key_bytes, value_bytes);
		exit(2);
	}
}

struct Less
{
	template <typename T>
	__device__ bool operator()(const T &a, const T &b) const
	{
		return a < b;
	}
};

void
cub_merge_sort(int value_bytes, void *d_temp, size_t *temp_bytes, uint64_t *d_keys, void *d_values,
			   uint64_t n)
{
	if (value_bytes == 0)
		CHECK(cub::DeviceMergeSort::StableSortKeys(d_temp, *temp_bytes, d_keys, (int64_t) n, Less()));
	else if (value_bytes == 4)
		CHECK(cub::DeviceMergeSort::StableSortPairs(d_temp, *temp_bytes, d_keys, (uint32_t *) d_values,
													(int64_t) n, Less()));
	else
		CHECK(cub::DeviceMergeSort::StableSortPairs(d_temp, *temp_bytes, d_keys, (uint64_t *) d_values,
													(int64_t) n, Less()));
}
