/*-------------------------------------------------------------------------
 *
 * test_key_pack.c
 *	  The packing of keys (key_pack.h).
 *
 * The packing is right if comparing two records chunk by chunk, bits as
 * numbers and tails as bytes, gives what comparing the values gives.  The
 * tests do so for random tables at all widths of a chunk, evaluating each
 * chunk once by the function that the sort would use and once by a naive
 * reading of the header.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "common/batch.h"
#include "common/key_codec.h"
#include "common/key_pack.h"
#include "unit_cmocka.h"
#include "unit_table.h"

/* ------------------------------------------------------------------ extract bits */

/* Bit by bit, from the top. */
static uint64_t
squeeze_naive(uint64_t value, uint64_t varying)
{
	uint64_t	result = 0;

	for (int bit = 63; bit >= 0; bit--)
	{
		if ((varying >> bit) & 1)
			result = result * 2 + ((value >> bit) & 1);
	}
	return result;
}

static void
check_squeeze(uint64_t value, uint64_t varying)
{
	uint64_t	expected = squeeze_naive(value, varying);

	CHECK_MSG(gs_extract_bits(value, varying) == expected, "portable: %llx by %llx",
			  (unsigned long long) value, (unsigned long long) varying);
	CHECK_MSG(gs_extract_bits_function() (value, varying) == expected, "chosen: %llx by %llx",
			  (unsigned long long) value, (unsigned long long) varying);
}

static void
test_squeeze(void **unused)
{
	Dice		dice = dice_of_seed(1);

	for (int i = 0; i < 200000; i++)
	{
		uint64_t	varying = dice_word(&dice);

		/* dense, sparse, and runs */
		switch (dice_below(&dice, 4))
		{
			case 0:
				varying &= dice_word(&dice) & dice_word(&dice);
				break;
			case 1:
				varying |= dice_word(&dice) | dice_word(&dice);
				break;
			case 2:
				varying = (dice_any_width(&dice, 64) << dice_below(&dice, 64)) ^
					dice_any_width(&dice, 64);
				break;
		}
		check_squeeze(dice_word(&dice), varying);
	}
}

static void
test_squeeze_edges(void **unused)
{
	const uint64_t values[] = {0, 1, UINT64_MAX, UINT64_C(1) << 63,
	UINT64_C(0xAAAAAAAAAAAAAAAA), UINT64_C(0x5555555555555555)};

	for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++)
	{
		check_squeeze(values[v], 0);
		check_squeeze(values[v], UINT64_MAX);
		check_squeeze(values[v], UINT64_C(0xAAAAAAAAAAAAAAAA));
		check_squeeze(values[v], UINT64_C(0x5555555555555555));

		/* every single run of ones, and its complement */
		for (int from = 0; from < 64; from++)
		{
			for (int to = from; to < 64; to++)
			{
				uint64_t	run = (UINT64_MAX >> (63 - to)) & (UINT64_MAX << from);

				check_squeeze(values[v], run);
				check_squeeze(values[v], ~run);
			}
		}
	}
}

static void
test_bit_width(void **unused)
{
	CHECK(gs_bit_width(0) == 0);
	CHECK(gs_bit_width(1) == 1);
	CHECK(gs_bit_width(UINT64_MAX) == 64);
	for (int bit = 1; bit < 64; bit++)
	{
		CHECK(gs_bit_width(UINT64_C(1) << bit) == bit + 1);
		CHECK(gs_bit_width((UINT64_C(1) << bit) - 1) == bit);
	}
}

/* ------------------------------------------------------------------- layouts */

/*
 * No field crosses a word or shares a bit with another, fields of a column are
 * in its order, and tail words are nobody else's.
 */
