/*-------------------------------------------------------------------------
 *
 * test_device.cu
 *	  The CUDA device against the host device, step by step and bit by bit.
 *
 * All steps of a sort of a random table (test_device.h) run on both devices, and
 * whatever a step leaves behind is compared: words, locations, lists of ties,
 * keys, batches of sorted rows.  Last, the order itself is compared with
 * std::stable_sort and what SQL says of the values, which no device has seen.
 *
 * usage: test_device [quick | full]
 *
 *-------------------------------------------------------------------------
 */
#include "test_device.h"

#include "doubles/daemon/device_host.h"

/* --------------------------------------------------- all steps, and what each leaves behind */

typedef struct Left
{
	std::string what;
	Bytes bytes;
} Left;

typedef std::vector<Left> Trace;

template <typename T>
static void
leave(Trace *trace, const char *what, const std::vector<T> &data)
{
	const char *bytes = (const char *) data.data();

	trace->push_back({what, Bytes(bytes, bytes + data.size() * sizeof(T))});
}

/* Locations as batch and unit, which are the same on all devices. */
static void
leave_locations(Trace *trace, Machine *machine, const Uploaded &up)
{
	std::vector<uint64_t> locations;
	size_t batch = 0;

	if (up.rows.keys_only)
		return;
	locations = machine->download(up.rows.d_locations, up.rows.nrows);
	for (uint64_t row = 0; row < up.rows.nrows; row++)
	{
		if (batch + 1 < up.firsts.size() && row >= up.firsts[batch + 1])
			batch++;
		locations[row] = (GS_LOCATION_ADDRESS(locations[row]) - up.bases[batch]) << 32 |
			GS_LOCATION_LENGTH(locations[row]);
	}
	leave(trace, "locations", locations);
}

static void
leave_ties(Trace *trace, Machine *machine, const GsTies &ties)
{
	leave(trace, "places of ties", machine->download(ties.d_places, ties.nties));
	leave(trace, "rows of ties", machine->download(ties.d_rows, ties.nties));
	leave(trace, "groups of ties", machine->download(ties.d_groups, ties.nties));
}

typedef struct Result
{
	Trace trace;
	std::vector<uint32_t> order;
} Result;

/* Makes the next list of ties from flags; false if there are none. */
static bool
next_ties(Machine *machine, Trace *trace, uint64_t n, const uint8_t *d_same, const uint64_t *d_words,
		  int row_bits, const GsTies *from, GsTies *out, uint64_t *ngroups)
{
	const GsDeviceOps *ops = machine->ops;
	GsTieCount *d_count = machine->take_array<GsTieCount>(1);
	Temp temp = take_temp(machine, GS_STEP_LIST_TIES, GS_ALGORITHM_RADIX, n);
	GsTieCount count;

	leave(trace, "same", machine->download(d_same, n));
	machine->need(ops->count_ties(machine->stream, n, d_same, d_count, temp.d_temp, temp.nbytes));
	count = machine->download(d_count, 1)[0];
	leave(trace, "count of ties", std::vector<uint64_t>{count.nties, count.ngroups});
	if (count.nties == 0)
		return false;
	if (count.nties > n)
		bail_out("more ties than elements");
	*out = take_ties(machine, count.nties);
	*ngroups = count.ngroups;
	machine->need(ops->list_ties(machine->stream, n, d_same, d_words, row_bits, from, out, temp.d_temp,
								 temp.nbytes));
	leave_ties(trace, machine, *out);
	return true;
}

