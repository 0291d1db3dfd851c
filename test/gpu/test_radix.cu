/*-------------------------------------------------------------------------
 *
 * test_radix.cu
 *	  The device's radix sort against the host's, over sizes, types, data,
 *	  bit ranges, flags and ways to pass memory.
 *
 * usage: test_radix [quick | full | huge]
 *
 * quick is what compute-sanitizer can do in a minute; huge sorts more than
 * 2^31 and 2^32 rows and checks them on the device.
 *
 *-------------------------------------------------------------------------
 */
#include "test_common.h"

typedef struct Case
{
	size_t n;
	int key_bytes;
	int value_bytes;
	unsigned begin_bit;
	unsigned end_bit;
	unsigned flags;
	unsigned row_bits;
	bool separate; /* the input is in separate memory */
	int distribution;
	uint64_t mask;
} Case;

static std::vector<uint8_t>
narrow(const std::vector<uint64_t> &wide, int nbytes)
{
	std::vector<uint8_t> bytes(wide.size() * nbytes);

	for (size_t i = 0; i < wide.size(); i++)
		memcpy(&bytes[i * nbytes], &wide[i], nbytes); /* little endian */
	return bytes;
}

static bool
same(const void *d_data, const std::vector<uint8_t> &expected)
{
	std::vector<uint8_t> got(expected.size());

	CHECK(cudaMemcpy(got.data(), d_data, got.size(), cudaMemcpyDeviceToHost));
	return got == expected;
}

/* Sorts on device and host and compares; returns NULL or what is wrong. */
static const char *
run_case(const Case *c)
{
	const uint64_t key_mask = c->key_bytes == 8 ? ~UINT64_C(0) : (UINT64_C(1) << 8 * c->key_bytes) - 1;
	const bool pack = c->flags & GS_RADIX_PACK_ROWS;
	const uint64_t key_min = pack ? 0x8000000000000000u - 77 : 0;
	std::vector<uint64_t> keys = make_keys(c->n, c->distribution, key_mask & c->mask, c->n * 31 + c->key_bytes);
	std::vector<uint64_t> raw = keys;
	std::vector<uint64_t> values(c->n);
	std::vector<uint64_t> sorted_keys(c->n);
	std::vector<uint64_t> sorted_values(c->n);
	std::vector<uint32_t> order;
	const size_t key_size = c->n * c->key_bytes;
	const size_t value_size = c->n * c->value_bytes;
	Guarded keys_in = guarded_alloc(key_size);
	Guarded values_in = guarded_alloc(value_size);
	Guarded d_keys[2] = {guarded_alloc(key_size), guarded_alloc(key_size)};
	Guarded d_values[2] = {guarded_alloc(value_size), guarded_alloc(value_size)};
	Guarded selector = guarded_alloc(sizeof(uint32_t));
	Guarded temp;
	GsRadixSortGeneral sort = {};
	GsDeviceStatus status;
	size_t temp_bytes;
	uint32_t selected;
	const char *wrong = NULL;
	bool intact = true;

	for (size_t i = 0; i < c->n; i++)
	{
		values[i] = c->flags & GS_RADIX_ROW_NUMBERS ? i : random_bits(99, i) & ~UINT64_C(0xffffff) | i;
		if (pack)
		{
			keys[i] &= (UINT64_C(1) << (64 - c->row_bits)) - 1;
			raw[i] = keys[i] + key_min;
			keys[i] = keys[i] << c->row_bits | i;
		}
	}
	order = host_radix_order(keys, c->begin_bit, c->end_bit);
	for (size_t i = 0; i < c->n; i++)
	{
		sorted_keys[i] = keys[order[i]];
		sorted_values[i] = values[order[i]];
	}

	sort.nitems = c->n;
	sort.key_bytes = c->key_bytes;
	sort.value_bytes = c->value_bytes;
	sort.begin_bit = c->begin_bit;
	sort.end_bit = c->end_bit;
	sort.flags = c->flags;
	sort.row_bits = pack ? c->row_bits : 0;
	sort.key_min = key_min;
	for (int i = 0; i < 2; i++)
	{
		sort.d_keys[i] = guarded_data(&d_keys[i]);
		sort.d_values[i] = c->value_bytes ? guarded_data(&d_values[i]) : NULL;
	}
	sort.d_selector = (uint32_t *) guarded_data(&selector);
	if (c->separate)
	{
		sort.d_keys_in = guarded_data(&keys_in);
		if (c->value_bytes && !(c->flags & GS_RADIX_ROW_NUMBERS))
			sort.d_values_in = guarded_data(&values_in);
	}
	std::vector<uint8_t> narrow_raw = narrow(raw, c->key_bytes);
	std::vector<uint8_t> narrow_values = narrow(values, c->value_bytes);
	CHECK(cudaMemcpy((void *) (c->separate ? sort.d_keys_in : sort.d_keys[0]), narrow_raw.data(), key_size,
					 cudaMemcpyHostToDevice));
	if (c->value_bytes && !(c->flags & GS_RADIX_ROW_NUMBERS))
		CHECK(cudaMemcpy((void *) (c->separate ? sort.d_values_in : sort.d_values[0]), narrow_values.data(),
						 value_size, cudaMemcpyHostToDevice));

	temp_bytes = gs_device_radix_general_temp_bytes(&sort);
	temp = guarded_alloc(temp_bytes);
	status = gs_device_radix_general_sort(&sort, guarded_data(&temp), temp_bytes, NULL);
	if (status == GS_DEVICE_OK && cudaDeviceSynchronize() != cudaSuccess)
		status = GS_DEVICE_CUDA_ERROR;
	if (status != GS_DEVICE_OK)
	{
		printf("status %d: %s\n", status, cudaGetErrorString(cudaGetLastError()));
		exit(1);
	}
	CHECK(cudaMemcpy(&selected, sort.d_selector, sizeof(selected), cudaMemcpyDeviceToHost));
	if (selected > 1 || (c->separate && selected != 0))
		wrong = "selector";
	else if (!(c->flags & GS_RADIX_NO_KEYS_OUT) &&
			 !same(sort.d_keys[selected], narrow(sorted_keys, c->key_bytes)))
		wrong = "keys";
	else if (c->value_bytes && !same(sort.d_values[selected], narrow(sorted_values, c->value_bytes)))
		wrong = "values";
	else if (c->separate && !same(sort.d_keys_in, narrow_raw))
		wrong = "input keys were changed";
	for (int i = 0; i < 2; i++)
		intact = guarded_free(&d_keys[i]) & guarded_free(&d_values[i]) & intact;
	intact = guarded_free(&keys_in) & guarded_free(&values_in) & guarded_free(&selector) &
		guarded_free(&temp) & intact;
	return wrong ? wrong : intact ? NULL :
									"canary";
}

