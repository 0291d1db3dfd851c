/*-------------------------------------------------------------------------
 *
 * test_device.h
 *	  A device's memory, and a random table in it.
 *
 * A *table* is made of random rows, with their records, as a client would send
 * them.  Every piece of device memory has a canary behind it, and comes poisoned.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_TEST_DEVICE_H
#define GPUSORT_TEST_DEVICE_H

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
	int rows_at = -1; /* the peer on which rows and records are; -1: none */

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
		return guard((char *) ops->allocate(device, nbytes + CANARY_BYTES), nbytes);
	}

	/* Fills memory, which has space for a canary. */
	void *guard(char *d_memory, size_t nbytes)
	{
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

	/* Uploads rows or records, to the peer rows_at if there is one. */
	const char *upload_rows(const std::vector<uint64_t> &data)
	{
		const size_t nbytes = data.size() * 8;
		void *d_data = rows_at < 0 ? take(nbytes) :
									 guard((char *) ops->allocate_at(device, (uint32_t) rows_at, nbytes + CANARY_BYTES), nbytes);

		put(d_data, data.data(), nbytes);
		return (const char *) d_data;
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
				record[layout.nwords] = gs_batch_next_location(&batch, nulls);
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
		batch.d_rows = table.keys_only ? NULL : machine->upload_rows(rows);
		batch.d_records_top = machine->upload_rows(records) + records_words * 8;
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

/* -------------------------------------------------------- memory that a step needs */

static GsTies
take_ties(Machine *machine, uint64_t n)
{
	GsTies ties = {n, machine->take_array<uint32_t>(n), machine->take_array<uint32_t>(n),
				   machine->take_array<uint32_t>(n)};

	return ties;
}

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

#endif /* GPUSORT_TEST_DEVICE_H */