static void
gather_all(Machine *machine, const Table &table, const Uploaded &up, const uint64_t *d_words, size_t buffer_bytes,
		   Result *result)
{
	const GsDeviceOps *ops = machine->ops;
	const uint64_t n = table.nrows;
	const uint64_t step = buffer_bytes / 4 - (2 * table.max_row_units + 1);
	uint64_t *d_end_offsets = machine->take_array<uint64_t>(n);
	Temp temp = take_temp(machine, GS_STEP_ROW_END_OFFSETS, GS_ALGORITHM_RADIX, n);
	std::vector<uint64_t> ends;
	std::vector<uint64_t> boundaries;
	uint64_t *d_boundaries;
	uint32_t nboundaries;
	char *d_to = machine->take_array<char>(buffer_bytes);

	machine->need(ops->row_end_offsets(machine->stream, &up.rows, d_words, table.row_bits, d_end_offsets, temp.d_temp,
									   temp.nbytes));
	ends = machine->download(d_end_offsets, n);
	leave(&result->trace, "ends of rows", ends);
	nboundaries = (uint32_t) (ends[n - 1] / step + 2);
	d_boundaries = machine->take_array<uint64_t>(nboundaries);
	machine->need(ops->find_boundaries(machine->stream, n, d_end_offsets, step, nboundaries, d_boundaries));
	boundaries = machine->download(d_boundaries, nboundaries);
	leave(&result->trace, "boundaries", boundaries);
	for (uint32_t b = 0; b + 1 < nboundaries; b++)
	{
		const uint32_t nrows = (uint32_t) (boundaries[b + 1] - boundaries[b]);
		Bytes entry(buffer_bytes, (char) POISON);

		if (nrows == 0)
			continue;
		machine->put(d_to, entry.data(), buffer_bytes);
		machine->need(ops->gather(machine->stream, &up.rows, d_words, table.row_bits, d_end_offsets, boundaries[b], nrows,
								  d_to, buffer_bytes));
		entry = machine->download(d_to, buffer_bytes);
		leave(&result->trace, "a batch of sorted rows", entry);
		for (uint32_t i = 0; i < nrows; i++)
		{
			uint32_t unit;
			uint32_t id;

			memcpy(&unit, &entry[buffer_bytes - 4 * (i + 1)], sizeof(unit));
			if ((size_t) unit * 8 + ROW_HEADER > buffer_bytes)
				bail_out("a row begins outside its batch");
			memcpy(&id, &entry[(size_t) unit * 8 + ROW_ID_OFFSET], sizeof(id));
			result->order.push_back(id);
		}
	}
}

/* Are these elements in order, and rows 0 .. n - 1? */
static bool
leave_check(Trace *trace, Machine *machine, uint64_t n, const uint64_t *d_words, int row_bits,
			const uint32_t *d_rows)
{
	const size_t ntaken = machine->ntaken();
	GsOrderCheck *d_check = machine->upload(std::vector<GsOrderCheck>(1, GsOrderCheck{0, 0}));
	std::vector<GsOrderCheck> check;

	machine->need(machine->ops->check_order(machine->stream, n, d_words, row_bits, d_rows, d_check));
	check = machine->download(d_check, 1);
	leave(trace, "check of the order", check);
	machine->release(ntaken);
	return check[0].row_sum == 0 && check[0].nmisplaced == 0;
}

