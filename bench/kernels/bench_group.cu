/*-------------------------------------------------------------------------
 *
 * bench_group.cu
 *	  Sorts over several devices, by the axes of RMG sort: number of keys, types,
 *	  distributions, devices; and the time of each phase.
 *
 * usage: bench_group [most_keys [runs [host]]] > results.csv
 *	  most_keys in millions (default 2000)
 *	  host: host arrays only
 *
 * Writes a line for each case: medians over the runs, milliseconds, and giga keys
 * per second.  The first run of each case is not counted; its result is checked.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>

#include "group/device_group.h"
#include "bench_common.cuh"

enum
{
	UNIFORM,
	NORMAL,
	SORTED,
	REVERSED,
	NEARLY_SORTED,
	ALL_EQUAL,
	ZIPF_1,
	ZIPF_15,
	NDISTRIBUTIONS
};

static const char *const distribution_names[] = {"uniform", "normal", "sorted", "reversed", "nearly sorted",
												 "one value", "Zipf 1.0", "Zipf 1.5"};

/* Key i of n, as a fraction of the range of keys. */
static __device__ double
fraction(int distribution, uint64_t i, uint64_t n)
{
	const double u = (random_bits(KEY_SEED, i) >> 11) * 0x1p-53;

	switch (distribution)
	{
		case NORMAL: /* the sum of twelve */
		{
			double sum = u;

			for (int k = 1; k < 12; k++)
				sum += (random_bits(KEY_SEED + k, i) >> 11) * 0x1p-53;
			return sum / 12;
		}
		case SORTED:
			return (double) i / n;
		case REVERSED:
			return (double) (n - 1 - i) / n;
		case NEARLY_SORTED: /* off by up to a thousandth */
			return fmin(fmax((double) i / n + (u - 0.5) / 500, 0.0), 0x1.fffffep-1);
		default:
			return u;
	}
}

/* Rank k of n has probability k^-z, approximately: by the inverse of the continuous distribution. */
static __device__ uint64_t
zipf_rank(double z, uint64_t i, uint64_t n)
{
	const double u = (random_bits(KEY_SEED, i) >> 11) * 0x1p-53;

	if (z == 1.0)
		return (uint64_t) pow((double) n, u);
	return (uint64_t) fmin(pow(1 - u, 1 / (1 - z)), (double) n);
}

template <typename Key>
static __global__ void
fill(Key *d_keys, uint32_t *d_values, uint64_t first, uint64_t count, uint64_t n, int distribution)
{
	for (uint64_t j = blockIdx.x * (uint64_t) blockDim.x + threadIdx.x; j < count; j += (uint64_t) gridDim.x * blockDim.x)
	{
		const uint64_t i = first + j;
		Key key;

		if (distribution == UNIFORM)
			key = (Key) random_bits(KEY_SEED, i);
		else if (distribution == ALL_EQUAL)
			key = 42;
		else if (distribution >= ZIPF_1)
			key = (Key) zipf_rank(distribution == ZIPF_1 ? 1.0 : 1.5, i, n);
		else
			key = (Key) (fraction(distribution, i, n) * (sizeof(Key) == 4 ? 0x1p32 : 0x1p63));
		d_keys[j] = key;
		if (d_values != NULL)
			d_values[j] = (uint32_t) i;
	}
}

/* Counts items that precede their predecessor, and adds up all. */
template <typename Key>
static __global__ void
examine(const Key *d_keys, const uint32_t *d_values, uint64_t count, unsigned long long *d_results)
{
	unsigned long long sum = 0;
	unsigned long long nwrong = 0;

	for (uint64_t j = blockIdx.x * (uint64_t) blockDim.x + threadIdx.x; j < count; j += (uint64_t) gridDim.x * blockDim.x)
	{
		sum += random_bits(d_values == NULL ? 3 : 3 + d_values[j], d_keys[j]);
		if (j > 0 && (d_keys[j] < d_keys[j - 1] || (d_values != NULL && d_keys[j] == d_keys[j - 1] && d_values[j] < d_values[j - 1])))
			nwrong++;
	}
	atomicAdd(&d_results[0], sum);
	atomicAdd(&d_results[1], nwrong);
}

