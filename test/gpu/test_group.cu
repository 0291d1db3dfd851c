/*-------------------------------------------------------------------------
 *
 * test_group.cu
 *	  The sorts over several devices against a stable sort on the host.
 *
 * A group may contain a device several times, so groups of 16 are tested on any
 * machine with a GPU.  What crosses from one device to another is tested only on
 * machines with several.
 *
 * usage: test_group [quick | full]
 *
 *-------------------------------------------------------------------------
 */
#include <string>

#include "../../bench/kernels/group/device_group.h"
#include "test_common.h"

static int nphysical;

/* The items of a case, and their stable order. */
typedef struct Items
{
	GsGroupTypes types;
	std::vector<uint64_t> keys;
	std::vector<uint32_t> order;
} Items;

static Items
make_items(size_t n, const GsGroupTypes &types, int distribution)
{
	const uint64_t mask = types.key_bytes == 4 ? UINT64_C(0xffffffff) : ~UINT64_C(0);
	Items items = {types, make_keys(n, distribution, mask, n + types.key_bytes), {}};

	items.order = host_radix_order(items.keys, types.begin_bit, types.end_bit);
	return items;
}

/* Element i of an array of keys or values. */
static uint64_t
element(const void *array, size_t i, uint32_t nbytes)
{
	return nbytes == 4 ? ((const uint32_t *) array)[i] : ((const uint64_t *) array)[i];
}

static void
set_element(void *array, size_t i, uint32_t nbytes, uint64_t value)
{
	if (nbytes == 4)
		((uint32_t *) array)[i] = (uint32_t) value;
	else
		((uint64_t *) array)[i] = value;
}

/* The value of row i, which identifies it. */
static uint64_t
value_of(size_t i)
{
	return i ^ 0x5a5a5a5a;
}

/* NULL, or what is wrong with sorted items that begin at a rank. */
static const char *
compare(const Items &items, size_t rank, size_t n, const void *keys, const void *values)
{
	for (size_t i = 0; i < n; i++)
	{
		const uint32_t row = items.order[rank + i];

		if (element(keys, i, items.types.key_bytes) != items.keys[row])
			return "keys";
		if (items.types.value_bytes > 0 && element(values, i, items.types.value_bytes) != (items.types.value_bytes == 4 ? (uint32_t) value_of(row) : value_of(row)))
			return "values";
	}
	return NULL;
}

/* Divides n into random shares, some of them empty. */
static std::vector<uint64_t>
make_shares(size_t n, uint32_t nshares, bool even, uint64_t seed)
{
	std::vector<uint64_t> begins(nshares + 1, n);

	begins[0] = 0;
	for (uint32_t i = 1; i < nshares; i++)
		begins[i] = even ? n / nshares * i : random_bits(seed, i) % (n + 1);
	std::sort(begins.begin(), begins.end());
	for (uint32_t i = 0; i < nshares; i++)
		begins[i] = begins[i + 1] - begins[i];
	begins.pop_back();
	return begins;
}

static void *
pinned(size_t nbytes)
{
	void *memory;

	CHECK(cudaMallocHost(&memory, nbytes + 1));
	return memory;
}

static GsDeviceGroup *
open_group(uint32_t ndevices, bool through_host, int *numbers)
{
	GsDeviceGroup *group;

	for (uint32_t i = 0; i < ndevices; i++)
		numbers[i] = (int) (i % nphysical);
	if (gs_device_group_open(numbers, ndevices, through_host, &group) != GS_DEVICE_OK)
	{
		printf("Bail out! no group of %u devices: %s\n", ndevices, gs_device_last_error());
		exit(2);
	}
	return group;
}

/* The streams of a group do not wait for the copies and memsets of the test. */
static void
finish_queued_work(const int *numbers, uint32_t ndevices)
{
	for (uint32_t i = 0; i < ndevices; i++)
	{
		CHECK(cudaSetDevice(numbers[i]));
		CHECK(cudaDeviceSynchronize());
	}
}