/* A complete sort, as in a job. */
static Result
run_steps(Machine *machine, const Table &table, GsAlgorithm algorithm, bool count_in_pack,
		  size_t buffer_bytes)
{
	const GsDeviceOps *ops = machine->ops;
	const GsKeyPacking *packing = table.packing.get();
	const size_t ntaken = machine->ntaken();
	const uint64_t n = table.nrows;
	const bool has_bits = packing->nchunks > 0 && !packing->chunks[0].is_tail;
	Uploaded up = upload_table(machine, table);
	uint64_t *d_words[2] = {machine->take_array<uint64_t>(n), machine->take_array<uint64_t>(n)};
	GsPackResults *d_results = machine->upload(std::vector<GsPackResults>(1, GsPackResults{0, 0}));
	uint32_t *d_selector = machine->take_array<uint32_t>(1);
	Temp temp = take_temp(machine, GS_STEP_SORT_WORDS, algorithm, n);
	uint8_t *d_same = machine->take_array<uint8_t>(n);
	uint64_t *d_sorted = d_words[0];
	GsTies ties = {};
	uint64_t ngroups = 0;
	int chunk = has_bits ? 1 : 0;
	bool tied = chunk < packing->nchunks;
	Result result;

	machine->need(ops->pack(machine->stream, &up.rows, has_bits ? 0 : -1, table.row_bits, d_words[0], d_results,
							count_in_pack ? temp.d_temp : NULL, count_in_pack ? temp.nbytes : 0));
	leave(&result.trace, "packed words", machine->download(d_words[0], n));
	leave_check(&result.trace, machine, n, d_words[0], table.row_bits, NULL);
	leave(&result.trace, "results", machine->download(d_results, 1));
	leave_locations(&result.trace, machine, up);
	if (has_bits)
	{
		uint32_t selector;

		machine->need(ops->sort_words(machine->stream, algorithm, n, table.row_bits, packing->chunks[0].bits,
									  d_words, d_selector, count_in_pack, temp.d_temp, temp.nbytes));
		selector = machine->download(d_selector, 1)[0];
		if (selector > 1)
			bail_out("the selector is neither 0 nor 1");
		d_sorted = d_words[selector];
		leave(&result.trace, "sorted words", machine->download(d_sorted, n));
		expect(leave_check(&result.trace, machine, n, d_sorted, table.row_bits, NULL), "sorted words pass the check");
	}
	if (tied)
	{
		machine->need(ops->same_words(machine->stream, n, d_sorted, table.row_bits, d_same));
		tied = next_ties(machine, &result.trace, n, d_same, d_sorted, table.row_bits, NULL, &ties, &ngroups);
	}
	for (; tied; chunk++)
	{
		const GsKeyChunk *now = &packing->chunks[chunk];
		GsTies next;

		if (now->is_tail)
		{
			Temp tail_temp = take_temp(machine, GS_STEP_SORT_TAILS, algorithm, ties.nties);

			machine->need(ops->sort_tails(machine->stream, &up.rows, &ties, now->tail_component,
										  tail_temp.d_temp, tail_temp.nbytes));
			machine->need(ops->same_tails(machine->stream, &up.rows, &ties, now->tail_component, d_same));
		}
		else
		{
			Temp tie_temp = take_temp(machine, GS_STEP_SORT_TIES, algorithm, ties.nties);
			uint64_t *d_keys[2] = {machine->take_array<uint64_t>(ties.nties),
								   machine->take_array<uint64_t>(ties.nties)};

			machine->need(ops->tie_keys(machine->stream, &up.rows, &ties, chunk, d_keys[0]));
			leave(&result.trace, "keys of ties", machine->download(d_keys[0], ties.nties));
			machine->need(ops->sort_ties(machine->stream, algorithm, &ties,
										 gs_bit_width(ngroups - 1) + now->bits, d_keys, tie_temp.d_temp,
										 tie_temp.nbytes));
			leave(&result.trace, "sorted keys of ties", machine->download(d_keys[0], ties.nties));
			leave_check(&result.trace, machine, ties.nties, d_keys[0], 0, ties.d_rows);
			machine->need(ops->same_keys(machine->stream, ties.nties, d_keys[0], d_same));
		}
		leave_ties(&result.trace, machine, ties);
		machine->need(ops->place_ties(machine->stream, &ties, d_sorted));
		leave(&result.trace, "words with ties in place", machine->download(d_sorted, n));
		leave_check(&result.trace, machine, n, d_sorted, table.row_bits, NULL);
		if (chunk + 1 == packing->nchunks)
			break;
		tied = next_ties(machine, &result.trace, ties.nties, d_same, d_sorted, table.row_bits, &ties, &next,
						 &ngroups);
		ties = next;
	}
	if (table.keys_only)
	{
		uint64_t *d_keys = machine->take_array<uint64_t>(n);
		const uint64_t half = n / 2;

		/* in two parts: one from the middle */
		machine->need(ops->gather_keys(machine->stream, &up.rows, d_sorted, table.row_bits, half,
									   (uint32_t) (n - half), d_keys + half));
		machine->need(ops->gather_keys(machine->stream, &up.rows, d_sorted, table.row_bits, 0,
									   (uint32_t) half, d_keys));
		leave(&result.trace, "keys", machine->download(d_keys, n));
		for (uint64_t word : machine->download(d_sorted, n))
			result.order.push_back((uint32_t) (word & ((UINT64_C(1) << table.row_bits) - 1)));
	}
	else
		gather_all(machine, table, up, d_sorted, buffer_bytes, &result);
	machine->release(ntaken);
	return result;
}