static void
check_layout(const GsKeyLayout *layout)
{
	uint64_t	taken[GS_MAX_FIELDS + GS_MAX_COLUMNS] = {0};
	int			fields = 0;

	CHECK(layout->nwords <= GS_MAX_FIELDS + GS_MAX_COLUMNS);
	for (int colno = 0; colno < layout->ncolumns; colno++)
	{
		const GsKeyColumn *column = &layout->columns[colno];

		CHECK(column->first_field == fields);
		for (int i = 0; i < column->nfields; i++)
		{
			const GsKeyField *field = &layout->fields[fields++];
			uint64_t	mask = gs_key_field_mask(field);

			CHECK(field->word < layout->nwords);
			CHECK(field->bits >= 1 && field->shift + field->bits <= 64);
			CHECK(gs_bit_width(mask) == field->bits && (mask & (mask + 1)) == 0);
			CHECK((taken[field->word] & (mask << field->shift)) == 0);
			taken[field->word] |= mask << field->shift;
		}
		if (column->variable)
		{
			CHECK(column->tail_word < layout->nwords && taken[column->tail_word] == 0);
			taken[column->tail_word] = UINT64_MAX;
		}
	}
	CHECK(fields == layout->nfields);
	for (int word = 0; word < layout->nwords; word++)
		CHECK(taken[word] != 0);
}

static void
test_layout(void **unused)
{
	for (uint64_t seed = 0; seed < 2000; seed++)
	{
		Dice		dice = dice_of_seed(seed);
		TestTable  *table = table_make(&dice, &(TableOptions) {
			.max_rows = 1, .ncolumns = 1 + (int) (seed % GS_MAX_COLUMNS)
		});
		GsKeyLayout layout;

		table_layout(table, &layout);
		check_layout(&layout);
		CHECK(gs_record_bytes(&layout) == sizeof(uint64_t) * ((size_t) layout.nwords + 1));
		table_free(table);
	}
	unit_case("%s", "");
}

/* The records drawn in the comments of key_layout.h and key_encoder.c. */
static void
test_layout_example(void **unused)
{
	GsKeyLayout layout;

	gs_key_layout_init(&layout);
	gs_key_layout_add_column(&layout, false, false);
	gs_key_layout_add_field(&layout, 32, GS_CANONICAL_NONE);
	gs_key_layout_add_column(&layout, true, false);
	gs_key_layout_add_field(&layout, 32, GS_CANONICAL_NONE);
	gs_key_layout_add_column(&layout, false, false);
	gs_key_layout_add_bytes(&layout, true);
	check_layout(&layout);
	CHECK(layout.nwords == 3);
	CHECK(layout.fields[0].word == 0 && layout.fields[0].shift == 32);
	CHECK(layout.fields[1].word == 0 && layout.fields[1].shift == 0);
	CHECK(layout.fields[2].word == 1 && layout.fields[2].shift == 0);
	CHECK(layout.columns[2].tail_word == 2);

	/* nothing joins a tail word, and one bit too many takes a new one */
	gs_key_layout_add_column(&layout, false, false);
	gs_key_layout_add_field(&layout, 1, GS_CANONICAL_NONE);
	gs_key_layout_add_field(&layout, 63, GS_CANONICAL_NONE);
	gs_key_layout_add_field(&layout, 1, GS_CANONICAL_NONE);
	check_layout(&layout);
	CHECK(layout.nwords == 5);
	CHECK(layout.fields[3].word == 3 && layout.fields[3].shift == 63);
	CHECK(layout.fields[4].word == 3 && layout.fields[4].shift == 0);
	CHECK(layout.fields[5].word == 4 && layout.fields[5].shift == 63);
}

static void
test_tail_word(void **unused)
{
	const uint32_t numbers[] = {0, 1, 7, UINT32_C(0x7FFFFFFF), UINT32_C(0x80000000), UINT32_MAX};

	for (int i = 0; i < 6; i++)
	{
		for (int k = 0; k < 6; k++)
		{
			uint64_t	tail = gs_tail_make(numbers[i], numbers[k]);

			CHECK(gs_tail_offset(tail) == numbers[i]);
			CHECK(gs_tail_len(tail) == numbers[k]);
		}
	}
}

/* ------------------------------------------------------ the chunks themselves */

/*
 * The pieces of the chunks, one after the other, are the components' bits from
 * first to last without gap or overlap, and every chunk is as full as possible.
 */
