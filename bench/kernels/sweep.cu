/*-------------------------------------------------------------------------
 *
 * sweep.cu
 *	  Tries tile sizes, occupancies, look-back widths and rank methods of the
 *	  radix pass, and takes parts of it out (kernels.md 3.6): what chose
 *	  cuda/tuning.cuh.
 *
 * usage: sweep [n]		(default 100 million)
 *
 * A line names threads x items, blocks a multiprocessor (b), look-back width
 * (w), and how values travel (v): 0 staged, 4 through registers.
 *
 *-------------------------------------------------------------------------
 */
#include "bench_common.cuh"
#include "../../cuda/kernel_radix_launch.cuh"

static uint64_t n = 100000000;
static void *d_input;
static void *d_keys[2];
static void *d_values[2];
static void *d_temp;
static size_t temp_bytes;
static uint32_t *d_selector;
static GsDeviceFacts facts;

template <typename Key, typename Value>
static void
prepare(void)
{
	CHECK(cudaMemcpyAsync(d_keys[0], d_input, n * sizeof(Key), cudaMemcpyDeviceToDevice));
	if (GsHasValue<Value>::yes)
	{
		fill_rows<<<1024, 256>>>((uint32_t *) d_values[0], n * sizeof(Value) / 4);
		CHECK(cudaGetLastError());
	}
}

template <typename Key, typename Value>
static GsRadixSort
describe(void)
{
	GsRadixSort sort = {};

	sort.nitems = n;
	sort.key_bytes = sizeof(Key);
	sort.value_bytes = GsHasValue<Value>::yes ? sizeof(Value) : 0;
	sort.end_bit = 8 * sizeof(Key);
	sort.d_selector = d_selector;
	for (int i = 0; i < 2; i++)
	{
		sort.d_keys[i] = d_keys[i];
		sort.d_values[i] = GsHasValue<Value>::yes ? d_values[i] : NULL;
	}
	return sort;
}

static void *d_expected_keys;
static void *d_expected_values;
static double cub_ms;

template <typename Key, typename Value>
static void
begin_type(const char *name)
{
	const int	value_bytes = GsHasValue<Value>::yes ? sizeof(Value) : 0;
	size_t		cub_bytes = 0;
	int			selector;
	Times		times;

	fill_keys<Key><<<1024, 256>>>((Key *) d_input, n, 1, ~UINT64_C(0), 7);
	cub_radix_sort(sizeof(Key), value_bytes, NULL, &cub_bytes, d_keys, d_values, n, 0, 8 * sizeof(Key), &selector);
	if (cub_bytes > temp_bytes)
		exit(3);
	times = time_runs(2, 9, prepare<Key, Value>, [&] {
		cub_radix_sort(sizeof(Key), value_bytes, d_temp, &cub_bytes, d_keys, d_values, n, 0,
					   8 * sizeof(Key), &selector);
	});
	cub_ms = times.median_ms;
	CHECK(cudaMemcpy(d_expected_keys, d_keys[selector], n * sizeof(Key), cudaMemcpyDeviceToDevice));
	if (value_bytes)
		CHECK(cudaMemcpy(d_expected_values, d_values[selector], n * value_bytes, cudaMemcpyDeviceToDevice));
	printf("%-9s cub %.3f ms %.2f G/s\n", name, cub_ms, n / cub_ms / 1e6);
}

template <typename Key, typename Value, int nthreads, int nitems, int nblocks, int width, int variant>
static void
try_one(const char *name)
{
	GsRadixSort sort = describe<Key, Value>();
	GsDeviceStatus status = GS_DEVICE_OK;
	const void *kernel = (const void *) gs_radix_pass_kernel<Key, Value, nthreads, nitems, nblocks, width, !(variant & 4), 0>;
	cudaFuncAttributes attributes;
	uint32_t	selector;
	unsigned long long wrong;
	GsKernelFacts none = {};
	uint32_t	resident = 0;

	gs_kernel_resident_blocks(&none, &facts, kernel, nthreads,
							  sizeof(GsRadixShared<Key, Value, nthreads, nitems, !(variant & 4)>), &resident);
	CHECK(cudaFuncGetAttributes(&attributes, kernel));
	Times		times = time_runs(1, 5, prepare<Key, Value>, [&] {
		status = gs_radix_launch<Key, Value, nthreads, nitems, nblocks, width, !(variant & 4), 0>
			(&sort, &facts, d_temp, temp_bytes, NULL);
	});

	if (status != GS_DEVICE_OK)
	{
		printf("%-9s %4dx%-2d b%d w%-2d v%d failed: status %d %s\n", name, nthreads, nitems, nblocks, width, variant,
			   status, gs_device_last_error());
		return;
	}
	CHECK(cudaMemcpy(&selector, d_selector, 4, cudaMemcpyDeviceToHost));
	wrong = differences(d_keys[selector], d_expected_keys, n * sizeof(Key));
	if (GsHasValue<Value>::yes)
		wrong += differences(d_values[selector], d_expected_values, n * sizeof(Value));
	printf("%-9s %4dx%-2d b%d w%-2d v%d  %7.3f ms %6.2f G/s  %.3f of cub  (%.3f-%.3f) regs %d local %zu resident %u%s\n",
		   name, nthreads, nitems, nblocks, width, variant, times.median_ms, n / times.median_ms / 1e6,
		   cub_ms / times.median_ms, times.least_ms, times.most_ms, attributes.numRegs,
		   attributes.localSizeBytes, resident / facts.nmultiprocessors, wrong ? "  WRONG" : "");
	fflush(stdout);
}

