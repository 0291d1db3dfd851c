/*-------------------------------------------------------------------------
 *
 * test_device.cu
 *	  The CUDA device against the host device, step by step and bit by bit.
 *
 * A *table* is made of random rows, with their records, as a client would
 * send them.  Then all steps of a sort run on both devices, and whatever a step
 * leaves behind is compared: words, locations, lists of ties, keys, batches of
 * sorted rows.  Last, the order itself is compared with std::stable_sort and
 * what SQL says of the values, which no device has seen.
 *
 * Every piece of device memory has a canary behind it, and comes poisoned.
 *
 * usage: test_device [quick | full | time [first]]
 *
 *-------------------------------------------------------------------------
 */
#include <chrono>
#include <functional>
#include <math.h>
#include <memory>
#include <string>

#include "test_common.h"

#include "device/device.h"
#include "common/key_codec.h"

#define ROW_ID_OFFSET 8 /* of the row number, for the tests */
#define ROW_HEADER    16

typedef std::vector<char> Bytes;

static std::string context;

static void
expect(bool ok, const char *what)
{
	report(ok, (context + ": " + what).c_str());
}

static void
bail_out(const char *what)
{
	printf("Bail out! %s: %s\n", context.c_str(), what);
	exit(2);
}

/* ------------------------------------------------------------- a device's memory and stream */

class Machine
{
public:
	GsDevice *device;
	const GsDeviceOps *ops;
	GsStream *stream;

	Machine(GsDevice *opened)
	{
		device = opened;
		ops = device->ops;
		stream = ops->stream_open(device);
		if (stream == NULL)
			bail_out("no stream");
	}

	~Machine()
	{
		ops->stream_close(stream);
		ops->close(device);
	}

	/* ok is the result of a call */
	void need(bool ok)
	{
		if (!ok)
			bail_out(device->error[0] != '\0' ? device->error : "a call failed and did not say why");
	}

	void wait()
	{
		uint64_t fence;
		uint64_t passed = 0;

		need(ops->record_fence(stream, &fence));
		while (passed < fence)
			need(ops->passed_fence(stream, &passed));
		if (passed > fence)
			bail_out("a fence that was never recorded has passed");
	}

	void *take(size_t nbytes)
	{
		char *d_memory = (char *) ops->allocate(device, nbytes + CANARY_BYTES);
		Bytes filling;

		if (d_memory == NULL)
			bail_out("no device memory");
		if ((uintptr_t) d_memory % 256 != 0)
			bail_out("device memory is not aligned");
		filling.reserve(nbytes + CANARY_BYTES);
		filling.resize(nbytes, (char) POISON);
		filling.resize(nbytes + CANARY_BYTES, (char) CANARY);
		put(d_memory, filling.data(), filling.size());
		taken.push_back({d_memory, nbytes});
		return d_memory;
	}

	template <typename T>
	T *take_array(size_t n)
	{
		return (T *) take(n * sizeof(T));
	}

	template <typename T>
	T *upload(const std::vector<T> &data)
	{
		T *d_data = take_array<T>(data.size());

		put(d_data, data.data(), data.size() * sizeof(T));
		return d_data;
	}

	void put(void *d_to, const void *from, size_t nbytes)
	{
		need(ops->copy_in(stream, d_to, from, nbytes));
		wait();
	}

	template <typename T>
	std::vector<T> download(const T *d_data, size_t n)
	{
		std::vector<T> data(n);

		if (n > 0)
			need(ops->copy_out(stream, data.data(), d_data, n * sizeof(T)));
		wait();
		return data;
	}

	/* Frees all allocations after the first ones. */
	void release(size_t ntaken)
	{
		while (taken.size() > ntaken)
		{
			Piece piece = taken.back();
			std::vector<char> canary = download(piece.d_memory + piece.nbytes, CANARY_BYTES);

			for (char c : canary)
				if (c != (char) CANARY)
				{
					expect(false, "a canary died");
					break;
				}
			ops->release(device, piece.d_memory);
			taken.pop_back();
		}
	}

