/*-------------------------------------------------------------------------
 *
 * sweep.cu
 *	  Tries tile sizes, occupancies and look-back widths of the radix pass, and
 *	  takes parts of it out: what chose cuda/tuning.cuh.
 *
 * usage: sweep [n]		(default 100 million)
 *
 * CSV to standard output.  A line is of CUB's whole sort, of ours ("sort"), of
 * its count of the digits, or of one pass with parts left out: look-back (sums
 * as a full pass left them), rank (each key stays in its place of the tile),
 * scatter (each tile stays where it is).  Look-back and rank together leave a
 * copy through shared memory.  Never more than the blocks a multiprocessor that a
 * line names are resident.
 *
 * The kernels are those of gpusortd (cuda/kernel_radix_pass.cuh) where it has them,
 * otherwise those of general/.
 *
 *-------------------------------------------------------------------------
 */
#include <string>

#include "bench_common.cuh"
#include "general/kernel_radix_general.cuh"

static uint64_t n = 100000000;
static void *d_input;
static void *d_keys[2];
static void *d_values[2];
static void *d_temp;
static size_t temp_bytes;
static uint32_t *d_selector;
static GsDeviceProperties properties;

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
static GsRadixGeneralPlan
make_plan(void)
{
	GsRadixGeneralPlan general = {};
	GsRadixPlan *plan = &general.plan;

	plan->nitems = n;
	plan->d_selector = d_selector;
	for (int i = 0; i < 2; i++)
	{
		plan->d_keys[i] = (uint64_t *) d_keys[i];
		plan->d_values[i] = GsHasValue<Value>::yes ? (uint32_t *) d_values[i] : NULL;
	}
	plan->nplaces = gs_radix_places(plan->places, 0, 8 * sizeof(Key));
	general.d_keys_in = plan->d_keys[0];
	general.d_values_in = plan->d_values[0];
	return general;
}

/* gpusortd's own if it has them. */
template <typename Key, typename Value, typename Shape, bool staged, int ablate>
static GsRadixKernels *
kernels_of(void)
{
	constexpr bool has_values = GsHasValue<Value>::yes;

	if constexpr (sizeof(Key) == 8 && sizeof(Value) <= 4 && !(has_values && staged) && ablate == 0)
		return gs_radix_kernels<has_values, Shape>();
	else
		return gs_radix_general_kernels<false, Key, Value, Shape, staged, ablate>();
}

static void *d_expected_keys;
static void *d_expected_values;
static double cub_ms;

static void
print_line(const char *what, const char *type, const char *shape, const char *without, Times times, double tb,
		   const char *properties)
{
	printf("%s,%s,%s,%s,%.4f,%.4f,%.4f,%.2f,%.1f,%.2f,%s\n", what, type, shape, without, times.median_ms,
		   times.least_ms, times.most_ms, n / times.median_ms / 1e6, 100 * cub_ms / times.median_ms,
		   tb / times.median_ms, properties);
	fflush(stdout);
}

template <typename Key, typename Value>
static void
begin_type(const char *name)
{
	const int value_bytes = GsHasValue<Value>::yes ? sizeof(Value) : 0;
	size_t cub_bytes = 0;
	int selector;
	Times times;

	fill_keys<Key><<<1024, 256>>>((Key *) d_input, n, 1, ~UINT64_C(0), KEY_SEED);
	cub_radix_sort(sizeof(Key), value_bytes, NULL, &cub_bytes, d_keys, d_values, n, true, 0, 8 * sizeof(Key),
				   &selector);
	if (cub_bytes > temp_bytes)
		exit(3);
	times = time_runs(2, 9, prepare<Key, Value>, [&] {
		cub_radix_sort(sizeof(Key), value_bytes, d_temp, &cub_bytes, d_keys, d_values, n, true, 0,
					   8 * sizeof(Key), &selector);
	});
	cub_ms = times.median_ms;
	CHECK(cudaMemcpy(d_expected_keys, d_keys[selector], n * sizeof(Key), cudaMemcpyDeviceToDevice));
	if (value_bytes)
		CHECK(cudaMemcpy(d_expected_values, d_values[selector], n * value_bytes, cudaMemcpyDeviceToDevice));
	print_line("cub", name, ",,,,", "", times, 0, ",,,yes");
}

/* One configuration of the radix pass, and the properties of its kernel. */
template <typename Key, typename Value, int nthreads, int nitems, int nblocks, int width, bool staged, int ablate = 0>
struct Choice
{
	typedef GsRadixShape<nthreads, nitems, nblocks, width> Shape;

	GsRadixKernels *kernels;
	size_t shared_bytes; /* increased so that no more than nblocks fit */
	uint32_t grid;
	cudaFuncAttributes attributes;
	char shape[64];