typedef struct Case
{
	uint32_t ndevices;
	uint64_t n;
	GsGroupTypes types;
	int distribution;
	int nruns;
} Case;

static GsDeviceGroup *groups[GS_GROUP_MAX_DEVICES + 1];

static uint64_t
part_begin(const Case *c, uint32_t i)
{
	return c->n / c->ndevices * i;
}

static uint64_t
part_length(const Case *c, uint32_t i)
{
	return (i + 1 < c->ndevices ? part_begin(c, i + 1) : c->n) - part_begin(c, i);
}

static void *
allocate(size_t nbytes)
{
	void *d_memory;

	CHECK(cudaMalloc(&d_memory, nbytes + 1));
	return d_memory;
}

static void
fill_part(const Case *c, void *d_keys, void *d_values, uint32_t i)
{
	if (c->types.key_bytes == 4)
		fill<uint32_t><<<2048, 256>>>((uint32_t *) d_keys, (uint32_t *) d_values, part_begin(c, i), part_length(c, i), c->n, c->distribution);
	else
		fill<uint64_t><<<2048, 256>>>((uint64_t *) d_keys, (uint32_t *) d_values, part_begin(c, i), part_length(c, i), c->n, c->distribution);
	CHECK(cudaDeviceSynchronize());
}

/* Adds up the items of a part, and ends the program if they are out of order. */
static unsigned long long
examine_part(const Case *c, const void *d_keys, const void *d_values, uint64_t count, bool sorted)
{
	unsigned long long *d_results = (unsigned long long *) allocate(2 * sizeof(unsigned long long));
	unsigned long long results[2];

	CHECK(cudaMemset(d_results, 0, sizeof(results)));
	if (c->types.key_bytes == 4)
		examine<uint32_t><<<2048, 256>>>((const uint32_t *) d_keys, (const uint32_t *) d_values, count, d_results);
	else
		examine<uint64_t><<<2048, 256>>>((const uint64_t *) d_keys, (const uint32_t *) d_values, count, d_results);
	CHECK(cudaMemcpy(results, d_results, sizeof(results), cudaMemcpyDeviceToHost));
	CHECK(cudaFree(d_results));
	if (sorted && results[1] != 0)
	{
		fprintf(stderr, "not sorted\n");
		exit(1);
	}
	return results[0];
}

static float
median(std::vector<float> values)
{
	std::sort(values.begin(), values.end());
	return values[values.size() / 2];
}

static void
print_case(const char *where, const Case *c, const std::vector<GsGroupTimes> &runs)
{
	std::vector<float> phases[5];

	for (const GsGroupTimes &run : runs)
	{
		phases[0].push_back(run.upload_ms);
		phases[1].push_back(run.sort_ms);
		phases[2].push_back(run.split_ms);
		phases[3].push_back(run.merge_ms);
		phases[4].push_back(run.total_ms);
	}
	printf("%s,%u,%.0f,u%u%s,%s,%.2f,%.2f,%.2f,%.2f,%.2f,%.2f,%.2f,%.2f\n", where, c->ndevices, c->n / 1e6,
		   c->types.key_bytes * 8, c->types.value_bytes == 0 ? "" : "+u32", distribution_names[c->distribution],
		   median(phases[0]), median(phases[1]), median(phases[2]), median(phases[3]), median(phases[4]),
		   *std::min_element(phases[4].begin(), phases[4].end()), *std::max_element(phases[4].begin(), phases[4].end()),
		   c->n / median(phases[4]) / 1e6);
	fflush(stdout);
}

static void
sort_failed(GsDeviceStatus status)
{
	fprintf(stderr, "the sort failed: %d, %s\n", status, gs_device_last_error());
	exit(1);
}

