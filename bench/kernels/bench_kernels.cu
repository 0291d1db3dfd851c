/*-------------------------------------------------------------------------
 *
 * bench_kernels.cu
 *	  Our device sorts beside CUB's, in one process, taking turns.
 *
 * usage: bench_kernels [most_log2 [runs [name]]]		(defaults 30, 7, all)
 *
 * CSV to standard output, one row for each sort, size and entropy:
 * medians, least and most of the runs in milliseconds, rate, percent of CUB's
 * rate, and percent of what memory bandwidth allows: keys read once for the
 * counts, then keys and values read and written once a pass, at 4.27 TB/s.
 * Each run sorts a fresh copy of the input, made before the clock starts.
 * Each result of ours is compared with CUB's.
 *
 * The "as used" sorts give what a database knows to ours and not to CUB: the
 * range of the keys, and that values are row numbers.
 *
 * The transfer_ms columns are ours with the way from and to pinned host memory:
 * keys and row numbers to the device, the sort, and both back; "as used", only
 * what has to travel.  Of random keys, up to MOST_TRANSFER rows.
 *
 *-------------------------------------------------------------------------
 */
#include "bench_common.cuh"
#include "general/device_sort_general.h"

#define BANDWIDTH_TB  4.27
#define MOST_TRANSFER (UINT64_C(1) << 28)

static void *d_input;
static void *d_keys[2];
static void *d_values[2];
static void *d_expected[2];
static char *h_rows; /* keys, then values */
static void *d_temp;
static size_t temp_bytes;
static uint32_t *d_selector;
static int nruns = 7;

typedef struct Job
{
	const char *name;
	int key_bytes;
	int value_bytes;
	int bits;       /* of the keys */
	int cub_bits;   /* by which CUB sorts */
	uint32_t flags; /* ours */
	bool packed;    /* ours sorts key and row number in one word */
	bool merge;
} Job;

static void
fill_input(const Job *job, uint64_t n, int ndraws)
{
	uint64_t mask = job->bits == 64 ? ~UINT64_C(0) : (UINT64_C(1) << job->bits) - 1;

	switch (job->key_bytes)
	{
		case 1:
			fill_keys<<<1024, 256>>>((uint8_t *) d_input, n, ndraws, mask, KEY_SEED);
			break;
		case 2:
			fill_keys<<<1024, 256>>>((uint16_t *) d_input, n, ndraws, mask, KEY_SEED);
			break;
		case 4:
			fill_keys<<<1024, 256>>>((uint32_t *) d_input, n, ndraws, mask, KEY_SEED);
			break;
		default:
			fill_keys<<<1024, 256>>>((uint64_t *) d_input, n, ndraws, mask, KEY_SEED);
	}
	CHECK(cudaGetLastError());
}

static void
prepare(const Job *job, uint64_t n)
{
	CHECK(cudaMemcpyAsync(d_keys[0], d_input, n * job->key_bytes, cudaMemcpyDeviceToDevice));
	if (job->value_bytes == 4)
		fill_rows<<<1024, 256>>>((uint32_t *) d_values[0], n);
	else if (job->value_bytes == 8)
		fill_rows<<<1024, 256>>>((uint64_t *) d_values[0], n);
	CHECK(cudaGetLastError());
}

/* Sorts with CUB, whose radix sort has offsets of 32 or 64 bits (wide); returns the index of the result. */
static int
run_cub(const Job *job, uint64_t n, bool wide)
{
	size_t nbytes = 0;
	int selector = 0;

	if (job->merge)
	{
		cub_merge_sort(job->value_bytes, NULL, &nbytes, (uint64_t *) d_keys[0], d_values[0], n);
		if (nbytes > temp_bytes)
			exit(3);
		cub_merge_sort(job->value_bytes, d_temp, &nbytes, (uint64_t *) d_keys[0], d_values[0], n);
		return 0;
	}
	cub_radix_sort(job->key_bytes, job->value_bytes, NULL, &nbytes, d_keys, d_values, n, wide, 0, job->cub_bits,
				   &selector);
	if (nbytes > temp_bytes)
		exit(3);
	cub_radix_sort(job->key_bytes, job->value_bytes, d_temp, &nbytes, d_keys, d_values, n, wide, 0, job->cub_bits,
				   &selector);
	return selector;
}