static void
compare_traces(const Trace &reference, const Trace &trace)
{
	for (size_t i = 0; i < std::max(reference.size(), trace.size()); i++)
	{
		if (i >= reference.size() || i >= trace.size() || reference[i].what != trace[i].what)
		{
			expect(false, "the devices took different steps");
			return;
		}
		if (reference[i].bytes != trace[i].bytes)
		{
			const Bytes &a = reference[i].bytes;
			const Bytes &b = trace[i].bytes;
			size_t at = 0;

			while (at < a.size() && at < b.size() && a[at] == b[at])
				at++;
			expect(false, (trace[i].what + " differ from byte " + std::to_string(at) + " of " + std::to_string(a.size()) + " (step " + std::to_string(i) + ")").c_str());
			return; /* what follows differs too */
		}
	}
	expect(true, "all steps agree");
}

static Machine *cuda_machine;
static Machine *host_machine;

static void
try_table(const char *name, const Table &table, size_t buffer_bytes = 65536)
{
	static const char *const variants[] = {"radix", "radix, counted", "merge"};
	const std::vector<uint32_t> expected = table.expected_order();

	for (int variant = 0; variant < 3; variant++)
	{
		const GsAlgorithm algorithm = variant == 2 ? GS_ALGORITHM_MERGE : GS_ALGORITHM_RADIX;
		Result reference;
		Result result;

		context = std::string(name) + ", " + std::to_string(table.nrows) + " rows, " +
			std::to_string(table.packing->nchunks) + " chunks, " + std::to_string(table.batches.size()) +
			" batches, " + variants[variant];
		if (buffer_bytes / 4 < 4 * (size_t) table.max_row_units + 4)
			buffer_bytes = 16 * (table.max_row_units + 64);
		reference = run_steps(host_machine, table, algorithm, variant == 1, buffer_bytes);
		result = run_steps(cuda_machine, table, algorithm, variant == 1, buffer_bytes);
		compare_traces(reference.trace, result.trace);
		expect(result.order == expected, "the order is that of std::stable_sort");
	}
}

/* --------------------------------------------------------------------------------- tests */