/* Keys and values on the devices. */
static void
bench_devices(const Case *c)
{
	GsDeviceGroup *group = groups[c->ndevices];
	const bool has_values = c->types.value_bytes > 0;
	std::vector<GsGroupTimes> runs;
	GsGroupSort sort = {};

	sort.types = c->types;
	for (uint32_t i = 0; i < c->ndevices; i++)
		sort.nitems[i] = sort.nsorted[i] = part_length(c, i);
	for (uint32_t i = 0; i < c->ndevices; i++)
	{
		CHECK(cudaSetDevice((int) i));
		for (int k = 0; k < 2; k++)
		{
			sort.d_keys[i][k] = allocate(sort.nitems[i] * c->types.key_bytes);
			sort.d_values[i][k] = has_values ? allocate(sort.nitems[i] * 4) : NULL;
		}
		sort.temp_bytes[i] = gs_group_temp_bytes(group, &sort, i);
		sort.d_temp[i] = allocate(sort.temp_bytes[i]);
	}
	for (int run = 0; run <= c->nruns; run++)
	{
		unsigned long long sum = 0;
		GsDeviceStatus status;

		for (uint32_t i = 0; i < c->ndevices; i++)
		{
			CHECK(cudaSetDevice((int) i));
			fill_part(c, sort.d_keys[i][0], sort.d_values[i][0], i);
			if (run == 0)
				sum += examine_part(c, sort.d_keys[i][0], sort.d_values[i][0], sort.nitems[i], false);
		}
		status = gs_group_sort(group, &sort);
		if (status != GS_DEVICE_OK)
			sort_failed(status);
		if (run > 0)
			runs.push_back(sort.times);
		else
		{
			for (uint32_t i = 0; i < c->ndevices; i++)
			{
				CHECK(cudaSetDevice((int) i));
				sum -= examine_part(c, sort.d_keys[i][sort.result[i]], sort.d_values[i][sort.result[i]], sort.nsorted[i], true);
			}
			if (sum != 0)
			{
				fprintf(stderr, "other items than before\n");
				exit(1);
			}
		}
	}
	print_case("device", c, runs);
	for (uint32_t i = 0; i < c->ndevices; i++)
	{
		CHECK(cudaSetDevice((int) i));
		for (int k = 0; k < 2; k++)
		{
			CHECK(cudaFree(sort.d_keys[i][k]));
			if (has_values)
				CHECK(cudaFree(sort.d_values[i][k]));
		}
		CHECK(cudaFree(sort.d_temp[i]));
	}
}

/* Pinned host memory for all cases: keys and values in and out. */
static void *host_arrays[4];

/* Uploads a host array in parts and adds it up; the order is checked within parts, and between them. */
static unsigned long long
examine_host(const Case *c, const void *keys, const void *values, bool sorted)
{
	const uint64_t step = UINT64_C(1) << 28;
	void *d_keys = allocate(step * c->types.key_bytes);
	void *d_values = values == NULL ? NULL : allocate(step * 4);
	unsigned long long sum = 0;

	for (uint64_t first = 0; first < c->n; first += step)
	{
		const uint64_t count = std::min(step, c->n - first);

		CHECK(cudaMemcpy(d_keys, (const char *) keys + first * c->types.key_bytes, count * c->types.key_bytes, cudaMemcpyHostToDevice));
		if (values != NULL)
			CHECK(cudaMemcpy(d_values, (const char *) values + first * 4, count * 4, cudaMemcpyHostToDevice));
		sum += examine_part(c, d_keys, d_values, count, sorted);
		if (sorted && first > 0 &&
			(c->types.key_bytes == 4 ? ((const uint32_t *) keys)[first] < ((const uint32_t *) keys)[first - 1] :
									   ((const uint64_t *) keys)[first] < ((const uint64_t *) keys)[first - 1]))
		{
			fprintf(stderr, "not sorted\n");
			exit(1);
		}
	}
	CHECK(cudaFree(d_keys));
	if (d_values != NULL)
		CHECK(cudaFree(d_values));
	return sum;
}