/* Items that are on the devices. */
static const char *
sort_on_devices(const Items &items, uint32_t ndevices, bool through_host, bool even)
{
	const size_t n = items.keys.size();
	const uint32_t kb = items.types.key_bytes;
	const uint32_t vb = items.types.value_bytes;
	std::vector<uint64_t> before = make_shares(n, ndevices, even, n);
	std::vector<uint64_t> after = make_shares(n, ndevices, even, n + 1);
	std::vector<Guarded> memory[GS_GROUP_MAX_DEVICES];
	int numbers[GS_GROUP_MAX_DEVICES];
	GsDeviceGroup *group = open_group(ndevices, through_host, numbers);
	GsGroupSort sort = {};
	const char *wrong = NULL;
	std::vector<char> host(n * 8 + 1);
	std::vector<char> host_values(n * 8 + 1);
	GsDeviceStatus status;
	size_t first = 0;

	sort.types = items.types;
	sort.host_keys = pinned(n * kb);
	sort.host_values = pinned(n * vb);
	for (uint32_t i = 0; i < ndevices; i++)
	{
		const uint64_t space = std::max(before[i], after[i]);

		CHECK(cudaSetDevice(numbers[i]));
		sort.nitems[i] = before[i];
		sort.nsorted[i] = after[i];
		for (int k = 0; k < 2; k++)
		{
			memory[i].push_back(guarded_alloc(space * kb));
			sort.d_keys[i][k] = guarded_data(&memory[i].back());
			memory[i].push_back(guarded_alloc(space * vb));
			sort.d_values[i][k] = vb == 0 ? NULL : guarded_data(&memory[i].back());
		}
		for (size_t j = 0; j < before[i]; j++)
		{
			set_element(host.data(), j, kb, items.keys[first + j]);
			if (vb > 0)
				set_element(host_values.data(), j, vb, value_of(first + j));
		}
		CHECK(cudaMemcpy(sort.d_keys[i][0], host.data(), before[i] * kb, cudaMemcpyHostToDevice));
		if (vb > 0)
			CHECK(cudaMemcpy(sort.d_values[i][0], host_values.data(), before[i] * vb, cudaMemcpyHostToDevice));
		first += before[i];
	}
	for (uint32_t i = 0; i < ndevices; i++)
	{
		CHECK(cudaSetDevice(numbers[i]));
		sort.temp_bytes[i] = gs_group_temp_bytes(group, &sort, i);
		memory[i].push_back(guarded_alloc(sort.temp_bytes[i]));
		sort.d_temp[i] = guarded_data(&memory[i].back());
	}
	finish_queued_work(numbers, ndevices);
	status = gs_group_sort(group, &sort);
	if (status != GS_DEVICE_OK)
	{
		printf("Bail out! status %d: %s\n", status, gs_device_last_error());
		exit(2);
	}
	first = 0;
	for (uint32_t i = 0; i < ndevices; i++)
	{
		CHECK(cudaSetDevice(numbers[i]));
		CHECK(cudaMemcpy(host.data(), sort.d_keys[i][sort.result[i]], after[i] * kb, cudaMemcpyDeviceToHost));
		if (vb > 0)
			CHECK(cudaMemcpy(host_values.data(), sort.d_values[i][sort.result[i]], after[i] * vb, cudaMemcpyDeviceToHost));
		if (wrong == NULL)
			wrong = compare(items, first, after[i], host.data(), host_values.data());
		first += after[i];
		for (Guarded &one : memory[i])
			if (!guarded_free(&one) && wrong == NULL)
				wrong = "canary";
	}
	CHECK(cudaFreeHost(sort.host_keys));
	CHECK(cudaFreeHost(sort.host_values));
	gs_device_group_close(group);
	return wrong;
}

/* Items in host memory. */
static const char *
sort_on_host(const Items &items, uint32_t ndevices, bool through_host, bool in_place)
{
	const size_t n = items.keys.size();
	const uint32_t kb = items.types.key_bytes;
	const uint32_t vb = items.types.value_bytes;
	std::vector<Guarded> memory;
	int numbers[GS_GROUP_MAX_DEVICES];
	GsDeviceGroup *group = open_group(ndevices, through_host, numbers);
	GsGroupHostSort sort = {};
	void *keys = pinned(n * kb);
	void *values = pinned(n * vb);
	GsDeviceStatus status;
	const char *wrong;

	for (size_t i = 0; i < n; i++)
	{
		set_element(keys, i, kb, items.keys[i]);
		if (vb > 0)
			set_element(values, i, vb, value_of(i));
	}
	sort.types = items.types;
	sort.nitems = n;
	sort.keys_in = keys;
	sort.values_in = values;
	sort.keys_out = in_place ? keys : pinned(n * kb);
	sort.values_out = in_place ? values : pinned(n * vb);
	sort.host_keys = pinned(n * kb);
	sort.host_values = pinned(n * vb);
	for (uint32_t i = 0; i < ndevices; i++)
	{
		CHECK(cudaSetDevice(numbers[i]));
		sort.temp_bytes[i] = gs_group_host_temp_bytes(group, &sort, i);
		memory.push_back(guarded_alloc(sort.temp_bytes[i]));
		sort.d_temp[i] = guarded_data(&memory.back());
	}
	finish_queued_work(numbers, ndevices);
	status = gs_group_host_sort(group, &sort);
	if (status != GS_DEVICE_OK)
	{
		printf("Bail out! status %d: %s\n", status, gs_device_last_error());
		exit(2);
	}
	wrong = compare(items, 0, n, sort.keys_out, sort.values_out);
	for (uint32_t i = 0; i < ndevices; i++)
	{
		CHECK(cudaSetDevice(numbers[i]));
		if (!guarded_free(&memory[i]) && wrong == NULL)
			wrong = "canary";
	}
	CHECK(cudaFreeHost(keys));
	CHECK(cudaFreeHost(values));
	if (!in_place)
	{
		CHECK(cudaFreeHost(sort.keys_out));
		CHECK(cudaFreeHost(sort.values_out));
	}
	CHECK(cudaFreeHost(sort.host_keys));
	CHECK(cudaFreeHost(sort.host_values));
	gs_device_group_close(group);
	return wrong;
}