static void
test_tables(bool quick)
{
	std::vector<uint64_t> sizes = {1, 2, 3, 255, 257, 2047, 2048, 2049, 4095, 4097};

	if (!quick)
		for (uint64_t n : {31, 33, 128, 4096, 5000, 7681, 8191, 8193, 11264, 30000, 70001})
			sizes.push_back(n);
	for (uint64_t n : sizes)
	{
		try_table("one range", Table(n, {column_of(INT8, 1u << 20)}, 65536, 40));
		try_table("keys only", Table(n, {column_of(INT8)}, 65536, 0, true));
		try_table("text", Table(n, {string_of(TEXT, 40, 0, 3)}, 65536, 9));
		try_table("common prefix", Table(n, {string_of(TEXT, 20, 30, 2)}, 65536, 9));
		try_table("nullable, several chunks",
				  Table(n, {column_of(INT4, 10, 20), string_of(BYTEA, 12, 6, 2, 10, true), column_of(FLOAT8, 0, 10, true, true), column_of(INT8)}, 65536, 30, false, 30));
	}

	const uint64_t n = quick ? 3000 : 20000;

	try_table("all equal", Table(n, {column_of(INT8, 1), string_of(TEXT, 0, 20, 1)}, 65536, 10));
	try_table("all NULL", Table(n, {column_of(INT8, 0, 100)}, 65536, 10));
	try_table("two values", Table(n, {column_of(INT8, 2), column_of(INT8, 3)}, 65536, 10, false, 30));
	try_table("descending", Table(n, {column_of(INT8, 1000, 5, true, false), column_of(INT4, 0, 5, true, true)}, 65536, 10, false, 30));
	try_table("squeezed", Table(n, {masked(UINT64_C(0x0f0f00000000f0f1))}, 65536, 10));
	try_table("squeezed, descending", Table(n, {masked(UINT64_C(0x8000000000000fff), true), column_of(INT8)}, 65536, 10, false, 31));
	try_table("floats", Table(n, {column_of(FLOAT8), column_of(FLOAT4, 0, 0, true)}, 65536, 10));
	try_table("uuid", Table(n, {column_of(UUID)}, 65536, 10));
	try_table("uuid of one half", Table(n, {column_of(UUID, 2)}, 65536, 10, false, 30));
	try_table("zeros embedded", Table(n, {string_of(BYTEA, 12, 0, 1), column_of(INT4)}, 65536, 10));
	try_table("zeros embedded, descending", Table(n, {string_of(BYTEA, 11, 5, 2, 5, true)}, 65536, 10));
	try_table("long strings", Table(n / 10, {string_of(TEXT, 3000, 900, 2)}, 65536, 10));
	try_table("long equal strings", Table(n / 10, {string_of(TEXT, 1, 700, 1), column_of(INT8, 5)}, 65536, 10));
	try_table("three strings", Table(n, {string_of(TEXT, 9, 2, 1), string_of(BYTEA, 10, 4, 2, 30, true), string_of(TEXT, 30, 0, 4)}, 65536, 0));
	/* clang-format off */
	try_table("many columns", Table(n / 2, {column_of(INT4, 3), column_of(INT4, 3, 3), column_of(INT8, 2),
											column_of(FLOAT4, 0, 20), masked(0x10101), column_of(UUID, 2),
											string_of(TEXT, 10, 3, 2), column_of(INT4, 4, 0, true)},
									65536, 0, false, 30));
	/* clang-format on */
	try_table("a row a batch", Table(quick ? 100 : 700, {column_of(INT8), string_of(TEXT, 20, 8, 2)}, 64, 20));
	try_table("few rows a batch", Table(n, {column_of(INT8, 100), string_of(TEXT, 20, 8, 2)}, 2048, 20));
	try_table("keys, few a batch", Table(n, {column_of(INT8, 1u << 16)}, 256, 0, true));
	try_table("keys, descending", Table(n, {column_of(FLOAT8, 0, 0, true)}, 65536, 0, true));
	try_table("wide rows", Table(quick ? 20 : 200, {column_of(INT8)}, 1 << 20, 100000), 1 << 20);
	try_table("rows of all widths", Table(n / 10, {column_of(INT8)}, 1 << 20, 5000), 1 << 20);
	try_table("short rows, large buffers", Table(n, {column_of(INT4)}, 1 << 20, 0), 1 << 20);
	for (uint64_t rows : {(uint64_t) 1, (uint64_t) 500})
		try_table("64 bits", Table(rows, {column_of(INT8)}, 65536, 10, false, 40));
}

static void
test_large(void)
{
	try_table("many", Table(3000000, {column_of(INT8, 1u << 30)}, 4 << 20, 20), 4 << 20);
	try_table("many keys", Table(5000000, {column_of(INT8)}, 4 << 20, 0, true));
	try_table("many ties", Table(1500000, {column_of(INT4, 50000), string_of(TEXT, 12, 6, 5), column_of(INT8)}, 4 << 20, 10), 4 << 20);
	try_table("many equal", Table(1200000, {column_of(INT4, 2), column_of(INT4, 2)}, 4 << 20, 0), 4 << 20);
}