static void
bench_host(const Case *c)
{
	GsDeviceGroup *group = groups[c->ndevices];
	const bool has_values = c->types.value_bytes > 0;
	std::vector<GsGroupTimes> runs;
	GsGroupHostSort sort = {};
	void *d_keys;
	void *d_values;

	sort.types = c->types;
	sort.nitems = c->n;
	sort.keys_in = host_arrays[0];
	sort.values_in = has_values ? host_arrays[1] : NULL;
	sort.keys_out = host_arrays[2];
	sort.values_out = has_values ? host_arrays[3] : NULL;
	CHECK(cudaSetDevice(0));
	for (uint32_t i = 0; i < c->ndevices; i++)
	{
		d_keys = allocate(part_length(c, i) * c->types.key_bytes);
		d_values = has_values ? allocate(part_length(c, i) * 4) : NULL;
		fill_part(c, d_keys, d_values, i);
		CHECK(cudaMemcpy((char *) host_arrays[0] + part_begin(c, i) * c->types.key_bytes, d_keys, part_length(c, i) * c->types.key_bytes,
						 cudaMemcpyDeviceToHost));
		if (has_values)
			CHECK(cudaMemcpy((char *) host_arrays[1] + part_begin(c, i) * 4, d_values, part_length(c, i) * 4, cudaMemcpyDeviceToHost));
		CHECK(cudaFree(d_keys));
		if (has_values)
			CHECK(cudaFree(d_values));
	}
	for (uint32_t i = 0; i < c->ndevices; i++)
	{
		CHECK(cudaSetDevice((int) i));
		sort.temp_bytes[i] = gs_group_host_temp_bytes(group, &sort, i);
		sort.d_temp[i] = allocate(sort.temp_bytes[i]);
	}
	for (int run = 0; run <= c->nruns; run++)
	{
		GsDeviceStatus status = gs_group_host_sort(group, &sort);

		if (status != GS_DEVICE_OK)
			sort_failed(status);
		if (run > 0)
			runs.push_back(sort.times);
	}
	for (uint32_t i = 0; i < c->ndevices; i++)
	{
		CHECK(cudaSetDevice((int) i));
		CHECK(cudaFree(sort.d_temp[i]));
	}
	CHECK(cudaSetDevice(0));
	if (examine_host(c, sort.keys_in, sort.values_in, false) != examine_host(c, sort.keys_out, sort.values_out, true))
	{
		fprintf(stderr, "other items than before\n");
		exit(1);
	}
	print_case("host", c, runs);
}

int
main(int argc, char **argv)
{
	const uint64_t most = argc > 1 ? strtoull(argv[1], NULL, 10) : 2000;
	const int nruns = argc > 2 ? atoi(argv[2]) : 5;
	const bool host_only = argc > 3 && strcmp(argv[3], "host") == 0;
	const GsGroupTypes types[] = {{4, 0, 0, 32}, {8, 0, 0, 64}, {8, 4, 0, 64}};
	const uint64_t millions[] = {100, 500, 1000, 2000, 4000};
	int nphysical;

	CHECK(cudaGetDeviceCount(&nphysical));
	for (uint32_t ndevices = 1; ndevices <= (uint32_t) std::min(nphysical, GS_GROUP_MAX_DEVICES); ndevices *= 2)
	{
		int numbers[GS_GROUP_MAX_DEVICES];

		for (uint32_t i = 0; i < ndevices; i++)
			numbers[i] = (int) i;
		if (gs_device_group_open(numbers, ndevices, false, &groups[ndevices]) != GS_DEVICE_OK)
			sort_failed(GS_DEVICE_CUDA_ERROR);
	}
	printf("arrays,devices,million keys,type,distribution,upload ms,sort ms,split ms,merge ms,total ms,minimum ms,maximum ms,giga keys/s\n");
	for (int i = 0; i < 4; i++)
	{
		/* all types of up to half as many keys, and u32 alone of all */
		const size_t nbytes = most * 1000000 * 4;

		CHECK(cudaHostAlloc(&host_arrays[i], i % 2 == 0 ? nbytes : nbytes / 2, cudaHostAllocPortable));
	}
	for (const GsGroupTypes &type : types)
		for (uint32_t ndevices = 1; ndevices <= (uint32_t) nphysical; ndevices *= 2)
			for (uint64_t million : millions)
				for (int distribution = 0; distribution < NDISTRIBUTIONS; distribution++)
				{
					const uint64_t n = million * 1000000;
					const uint64_t largest = type.key_bytes == 4 ? most : most / 2;
					const Case c = {ndevices, n, type, distribution, nruns};

					/* other distributions at the largest size only */
					if (million > largest || (distribution != UNIFORM && million != largest))
						continue;
					if (!host_only)
						bench_devices(&c);
					bench_host(&c);
				}
	return 0;
}