static void
check_levels(const GsKeyPacking *packing, int chunk_bits)
{
	int			component = 0;
	int			bits_left;
	int			total = 0;
	int			npieces = 0;

	CHECK(packing->ncomponents <= GS_MAX_COMPONENTS);
	CHECK(packing->nchunks <= GS_MAX_KEY_CHUNKS);
	CHECK(packing->npieces <= GS_MAX_PIECES);
	bits_left = packing->ncomponents > 0 ? packing->components[0].bits : 0;
	for (int i = 0; i < packing->nchunks; i++)
	{
		const GsKeyChunk *chunk = &packing->chunks[i];
		int			bits = 0;

		CHECK(chunk->first_piece == npieces);
		if (chunk->is_tail)
		{
			CHECK(chunk->npieces == 0 && chunk->bits == 0);
			CHECK(chunk->tail_component == component && bits_left == 0);
			CHECK(packing->components[component].kind == GS_COMPONENT_TAIL);
			CHECK(packing->has_tails);
			if (++component < packing->ncomponents)
				bits_left = packing->components[component].bits;
			continue;
		}
		CHECK(chunk->npieces > 0);
		for (int k = 0; k < chunk->npieces; k++)
		{
			const GsPiece *piece = &packing->pieces[npieces++];

			CHECK(piece->component == component && piece->bits > 0);
			CHECK(piece->bits <= bits_left && piece->shift == bits_left - piece->bits);
			bits += piece->bits;
			bits_left -= piece->bits;
			if (bits_left == 0 && ++component < packing->ncomponents)
				bits_left = packing->components[component].bits;
		}
		CHECK(bits == chunk->bits && bits <= chunk_bits);
		CHECK(bits == chunk_bits || i == packing->nchunks - 1 ||
			  packing->chunks[i + 1].is_tail);
		total += bits;
	}
	CHECK(component == packing->ncomponents);
	CHECK(npieces == packing->npieces);
	CHECK(total == packing->total_bits);
}

/* What the header says that a component contributes. */
static uint64_t
component_naive(const GsKeyLayout *layout, const GsComponent *component,
				const uint64_t *record)
{
	const GsKeyColumn *column = &layout->columns[component->column];
	bool		is_null = !layout->keys_only &&
	(record[layout->nwords] >> component->column & 1) != 0;
	uint64_t	code;

	if (component->kind == GS_COMPONENT_NULL_FLAG)
		return column->nulls_first ? !is_null : is_null;
	if (is_null)
		return 0;
	code = record[component->word] >> component->shift & component->field_mask;
	if (component->canonical == GS_CANONICAL_FLOAT8)
		code = gs_float8_canonical(code);
	if (component->canonical == GS_CANONICAL_FLOAT4)
		code = gs_float4_canonical(code);
	if (component->kind == GS_COMPONENT_RANGE)
		return column->descending ? component->base - code : code - component->base;
	return squeeze_naive(column->descending ? ~code : code, component->varying);
}

static uint64_t
level_naive(const GsKeyLayout *layout, const GsKeyPacking *packing,
			const GsKeyChunk *chunk, const uint64_t *record)
{
	uint64_t	result = 0;

	for (int k = 0; k < chunk->npieces; k++)
	{
		const GsPiece *piece = &packing->pieces[chunk->first_piece + k];
		uint64_t	value = component_naive(layout, &packing->components[piece->component],
											record);

		for (int bit = piece->shift + piece->bits - 1; bit >= piece->shift; bit--)
			result = result * 2 + (value >> bit & 1);
	}
	return result;
}

/* A table's rows in one batch. */
typedef struct Packed
{
	const TestTable *table;
	GsKeyLayout layout;
	GsBatch		batch;
	char	   *block;
	GsKeyPacking packing;
} Packed;