/* Invalid records: they are counted, and never followed. */
static void
test_faults(bool quick)
{
	for (int kind = 0; kind < 6; kind++)
	{
		Table table(quick ? 2000 : 30000, {column_of(INT8, 7), string_of(TEXT, 20, 8, 2)}, 16384, 100);
		Trace traces[2];
		uint64_t nfaulty = 0;

		context = "faulty records, kind " + std::to_string(kind);
		for (HostBatch &batch : table.batches)
		{
			for (uint32_t entry = 0; entry < batch.nrows; entry++)
			{
				uint64_t *record = batch.block.data() + batch.block.size() -
					(entry + 1) * (table.record_bytes / 8);
				uint64_t *place = &record[table.layout.nwords];
				const uint64_t nulls = *place & UINT32_MAX;

				if (table.draw() % 4 != 0)
					continue;
				nfaulty++;
				switch (kind)
				{
					case 0:
						*place = UINT64_MAX << 32 | nulls;
						break;
					case 1:
						*place = (uint64_t) batch.nunits << 32 | nulls;
						break;
					case 2:
						*place = (table.draw() % (2 * batch.nunits)) << 32 | nulls;
						break;
					case 3:
						*place = nulls;
						break;
					case 4: /* strings outside of their rows */
						record[table.layout.columns[1].tail_word] = table.draw();
						break;
					case 5:
						record[table.layout.columns[1].tail_word] =
							gs_tail_make((uint32_t) (table.draw() % 200), (uint32_t) (table.draw() % 200));
						break;
				}
			}
		}
		if (kind == 3)
			table.max_row_units /= 2; /* and rows that are too long */
		for (int i = 0; i < 2; i++)
		{
			Machine *machine = i == 0 ? host_machine : cuda_machine;
			const size_t ntaken = machine->ntaken();
			Uploaded up = upload_table(machine, table);
			uint64_t *d_words = machine->take_array<uint64_t>(table.nrows);
			GsPackResults *d_results = machine->upload(std::vector<GsPackResults>(1, GsPackResults{0, 0}));
			GsPackResults results;
			GsTies ties = take_ties(machine, table.nrows);
			uint8_t *d_same = machine->take_array<uint8_t>(table.nrows);
			Temp temp = take_temp(machine, GS_STEP_SORT_TAILS, GS_ALGORITHM_RADIX, table.nrows);
			std::vector<uint32_t> numbers(table.nrows);
			std::vector<uint32_t> groups(table.nrows);
			int tail = -1;

			machine->need(machine->ops->pack(machine->stream, &up.rows, 0, table.row_bits, d_words, d_results,
											 NULL, 0));
			results = machine->download(d_results, 1)[0];
			leave(&traces[i], "packed words", machine->download(d_words, table.nrows));
			leave(&traces[i], "results", std::vector<GsPackResults>(1, results));
			leave_locations(&traces[i], machine, up);
			expect((results.nfaults > 0) == (kind < 4 && nfaulty > 0), "faults are found");

			/* locations are valid nevertheless, and strings are truncated */
			for (uint64_t row = 0; row < table.nrows; row++)
			{
				numbers[row] = (uint32_t) row;
				groups[row] = (uint32_t) (row / 1000);
			}
			for (int c = 0; c < table.packing->ncomponents; c++)
				if (table.packing->components[c].kind == GS_COMPONENT_TAIL)
					tail = c;
			if (tail < 0)
				bail_out("no tail");
			machine->put(ties.d_places, numbers.data(), table.nrows * 4);
			machine->put(ties.d_rows, numbers.data(), table.nrows * 4);
			machine->put(ties.d_groups, groups.data(), table.nrows * 4);
			machine->need(machine->ops->sort_tails(machine->stream, &up.rows, &ties, tail, temp.d_temp,
												   temp.nbytes));
			machine->need(machine->ops->same_tails(machine->stream, &up.rows, &ties, tail, d_same));
			leave_ties(&traces[i], machine, ties);
			leave(&traces[i], "same tails", machine->download(d_same, table.nrows));
			machine->release(ntaken);
		}
		compare_traces(traces[0], traces[1]);
	}
}

static void
test_storage_never_shrinks(void)
{
	const GsDeviceStep steps[] = {GS_STEP_SORT_WORDS, GS_STEP_LIST_TIES, GS_STEP_SORT_TIES,
								  GS_STEP_SORT_TAILS, GS_STEP_ROW_END_OFFSETS};

	context = "temporary storage";
	for (GsDeviceStep step : steps)
	{
		for (GsAlgorithm algorithm : {GS_ALGORITHM_RADIX, GS_ALGORITHM_MERGE})
		{
			size_t last = 0;
			bool ok = true;

			for (uint64_t n = 1; n <= GS_MAX_JOB_ROWS; n += n / 7 + 1)
			{
				size_t nbytes = cuda_machine->ops->temp_bytes(cuda_machine->device, step, algorithm, n);

				ok = ok && nbytes >= last && nbytes > 0;
				last = nbytes;
			}
			expect(ok, "more elements never need less");
		}
	}
}

