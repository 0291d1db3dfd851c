/*-------------------------------------------------------------------------
 *
 * test_common.h
 *	  What the kernel tests share: host references, data, guarded memory.
 *
 * Guarded device memory has a canary before and after, which no kernel may
 * touch, and is poisoned before each sort, so that what is not written shows.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_TEST_COMMON_H
#define GPUSORT_TEST_COMMON_H

#include <algorithm>
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

#include "../../bench/kernels/general/device_sort_general.h"

#define CANARY_BYTES 256
#define CANARY       0xc5
#define POISON       0xa7

#define CHECK(call) check_cuda(call, #call, __LINE__)

static int nfailed;
static int npassed;

static inline void
check_cuda(cudaError_t error, const char *what, int line)
{
	if (error != cudaSuccess)
	{
		printf("Bail out! line %d: %s: %s\n", line, what, cudaGetErrorString(error));
		exit(2);
	}
}

static inline uint64_t
random_bits(uint64_t seed, uint64_t i)
{
	uint64_t z = seed * 0xd1342543de82ef95u + (i + 1) * 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

typedef struct Guarded
{
	char *d_base;
	size_t nbytes;
} Guarded;

static inline void *
guarded_data(const Guarded *memory)
{
	return memory->d_base + CANARY_BYTES;
}

static inline void
guarded_poison(Guarded *memory)
{
	CHECK(cudaMemset(memory->d_base, CANARY, CANARY_BYTES));
	CHECK(cudaMemset(memory->d_base + CANARY_BYTES, POISON, memory->nbytes));
	CHECK(cudaMemset(memory->d_base + CANARY_BYTES + memory->nbytes, CANARY, CANARY_BYTES));
}

static inline Guarded
guarded_alloc(size_t nbytes)
{
	Guarded memory = {NULL, nbytes};

	CHECK(cudaMalloc((void **) &memory.d_base, nbytes + 2 * CANARY_BYTES));
	guarded_poison(&memory);
	return memory;
}

/* Frees it; true if the canaries are intact. */
static inline bool
guarded_free(Guarded *memory)
{
	unsigned char canary[2 * CANARY_BYTES];
	bool intact = true;

	CHECK(cudaMemcpy(canary, memory->d_base, CANARY_BYTES, cudaMemcpyDeviceToHost));
	CHECK(cudaMemcpy(canary + CANARY_BYTES, memory->d_base + CANARY_BYTES + memory->nbytes, CANARY_BYTES,
					 cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < sizeof(canary); i++)
		intact = intact && canary[i] == CANARY;
	CHECK(cudaFree(memory->d_base));
	return intact;
}

/*
 * The reference of the radix sort: row numbers in stable order of the bits
 * [begin_bit, end_bit) of the keys.  A plain LSD sort with digits of 16 bits.
 */
static inline std::vector<uint32_t>
host_radix_order(const std::vector<uint64_t> &keys, unsigned begin_bit, unsigned end_bit)
{
	std::vector<uint32_t> rows(keys.size());
	std::vector<uint32_t> next(keys.size());

	for (size_t i = 0; i < keys.size(); i++)
		rows[i] = (uint32_t) i;
	for (unsigned shift = begin_bit; shift < end_bit; shift += 16)
	{
		const unsigned bits = std::min(16u, end_bit - shift);
		const uint64_t mask = (UINT64_C(1) << bits) - 1;
		std::vector<size_t> first((size_t) 1 << bits, 0);
		size_t sum = 0;

		for (uint64_t key : keys)
			first[key >> shift & mask]++;
		for (size_t &count : first)
		{
			size_t mine = count;

			count = sum;
			sum += mine;
		}
		for (uint32_t row : rows)
			next[first[keys[row] >> shift & mask]++] = row;
		rows.swap(next);
	}
	return rows;
}

enum Distribution
{
	RANDOM, /* entropy 1.0 for each bit */
	ENTROPY_544,
	ENTROPY_201,
	SORTED,
	REVERSED,
	ALL_EQUAL,
	FEW_DISTINCT,
	ONE_DIGIT, /* only bits 8 .. 15 vary, or all bits of a byte */
	NDISTRIBUTIONS
};

static const char *const distribution_names[] = {
	"random", "entropy 0.544", "entropy 0.201", "sorted", "reversed", "all equal", "few distinct",
	"one digit varying"};

static inline std::vector<uint64_t>
make_keys(size_t n, int distribution, uint64_t mask, uint64_t seed)
{
	std::vector<uint64_t> keys(n);

	for (size_t i = 0; i < n; i++)
	{
		uint64_t key = random_bits(seed, i);
		int ndraws = distribution == ENTROPY_544 ? 3 : distribution == ENTROPY_201 ? 5 :
																					 1;

		for (int draw = 1; draw < ndraws; draw++)
			key &= random_bits(seed + draw, i);
		switch (distribution)
		{
			case ALL_EQUAL:
				key = 0x0123456789abcdef;
				break;
			case FEW_DISTINCT:
				key = random_bits(seed, key % 5);
				break;
			case ONE_DIGIT:
				key = 0x5a5a5a5a5a5a005a | (key & (mask > 0xff ? 0xff00 : 0xff));
				break;
			default:
				break;
		}
		keys[i] = key & mask;
	}
	if (distribution == SORTED || distribution == REVERSED)
		std::sort(keys.begin(), keys.end());
	if (distribution == REVERSED)
		std::reverse(keys.begin(), keys.end());
	return keys;
}

static inline void
report(bool ok, const char *what)
{
	if (ok)
		npassed++;
	else
	{
		nfailed++;
		printf("not ok - %s\n", what);
	}
}

static inline int
finish(const char *name)
{
	printf("%s - %s: %d passed, %d failed\n", nfailed == 0 ? "ok" : "not ok", name, npassed, nfailed);
	return nfailed != 0;
}

#endif /* GPUSORT_TEST_COMMON_H */