	size_t ntaken() const
	{
		return taken.size();
	}

private:
	struct Piece
	{
		char *d_memory;
		size_t nbytes;
	};
	std::vector<Piece> taken;
};

/* ----------------------------------------------------------------------- tables of rows */

enum Kind
{
	INT8,
	INT4,
	FLOAT8,
	FLOAT4,
	UUID,
	TEXT, /* no zero bytes */
	BYTEA
};

typedef struct Column
{
	Kind kind;
	bool descending;
	bool nulls_first;
	unsigned null_percent;
	uint64_t range;      /* number of distinct values; 0: any */
	uint64_t mask;       /* mask of the bits that may vary; 0: all */
	unsigned max_len;    /* of a string */
	unsigned prefix_len; /* part of it that is the same for all */
	unsigned nletters;
} Column;

static Column
column_of(Kind kind, uint64_t range = 0, unsigned null_percent = 0, bool descending = false,
		  bool nulls_first = false)
{
	Column column = {};

	column.kind = kind;
	column.range = range;
	column.null_percent = null_percent;
	column.descending = descending;
	column.nulls_first = nulls_first;
	column.max_len = 20;
	column.nletters = 3;
	return column;
}

static Column
string_of(Kind kind, unsigned max_len, unsigned prefix_len, unsigned nletters, unsigned null_percent = 0,
		  bool descending = false)
{
	Column column = column_of(kind, 0, null_percent, descending, descending);

	column.max_len = max_len;
	column.prefix_len = prefix_len;
	column.nletters = nletters;
	return column;
}

static Column
masked(uint64_t mask, bool descending = false)
{
	Column column = column_of(INT8, 0, 0, descending);

	column.mask = mask;
	return column;
}

/* A value, as std::stable_sort compares it. */
typedef struct Value
{
	bool is_null;
	uint64_t codes[2]; /* canonical */
	std::string bytes;
} Value;

typedef struct HostBatch
{
	std::vector<uint64_t> block;
	uint32_t nrows;
	uint32_t nunits;
} HostBatch;

class Table
{
public:
	uint64_t nrows;
	bool keys_only;
	std::vector<Column> columns;
	std::vector<std::vector<Value>> values; /* by column */
	GsKeyLayout layout;
	std::unique_ptr<GsKeyPacking> packing;
	std::vector<HostBatch> batches;
	size_t record_bytes;
	uint32_t max_row_units;
	int row_bits;

	Table(uint64_t n, std::vector<Column> of, size_t batch_bytes, unsigned max_padding,
		  bool only_keys = false, int chunk_bits = 0, uint64_t seed_ = 1)
	{
		nrows = n;
		columns = of;
		keys_only = only_keys;
		seed = seed_;
		draws = 0;
		make_values();
		make_layout();
		make_batches(batch_bytes, max_padding);
		row_bits = n > 1 ? gs_bit_width(n - 1) : 1;
		if (chunk_bits == 0)
			chunk_bits = 64 - row_bits;
		packing.reset(new GsKeyPacking());
		gs_key_packing_init(packing.get(), &layout, chunk_bits);
	}

	int compare(uint64_t a, uint64_t b) const
	{
		for (size_t c = 0; c < columns.size(); c++)
		{
			const Value &x = values[c][a];
			const Value &y = values[c][b];
			int order;

			if (x.is_null || y.is_null)
			{
				if (x.is_null && y.is_null)
					continue;
				return x.is_null == columns[c].nulls_first ? -1 : 1;
			}
			if (columns[c].kind == TEXT || columns[c].kind == BYTEA)
			{
				/* char_traits<char> compares as memcmp does */
				order = x.bytes.compare(y.bytes);
			}
			else
				order = x.codes[0] != y.codes[0] ? (x.codes[0] < y.codes[0] ? -1 : 1) :
					x.codes[1] != y.codes[1]     ? (x.codes[1] < y.codes[1] ? -1 : 1) :
												   0;
			if (order != 0)
				return columns[c].descending ? -order : order;
		}
		return 0;
	}

