/*-------------------------------------------------------------------------
 *
 * test_merge.cu
 *	  The device's merge sort against std::stable_sort, with and without
 *	  tails.
 *
 * usage: test_merge [quick | full]
 *
 *-------------------------------------------------------------------------
 */
#include <string>

#include "test_common.h"

template <typename T>
static T *
to_device(const std::vector<T> &data)
{
	T *d_data;

	CHECK(cudaMalloc((void **) &d_data, data.size() * sizeof(T)));
	CHECK(cudaMemcpy(d_data, data.data(), data.size() * sizeof(T), cudaMemcpyHostToDevice));
	return d_data;
}

/*
 * Sorts keys and rows on the device, in guarded memory; returns NULL or what
 * is wrong.
 */
template <typename Value>
static const char *
sort_on_device(std::vector<uint64_t> *keys, std::vector<Value> *values, const GsTail *d_tails,
			   const GsTailOrder *d_tail_order)
{
	const size_t n = keys->size();
	Guarded d_keys[2] = {guarded_alloc(n * 8), guarded_alloc(n * 8)};
	const size_t value_bytes = values != NULL ? sizeof(Value) : 0;
	Guarded d_values[2] = {guarded_alloc(n * value_bytes), guarded_alloc(n * value_bytes)};
	Guarded temp;
	GsMergeSort sort = {};
	GsDeviceStatus status;
	size_t temp_bytes;
	bool intact = true;

	sort.nitems = n;
	sort.value_bytes = (uint32_t) value_bytes;
	sort.d_tails = d_tails;
	sort.d_tail_order = d_tail_order;
	for (int i = 0; i < 2; i++)
	{
		sort.d_keys[i] = (uint64_t *) guarded_data(&d_keys[i]);
		sort.d_values[i] = values != NULL ? guarded_data(&d_values[i]) : NULL;
	}
	CHECK(cudaMemcpy(sort.d_keys[0], keys->data(), n * 8, cudaMemcpyHostToDevice));
	if (values != NULL)
		CHECK(cudaMemcpy(sort.d_values[0], values->data(), n * sizeof(Value), cudaMemcpyHostToDevice));
	temp_bytes = gs_device_merge_general_temp_bytes(&sort);
	temp = guarded_alloc(temp_bytes);
	status = gs_device_merge_general_sort(&sort, guarded_data(&temp), temp_bytes, NULL);
	if (status == GS_DEVICE_OK && cudaDeviceSynchronize() != cudaSuccess)
		status = GS_DEVICE_CUDA_ERROR;
	if (status != GS_DEVICE_OK)
	{
		printf("status %d: %s\n", status, cudaGetErrorString(cudaGetLastError()));
		exit(1);
	}
	CHECK(cudaMemcpy(keys->data(), sort.d_keys[0], n * 8, cudaMemcpyDeviceToHost));
	if (values != NULL)
		CHECK(cudaMemcpy(values->data(), sort.d_values[0], n * sizeof(Value), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 2; i++)
		intact = guarded_free(&d_keys[i]) & guarded_free(&d_values[i]) & intact;
	intact = guarded_free(&temp) & intact;
	return intact ? NULL : "canary";
}

template <typename Value>
static void
try_words(size_t n, int distribution)
{
	std::vector<uint64_t> keys = make_keys(n, distribution, ~UINT64_C(0), n);
	std::vector<uint64_t> expected_keys(n);
	std::vector<Value> values(n);
	std::vector<Value> expected_values(n);
	std::vector<uint32_t> order = host_radix_order(keys, 0, 64);
	char what[200];
	const char *wrong;

	for (size_t i = 0; i < n; i++)
		values[i] = (Value) random_bits(3, i);
	for (size_t i = 0; i < n; i++)
	{
		expected_keys[i] = keys[order[i]];
		expected_values[i] = values[order[i]];
	}
	wrong = sort_on_device<Value>(&keys, &values, NULL, NULL);
	if (wrong == NULL && keys != expected_keys)
		wrong = "keys";
	if (wrong == NULL && values != expected_values)
		wrong = "values";
	snprintf(what, sizeof(what), "merge n %zu value %zu %s: %s", n, sizeof(Value), distribution_names[distribution],
			 wrong ? wrong : "fine");
	report(wrong == NULL, what);
}

/* No values: complete words. */
static void
try_keys(size_t n, int distribution)
{
	std::vector<uint64_t> keys = make_keys(n, distribution, ~UINT64_C(0), n);
	std::vector<uint64_t> expected = keys;
	char what[200];
	const char *wrong;

	std::sort(expected.begin(), expected.end());
	wrong = sort_on_device<uint32_t>(&keys, NULL, NULL, NULL);
	if (wrong == NULL && keys != expected)
		wrong = "keys";
	snprintf(what, sizeof(what), "merge n %zu keys only %s: %s", n, distribution_names[distribution],
			 wrong ? wrong : "fine");
	report(wrong == NULL, what);
}

/* Strings of few letters, including NUL, so that many have common prefixes. */
static void
try_strings(size_t n, unsigned longest, unsigned nletters, bool common_prefix, bool descend)
{
	std::vector<std::string> strings(n);
	std::vector<uint64_t> keys(n);
	std::vector<uint32_t> rows(n);
	std::vector<uint32_t> expected(n);
	std::vector<GsTail> tails(n);
	std::vector<uint8_t> bytes(1);
	char what[200];
	const char *wrong;

	for (size_t i = 0; i < n; i++)
	{
		std::string &s = strings[i];
		unsigned nbytes = random_bits(5, i) % (longest + 1);

		if (common_prefix)
			s = "https://";
		for (unsigned j = 0; j < nbytes; j++)
			s.push_back((char) (random_bits(6, i * 100 + j) % nletters * (255 / (nletters - 1 ? nletters - 1 : 1))));
		rows[i] = expected[i] = (uint32_t) i;
		tails[i].length = (uint32_t) s.size();
		tails[i].address = bytes.size();
		for (unsigned j = 0; j < 8; j++)
			keys[i] = keys[i] << 8 | (j < s.size() ? (uint8_t) s[j] : 0);
		if (descend)
			keys[i] = ~keys[i];
		for (size_t j = 8; j < s.size(); j++)
			bytes.push_back((uint8_t) s[j]);
	}
	std::stable_sort(expected.begin(), expected.end(), [&](uint32_t a, uint32_t b) {
		const std::string &x = strings[a];
		const std::string &y = strings[b];
		int order = memcmp(x.data(), y.data(), std::min(x.size(), y.size()));

		if (order == 0)
			order = (x.size() > y.size()) - (x.size() < y.size());
		return descend ? order > 0 : order < 0;
	});

	/* complete words, and not a byte more */
	bytes.resize((bytes.size() + 7) / 8 * 8);

	uint8_t *d_bytes = to_device(bytes);
	GsTailOrder *d_order = to_device(std::vector<GsTailOrder>(1, {8, descend}));
	GsTail *d_tails;

	for (GsTail &tail : tails)
		tail.address += (uint64_t) (uintptr_t) d_bytes;
	d_tails = to_device(tails);
	wrong = sort_on_device<uint32_t>(&keys, &rows, d_tails, d_order);
	if (wrong == NULL && rows != expected)
		wrong = "rows";
	snprintf(what, sizeof(what), "merge n %zu strings up to %u of %u letters%s%s: %s", n, longest, nletters,
			 common_prefix ? ", common prefix" : "", descend ? ", descending" : "", wrong ? wrong : "fine");
	report(wrong == NULL, what);
	CHECK(cudaFree(d_bytes));
	CHECK(cudaFree(d_tails));
	CHECK(cudaFree(d_order));
}

int
main(int argc, char **argv)
{
	const bool quick = argc > 1 && strcmp(argv[1], "quick") == 0;
	std::vector<size_t> sizes = {0, 1, 2, 127, 128, 129, 2559, 2560, 2561, 5759, 5760, 5761, 7679, 7680, 7681,
								 9599, 9600, 9601, 20011};

	if (!quick)
		for (size_t n : {31, 32, 33, 500, 511, 512, 513, 20479, 20480, 20481, 163839, 163840, 163841, 15359, 15360, 15361, 61439, 61440, 61441, 65537, 99991,
						 491519, 491520, 491521, 1048577, 4000037})
			sizes.push_back(n);
	for (size_t n : sizes)
	{
		try_words<uint32_t>(n, RANDOM);
		try_words<uint64_t>(n, FEW_DISTINCT);
		try_keys(n, RANDOM);
	}
	for (int distribution = 0; distribution < NDISTRIBUTIONS; distribution++)
		for (size_t n : {(size_t) 70001, (size_t) (quick ? 0 : 1000003)})
		{
			try_words<uint32_t>(n, distribution);
			try_keys(n, distribution);
		}
	for (size_t n : {(size_t) 129, (size_t) 8000, (size_t) (quick ? 9000 : 100003)})
	{
		try_strings(n, 20, 2, false, false);
		try_strings(n, 9, 2, false, true);
		try_strings(n, 12, 1, false, false);
		try_strings(n, 40, 3, true, false);
		try_strings(n, 60, 1, true, true);
		try_strings(n, 3, 1, false, false);
		try_strings(n, 10, 256, false, true);
	}
	return finish("merge sort");
}