static void
run_ours(const Job *job, uint64_t n)
{
	GsDeviceStatus status;

	if (job->merge)
	{
		GsMergeSort sort = {};

		sort.nitems = n;
		sort.value_bytes = job->value_bytes;
		for (int i = 0; i < 2; i++)
		{
			sort.d_keys[i] = (uint64_t *) d_keys[i];
			sort.d_values[i] = d_values[i];
		}
		status = gs_device_merge_general_sort(&sort, d_temp, temp_bytes, NULL);
	}
	else
	{
		GsRadixSortGeneral sort = {};

		sort.nitems = n;
		sort.key_bytes = job->key_bytes;
		sort.value_bytes = job->packed ? 0 : job->value_bytes;
		sort.flags = job->flags;
		sort.end_bit = job->bits;
		if (job->packed)
		{
			sort.flags |= GS_RADIX_PACK_ROWS;
			sort.row_bits = sort.begin_bit = row_bits(n);
			sort.end_bit += sort.row_bits;
		}
		for (int i = 0; i < 2; i++)
		{
			sort.d_keys[i] = d_keys[i];
			sort.d_values[i] = sort.value_bytes ? d_values[i] : NULL;
		}
		sort.d_selector = d_selector;
		status = gs_device_radix_general_sort(&sort, d_temp, temp_bytes, NULL);
	}
	if (status != GS_DEVICE_OK)
	{
		fprintf(stderr, "%s: status %d: %s\n", job->name, status, gs_device_last_error());
		exit(2);
	}
}

static __global__ void
count_wrong_rows(const uint64_t *d_packed, const uint32_t *d_rows, uint64_t n, uint64_t mask,
				 unsigned long long *d_nwrong)
{
	for (uint64_t i = blockIdx.x * (uint64_t) blockDim.x + threadIdx.x; i < n; i += (uint64_t) gridDim.x * blockDim.x)
		if ((d_packed[i] & mask) != d_rows[i])
			atomicAdd(d_nwrong, 1ull);
}

/* Compares with the result of CUB for the same input. */
static bool
is_right(const Job *job, uint64_t n)
{
	unsigned long long nwrong = 0;
	uint32_t selector = 0;

	if (!job->merge)
		CHECK(cudaMemcpy(&selector, d_selector, sizeof(selector), cudaMemcpyDeviceToHost));
	if (job->packed)
	{
		unsigned long long *d_nwrong = (unsigned long long *) d_temp;

		CHECK(cudaMemset(d_nwrong, 0, sizeof(*d_nwrong)));
		count_wrong_rows<<<1024, 256>>>((uint64_t *) d_keys[selector], (uint32_t *) d_expected[1], n,
										(UINT64_C(1) << row_bits(n)) - 1, d_nwrong);
		CHECK(cudaMemcpy(&nwrong, d_nwrong, sizeof(nwrong), cudaMemcpyDeviceToHost));
		return nwrong == 0;
	}
	if (!(job->flags & GS_RADIX_NO_KEYS_OUT))
		nwrong = differences(d_keys[selector], d_expected[0], n * job->key_bytes);
	if (job->value_bytes)
		nwrong += differences(d_values[selector], d_expected[1], n * job->value_bytes);
	return nwrong == 0;
}