	std::vector<uint32_t> expected_order() const
	{
		std::vector<uint32_t> order(nrows);

		for (uint64_t i = 0; i < nrows; i++)
			order[i] = (uint32_t) i;
		std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
			return compare(a, b) < 0;
		});
		return order;
	}

	uint64_t draw()
	{
		return random_bits(seed, draws++);
	}

private:
	uint64_t seed;
	uint64_t draws;

	uint64_t draw_code(const Column &column)
	{
		uint64_t code = draw();

		if (column.kind == FLOAT8 || column.kind == FLOAT4)
		{
			static const double specials[] = {NAN, -NAN, INFINITY, -INFINITY, 0.0, -0.0, 1e-310, -1.5};
			double x = (double) (int64_t) (code % 2000) - 1000;

			if (draw() % 3 == 0)
				x = specials[code % 8];
			if (column.kind == FLOAT4)
			{
				float y = (float) x;
				uint32_t bits;

				memcpy(&bits, &y, sizeof(bits));
				return gs_encode_float4_bits(bits);
			}
			memcpy(&code, &x, sizeof(code));
			return gs_encode_float8_bits(code);
		}
		if (column.range > 0)
			code = 0x5000000 + code % column.range;
		if (column.mask != 0)
			code = (code & column.mask) | (~column.mask & 0x0123456789abcdef);
		return column.kind == INT4 ? (uint32_t) code : code;
	}

	void make_values()
	{
		for (const Column &column : columns)
		{
			std::vector<Value> mine(nrows);

			for (Value &value : mine)
			{
				value.is_null = draw() % 100 < column.null_percent;
				if (value.is_null)
					continue;
				if (column.kind == TEXT || column.kind == BYTEA)
				{
					const unsigned len = (unsigned) (draw() % (column.max_len + 1));

					value.bytes.assign(column.prefix_len, 'p');
					for (unsigned i = 0; i < len; i++)
						value.bytes.push_back((char) ((column.kind == TEXT) + draw() % column.nletters * (250 / column.nletters)));
				}
				else
				{
					value.codes[0] = draw_code(column);
					value.codes[1] = column.kind == UUID ? draw_code(column) : 0;
				}
			}
			values.push_back(std::move(mine));
		}
	}

	static uint64_t canonical(const Column &column, uint64_t code)
	{
		return column.kind == FLOAT8 ? gs_float8_canonical(code) :
			column.kind == FLOAT4    ? gs_float4_canonical(code) :
									   code;
	}

	void make_layout()
	{
		gs_key_layout_init(&layout);
		layout.keys_only = keys_only;
		for (const Column &column : columns)
		{
			gs_key_layout_add_column(&layout, column.descending, column.nulls_first);
			switch (column.kind)
			{
				case INT8:
					gs_key_layout_add_field(&layout, 64, GS_CANONICAL_NONE);
					break;
				case INT4:
					gs_key_layout_add_field(&layout, 32, GS_CANONICAL_NONE);
					break;
				case FLOAT8:
					gs_key_layout_add_field(&layout, 64, GS_CANONICAL_FLOAT8);
					break;
				case FLOAT4:
					gs_key_layout_add_field(&layout, 32, GS_CANONICAL_FLOAT4);
					break;
				case UUID:
					gs_key_layout_add_field(&layout, 64, GS_CANONICAL_NONE);
					gs_key_layout_add_field(&layout, 64, GS_CANONICAL_NONE);
					break;
				case TEXT:
				case BYTEA:
					gs_key_layout_add_bytes(&layout, column.kind == TEXT);
					break;
			}
		}
		record_bytes = gs_record_bytes(&layout);
		layout.nrows = nrows;
	}

	void put_field(uint64_t *record, GsKeyField *field, uint64_t code, uint64_t canonical_code)
	{
		record[field->word] |= code << field->shift;
		gs_key_field_update_range(field, canonical_code);
	}

	/* Fills the record; strings are appended to the row. */
	uint32_t put_values(uint64_t i, uint64_t *record, std::string *row)
	{
		uint32_t nulls = 0;

		for (size_t c = 0; c < columns.size(); c++)
		{
			GsKeyColumn *column = &layout.columns[c];
			GsKeyField *field = &layout.fields[column->first_field];
			Value &value = values[c][i];

			if (value.is_null)
			{
				column->nnulls++;
				nulls |= 1u << c;
				continue;
			}
			if (column->variable)
			{
				const std::string &bytes = value.bytes;
				uint64_t prefix = gs_load_prefix((const unsigned char *) bytes.data(), bytes.size());

				put_field(record, field, prefix, prefix);
				record[column->tail_word] = gs_tail_make((uint32_t) row->size(), (uint32_t) bytes.size());
				column->min_len = std::min(column->min_len, (uint32_t) bytes.size());
				column->max_len = std::max(column->max_len, (uint32_t) bytes.size());
				*row += bytes;
				continue;
			}
			for (int f = 0; f < column->nfields; f++)
			{
				uint64_t code = value.codes[f];

				value.codes[f] = canonical(columns[c], code);
				put_field(record, field + f, code, value.codes[f]);
			}
		}
		return nulls;
	}

	void make_batches(size_t batch_bytes, unsigned max_padding)
	{
		GsBatch batch = {};

		max_row_units = 1;
		for (uint64_t i = 0; i < nrows; i++)
		{
			std::vector<uint64_t> record(record_bytes / 8, 0);
			std::string row(ROW_HEADER, '\0');
			uint32_t nulls;

			memcpy(&row[ROW_ID_OFFSET], &i, sizeof(uint32_t));
			nulls = put_values(i, record.data(), &row);
			row.append(max_padding > 0 ? draw() % (max_padding + 1) : 0, (char) i);
			if (keys_only)
				row.clear();
			if (i == 0 || !gs_batch_has_space(&batch, row.size()))
			{
				if (i > 0)
					close_batch(&batch);
				batches.emplace_back();
				batches.back().block.resize(std::max(batch_bytes, GS_ALIGN_ROW(row.size()) + record_bytes) / 8);
				gs_batch_init(&batch, batches.back().block.data(), batches.back().block.size() * 8,
							  record_bytes);
			}
			if (!keys_only)
				record[layout.nwords] = gs_batch_next_place(&batch, nulls);
			memcpy(gs_batch_next_record(&batch), record.data(), record_bytes);
			if (!row.empty())
				memcpy(gs_batch_next_row(&batch), row.data(), row.size());
			gs_batch_push(&batch, row.size());
			max_row_units = std::max(max_row_units, (uint32_t) (GS_ALIGN_ROW(row.size()) / 8));
		}
		close_batch(&batch);
	}

	void close_batch(const GsBatch *batch)
	{
		batches.back().nrows = (uint32_t) batch->nrows;
		batches.back().nunits = (uint32_t) ((batch->rows_end - batch->base) / 8);
	}
};