static void
test_runtime(void)
{
	const GsDeviceOps *ops = cuda_machine->ops;
	GsDevice *device = cuda_machine->device;
	GsStream *stream = ops->stream_open(device);
	uint64_t free_bytes;
	uint64_t total_bytes;
	uint64_t fence = 0;
	uint64_t last = 0;
	uint64_t passed = 0;
	bool ok = true;
	char *h_memory = (char *) ops->allocate_host(device, 1 << 20);
	char *d_memory = (char *) ops->allocate(device, 1 << 20);
	std::vector<uint64_t> buffer_pool(1 << 17);

	context = "runtime";
	expect(ops->memory(device, &free_bytes, &total_bytes) && free_bytes > 0 && free_bytes <= total_bytes,
		   "memory");
	expect(device->name[0] != '\0' && device->kind == GS_DEVICE_KIND_CUDA, "name and kind");
	expect(ops->allocate(device, (size_t) total_bytes * 4) == NULL && device->error[0] == '\0',
		   "no memory is no fault");
	expect(!ops->pin(device, (void *) 4096, 4096) && device->error[0] == '\0', "what cannot be pinned is no fault");
	expect(ops->pin(device, buffer_pool.data(), buffer_pool.size() * 8), "buffers can be pinned");
	for (size_t i = 0; i < 1 << 20; i++)
		ok = ok && h_memory[i] == 0;
	expect(ok, "host memory is zeroed");

	/* more fences than there are events, without a query */
	ok = true;
	for (int i = 0; i < 1000; i++)
	{
		ok = ok && ops->copy_in(stream, d_memory, h_memory, 1 << 20) && ops->record_fence(stream, &fence) &&
			fence == last + 1;
		last = fence;
	}
	expect(ok, "fences are numbered consecutively");
	ok = true;
	while (passed < last)
	{
		uint64_t before = passed;

		ok = ok && ops->passed_fence(stream, &passed) && passed >= before && passed <= last;
		if (!ok)
			break;
	}
	expect(ok && passed == last, "all fences pass at last");
	/* work before a passed fence has been done */
	for (size_t i = 0; i < buffer_pool.size(); i++)
		buffer_pool[i] = i;
	ok = ops->copy_in(stream, d_memory, buffer_pool.data(), 1 << 20) &&
		ops->copy_out(stream, h_memory, d_memory, 1 << 20) && ops->record_fence(stream, &fence);
	while (ok && passed < fence)
		ok = ops->passed_fence(stream, &passed);
	expect(ok && memcmp(h_memory, buffer_pool.data(), 1 << 20) == 0, "copies are done when their fence has passed");
	ops->unpin(device, buffer_pool.data());
	ops->release_host(device, h_memory);
	ops->release(device, d_memory);
	ops->stream_close(stream);
	expect(device->error[0] == '\0', "no error");
}

/* -------------------------------------------------------------------------- memory of a peer */

/* Bytes that are free on a device. */
static uint64_t
free_bytes_of(int number)
{
	size_t free_bytes = 0;
	size_t total_bytes = 0;

	CHECK(cudaSetDevice(number));
	CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
	CHECK(cudaSetDevice(0));
	return free_bytes;
}

