/*-------------------------------------------------------------------------
 *
 * time_device.cu
 *	  How long each step of a sort takes on the CUDA device.
 *
 * usage: time_device [first]
 *
 *-------------------------------------------------------------------------
 */
#include <chrono>
#include <functional>

#include "test_device.h"

static Machine *cuda_machine;

static double
seconds(void)
{
	return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/* Milliseconds of some steps: the first run, and the best of five more. */
static double
time_steps(const char *what, double bytes, const std::function<void()> &queue)
{
	double first = 0;
	double best = 1e9;

	for (int i = 0; i < 6; i++)
	{
		double start;
		double ms;

		cuda_machine->wait();
		start = seconds();
		queue();
		cuda_machine->wait();
		ms = (seconds() - start) * 1e3;
		if (i == 0)
			first = ms;
		else
			best = std::min(best, ms);
	}
	printf("%-34s %9.3f ms   first %9.3f ms", what, best, first);
	if (bytes > 0)
		printf("   %7.0f GB/s", bytes / best / 1e6);
	printf("\n");
	return best;
}

static void
time_sort(uint64_t n, unsigned ncolumns, uint64_t range, bool keys_only, unsigned min_units,
		  unsigned more_units, unsigned idle_bits, const char *name)
{
	Machine *m = cuda_machine;
	const GsDeviceOps *ops = m->ops;
	const size_t ntaken = m->ntaken();
	const uint32_t buffer_bytes = 16 << 20;
	const size_t record_bytes = 8 * (ncolumns + !keys_only);
	const int row_bits = gs_bit_width(n - 1);
	std::unique_ptr<GsKeyPacking> packing(new GsKeyPacking());
	GsKeyLayout layout;
	std::vector<GsDeviceBatch> batches;
	uint64_t all_units = 0;
	GsDeviceRows rows = {};

	printf("# %s: %llu rows, %u columns\n", name, (unsigned long long) n, ncolumns);
	gs_key_layout_init(&layout);
	layout.keys_only = keys_only;
	layout.nrows = n;
	for (unsigned c = 0; c < ncolumns; c++)
	{
		GsKeyField *field;

		gs_key_layout_add_column(&layout, false, false);
		field = gs_key_layout_add_field(&layout, 64, GS_CANONICAL_NONE);
		gs_key_field_update_range(field, 0);
		gs_key_field_update_range(field, range == 0 ? UINT64_MAX : range - 1);
	}
	gs_key_packing_init(packing.get(), &layout, 64 - row_bits);
	for (uint64_t row = 0; row < n;)
	{
		GsDeviceBatch batch = {};
		std::vector<uint64_t> records;
		const size_t limit = buffer_bytes / 8;
		size_t used = 0;

		batch.first_row = row;
		std::vector<std::vector<uint64_t>> made;
		while (row < n)
		{
			const unsigned units = keys_only ? 0 : min_units + random_bits(9, row) % (more_units + 1);

			if (used + units + record_bytes / 8 > limit)
				break;
			/* from the back: the records descend */
			if (!keys_only)
				records.push_back((uint64_t) batch.nunits << 32);
			for (unsigned c = ncolumns; c-- > 0;)
				records.push_back(range == 0 ? random_bits(c, row) >> idle_bits : random_bits(c, row) % range);
			batch.nunits += units;
			batch.nrows++;
			used += units + record_bytes / 8;
			row++;
		}
		std::reverse(records.begin(), records.end());
		all_units += batch.nunits;
		batch.d_records_top = (const char *) m->upload(records) + records.size() * 8;
		batch.d_rows = keys_only ? NULL : (const char *) m->take_array<uint64_t>(batch.nunits);
		batches.push_back(batch);
	}
	rows.nrows = n;
	rows.nbatches = (uint32_t) batches.size();
	rows.record_bytes = (uint32_t) record_bytes;
	rows.max_row_units = min_units + more_units;
	rows.keys_only = keys_only;
	rows.d_batches = m->upload(batches);
	rows.d_packing = m->upload(std::vector<GsKeyPacking>(1, *packing));
	rows.d_locations = keys_only ? NULL : m->take_array<uint64_t>(n);

	uint64_t *const d_words[2] = {m->take_array<uint64_t>(n), m->take_array<uint64_t>(n)};
	GsPackResults *d_results = m->upload(std::vector<GsPackResults>(1, GsPackResults{0, 0}));
	uint32_t *d_selector = m->take_array<uint32_t>(1);
	Temp temp = take_temp(m, GS_STEP_SORT_WORDS, GS_ALGORITHM_RADIX, n);
	Temp merge_temp = take_temp(m, GS_STEP_SORT_WORDS, GS_ALGORITHM_MERGE, n);
	const int bits = packing->chunks[0].bits;
	const double place_bytes = keys_only ? 0 : 8;
	const double pack_bytes = n * (record_bytes + 8 + place_bytes);
	auto pack = [&](bool counted) {
		m->need(ops->pack(m->stream, &rows, 0, row_bits, d_words[0], d_results, counted ? temp.d_temp : NULL,
						  counted ? temp.nbytes : 0));
	};
	auto sort = [&](GsAlgorithm algorithm, bool counted) {
		const Temp &t = algorithm == GS_ALGORITHM_MERGE ? merge_temp : temp;

		m->need(ops->sort_words(m->stream, algorithm, n, row_bits, bits, d_words, d_selector, counted,
								t.d_temp, t.nbytes));
	};
	double pack_only;

	pack_only = time_steps("pack, not counted", pack_bytes, [&] { pack(false); });
	time_steps("pack, counted", pack_bytes, [&] { pack(true); });
	printf("%-34s %9.3f ms\n", "(merge sort alone)",
		   time_steps("pack, merge sort", 0, [&] { pack(false); sort(GS_ALGORITHM_MERGE, false); }) - pack_only);
	time_steps("pack, radix sort", 0, [&] { pack(false); sort(GS_ALGORITHM_RADIX, false); });
	time_steps("pack counted, radix sort", 0, [&] { pack(true); sort(GS_ALGORITHM_RADIX, true); });

	uint64_t *d_sorted = d_words[m->download(d_selector, 1)[0]];
	uint64_t *d_other = d_words[d_sorted == d_words[0]];
	GsOrderCheck *d_check = m->take_array<GsOrderCheck>(1);

	time_steps("check_order", 8.0 * n, [&] {
		m->need(ops->check_order(m->stream, n, d_sorted, row_bits, NULL, d_check));
	});

	if (packing->nchunks > 1)
	{
		uint8_t *d_same = m->take_array<uint8_t>(n);
		GsTieCount *d_count = m->take_array<GsTieCount>(1);
		Temp ties_temp = take_temp(m, GS_STEP_LIST_TIES, GS_ALGORITHM_RADIX, n);
		GsTieCount count;

		time_steps("same_words", 9.0 * n, [&] { m->need(ops->same_words(m->stream, n, d_sorted, row_bits, d_same)); });
		time_steps("count_ties", 1.0 * n, [&] {
			m->need(ops->count_ties(m->stream, n, d_same, d_count, ties_temp.d_temp, ties_temp.nbytes));
		});
		count = m->download(d_count, 1)[0];
		printf("  %llu ties in %llu groups\n", (unsigned long long) count.nties, (unsigned long long) count.ngroups);
		if (count.nties > 0)
		{
			GsTies ties = take_ties(m, count.nties);
			uint64_t *const d_keys[2] = {m->take_array<uint64_t>(count.nties),
										 m->take_array<uint64_t>(count.nties)};
			Temp sort_temp = take_temp(m, GS_STEP_SORT_TIES, GS_ALGORITHM_RADIX, count.nties);

			time_steps("list_ties", 0, [&] {
				m->need(ops->list_ties(m->stream, n, d_same, d_sorted, row_bits, NULL, &ties, ties_temp.d_temp,
									   ties_temp.nbytes));
			});
			time_steps("tie_keys", 0, [&] { m->need(ops->tie_keys(m->stream, &rows, &ties, 1, d_keys[0])); });
			time_steps("tie_keys, sort_ties", 0, [&] {
				m->need(ops->tie_keys(m->stream, &rows, &ties, 1, d_keys[0]));
				m->need(ops->sort_ties(m->stream, GS_ALGORITHM_RADIX, &ties,
									   gs_bit_width(count.ngroups - 1) + packing->chunks[1].bits, d_keys,
									   sort_temp.d_temp, sort_temp.nbytes));
			});
			time_steps("place_ties", 0, [&] { m->need(ops->place_ties(m->stream, &ties, d_sorted)); });
		}
	}
	if (keys_only)
	{
		time_steps("gather_keys", 8.0 * n, [&] {
			for (uint64_t first = 0; first < n; first += buffer_bytes / 8)
				m->need(ops->gather_keys(m->stream, &rows, d_sorted, row_bits, first,
										 (uint32_t) std::min((uint64_t) buffer_bytes / 8, n - first),
										 d_other + first));
		});
	}
	else
	{
		const uint64_t step = buffer_bytes / 4 - (2 * rows.max_row_units + 1);
		const uint32_t nboundaries = (uint32_t) ((2 * all_units + n) / step + 2);
		uint64_t *d_boundaries = m->take_array<uint64_t>(nboundaries);
		Temp ends_temp = take_temp(m, GS_STEP_ROW_END_OFFSETS, GS_ALGORITHM_RADIX, n);
		char *d_to = m->take_array<char>(buffer_bytes);
		std::vector<uint64_t> boundaries;

		time_steps("row_end_offsets", 0, [&] {
			m->need(ops->row_end_offsets(m->stream, &rows, d_sorted, row_bits, d_other, ends_temp.d_temp, ends_temp.nbytes));
		});
		time_steps("find_boundaries", 0, [&] { m->need(ops->find_boundaries(m->stream, n, d_other, step, nboundaries, d_boundaries)); });
		boundaries = m->download(d_boundaries, nboundaries);
		time_steps("gather, all batches", 8.0 * all_units, [&] {
			for (uint32_t b = 0; b + 1 < nboundaries; b++)
				m->need(ops->gather(m->stream, &rows, d_sorted, row_bits, d_other, boundaries[b],
									(uint32_t) (boundaries[b + 1] - boundaries[b]), d_to, buffer_bytes));
		});
		time_steps("gather, one batch", 8.0 * all_units / (nboundaries - 1), [&] {
			m->need(ops->gather(m->stream, &rows, d_sorted, row_bits, d_other, boundaries[0],
								(uint32_t) (boundaries[1] - boundaries[0]), d_to, buffer_bytes));
		});
	}
	m->release(ntaken);
}

/* Strings: ORDER BY text with equal first bytes. */
static void
time_tails(uint64_t n, unsigned max_len, unsigned prefix_len)
{
	Machine *m = cuda_machine;
	const size_t ntaken = m->ntaken();
	Table table(n, {string_of(TEXT, max_len, prefix_len, 16)}, 16 << 20, 100);
	Uploaded up = upload_table(m, table);
	uint64_t *d_words = m->take_array<uint64_t>(n);
	GsPackResults *d_results = m->upload(std::vector<GsPackResults>(1, GsPackResults{0, 0}));
	GsTies ties = take_ties(m, n);
	uint8_t *d_same = m->take_array<uint8_t>(n);
	Temp temp = take_temp(m, GS_STEP_SORT_TAILS, GS_ALGORITHM_RADIX, n);
	std::vector<uint32_t> numbers(n);
	const int tail = table.packing->ncomponents - 1;

	printf("# strings up to %u bytes behind %u equal ones, %llu rows in one group\n", max_len, prefix_len,
		   (unsigned long long) n);
	for (uint64_t i = 0; i < n; i++)
		numbers[i] = (uint32_t) i;
	m->need(m->ops->pack(m->stream, &up.rows, -1, table.row_bits, d_words, d_results, NULL, 0));
	m->put(ties.d_groups, std::vector<uint32_t>(n, 0).data(), n * 4);
	time_steps("sort_tails (and 4 bytes a row up)", 0, [&] {
		m->put(ties.d_rows, numbers.data(), n * 4);
		m->need(m->ops->sort_tails(m->stream, &up.rows, &ties, tail, temp.d_temp, temp.nbytes));
	});
	time_steps("same_tails", 0, [&] { m->need(m->ops->same_tails(m->stream, &up.rows, &ties, tail, d_same)); });
	m->release(ntaken);
}

/* Or only the first of these. */
static void
time_all(bool only_first)
{
	time_sort(10000000, 1, UINT64_C(1) << 40, false, 20, 8, 0, "rows of 160 to 224 bytes");
	if (only_first)
		return;
	time_sort(10000000, 2, 0, false, 20, 8, 14, "the same, a seventh of the rows tied");
	time_sort(10000000, 2, 0, false, 20, 8, 20, "the same, nearly all rows tied");
	time_sort(10000000, 1, UINT64_C(1) << 40, false, 3, 2, 0, "rows of 24 to 40 bytes");
	time_sort(100000000, 1, UINT64_C(1) << 37, true, 0, 0, 0, "keys only");
	time_tails(2000000, 20, 12);
	time_tails(2000000, 20, 8);
}

int
main(int argc, char **argv)
{
	char why_not[200] = "";
	double start = seconds();
	GsDevice *cuda = gs_device_cuda_open(0, why_not, sizeof(why_not));

	context = "open";
	if (cuda == NULL)
		bail_out(why_not);
	printf("# %s, open after %.0f ms\n", cuda->name, (seconds() - start) * 1e3);
	cuda_machine = new Machine(cuda);
	time_all(argc > 1);
	delete cuda_machine;
	return 0;
}