static void
try_both(size_t n, const GsGroupTypes &types, int distribution, uint32_t ndevices, bool through_host, bool even)
{
	const Items items = make_items(n, types, distribution);
	char what[250];
	const char *wrong;

	for (int host = 0; host < 2; host++)
	{
		wrong = host ? sort_on_host(items, ndevices, through_host, even) :
					   sort_on_devices(items, ndevices, through_host, even);
		snprintf(what, sizeof(what), "group of %u%s, %s, n %zu%s, key %u value %u bits %u..%u, %s: %s", ndevices,
				 through_host ? " through the host" : "", host ? "host arrays" : "device arrays", n, even ? " even" : "",
				 types.key_bytes, types.value_bytes, types.begin_bit, types.end_bit, distribution_names[distribution],
				 wrong ? wrong : "fine");
		report(wrong == NULL, what);
	}
}

/* Wrong arguments are rejected. */
static void
try_errors(void)
{
	int numbers[GS_GROUP_MAX_DEVICES + 1] = {};
	GsDeviceGroup *group;
	GsGroupSort sort = {};
	char memory[1];

	report(gs_device_group_open(numbers, 0, false, &group) == GS_DEVICE_BAD_ARGUMENT, "no device");
	report(gs_device_group_open(numbers, GS_GROUP_MAX_DEVICES + 1, false, &group) == GS_DEVICE_BAD_ARGUMENT,
		   "too many devices");
	group = open_group(2, false, numbers);
	sort.types = {4, 0, 0, 32};
	sort.nitems[0] = sort.nsorted[1] = 100;
	report(gs_group_sort(group, &sort) == GS_DEVICE_BAD_ARGUMENT, "no arrays");
	for (int i = 0; i < 2; i++)
	{
		sort.d_keys[i][0] = sort.d_keys[i][1] = memory;
		sort.d_temp[i] = memory;
	}
	report(gs_group_sort(group, &sort) == GS_DEVICE_TEMP_TOO_SMALL, "too little temporary storage");
	sort.types.key_bytes = 3;
	report(gs_group_temp_bytes(group, &sort, 0) == 0, "a key of 3 bytes");
	gs_device_group_close(group);
}

int
main(int argc, char **argv)
{
	/* under a tool of compute-sanitizer, each of the many small kernels and allocations takes milliseconds */
	const bool full = argc > 1 && strcmp(argv[1], "full") == 0;
	const uint32_t few[] = {1, 2, 3, 5};
	const size_t sizes[] = {0, 1, 2, 255, 10000, full ? (size_t) 300001 : (size_t) 40001, full ? (size_t) 3000000 : (size_t) 0};
	const GsGroupTypes types[] = {{4, 0, 0, 32}, {8, 0, 0, 64}, {8, 4, 0, 64}, {4, 4, 0, 32}, {8, 8, 0, 64}, {8, 0, 20, 57}, {4, 8, 3, 17}, {8, 4, 24, 60}};
	int ncases = 0;

	CHECK(cudaGetDeviceCount(&nphysical));
	printf("# %d physical device%s\n", nphysical, nphysical == 1 ? "" : "s");
	try_errors();
	for (uint32_t ndevices = 1; ndevices <= GS_GROUP_MAX_DEVICES; ndevices++)
	{
		if (!full && std::find(std::begin(few), std::end(few), ndevices) == std::end(few))
			continue;
		for (size_t n : sizes)
		{
			/* each combination of the others comes up with some number of devices and some size */
			const int ntries = full && n < 100000 ? 8 : 1;

			for (int i = 0; i < ntries; i++, ncases++)
				try_both(n, types[ncases % 8], ncases * 5 % NDISTRIBUTIONS, ndevices, ncases % 5 == 3, ncases % 3 == 0);
		}
	}
	if (!full)
		try_both(40001, types[2], 0, GS_GROUP_MAX_DEVICES, false, false);
	for (int distribution = 0; distribution < NDISTRIBUTIONS; distribution++)
		for (int i = 0; i < 8; i++)
			if (full || (distribution + i) % 8 == 0)
				try_both(full ? 200000 : 20000, types[i], distribution, 2, false, true);
	return finish("sorts over groups of devices");
}