static Packed *
pack_rows(const TestTable *table)
{
	Packed	   *packed = malloc(sizeof(Packed));
	size_t		nbytes = 8;

	CHECK(packed != NULL);
	packed->table = table;
	table_layout(table, &packed->layout);
	for (size_t row = 0; row < table->nrows; row++)
		nbytes += GS_ALIGN_ROW(table_row_bytes(table, row)) + gs_record_bytes(&packed->layout);
	packed->block = malloc(nbytes);
	CHECK(packed->block != NULL);
	gs_batch_init(&packed->batch, packed->block, nbytes, gs_record_bytes(&packed->layout));
	for (size_t row = 0; row < table->nrows; row++)
	{
		size_t		row_bytes = table_row_bytes(table, row);
		uint32_t	offsets[GS_MAX_COLUMNS];
		uint64_t   *record = gs_batch_next_record(&packed->batch);
		uint32_t	nulls;

		CHECK(gs_batch_has_space(&packed->batch, row_bytes));
		if (!table->keys_only)
			table_put_row(table, row, gs_batch_next_row(&packed->batch), offsets);
		nulls = table_put_key(table, row, &packed->layout, offsets, record);
		if (!table->keys_only)
			record[packed->layout.nwords] = gs_batch_next_location(&packed->batch, nulls);
		gs_batch_push(&packed->batch, row_bytes);
	}

	/* row and record find each other */
	CHECK(packed->batch.nrows == table->nrows);
	for (size_t row = 0; row < table->nrows && !table->keys_only; row++)
	{
		const uint64_t *record = gs_batch_record(&packed->batch, row);
		const char *stored = gs_batch_row(&packed->batch,
										  gs_record_unit(record, packed->layout.nwords));

		CHECK(table_row_is(table, row, &packed->layout, stored));
		CHECK(gs_batch_record_of_row(&packed->batch, stored) == record);
	}
	return packed;
}

static void
free_packed(Packed *packed)
{
	free(packed->block);
	free(packed);
}

static const unsigned char *
tail_of(const Packed *packed, const GsComponent *component, size_t row, uint32_t *len)
{
	const uint64_t *record = gs_batch_record(&packed->batch, row);
	uint64_t	tail = record[component->word];

	*len = gs_tail_len(tail);
	return (const unsigned char *)
		gs_batch_row(&packed->batch, gs_record_unit(record, packed->layout.nwords)) +
		gs_tail_offset(tail);
}

/* A tail chunk compares the bytes after the first eight, then the lengths. */
static int
compare_tails(const Packed *packed, const GsComponent *component, size_t a, size_t b)
{
	uint32_t	a_len;
	uint32_t	b_len;
	const unsigned char *a_bytes = tail_of(packed, component, a, &a_len);
	const unsigned char *b_bytes = tail_of(packed, component, b, &b_len);
	uint32_t	len = a_len < b_len ? a_len : b_len;
	int			result = len > 8 ? memcmp(a_bytes + 8, b_bytes + 8, len - 8) : 0;

	if (result == 0)
		result = (a_len > b_len) - (a_len < b_len);
	return component->descending ? -result : result;
}

static int
compare_packed(const Packed *packed, size_t a, size_t b)
{
	const GsKeyPacking *packing = &packed->packing;

	for (int i = 0; i < packing->nchunks; i++)
	{
		const GsKeyChunk *chunk = &packing->chunks[i];
		int			result;

		if (chunk->is_tail)
			result = compare_tails(packed, &packing->components[chunk->tail_component], a, b);
		else
		{
			GsKeyChunkFunction value = gs_key_chunk_function(packing, chunk);
			const uint64_t *a_record = gs_batch_record(&packed->batch, a);
			uint64_t	a_value = value(packing, chunk, a_record);
			uint64_t	b_value = value(packing, chunk, gs_batch_record(&packed->batch, b));

			CHECK(a_value == level_naive(&packed->layout, packing, chunk, a_record));
			CHECK(chunk->bits == 64 || a_value >> chunk->bits == 0);
			result = (a_value > b_value) - (a_value < b_value);
		}
		if (result != 0)
			return result < 0 ? -1 : 1;
	}
	return 0;
}