/* Rows of all kinds on the second device, in tables of several tiles. */
static void
test_peer(bool quick)
{
	GsDevice *device = cuda_machine->device;
	const uint64_t n = quick ? 3000 : 100000;
	const size_t nbytes = (size_t) 256 << 20;
	cudaDeviceProp properties;
	GsDeviceIdentity peer;
	int ndevices = 0;
	uint64_t free_before;
	void *d_memory;

	CHECK(cudaGetDeviceCount(&ndevices));
	context = "a peer";
	expect(device->ops->open_peer(device, gs_device_host_identity(1)) == -1 && device->error[0] == '\0', "no access to a device that does not exist");
	expect(device->ops->open_peer(device, device->identity) == -1 && device->error[0] == '\0', "nor to itself");
	expect(device->ops->allocate_at(device, 99, 4096) == NULL && device->error[0] == '\0', "nor memory of it");
	if (ndevices < 2)
	{
		printf("# skipped: rows on a second device: there is only one device\n");
		return;
	}
	CHECK(cudaGetDeviceProperties(&properties, 1));
	memcpy(&peer, &properties.uuid, sizeof(peer));
	expect(!gs_is_same_device(peer, device->identity), "two devices have two identities");
	if (device->ops->open_peer(device, peer) != 1)
	{
		expect(device->error[0] == '\0', "a peer that cannot be accessed is no fault");
		printf("# skipped: rows on a second device: the first cannot access its memory\n");
		return;
	}
	expect(device->ops->open_peer(device, peer) == 1, "access can be permitted twice");
	cuda_machine->rows_at = 1;
	try_table("rows on a peer, one range", Table(n, {column_of(INT8, 1u << 20)}, 65536, 40));
	try_table("rows on a peer, keys only", Table(n, {column_of(INT8)}, 65536, 0, true));
	try_table("rows on a peer, common prefix", Table(n, {string_of(TEXT, 20, 30, 2)}, 65536, 9));
	try_table("rows on a peer, several chunks",
			  Table(n, {column_of(INT4, 10, 20), string_of(BYTEA, 12, 6, 2, 10, true), column_of(FLOAT8, 0, 10, true, true), column_of(INT8)}, 65536, 30, false, 30));
	cuda_machine->rows_at = -1;

	context = "a peer";
	free_before = free_bytes_of(1);
	d_memory = device->ops->allocate_at(device, 1, nbytes);
	expect(d_memory != NULL && free_bytes_of(1) + nbytes <= free_before, "memory is allocated on the peer");
	device->ops->release(device, d_memory);
	expect(free_bytes_of(1) >= free_before, "and released there");
	expect(device->ops->allocate_at(device, 1, (size_t) 1 << 50) == NULL, "the peer has no more than it has");
	expect(device->error[0] == '\0', "no error");
}

/* Must be last, because the device fails. */
static void
test_broken(void)
{
	char why_not[200] = "";
	GsDevice *device = gs_device_cuda_open(0, why_not, sizeof(why_not));
	const GsDeviceOps *ops;
	GsStream *stream;
	uint64_t *d_memory;
	uint64_t fence;

	context = "a broken device";
	expect(gs_device_cuda_open(1000, why_not, sizeof(why_not)) == NULL && why_not[0] != '\0', "no such device");
	if (device == NULL)
		bail_out(why_not);
	ops = device->ops;
	stream = ops->stream_open(device);
	d_memory = (uint64_t *) ops->allocate(device, 4096);

	uint64_t *const d_words[2] = {d_memory, d_memory + 256};

	expect(!ops->sort_words(stream, GS_ALGORITHM_RADIX, 100000, 0, 64, d_words, (uint32_t *) d_memory, false,
							d_memory, 16),
		   "too little storage");
	expect(device->error[0] != '\0', "the text is there");
	expect(!ops->record_fence(stream, &fence), "later calls fail");
	ops->stream_close(stream);
	ops->close(device);
}

int
main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "full";
	const bool quick = strcmp(mode, "quick") == 0;
	char why_not[200] = "";
	GsDevice *cuda = gs_device_cuda_open(0, why_not, sizeof(why_not));
	GsDevice *host;

	context = "open";
	if (cuda == NULL)
		bail_out(why_not);
	printf("# %s\n", cuda->name);
	host = gs_device_host_open(0, UINT64_C(16) << 30, why_not, sizeof(why_not));
	if (host == NULL)
		bail_out(why_not);
	cuda_machine = new Machine(cuda);
	host_machine = new Machine(host);
	test_storage_never_shrinks();
	test_runtime();
	test_tables(quick);
	test_faults(quick);
	if (!quick)
		test_large();
	test_peer(quick);
	delete cuda_machine;
	delete host_machine;
	test_broken();
	return finish("the CUDA device");
}