static void
try_case(Case c)
{
	const char *wrong = run_case(&c);
	char what[300];

	snprintf(what, sizeof(what), "n %zu key %d value %d bits %u..%u flags %u rows %u %s %s mask %llx: %s", c.n,
			 c.key_bytes, c.value_bytes, c.begin_bit, c.end_bit, c.flags, c.row_bits,
			 c.separate ? "separate" : "in place", distribution_names[c.distribution],
			 (unsigned long long) c.mask, wrong ? wrong : "fine");
	report(wrong == NULL, what);
}

static Case
whole(size_t n, int key_bytes, int value_bytes)
{
	Case c = {};

	c.n = n;
	c.key_bytes = key_bytes;
	c.value_bytes = value_bytes;
	c.end_bit = 8 * key_bytes;
	c.mask = ~UINT64_C(0);
	return c;
}

static void
try_sizes(const std::vector<size_t> &sizes)
{
	for (int key_bytes = 1; key_bytes <= 8; key_bytes *= 2)
		for (int value_bytes = 0; value_bytes <= 8; value_bytes += 4)
			for (size_t n : sizes)
			{
				Case c = whole(n, key_bytes, value_bytes);

				try_case(c);
				c.separate = true;
				c.distribution = FEW_DISTINCT;
				try_case(c);
			}
}

static void
try_data(size_t n)
{
	for (int key_bytes = 1; key_bytes <= 8; key_bytes *= 2)
		for (int distribution = 0; distribution < NDISTRIBUTIONS; distribution++)
		{
			Case c = whole(n, key_bytes, 4);

			c.distribution = distribution;
			try_case(c);
			c.separate = true;
			c.flags = GS_RADIX_ROW_NUMBERS;
			try_case(c);
			c.flags |= GS_RADIX_NO_KEYS_OUT;
			try_case(c);
			c.separate = false;
			try_case(c);
			c = whole(n, key_bytes, 0);
			c.distribution = distribution;
			try_case(c);
		}
}

