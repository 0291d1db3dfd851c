/*-------------------------------------------------------------------------
 *
 * bench_cpu.cu
 *	  The CPU engine's radix sort on one core, of the data of bench_kernels.
 *
 * usage: bench_cpu [most]		(default 100 million rows)
 *
 * CSV to standard output.  Keys with row numbers are sorted as the engine
 * sorts them: one word, the row's number behind as many of the key's first
 * bits as it leaves room for.  Ties that 64 bits do not break are not refined:
 * random keys have few.  Packing is not timed, on either side.
 *
 *-------------------------------------------------------------------------
 */
#include <time.h>

#include "bench_common.cuh"

extern "C" {
#include "common/radix_sort.h"
}

typedef struct Job
{
	const char *name; /* as in bench_kernels.cu */
	int bits;
	bool rows; /* with row numbers */
} Job;

static void
ignore_interrupts(void *arg)
{
}

static double
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

static void
bench(const Job *job, uint64_t n, uint64_t *words[2])
{
	const GsRuntime runtime = {NULL, NULL, NULL, ignore_interrupts};
	const int low_bit = job->rows ? row_bits(n) : 0;
	const int nbits = std::min(job->bits, 64 - low_bit);
	const uint64_t mask = ~UINT64_C(0) >> (64 - job->bits);
	const int nwarm = n < 10000000 ? 2 : 0;
	const int nruns = n < 100000000 ? 3 : 1;
	std::vector<float> ms;

	for (int run = 0; run < nwarm + nruns; run++)
	{
		uint64_t *sorted;
		double start;

		for (uint64_t i = 0; i < n; i++)
		{
			uint64_t key = random_key(1, mask, KEY_SEED, i) >> (job->bits - nbits);

			words[0][i] = job->rows ? key << low_bit | i : key;
		}
		start = now_ms();
		sorted = gs_radix_sort(words[0], words[1], n, low_bit, nbits, &runtime, NULL);
		if (run >= nwarm)
			ms.push_back(now_ms() - start);
		for (uint64_t i = 1; i < n; i++)
			if (sorted[i - 1] > sorted[i])
			{
				fprintf(stderr, "%s: wrong at %llu\n", job->name, (unsigned long long) i);
				exit(1);
			}
	}

	Times times = summarize(ms);

	printf("%s,%llu,1.0,%.3f,%.3f,%.3f\n", job->name, (unsigned long long) n, times.median_ms, times.least_ms,
		   times.most_ms);
	fflush(stdout);
}

int
main(int argc, char **argv)
{
	static const Job jobs[] = {
		{"u8+u32", 8, true},
		{"u16+u32", 16, true},
		{"u32", 32, false},
		{"u64", 64, false},
		{"u32+u32", 32, true},
		{"u64+u32", 64, true},
		{"u64+u32 40 bits", 40, true},
		{"36-bit packed as used", 36, true},
	};
	const uint64_t most = argc > 1 ? strtoull(argv[1], NULL, 10) : 100000000;
	uint64_t *words[2];

	for (int i = 0; i < 2; i++)
	{
		/* touched, so that page faults are not measured */
		words[i] = (uint64_t *) malloc(most * sizeof(uint64_t));
		if (words[i] == NULL)
			return 3;
		memset(words[i], 1, most * sizeof(uint64_t));
	}
	printf("sort,n,entropy,cpu_ms,cpu_ms_least,cpu_ms_most\n");
	for (uint64_t n = 100000; n <= most; n *= 10)
		for (const Job &job : jobs)
			bench(&job, n, words);
	return 0;
}