/* The function for many records gives what the one for one record does. */
static void
check_many_records(const Packed *packed, Dice *dice)
{
	const GsKeyPacking *packing = &packed->packing;
	ptrdiff_t	stride = (ptrdiff_t) packed->batch.record_bytes;
	size_t		n = packed->batch.nrows;
	size_t		first = dice_below(dice, n);
	uint64_t   *values = malloc(n * sizeof(uint64_t));

	CHECK(values != NULL);
	for (int i = 0; i < packing->nchunks; i++)
	{
		const GsKeyChunk *chunk = &packing->chunks[i];
		GsKeyChunkFunction value;
		GsKeyChunksFunction many;

		if (chunk->is_tail)
			continue;
		value = gs_key_chunk_function(packing, chunk);
		many = gs_key_chunks_function(packing, chunk);

		/* downwards in memory, as a batch is read, and upwards */
		many(packing, chunk, gs_batch_record(&packed->batch, first), -stride,
			 n - first, values);
		for (size_t row = first; row < n; row++)
			CHECK(values[row - first] ==
				  value(packing, chunk, gs_batch_record(&packed->batch, row)));
		many(packing, chunk, gs_batch_record(&packed->batch, n - 1), stride, n, values);
		for (size_t row = 0; row < n; row++)
			CHECK(values[n - 1 - row] ==
				  value(packing, chunk, gs_batch_record(&packed->batch, row)));
		many(packing, chunk, NULL, stride, 0, NULL);
	}
	free(values);
}

static void
check_packing(Packed *packed, Dice *dice, int chunk_bits)
{
	size_t		n = packed->table->nrows;

	memset(&packed->packing, 0xA5, sizeof(packed->packing));
	gs_key_packing_init(&packed->packing, &packed->layout, chunk_bits);
	check_levels(&packed->packing, chunk_bits);
	if (n > 0)
		check_many_records(packed, dice);
	for (size_t i = 0; i < 4 * n; i++)
	{
		size_t		a = dice_below(dice, n);
		size_t		b = i < n ? (a + 1) % n : dice_below(dice, n);
		int			expected = table_compare(packed->table, a, b);
		int			result = compare_packed(packed, a, b);

		CHECK_MSG(result == expected, "%d bits a level: rows %zu and %zu compare as %d, not %d",
				  chunk_bits, a, b, result, expected);
	}
}

static void
check_random_packings(uint64_t first_seed, int ntables, const TableOptions *options)
{
	for (uint64_t seed = first_seed; seed < first_seed + (uint64_t) ntables; seed++)
	{
		Dice		dice = dice_of_seed(seed);
		TestTable  *table = table_make(&dice, options);
		Packed	   *packed = pack_rows(table);

		unit_case("seed %llu", (unsigned long long) seed);
		for (int i = 0; i < 4; i++)
			check_packing(packed, &dice, i == 0 ? 64 :
						  GS_MIN_KEY_CHUNK_BITS + (int) dice_below(&dice, 65 - GS_MIN_KEY_CHUNK_BITS));
		free_packed(packed);
		table_free(table);
	}
	unit_case("%s", "");
}

static void
test_pack(void **unused)
{
	check_random_packings(1000, 1500, &(TableOptions) {.max_rows = 100});
}

static void
test_pack_long_strings(void **unused)
{
	check_random_packings(3000, 200, &(TableOptions) {.max_rows = 50, .max_len = 1000, .kind = TEST_BYTEA});
}

static void
test_pack_keys_only(void **unused)
{
	check_random_packings(4000, 400, &(TableOptions) {.keys_only = true});
}

/* Packs each table with every width of a chunk. */
static void
test_pack_all_widths(void **unused)
{
	for (uint64_t seed = 5000; seed < 5040; seed++)
	{
		Dice		dice = dice_of_seed(seed);
		TestTable  *table = table_make(&dice, &(TableOptions) {
			.max_rows = 60, .ncolumns = 1 + (int) (seed % 7)
		});
		Packed	   *packed = pack_rows(table);

		unit_case("seed %llu", (unsigned long long) seed);
		for (int chunk_bits = GS_MIN_KEY_CHUNK_BITS; chunk_bits <= 64; chunk_bits++)
			check_packing(packed, &dice, chunk_bits);
		free_packed(packed);
		table_free(table);
	}
	unit_case("%s", "");
}