static void
try_bits(size_t n)
{
	static const unsigned ranges[][2] = {
		{0, 0}, {0, 1}, {5, 6}, {7, 9}, {0, 8}, {3, 11}, {8, 16}, {0, 20}, {31, 33}, {28, 64}, {0, 36}, {63, 64}, {1, 64}, {24, 57}, {0, 7}, {60, 64}};

	for (int key_bytes = 1; key_bytes <= 8; key_bytes *= 2)
		for (const unsigned *range : ranges)
			if (range[1] <= 8u * key_bytes)
				for (int value_bytes = 0; value_bytes <= 8; value_bytes += 4)
				{
					Case c = whole(n, key_bytes, value_bytes);

					c.begin_bit = range[0];
					c.end_bit = range[1];
					try_case(c);
					if (value_bytes)
						c.flags = GS_RADIX_ROW_NUMBERS;
					c.separate = true;
					try_case(c);
				}
}

static void
try_packed(size_t n)
{
	for (unsigned row_bits = 26; row_bits <= 48; row_bits += 11)
		for (int distribution = 0; distribution < NDISTRIBUTIONS; distribution++)
			for (int separate = 0; separate < 2; separate++)
			{
				Case c = whole(n, 8, 0);

				c.flags = GS_RADIX_PACK_ROWS;
				c.row_bits = c.begin_bit = row_bits;
				c.end_bit = 64;
				c.distribution = distribution;
				c.separate = separate;
				try_case(c);
				/* fewer bits than there is space for */
				c.mask = 0xffff;
				c.end_bit = row_bits + 16;
				try_case(c);
			}
}