/* One pass alone, with parts left out. */
template <typename Key, typename Value, int nthreads, int nitems, int nblocks, int width, int variant, int ablate>
static void
ablate_one(const char *name)
{
	typedef GsRadixShared<Key, Value, nthreads, nitems, !(variant & 4)> Shared;
	const void *count = (const void *) gs_radix_count_kernel<Key, GS_COUNT_THREADS>;
	const void *full = (const void *) gs_radix_pass_kernel<Key, Value, nthreads, nitems, nblocks, width, !(variant & 4), 0>;
	const void *part = (const void *) gs_radix_pass_kernel<Key, Value, nthreads, nitems, nblocks, width, !(variant & 4), 0, ablate>;
	GsRadixSort sort = describe<Key, Value>();
	GsRadixPlan plan;
	GsRadixTemp temp;
	GsKernelFacts none = {}, none2 = {}, none3 = {};
	uint32_t	resident, resident_count;
	uint32_t	zero = 0;
	void	   *args[] = {&plan, &zero, &zero};

	gs_radix_temp(&temp, n, nthreads * nitems);
	gs_radix_plan(&plan, &sort);
	plan.d_control = (GsRadixControl *) d_temp;
	for (int i = 0; i < 2; i++)
		plan.d_rows[i] = (uint32_t *) ((char *) d_temp + temp.rows_offset[i]);
	plan.nrows = temp.nrows;
	plan.portion_tiles = temp.portion_tiles;
	plan.nportions = temp.nportions;
	gs_kernel_resident_blocks(&none3, &facts, full, nthreads, sizeof(Shared), &resident);
	gs_kernel_resident_blocks(&none, &facts, part, nthreads, sizeof(Shared), &resident);
	gs_kernel_resident_blocks(&none2, &facts, count, GS_COUNT_THREADS, 0, &resident_count);

	Times		counting;
	Times		times = time_runs(1, 7, [&] {
		prepare<Key, Value>();
		CHECK(cudaMemset(d_temp, 0, temp.rows_offset[1]));
		gs_launch(count, resident_count, GS_COUNT_THREADS, 0, NULL, false, args);
		if (ablate & GS_ABLATE_LOOKBACK)
		{
			gs_launch(full, resident, nthreads, sizeof(Shared), NULL, false, args);
			CHECK(cudaMemset(plan.d_control->tickets, 0, sizeof(plan.d_control->tickets)));
		}
	}, [&] {
		gs_launch(part, resident, nthreads, sizeof(Shared), NULL, false, args);
	});

	counting = time_runs(1, 5, [&] {
		prepare<Key, Value>();
		CHECK(cudaMemset(d_temp, 0, temp.rows_offset[1]));
	}, [&] {
		gs_launch(count, resident_count, GS_COUNT_THREADS, 0, NULL, false, args);
	});
	double		bytes = 2.0 * n * (sizeof(Key) + (GsHasValue<Value>::yes ? sizeof(Value) : 0));

	printf("pass %-9s %dx%d b%d w%-2d v%d without%s%s%s%s: %.3f ms (%.3f-%.3f) %.2f TB/s   [count %.3f ms]\n", name, nthreads,
		   nitems, nblocks, width, variant, ablate & 1 ? " look-back" : "", ablate & 2 ? " rank" : "", ablate & 4 ? " scatter" : "",
		   ablate ? "" : " nothing", times.median_ms, times.least_ms, times.most_ms,
		   bytes / times.median_ms / 1e9, counting.median_ms);
	fflush(stdout);
}

#define TRY(K, V, T, I, B, W, M) try_one<K, V, T, I, B, W, M>(type_name)
#define ABLATE(K, V, T, I, B, W, M, A) ablate_one<K, V, T, I, B, W, M, A>(type_name)

#include "sweep_list.inc"

int
main(int argc, char **argv)
{
	if (argc > 1)
		n = strtoull(argv[1], NULL, 10);
	if (gs_device_facts(&facts) != GS_DEVICE_OK)
	{
		fprintf(stderr, "%s\n", gs_device_last_error());
		return 2;
	}
	temp_bytes = n * 8 + (64 << 20);
	CHECK(cudaMalloc(&d_input, n * 8));
	CHECK(cudaMalloc(&d_temp, temp_bytes));
	CHECK(cudaMalloc(&d_selector, 4));
	CHECK(cudaMalloc(&d_expected_keys, n * 8));
	CHECK(cudaMalloc(&d_expected_values, n * 8));
	for (int i = 0; i < 2; i++)
	{
		CHECK(cudaMalloc(&d_keys[i], n * 8));
		CHECK(cudaMalloc(&d_values[i], n * 8));
	}
	sweep_all();
	return 0;
}