/* -------------------------------------------------------------------- limits */

/*
 * As many columns and fields as there may be, all of them varying in every
 * bit, with NULLs: the maximum of components, chunks and pieces.
 */
static void
check_widest(int nvariable)
{
	TestKind	kinds[GS_MAX_COLUMNS];
	Dice		dice = dice_of_seed(6000 + (uint64_t) nvariable);
	int			spare = GS_MAX_FIELDS - GS_MAX_COLUMNS;
	TestTable  *table;
	Packed	   *packed;

	for (int colno = 0; colno < GS_MAX_COLUMNS; colno++)
		kinds[colno] = colno < nvariable ? TEST_BYTEA : TEST_UNSIGNED;
	table = table_make_empty(kinds, GS_MAX_COLUMNS, 120);
	for (int colno = 0; colno < GS_MAX_COLUMNS; colno++)
	{
		TestColumn *column = &table->columns[colno];

		column->descending = dice_one_in(&dice, 2);
		column->nulls_first = dice_one_in(&dice, 2);
		if (colno < nvariable)
			continue;
		while (column->nfields < TEST_MAX_FIELDS && spare > 0)
		{
			column->bits[column->nfields++] = 64;
			spare--;
		}
	}
	for (size_t row = 0; row < table->nrows; row++)
	{
		for (int colno = 0; colno < GS_MAX_COLUMNS; colno++)
		{
			TestValue  *value = table_value(table, row, colno);

			/* two NULLs in three, so that rows tie on several columns */
			if (!dice_one_in(&dice, 3) && row > 1)
				continue;
			value->is_null = false;
			if (colno < nvariable)
			{
				unsigned char bytes[12];

				for (size_t i = 0; i < sizeof(bytes); i++)
					bytes[i] = row == 0 ? 0 : row == 1 ? 0xFF : (unsigned char) dice_word(&dice);
				table_set_bytes(table, row, colno, bytes, sizeof(bytes));
			}
			else
				for (int i = 0; i < TEST_MAX_FIELDS; i++)
					value->u.fields[i] = row == 0 ? 0 : row == 1 ? UINT64_MAX : dice_word(&dice);
		}
	}
	packed = pack_rows(table);
	CHECK(packed->layout.ncolumns == GS_MAX_COLUMNS);
	if (nvariable < GS_MAX_COLUMNS - TEST_MAX_FIELDS)
		CHECK(packed->layout.nfields == GS_MAX_FIELDS);
	check_layout(&packed->layout);
	for (int chunk_bits = GS_MIN_KEY_CHUNK_BITS; chunk_bits <= 64; chunk_bits++)
	{
		check_packing(packed, &dice, chunk_bits);
		CHECK(packed->packing.total_bits == GS_MAX_COLUMNS + 64 * packed->layout.nfields);
		CHECK(packed->packing.ncomponents ==
			  GS_MAX_COLUMNS + packed->layout.nfields + nvariable);
	}
	free_packed(packed);
	table_free(table);
}

static void
test_pack_limits(void **unused)
{
	check_widest(0);
	check_widest(1);
	check_widest(GS_MAX_COLUMNS / 2);
	check_widest(GS_MAX_COLUMNS);
}

/*
 * More chunks than a table of key_encoder.c can have: columns of a field and a
 * string, all nullable, so that each ends in a chunk that is not full.
 */
static void
test_pack_most_levels(void **unused)
{
	GsKeyLayout layout;
	GsKeyPacking *packing = malloc(sizeof(GsKeyPacking));

	CHECK(packing != NULL);
	gs_key_layout_init(&layout);
	for (int colno = 0; colno < GS_MAX_COLUMNS; colno++)
	{
		GsKeyColumn *column = gs_key_layout_add_column(&layout, colno & 1, colno & 2);

		gs_key_layout_add_field(&layout, 64, GS_CANONICAL_NONE);
		gs_key_layout_add_bytes(&layout, false);
		column->nnulls = 1;
		column->min_len = 0;
		column->max_len = 100;
	}
	CHECK(layout.nfields == GS_MAX_FIELDS);
	check_layout(&layout);
	for (int i = 0; i < layout.nfields; i++)
	{
		gs_key_field_update_range(&layout.fields[i], 0);
		gs_key_field_update_range(&layout.fields[i], UINT64_MAX);
	}
	layout.nrows = 3;
	for (int chunk_bits = GS_MIN_KEY_CHUNK_BITS; chunk_bits <= 64; chunk_bits++)
	{
		gs_key_packing_init(packing, &layout, chunk_bits);
		check_levels(packing, chunk_bits);
	}
	free(packing);
}