/* Arguments that the headers do not allow. */
static void
try_arguments(void)
{
	uint64_t *d_memory;
	GsRadixSortGeneral good = {};
	GsRadixSortGeneral sort;
	size_t nbytes;

	CHECK(cudaMalloc((void **) &d_memory, 1 << 20));
	good.nitems = 10000;
	good.key_bytes = 4;
	good.end_bit = 32;
	good.d_keys[0] = d_memory;
	good.d_keys[1] = (char *) d_memory + 65536;
	good.d_selector = (uint32_t *) d_memory + 50000;
	nbytes = gs_device_radix_general_temp_bytes(&good);
	report(nbytes > 0, "temp bytes");
#define REFUSED(change, expected) \
	do \
	{ \
		sort = good; \
		change; \
		report(gs_device_radix_general_sort(&sort, (char *) d_memory + 262144, nbytes, NULL) == expected, #change); \
	} while (0)
	REFUSED(sort.key_bytes = 3, GS_DEVICE_BAD_ARGUMENT);
	REFUSED(sort.value_bytes = 2, GS_DEVICE_BAD_ARGUMENT);
	REFUSED(sort.value_bytes = 4, GS_DEVICE_BAD_ARGUMENT);
	REFUSED(sort.end_bit = 33, GS_DEVICE_BAD_ARGUMENT);
	REFUSED(sort.begin_bit = 33, GS_DEVICE_BAD_ARGUMENT);
	REFUSED(sort.flags = 16, GS_DEVICE_BAD_ARGUMENT);
	REFUSED(sort.flags = GS_RADIX_PACK_ROWS | 8, GS_DEVICE_BAD_ARGUMENT);
	REFUSED(sort.flags = GS_RADIX_ROW_NUMBERS, GS_DEVICE_BAD_ARGUMENT);
	REFUSED(sort.flags = GS_RADIX_PACK_ROWS, GS_DEVICE_BAD_ARGUMENT);
	REFUSED(sort.d_keys[1] = NULL, GS_DEVICE_BAD_ARGUMENT);
	REFUSED(sort.d_keys[1] = (char *) d_memory + 65540, GS_DEVICE_BAD_ARGUMENT);
	REFUSED(sort.d_selector = NULL, GS_DEVICE_BAD_ARGUMENT);
	REFUSED(sort.nitems = GS_DEVICE_MAX_ITEMS + 1, GS_DEVICE_TOO_MANY_ITEMS);
	REFUSED(sort.nitems = 1 << 20, GS_DEVICE_TEMP_TOO_SMALL);

	/* wrong arguments for the types of gpusortd, which have their own checks */
	good.key_bytes = 8;
	good.end_bit = 64;
	good.nitems = 5000;
	REFUSED(sort.value_bytes = 2, GS_DEVICE_BAD_ARGUMENT);
	REFUSED(sort.value_bytes = 4, GS_DEVICE_BAD_ARGUMENT);
	REFUSED(sort.end_bit = 65, GS_DEVICE_BAD_ARGUMENT);
	REFUSED(sort.begin_bit = 65, GS_DEVICE_BAD_ARGUMENT);
	REFUSED(sort.d_keys[1] = NULL, GS_DEVICE_BAD_ARGUMENT);
	REFUSED(sort.d_keys[1] = (char *) d_memory + 65540, GS_DEVICE_BAD_ARGUMENT);
	REFUSED(sort.d_selector = NULL, GS_DEVICE_BAD_ARGUMENT);
	REFUSED(sort.nitems = GS_DEVICE_MAX_ITEMS + 1, GS_DEVICE_TOO_MANY_ITEMS);
	REFUSED(sort.nitems = 1 << 20, GS_DEVICE_TEMP_TOO_SMALL);
	CHECK(cudaFree(d_memory));
}

/* ------------------------------------------------------------------------
 * More rows than 2^32: created, sorted and checked on the device.
 */

static __host__ __device__ uint64_t
mix(uint64_t i)
{
	i = (i ^ (i >> 30)) * 0xbf58476d1ce4e5b9u;
	i = (i ^ (i >> 27)) * 0x94d049bb133111ebu;
	return i ^ (i >> 31);
}

template <typename Key>
static __global__ void
make_huge(Key *d_keys, uint64_t n)
{
	for (uint64_t i = blockIdx.x * (uint64_t) blockDim.x + threadIdx.x; i < n; i += (uint64_t) gridDim.x * blockDim.x)
		d_keys[i] = (Key) mix(i + 1);
}

/*
 * (key, row) must be in strictly ascending order, and each key must be that of its
 * row.  Then the rows are a permutation, and the sort is correct and stable.
 */
template <typename Key, typename Value>
static __global__ void
check_pairs(const Key *d_keys, const Value *d_values, uint64_t n, unsigned long long *d_nwrong)
{
	for (uint64_t i = blockIdx.x * (uint64_t) blockDim.x + threadIdx.x; i < n; i += (uint64_t) gridDim.x * blockDim.x)
	{
		bool wrong = d_values[i] >= n || d_keys[i] != (Key) mix((uint64_t) d_values[i] + 1);

		if (i > 0)
			wrong |= d_keys[i - 1] > d_keys[i] || (d_keys[i - 1] == d_keys[i] && d_values[i - 1] >= d_values[i]);
		if (wrong)
			atomicAdd(d_nwrong, 1ull);
	}
}

/* Must be ascending, with the same counts of each byte value. */
static __global__ void
check_bytes(const uint8_t *d_keys, uint64_t n, unsigned long long *d_nwrong, unsigned long long *d_counts, bool sorted)
{
	__shared__ unsigned int s_counts[256];

	s_counts[threadIdx.x] = 0;
	__syncthreads();
	for (uint64_t i = blockIdx.x * (uint64_t) blockDim.x + threadIdx.x; i < n; i += (uint64_t) gridDim.x * blockDim.x)
	{
		atomicAdd(&s_counts[d_keys[i]], 1);
		if (sorted && i > 0 && d_keys[i - 1] > d_keys[i])
			atomicAdd(d_nwrong, 1ull);
	}
	__syncthreads();
	atomicAdd(&d_counts[threadIdx.x], (unsigned long long) s_counts[threadIdx.x]);
}

template <typename Key, typename Value>
static void
try_huge(uint64_t n, const char *what)
{
	GsRadixSortGeneral sort = {};
	void *d_temp;
	unsigned long long *d_counts;
	unsigned long long counts[1 + 512] = {0};
	uint32_t selector;
	size_t temp_bytes;
	size_t free_bytes, total_bytes;
	bool ok;

	sort.nitems = n;
	sort.key_bytes = sizeof(Key);
	sort.value_bytes = sizeof(Key) == 1 ? 0 : sizeof(Value);
	CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
	/* twice the items, and up to 2 GB for what the sort needs besides */
	if (2 * n * (sort.key_bytes + sort.value_bytes) + (UINT64_C(2) << 30) > free_bytes)
	{
		printf("# skipped: %s: more than the %zu MB that are free\n", what, free_bytes >> 20);
		return;
	}
	sort.end_bit = 8 * sizeof(Key);
	sort.flags = sort.value_bytes ? GS_RADIX_ROW_NUMBERS : 0;
	for (int i = 0; i < 2; i++)
	{
		CHECK(cudaMalloc(&sort.d_keys[i], n * sizeof(Key)));
		if (sort.value_bytes)
			CHECK(cudaMalloc(&sort.d_values[i], n * sizeof(Value)));
	}
	CHECK(cudaMalloc((void **) &sort.d_selector, 4));
	CHECK(cudaMalloc((void **) &d_counts, sizeof(counts)));
	CHECK(cudaMemset(d_counts, 0, sizeof(counts)));
	temp_bytes = gs_device_radix_general_temp_bytes(&sort);
	CHECK(cudaMalloc(&d_temp, temp_bytes));
	make_huge<Key><<<1024, 256>>>((Key *) sort.d_keys[0], n);
	if (sort.value_bytes == 0)
		check_bytes<<<1024, 256>>>((uint8_t *) sort.d_keys[0], n, d_counts, d_counts + 1, false);
	ok = gs_device_radix_general_sort(&sort, d_temp, temp_bytes, NULL) == GS_DEVICE_OK;
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaMemcpy(&selector, sort.d_selector, 4, cudaMemcpyDeviceToHost));
	if (sort.value_bytes == 0)
		check_bytes<<<1024, 256>>>((uint8_t *) sort.d_keys[selector], n, d_counts, d_counts + 257, true);
	else
		check_pairs<<<1024, 256>>>((Key *) sort.d_keys[selector], (Value *) sort.d_values[selector], n, d_counts);
	CHECK(cudaMemcpy(counts, d_counts, sizeof(counts), cudaMemcpyDeviceToHost));
	ok = ok && counts[0] == 0 && memcmp(counts + 1, counts + 257, 256 * sizeof(counts[0])) == 0 | sort.value_bytes;
	report(ok, what);
	for (int i = 0; i < 2; i++)
	{
		CHECK(cudaFree(sort.d_keys[i]));
		CHECK(cudaFree(sort.d_values[i]));
	}
	CHECK(cudaFree(sort.d_selector));
	CHECK(cudaFree(d_counts));
	CHECK(cudaFree(d_temp));
}

