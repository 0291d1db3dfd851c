/*-------------------------------------------------------------------------
 *
 * bench_common.cuh
 *	  What the kernel benchmarks share: data, clocks, errors, and the sorts of
 *	  CUB.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BENCH_COMMON_CUH
#define GPUSORT_BENCH_COMMON_CUH

#include <algorithm>
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

#define CHECK(call) check_cuda(call, #call, __FILE__, __LINE__)

static inline void
check_cuda(cudaError_t error, const char *what, const char *file, int line)
{
	if (error != cudaSuccess)
	{
		fprintf(stderr, "%s:%d: %s: %s\n", file, line, what, cudaGetErrorString(error));
		exit(2);
	}
}

/* Steele, Lea and Flood's SplitMix64: random bits by position. */
static __host__ __device__ inline uint64_t
random_bits(uint64_t seed, uint64_t i)
{
	uint64_t z = seed * 0xd1342543de82ef95u + (i + 1) * 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/*
 * The key distributions of Thearling & Smith: the AND of ndraws random words.
 * 1 draw has 1.0 bit of entropy a bit, 3 draws 0.544, 5 draws 0.201.
 */
static __host__ __device__ inline uint64_t
random_key(int ndraws, uint64_t mask, uint64_t seed, uint64_t i)
{
	uint64_t key = ~UINT64_C(0);

	for (int draw = 0; draw < ndraws; draw++)
		key &= random_bits(seed + draw, i);
	return key & mask;
}

#define KEY_SEED 7

/* Bits of a row number among n rows. */
static inline int
row_bits(uint64_t n)
{
	int bits = 1;

	while (UINT64_C(1) << bits < n)
		bits++;
	return bits;
}

template <typename Key>
static __global__ void
fill_keys(Key *d_keys, uint64_t n, int ndraws, uint64_t mask, uint64_t seed)
{
	for (uint64_t i = blockIdx.x * (uint64_t) blockDim.x + threadIdx.x; i < n;
		 i += (uint64_t) gridDim.x * blockDim.x)
		d_keys[i] = (Key) random_key(ndraws, mask, seed, i);
}

template <typename Value>
static __global__ void
fill_rows(Value *d_values, uint64_t n)
{
	for (uint64_t i = blockIdx.x * (uint64_t) blockDim.x + threadIdx.x; i < n;
		 i += (uint64_t) gridDim.x * blockDim.x)
		d_values[i] = (Value) i;
}

static __global__ void
count_differences(const uint32_t *a, const uint32_t *b, uint64_t nwords, unsigned long long *count)
{
	unsigned long long mine = 0;

	for (uint64_t i = blockIdx.x * (uint64_t) blockDim.x + threadIdx.x; i < nwords;
		 i += (uint64_t) gridDim.x * blockDim.x)
		mine += a[i] != b[i];
	if (mine != 0)
		atomicAdd(count, mine);
}

/* Number of 32-bit words that differ in two arrays on the device. */
static inline unsigned long long
differences(const void *a, const void *b, uint64_t nbytes)
{
	static unsigned long long *d_count;
	unsigned long long count;

	if (d_count == NULL)
		CHECK(cudaMalloc(&d_count, sizeof(count)));
	CHECK(cudaMemset(d_count, 0, sizeof(count)));
	count_differences<<<1024, 256>>>((const uint32_t *) a, (const uint32_t *) b, nbytes / 4, d_count);
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpy(&count, d_count, sizeof(count), cudaMemcpyDeviceToHost));
	return count;
}

typedef struct Times
{
	double median_ms;
	double least_ms;
	double most_ms;
} Times;

static inline Times
summarize(std::vector<float> ms)
{
	Times times;

	std::sort(ms.begin(), ms.end());
	times.median_ms = ms[ms.size() / 2];
	times.least_ms = ms.front();
	times.most_ms = ms.back();
	return times;
}

/* Times run() by events; prepare() runs before, untimed. */
template <typename Prepare, typename Run>
static float
time_once(Prepare prepare, Run run)
{
	static cudaEvent_t start, stop;
	float ms;

	if (start == NULL)
	{
		CHECK(cudaEventCreate(&start));
		CHECK(cudaEventCreate(&stop));
	}
	prepare();
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaEventRecord(start));
	run();
	CHECK(cudaEventRecord(stop));
	CHECK(cudaEventSynchronize(stop));
	CHECK(cudaGetLastError());
	CHECK(cudaEventElapsedTime(&ms, start, stop));
	return ms;
}

/* Times run() nruns times by time_once(), after nwarm times that do not count. */
template <typename Prepare, typename Run>
static Times
time_runs(int nwarm, int nruns, Prepare prepare, Run run)
{
	std::vector<float> ms;

	for (int i = 0; i < nwarm + nruns; i++)
	{
		float t = time_once(prepare, run);

		if (i >= nwarm)
			ms.push_back(t);
	}
	return summarize(ms);
}

/*
 * CUB (cub_sorts.cu): its radix sort with double buffers, which is its fastest
 * form, and its merge sort in place.  With d_temp NULL, only sets *temp_bytes.
 * wide: with offsets of 64 bits, which is faster for some types, and necessary from
 * 2^31 items on.  selector is the index of the result.
 */
extern void cub_radix_sort(int key_bytes, int value_bytes, void *d_temp, size_t *temp_bytes,
						   void **d_keys, void **d_values, uint64_t n, bool wide, int begin_bit, int end_bit,
						   int *selector);
extern void cub_merge_sort(int value_bytes, void *d_temp, size_t *temp_bytes, uint64_t *d_keys,
						   void *d_values, uint64_t n);

#endif /* GPUSORT_BENCH_COMMON_CUH */