/* The bytes that the sort must read and write in device memory. */
static double
least_bytes(const Job *job, uint64_t n)
{
	int npasses = (job->bits + 7) / 8;
	int row_bytes = job->key_bytes + (job->packed ? 0 : job->value_bytes);
	double bytes = n * (job->key_bytes + 2.0 * npasses * row_bytes);

	if (job->flags & GS_RADIX_ROW_NUMBERS)
		bytes -= (double) n * job->value_bytes;
	if (job->flags & GS_RADIX_NO_KEYS_OUT)
		bytes -= (double) n * job->key_bytes;
	return bytes;
}

/* From and to pinned host memory. */
static void
run_with_transfer(const Job *job, uint64_t n)
{
	char *h_values = h_rows + n * job->key_bytes;
	size_t value_bytes = job->packed ? 0 : job->value_bytes * n;
	uint32_t selector = 0;

	CHECK(cudaMemcpyAsync(d_keys[0], h_rows, n * job->key_bytes, cudaMemcpyHostToDevice));
	if (value_bytes && !(job->flags & GS_RADIX_ROW_NUMBERS))
		CHECK(cudaMemcpyAsync(d_values[0], h_values, value_bytes, cudaMemcpyHostToDevice));
	run_ours(job, n);
	if (!job->merge)
		CHECK(cudaMemcpy(&selector, d_selector, sizeof(selector), cudaMemcpyDeviceToHost));
	if (!(job->flags & GS_RADIX_NO_KEYS_OUT))
		CHECK(cudaMemcpyAsync(h_rows, d_keys[selector], n * job->key_bytes, cudaMemcpyDeviceToHost));
	if (value_bytes)
		CHECK(cudaMemcpyAsync(h_values, d_values[selector], value_bytes, cudaMemcpyDeviceToHost));
}

static void
bench(const Job *job, uint64_t n, int ndraws, const char *entropy)
{
	std::vector<float> cub_ms[2];
	std::vector<float> our_ms;
	Times cub;
	Times ours;
	double bound_ms = least_bytes(job, n) / (BANDWIDTH_TB * 1e9);
	bool right = true;
	int nwarm = n < 10000000 ? 5 : 2;
	int repeat = n < 10000000 ? nruns * 5 : nruns;

	fill_input(job, n, ndraws);
	for (int i = 0; i < nwarm + repeat; i++)
	{
		int selector = 0;
		float ms;

		/* its better offset type counts */
		for (int wide = job->merge || n < UINT64_C(1) << 31 ? 0 : 1; wide < (job->merge ? 1 : 2); wide++)
		{
			ms = time_once([&] { prepare(job, n); }, [&] { selector = run_cub(job, n, wide); });
			if (i >= nwarm)
				cub_ms[wide].push_back(ms);
		}
		if (i == 0)
		{
			CHECK(cudaMemcpy(d_expected[0], d_keys[selector], n * job->key_bytes, cudaMemcpyDeviceToDevice));
			if (job->value_bytes)
				CHECK(cudaMemcpy(d_expected[1], d_values[selector], n * job->value_bytes, cudaMemcpyDeviceToDevice));
		}
		ms = time_once([&] { prepare(job, n); }, [&] { run_ours(job, n); });
		if (i >= nwarm)
			our_ms.push_back(ms);
		if (i == 0)
			right = is_right(job, n);
	}
	cub = summarize(cub_ms[cub_ms[0].empty() ? 1 : 0]);
	if (!cub_ms[1].empty() && summarize(cub_ms[1]).median_ms < cub.median_ms)
		cub = summarize(cub_ms[1]);
	ours = summarize(our_ms);
	printf("%s,%llu,%s,%.4f,%.4f,%.4f,%.4f,%.4f,%.4f,%.3f,%.3f,%.1f,", job->name, (unsigned long long) n, entropy,
		   ours.median_ms, ours.least_ms, ours.most_ms, cub.median_ms, cub.least_ms, cub.most_ms,
		   n / ours.median_ms / 1e6, n / cub.median_ms / 1e6, 100 * cub.median_ms / ours.median_ms);
	if (!job->merge)
		printf("%.1f", 100 * bound_ms / ours.median_ms);
	printf(",%s,", right ? "yes" : "NO");
	if (ndraws == 1 && n <= MOST_TRANSFER)
	{
		auto copy_keys = [&] {
			CHECK(cudaMemcpyAsync(h_rows, d_input, n * job->key_bytes, cudaMemcpyDeviceToHost));
		};
		Times transfer = time_runs(1, 5, copy_keys, [&] { run_with_transfer(job, n); });

		printf("%.4f,%.4f,%.4f\n", transfer.median_ms, transfer.least_ms, transfer.most_ms);
	}
	else
		printf(",,\n");
	fflush(stdout);
}