/* ------------------------------------------------ the fewest bits, as promised */

static int
packed_bits(const TestTable *table)
{
	Packed	   *packed = pack_rows(table);
	int			bits;

	gs_key_packing_init(&packed->packing, &packed->layout, 64);
	bits = packed->packing.has_tails ? -1 : packed->packing.total_bits;
	free_packed(packed);
	return bits;
}

static void
test_pack_width(void **unused)
{
	const TestKind number = TEST_INT64;
	const TestKind text = TEST_TEXT;
	const TestKind bytea = TEST_BYTEA;
	TestTable  *table;

	/* a bigint that counts to a million needs 20 bits, wherever it starts */
	table = table_make_empty(&number, 1, 4);
	table_set_number(table, 0, 0, INT64_MIN);
	table_set_number(table, 1, 0, INT64_MIN + 999998);
	table_set_number(table, 2, 0, INT64_MIN + 48577);
	table_set_number(table, 3, 0, INT64_MIN + 1);
	CHECK(packed_bits(table) == 20);
	table->columns[0].descending = true;
	CHECK(packed_bits(table) == 20);

	/* and a NULL one more */
	table_value(table, 3, 0)->is_null = true;
	CHECK(packed_bits(table) == 21);

	/* all NULL, or all the same: nothing */
	table_value(table, 0, 0)->is_null = true;
	table_value(table, 1, 0)->is_null = true;
	table_value(table, 2, 0)->is_null = true;
	CHECK(packed_bits(table) == 0);
	for (size_t row = 0; row < 4; row++)
		table_set_number(table, row, 0, 42);
	CHECK(packed_bits(table) == 0);

	/* two distant values that differ in one bit: the bit is extracted */
	table_set_number(table, 0, 0, 42 + (INT64_C(1) << 40));
	CHECK(packed_bits(table) == 1);
	table_free(table);

	/* the whole range */
	table = table_make_empty(&number, 1, 2);
	table_set_number(table, 0, 0, INT64_MIN);
	table_set_number(table, 1, 0, INT64_MAX);
	CHECK(packed_bits(table) == 64);
	table_free(table);

	/* short texts have no tail, short byteas only if their lengths differ */
	table = table_make_empty(&text, 1, 2);
	table_set_bytes(table, 0, 0, "a", 1);
	table_set_bytes(table, 1, 0, "abcdefgh", 8);
	CHECK(packed_bits(table) > 0);
	table_set_bytes(table, 1, 0, "abcdefghi", 9);
	CHECK(packed_bits(table) == -1);
	table_free(table);
	table = table_make_empty(&bytea, 1, 2);
	table_set_bytes(table, 0, 0, "a\0", 2);
	table_set_bytes(table, 1, 0, "ab", 2);
	CHECK(packed_bits(table) > 0);
	table_set_bytes(table, 1, 0, "a", 1);
	CHECK(packed_bits(table) == -1);
	table_free(table);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_squeeze),
		cmocka_unit_test(test_squeeze_edges),
		cmocka_unit_test(test_bit_width),
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_layout_example),
		cmocka_unit_test(test_tail_word),
		cmocka_unit_test(test_pack),
		cmocka_unit_test(test_pack_long_strings),
		cmocka_unit_test(test_pack_keys_only),
		cmocka_unit_test(test_pack_all_widths),
		cmocka_unit_test(test_pack_limits),
		cmocka_unit_test(test_pack_most_levels),
		cmocka_unit_test(test_pack_width)
	};

	return cmocka_run_group_tests_name("key_pack", tests, NULL, NULL);
}