	Choice()
	{
		GsKernelOccupancy none = {};
		int sm_bytes; /* shared memory of a multiprocessor */

		CHECK(cudaDeviceGetAttribute(&sm_bytes, cudaDevAttrMaxSharedMemoryPerMultiprocessor,
									 properties.number));
		kernels = kernels_of<Key, Value, Shape, staged, ablate>();
		shared_bytes = std::max(kernels->shared_bytes, (size_t) sm_bytes / (nblocks + 1));
		if (gs_kernel_resident_blocks(&none, &properties, kernels->pass, nthreads, shared_bytes,
									  &grid) != GS_DEVICE_OK)
		{
			fprintf(stderr, "%s\n", gs_device_last_error());
			exit(2);
		}
		CHECK(cudaFuncGetAttributes(&attributes, kernels->pass));
		snprintf(shape, sizeof(shape), "%d,%d,%d,%d,%d", nthreads, nitems, nblocks, width, staged);
	}

	std::string
	attributes_text(const char *right) const
	{
		return std::to_string(attributes.numRegs) + "," + std::to_string(attributes.localSizeBytes) + "," +
			std::to_string(grid / properties.nmultiprocessors) + "," + right;
	}
};

template <typename Key, typename Value, int nthreads, int nitems, int nblocks, int width, bool staged>
static void
try_one(const char *name)
{
	const Choice<Key, Value, nthreads, nitems, nblocks, width, staged> choice;
	GsRadixGeneralPlan general = make_plan<Key, Value>();
	GsDeviceStatus status = GS_DEVICE_OK;
	uint32_t selector;
	unsigned long long wrong;
	Times times = time_runs(1, 5, prepare<Key, Value>, [&] {
		status = gs_radix_queue(&general.plan, false, choice.kernels, &properties, d_temp,
								temp_bytes, NULL);
	});

	if (status != GS_DEVICE_OK)
	{
		fprintf(stderr, "%s %s: status %d %s\n", name, choice.shape, status, gs_device_last_error());
		exit(2);
	}
	CHECK(cudaMemcpy(&selector, d_selector, 4, cudaMemcpyDeviceToHost));
	wrong = differences(d_keys[selector], d_expected_keys, n * sizeof(Key));
	if (GsHasValue<Value>::yes)
		wrong += differences(d_values[selector], d_expected_values, n * sizeof(Value));
	print_line("sort", name, choice.shape, "", times, 0, choice.attributes_text(wrong ? "NO" : "yes").c_str());
}

/* A single pass, with parts left out. */
template <typename Key, typename Value, int nthreads, int nitems, int nblocks, int width, bool staged, int ablate>
static void
ablate_one(const char *name)
{
	static const char *const without[] = {"", "look-back", "rank", "look-back and rank", "scatter",
										  "look-back and scatter"};
	const Choice<Key, Value, nthreads, nitems, nblocks, width, staged> full;
	const Choice<Key, Value, nthreads, nitems, nblocks, width, staged, ablate> part;
	const void *count = full.kernels->count;
	const GsRadixTemp temp = gs_radix_temp(n, nthreads * nitems);
	GsRadixGeneralPlan general = make_plan<Key, Value>();
	GsKernelOccupancy none = {};
	uint32_t resident_count;
	uint32_t zero = 0;
	void *args[] = {&general, &zero, &zero};

	gs_radix_divide_temp(&general.plan, &temp, d_temp);
	gs_kernel_resident_blocks(&none, &properties, count, GS_COUNT_THREADS, 0, &resident_count);

	auto begin = [&] {
		prepare<Key, Value>();
		CHECK(cudaMemset(d_temp, 0, temp.rows_offset[1]));
	};
	auto count_digits = [&] {
		gs_launch(count, resident_count, GS_COUNT_THREADS, 0, NULL, false, args);
	};
	auto all_before = [&] {
		begin();
		count_digits();
		if (ablate & GS_ABLATE_LOOKBACK)
		{
			gs_launch(full.kernels->pass, full.grid, nthreads, full.shared_bytes, NULL, false, args);
			CHECK(cudaMemset(general.plan.d_control->next_tile, 0,
							 sizeof(general.plan.d_control->next_tile)));
		}
	};
	auto the_pass = [&] {
		gs_launch(part.kernels->pass, part.grid, nthreads, part.shared_bytes, NULL, false, args);
	};
	Times times = time_runs(1, 7, all_before, the_pass);

	print_line("pass", name, part.shape, without[ablate], times,
			   2.0 * n * (sizeof(Key) + (GsHasValue<Value>::yes ? sizeof(Value) : 0)) / 1e9,
			   part.attributes_text("").c_str());
	if (ablate == 0)
		print_line("count", name, ",,,,", "", time_runs(1, 5, begin, count_digits), n * sizeof(Key) / 1e9, ",,,");
}

#define TRY(K, V, T, I, B, W, S)       try_one<K, V, T, I, B, W, S>(type_name)
#define ABLATE(K, V, T, I, B, W, S, A) ablate_one<K, V, T, I, B, W, S, A>(type_name)

#include "sweep_list.inc"

int
main(int argc, char **argv)
{
	if (argc > 1)
		n = strtoull(argv[1], NULL, 10);
	if (gs_device_properties(&properties) != GS_DEVICE_OK)
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
	printf("what,type,threads,items,blocks,lookback,staged,without,ms,ms_least,ms_most,gkeys_s,percent_of_cub,tb_s,"
		   "registers,local_bytes,resident,right\n");
	sweep_all();
	return 0;
}