int
main(int argc, char **argv)
{
	static const Job jobs[] = {
		{"u8+u32", 1, 4, 8, 8, 0, false, false},
		{"u16+u32", 2, 4, 16, 16, 0, false, false},
		{"u32", 4, 0, 32, 32, 0, false, false},
		{"u64", 8, 0, 64, 64, 0, false, false},
		{"u32+u32", 4, 4, 32, 32, 0, false, false},
		{"u64+u32", 8, 4, 64, 64, 0, false, false},
		{"u64+u64", 8, 8, 64, 64, 0, false, false},
		{"u64+u32 40 bits", 8, 4, 40, 40, 0, false, false},
		{"u64+u32 as used", 8, 4, 64, 64, GS_RADIX_ROW_NUMBERS | GS_RADIX_NO_KEYS_OUT, false, false},
		{"36-bit key+row as used", 8, 4, 36, 64, GS_RADIX_ROW_NUMBERS | GS_RADIX_NO_KEYS_OUT, false, false},
		{"36-bit packed as used", 8, 4, 36, 64, 0, true, false},
		{"merge u64", 8, 0, 64, 64, 0, false, true},
		{"merge u64+u32", 8, 4, 64, 64, 0, false, true},
		{"merge u64+u64", 8, 8, 64, 64, 0, false, true},
	};
	static const struct
	{
		int ndraws;
		const char *name;
	} entropies[] = {{1, "1.0"}, {3, "0.544"}, {5, "0.201"}};
	int most_log2 = argc > 1 ? atoi(argv[1]) : 30;
	uint64_t most = std::max(UINT64_C(1) << most_log2, UINT64_C(100000000));
	std::vector<uint64_t> sizes = {100000, 1000000, 10000000, 100000000};

	if (argc > 2)
		nruns = atoi(argv[2]);
	for (int log2 = 16; log2 <= most_log2; log2 += log2 < 22 ? 1 : 2)
		sizes.push_back(UINT64_C(1) << log2);
	std::sort(sizes.begin(), sizes.end());

	temp_bytes = most * 17 + (64 << 20);
	CHECK(cudaMalloc(&d_input, most * 8));
	CHECK(cudaMalloc(&d_temp, temp_bytes));
	CHECK(cudaMalloc(&d_selector, 4));
	CHECK(cudaMallocHost(&h_rows, std::min(most, MOST_TRANSFER) * 16));
	for (int i = 0; i < 2; i++)
	{
		CHECK(cudaMalloc(&d_keys[i], most * 8));
		CHECK(cudaMalloc(&d_values[i], most * 8));
		CHECK(cudaMalloc(&d_expected[i], most * 8));
	}
	printf("sort,n,entropy,ms,ms_least,ms_most,cub_ms,cub_ms_least,cub_ms_most,gkeys_s,cub_gkeys_s,"
		   "percent_of_cub,percent_of_bandwidth,right,transfer_ms,transfer_ms_least,transfer_ms_most\n");
	for (const Job &job : jobs)
	{
		if (argc > 3 && strcmp(argv[3], job.name) != 0)
			continue;
		for (uint64_t n : sizes)
			for (int e = 0; e < 3; e++)
				if (!(job.packed && job.bits + row_bits(n) > 64))
					bench(&job, n, entropies[e].ndraws, entropies[e].name);
	}
	return 0;
}