/* A table in the memory of a device. */
typedef struct Uploaded
{
	GsDeviceRows rows;
	std::vector<uint64_t> bases;  /* by batch: where its rows are */
	std::vector<uint64_t> firsts; /* and its first row */
} Uploaded;

static Uploaded
upload_table(Machine *machine, const Table &table)
{
	Uploaded up;
	std::vector<GsDeviceBatch> batches;
	uint64_t first = 0;

	for (const HostBatch &from : table.batches)
	{
		GsDeviceBatch batch = {};
		const size_t records_words = from.nrows * table.record_bytes / 8;
		/*
		 * rows and records end at the end of their memory, so reads beyond it
		 * are detected
		 */
		std::vector<uint64_t> rows(from.block.begin(), from.block.begin() + from.nunits);
		std::vector<uint64_t> records(from.block.end() - records_words, from.block.end());

		batch.first_row = first;
		batch.nrows = from.nrows;
		batch.nunits = from.nunits;
		batch.d_rows = table.keys_only ? NULL : (const char *) machine->upload(rows);
		batch.d_records_top = (const char *) machine->upload(records) + records_words * 8;
		up.bases.push_back((uint64_t) (uintptr_t) batch.d_rows);
		up.firsts.push_back(first);
		batches.push_back(batch);
		first += from.nrows;
	}
	up.rows = {};
	up.rows.nrows = table.nrows;
	up.rows.nbatches = (uint32_t) batches.size();
	up.rows.record_bytes = (uint32_t) table.record_bytes;
	up.rows.max_row_units = table.max_row_units;
	up.rows.keys_only = table.keys_only;
	up.rows.d_batches = machine->upload(batches);
	up.rows.d_packing = machine->upload(std::vector<GsKeyPacking>(1, *table.packing));
	up.rows.d_locations = table.keys_only ? NULL : machine->take_array<uint64_t>(table.nrows);
	return up;
}

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