int
main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "full";

	if (strcmp(mode, "quick") == 0)
	{
		try_arguments();
		try_sizes({0, 1, 2047, 2049, 20481});
		try_data(10007);
		try_packed(9001);
	}
	else if (strcmp(mode, "huge") == 0)
	{
		try_huge<uint32_t, uint32_t>((UINT64_C(1) << 31) + 7777, "2^31 + 7777 rows of u32 + u32");
		try_huge<uint8_t, uint32_t>((UINT64_C(1) << 32) + 12345, "2^32 + 12345 rows of u8");
		try_huge<uint64_t, uint64_t>((UINT64_C(1) << 31) + 99, "2^31 + 99 rows of u64 + u64");
		try_huge<uint16_t, uint64_t>((UINT64_C(1) << 32) + 4321, "2^32 + 4321 rows of u16 + u64");
	}
	else
	{
		try_arguments();
		try_sizes({0, 1, 2, 31, 32, 33, 255, 256, 257, 2047, 2048, 2049, 4096, 4097, 4607, 4608, 4609, 9215,
				   9216, 9217, 11263, 11264, 11265, 20479, 20480, 20481, 65535, 65537, 99991, 131071, 131073});
		try_sizes({1048575, 1048576, 1048577, 1299709, 4194305});
		try_data(5000);
		try_data(70001);
		try_data(1500007);
		try_bits(3001);
		try_bits(50021);
		try_bits(1200007);
		try_packed(1999);
		try_packed(70001);
		try_packed(1500007);
	}
	return finish("radix sort");
}