static GsTies
take_ties(Machine *machine, uint64_t n)
{
	GsTies ties = {n, machine->take_array<uint32_t>(n), machine->take_array<uint32_t>(n),
				   machine->take_array<uint32_t>(n)};

	return ties;
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

typedef struct Temp
{
	void *d_temp;
	size_t nbytes;
} Temp;

static Temp
take_temp(Machine *machine, GsDeviceStep step, GsAlgorithm algorithm, uint64_t n)
{
	Temp temp = {NULL, machine->ops->temp_bytes(machine->device, step, algorithm, n)};

	temp.d_temp = machine->take(temp.nbytes);
	return temp;
}

/* Makes the next list of ties from flags; false if there are none. */
static bool
next_ties(Machine *machine, Trace *trace, uint64_t n, const uint8_t *d_same, const uint64_t *d_words,
		  int row_bits, const GsTies *from, GsTies *out, uint64_t *ngroups)
{
	const GsDeviceOps *ops = machine->ops;
	GsTieCount *d_count = machine->take_array<GsTieCount>(1);
	Temp temp = take_temp(machine, GS_STEP_LIST_TIES, GS_ALGORITHM_AUTO, n);
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
	Temp temp = take_temp(machine, GS_STEP_ROW_END_OFFSETS, GS_ALGORITHM_AUTO, n);
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
			machine->need(ops->same_keys(machine->stream, ties.nties, d_keys[0], d_same));
		}
		leave_ties(&result.trace, machine, ties);
		machine->need(ops->place_ties(machine->stream, &ties, d_sorted));
		leave(&result.trace, "words with ties in place", machine->download(d_sorted, n));
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

/* ------------------------------------------------------------------------------------ time */

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

	if (packing->nchunks > 1)
	{
		uint8_t *d_same = m->take_array<uint8_t>(n);
		GsTieCount *d_count = m->take_array<GsTieCount>(1);
		Temp ties_temp = take_temp(m, GS_STEP_LIST_TIES, GS_ALGORITHM_AUTO, n);
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
		Temp ends_temp = take_temp(m, GS_STEP_ROW_END_OFFSETS, GS_ALGORITHM_AUTO, n);
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
	const char *mode = argc > 1 ? argv[1] : "full";
	const bool quick = strcmp(mode, "quick") == 0;
	char why_not[200] = "";
	double start = seconds();
	GsDevice *cuda = gs_device_cuda_open(0, why_not, sizeof(why_not));
	GsDevice *host;

	context = "open";
	if (cuda == NULL)
		bail_out(why_not);
	printf("# %s, open after %.0f ms\n", cuda->name, (seconds() - start) * 1e3);
	host = gs_device_host_open(UINT64_C(16) << 30, why_not, sizeof(why_not));
	if (host == NULL)
		bail_out(why_not);
	cuda_machine = new Machine(cuda);
	host_machine = new Machine(host);
	if (strcmp(mode, "time") == 0)
		time_all(argc > 2);
	else
	{
		test_storage_never_shrinks();
		test_runtime();
		test_tables(quick);
		test_faults(quick);
		if (!quick)
			test_large();
	}
	delete cuda_machine;
	delete host_machine;
	if (strcmp(mode, "time") == 0)
		return 0;
	test_broken();
	return finish("the CUDA device");
}
