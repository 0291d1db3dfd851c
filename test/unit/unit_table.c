/*-------------------------------------------------------------------------
 *
 * unit_table.c
 *	  Random tables, their reference order, and their rows and keys.
 *
 * Values that are drawn at random from the whole range of a type hardly ever
 * tie, agree in a prefix, or leave a bit idle; nearly all the ways in which a
 * key sort can go wrong need just that.  So each column draws a style first,
 * and most styles are narrow.
 *
 *-------------------------------------------------------------------------
 */
#include "unit_table.h"

#include <stdlib.h>
#include <string.h>

#include "common/batch.h"
#include "common/key_codec.h"
#include "unit_check.h"
#include "unit_floats.h"

/* How the numbers of a column are drawn. */
enum
{
	NUMBERS_ANY,				/* all bits */
	NUMBERS_ANY_WIDTH,			/* small ones and large ones */
	NUMBERS_NEAR,				/* a few steps up from a base */
	NUMBERS_EXTREME,			/* the ends of the range, and around zero */
	NUMBERS_SPARSE,				/* few bits vary, with large gaps */
	NUMBERS_CONSTANT,
	NUMBERS_STYLES
};

/* How its strings are. */
enum
{
	BYTES_SHORT,				/* of 0 to 20 */
	BYTES_AFTER_PREFIX,			/* short, after a long one that all share */
	BYTES_ZEROS_BEHIND,			/* a base and zeros */
	BYTES_CUT,					/* a base, truncated anywhere */
	BYTES_CHANGED,				/* a base with one byte changed */
	BYTES_SAME_LENGTH,
	BYTES_AT_EIGHTS,			/* lengths around multiples of eight */
	BYTES_CONSTANT,
	BYTES_STYLES
};

/* ------------------------------------------------------------------ strings */

#define CHUNK_BYTES	((size_t) 64 << 10)

typedef struct Chunk
{
	struct Chunk *next;
	size_t		nbytes;
} Chunk;

static unsigned char *
new_bytes(TestTable *table, uint32_t len)
{
	Chunk	   *chunk;

	if (len == 0)
	{
		static unsigned char nothing;

		return &nothing;
	}
	if (len > table->chunk_left)
	{
		size_t		nbytes = len > CHUNK_BYTES ? len : CHUNK_BYTES;

		chunk = malloc(sizeof(Chunk) + nbytes);
		CHECK(chunk != NULL);
		chunk->next = table->chunks;
		chunk->nbytes = nbytes;
		table->chunks = chunk;
		table->chunk_left = nbytes;
	}
	chunk = table->chunks;
	table->chunk_left -= len;
	return (unsigned char *) (chunk + 1) + table->chunk_left;
}

/* Few different bytes, so that strings agree for a while. */
static unsigned char
any_byte(Dice *dice, TestKind kind)
{
	static const unsigned char bytes[] = {0, 1, 'a', 0, 'b', 0x7F, 0x80, 0xFF};
	unsigned char byte = bytes[dice_below(dice, sizeof(bytes))];

	return byte == 0 && kind == TEST_TEXT ? '0' : byte;
}

static void
draw_bytes(Dice *dice, TestTable *table, const TestColumn *column, TestValue *value)
{
	uint32_t	len = column->base_len;
	uint32_t	added = 0;
	unsigned char *bytes;

	switch (column->style)
	{
		case BYTES_SHORT:
			len = 0;
			added = (uint32_t) dice_below(dice, 21);
			break;
		case BYTES_AFTER_PREFIX:
			added = (uint32_t) dice_below(dice, 13);
			break;
		case BYTES_ZEROS_BEHIND:
			if (column->kind == TEST_BYTEA)
				added = (uint32_t) dice_below(dice, 30);
			break;
		case BYTES_CUT:
			len = (uint32_t) dice_below(dice, (uint64_t) len + 1);
			break;
		case BYTES_SAME_LENGTH:
			added = len;
			len = 0;
			break;
		case BYTES_AT_EIGHTS:
			len = (uint32_t) dice_below(dice, (uint64_t) len + 1) & ~UINT32_C(7);
			added = (uint32_t) dice_below(dice, 3);
			if (added == 0 && len > 0)
				len--;
			break;
		default:
			break;
	}
	bytes = new_bytes(table, len + added);
	memcpy(bytes, column->base_bytes, len);
	for (uint32_t i = len; i < len + added; i++)
		bytes[i] = column->style == BYTES_ZEROS_BEHIND ? 0 : any_byte(dice, column->kind);
	if (column->style == BYTES_CHANGED && len > 0)
		bytes[dice_below(dice, len)] = any_byte(dice, column->kind);
	value->u.bytes = bytes;
	value->len = len + added;
}

/* ------------------------------------------------------------------ numbers */

/* An unsigned number of the field's width, by the column's style. */
static uint64_t
draw_number(Dice *dice, const TestColumn *column, int i)
{
	uint64_t	mask = UINT64_MAX >> (64 - column->bits[i]);
	uint64_t	top = (mask >> 1) + 1;
	const uint64_t extremes[] = {0, 1, mask, mask - 1, top, top - 1, top + 1};

	switch (column->style)
	{
		case NUMBERS_ANY:
			return dice_word(dice) & mask;
		case NUMBERS_ANY_WIDTH:
			return dice_any_width(dice, column->bits[i]);
		case NUMBERS_NEAR:
			return (column->base[i] + dice_below(dice, column->mask[i] % 100 + 1)) & mask;
		case NUMBERS_EXTREME:
			return extremes[dice_below(dice, sizeof(extremes) / sizeof(extremes[0]))] & mask;
		case NUMBERS_SPARSE:
			return (column->base[i] ^ (dice_word(dice) & column->mask[i])) & mask;
		default:
			return column->base[i] & mask;
	}
}

/* NaNs of both signs with payloads, and all the other odd ones. */
static const uint64_t odd_float8[] = {
	UINT64_C(0x7FF8000000000000), UINT64_C(0xFFF8000000000000),
	UINT64_C(0x7FF0000000000001), UINT64_C(0xFFF0000000000001),
	UINT64_C(0x7FFFFFFFFFFFFFFF), UINT64_C(0xFFFFFFFFFFFFFFFF),
	UINT64_C(0x7FF0000000000000), UINT64_C(0xFFF0000000000000),
	UINT64_C(0x7FEFFFFFFFFFFFFF), UINT64_C(0xFFEFFFFFFFFFFFFF),
	UINT64_C(0x0000000000000000), UINT64_C(0x8000000000000000),
	UINT64_C(0x0000000000000001), UINT64_C(0x8000000000000001),
	UINT64_C(0x000FFFFFFFFFFFFF), UINT64_C(0x800FFFFFFFFFFFFF),
	UINT64_C(0x0010000000000000), UINT64_C(0x8010000000000000),
	UINT64_C(0x3FF0000000000000), UINT64_C(0xBFF0000000000000)
};

#define NODD	(sizeof(odd_float8) / sizeof(odd_float8[0]))

static const uint32_t odd_float4[NODD] = {
	UINT32_C(0x7FC00000), UINT32_C(0xFFC00000), UINT32_C(0x7F800001), UINT32_C(0xFF800001),
	UINT32_C(0x7FFFFFFF), UINT32_C(0xFFFFFFFF), UINT32_C(0x7F800000), UINT32_C(0xFF800000),
	UINT32_C(0x7F7FFFFF), UINT32_C(0xFF7FFFFF), UINT32_C(0x00000000), UINT32_C(0x80000000),
	UINT32_C(0x00000001), UINT32_C(0x80000001), UINT32_C(0x007FFFFF), UINT32_C(0x807FFFFF),
	UINT32_C(0x00800000), UINT32_C(0x80800000), UINT32_C(0x3F800000), UINT32_C(0xBF800000)
};

static void
draw_value(Dice *dice, TestTable *table, const TestColumn *column, TestValue *value)
{
	memset(value, 0, sizeof(*value));
	if (column->all_null || (column->null_one_in > 0 &&
							 dice_one_in(dice, (uint64_t) column->null_one_in)))
	{
		value->is_null = true;
		return;
	}
	switch (column->kind)
	{
		case TEST_INT16:
			value->u.number = (int16_t) draw_number(dice, column, 0);
			break;
		case TEST_INT32:
			value->u.number = (int32_t) draw_number(dice, column, 0);
			break;
		case TEST_INT64:
			value->u.number = (int64_t) draw_number(dice, column, 0);
			break;
		case TEST_FLOAT4:
			value->u.float4_bits = column->style == NUMBERS_EXTREME ?
				odd_float4[dice_below(dice, NODD)] :
				(uint32_t) draw_number(dice, column, 0);
			break;
		case TEST_FLOAT8:
			value->u.float8_bits = column->style == NUMBERS_EXTREME ?
				odd_float8[dice_below(dice, NODD)] : draw_number(dice, column, 0);
			break;
		case TEST_UNSIGNED:
			for (int i = 0; i < column->nfields; i++)
				value->u.fields[i] = draw_number(dice, column, i);
			break;
		default:
			draw_bytes(dice, table, column, value);
			break;
	}
}

/* ---------------------------------------------------------------- the table */

static void
draw_column(Dice *dice, TestTable *table, TestColumn *column,
			const TableOptions *options, int fields_left)
{
	bool		first = column == table->columns;

	column->descending = dice_one_in(dice, 2);
	column->nulls_first = dice_one_in(dice, 2);
	if (!options->keys_only)
	{
		column->all_null = dice_one_in(dice, 20);
		column->null_one_in = dice_one_in(dice, 2) ? 0 : 1 << dice_below(dice, 8);
	}
	column->kind = first && options->kind != TEST_ANY ? options->kind :
		1 + (TestKind) dice_below(dice, (options->keys_only ? TEST_TEXT : TEST_KINDS) - 1);
	column->nfields = 1;
	if (column->kind == TEST_UNSIGNED && !options->keys_only)
		column->nfields += (int) dice_below(dice, TEST_MAX_FIELDS);
	if (column->nfields > fields_left)
		column->nfields = fields_left;
	for (int i = 0; i < column->nfields; i++)
	{
		switch (column->kind)
		{
			case TEST_INT16:
				column->bits[i] = 16;
				break;
			case TEST_INT32:
			case TEST_FLOAT4:
				column->bits[i] = 32;
				break;
			case TEST_UNSIGNED:
				column->bits[i] = 1 + (int) dice_below(dice, 64);
				break;
			default:
				column->bits[i] = 64;
				break;
		}
		column->base[i] = dice_word(dice);
		column->mask[i] = dice_word(dice) & dice_word(dice) & dice_word(dice);
	}
	if (column->kind == TEST_TEXT || column->kind == TEST_BYTEA)
	{
		column->style = (int) dice_below(dice, BYTES_STYLES);
		column->base_len = (uint32_t) dice_below(dice, (options->max_len != 0 ? options->max_len : 40) + 1);
		column->base_bytes = new_bytes(table, column->base_len);
		for (uint32_t i = 0; i < column->base_len; i++)
			column->base_bytes[i] = any_byte(dice, column->kind);
	}
	else
		column->style = (int) dice_below(dice, NUMBERS_STYLES);
}

/* Brings the rows into the order given; shallow copies are all it takes. */
static void
permute(TestTable *table, const uint32_t *order)
{
	size_t		row_bytes = sizeof(TestValue) * (size_t) table->ncolumns;
	TestValue  *values = malloc(row_bytes * table->nrows + 1);

	CHECK(values != NULL);
	for (size_t i = 0; i < table->nrows; i++)
		memcpy(values + i * (size_t) table->ncolumns, table_value(table, order[i], 0),
			   row_bytes);
	free(table->values);
	table->values = values;
}

static void
shape_rows(Dice *dice, TestTable *table)
{
	uint32_t   *order = table_order(table);
	size_t		n = table->nrows;

	if (table->shape == SHAPE_REVERSED)
	{
		for (size_t i = 0; i < n / 2; i++)
		{
			uint32_t	swap = order[i];

			order[i] = order[n - 1 - i];
			order[n - 1 - i] = swap;
		}
	}
	if (table->shape == SHAPE_NEARLY && n > 1)
	{
		size_t		nswaps = 1 + n / 50;

		for (size_t i = 0; i < nswaps; i++)
		{
			size_t		a = dice_below(dice, n);
			size_t		b = dice_below(dice, n);
			uint32_t	swap = order[a];

			order[a] = order[b];
			order[b] = swap;
		}
	}
	permute(table, order);
	free(order);
}

TestTable *
table_make(Dice *dice, const TableOptions *options)
{
	TestTable  *table = calloc(1, sizeof(TestTable));
	int			ncolumns = options->ncolumns;
	int			fields_left = GS_MAX_FIELDS;
	size_t		max_rows = options->max_rows != 0 ? options->max_rows : 300;
	size_t		ndistinct;

	CHECK(table != NULL);
	if (options->keys_only)
		ncolumns = 1;
	else if (ncolumns == 0)
		ncolumns = 1 + (int) dice_below(dice, dice_one_in(dice, 10) ? GS_MAX_COLUMNS : 4);
	table->keys_only = options->keys_only;
	table->late_fold = options->keys_only || dice_one_in(dice, 4);
	table->shape = options->shape != SHAPE_ANY ? options->shape :
		1 + (TestShape) dice_below(dice, SHAPES - 1);
	table->max_payload = (uint32_t) dice_below(dice, (options->max_payload != 0 ? options->max_payload : 40) + 1);
	table->salt = dice_bytes(dice, 2);
	while (table->ncolumns < ncolumns && fields_left > 0)
	{
		TestColumn *column = &table->columns[table->ncolumns++];

		draw_column(dice, table, column, options, fields_left);
		fields_left -= column->nfields;
	}

	table->nrows = options->min_rows +
		dice_below(dice, max_rows - options->min_rows + 1);
	table->values = malloc(sizeof(TestValue) * (size_t) table->ncolumns * table->nrows + 1);
	CHECK(table->values != NULL);
	ndistinct = table->shape == SHAPE_EQUAL ? 1 :
		table->shape == SHAPE_FEW ? 1 + dice_below(dice, 20) : table->nrows;
	for (size_t row = 0; row < table->nrows; row++)
	{
		if (row < ndistinct)
		{
			for (int colno = 0; colno < table->ncolumns; colno++)
				draw_value(dice, table, &table->columns[colno],
						   table_value(table, row, colno));
		}
		else
			memcpy(table_value(table, row, 0),
				   table_value(table, dice_below(dice, ndistinct), 0),
				   sizeof(TestValue) * (size_t) table->ncolumns);
	}
	if (table->shape >= SHAPE_SORTED)
		shape_rows(dice, table);
	return table;
}

TestTable *
table_of_seed(uint64_t seed, Dice *dice, const TableOptions *options)
{
	*dice = dice_of_seed(seed);
	unit_case("seed %llu", (unsigned long long) seed);
	return table_make(dice, options);
}

TestTable *
table_make_empty(const TestKind *kinds, int ncolumns, size_t nrows)
{
	TestTable  *table = calloc(1, sizeof(TestTable));

	CHECK(table != NULL);
	table->ncolumns = ncolumns;
	table->nrows = nrows;
	for (int colno = 0; colno < ncolumns; colno++)
	{
		table->columns[colno].kind = kinds[colno];
		table->columns[colno].nfields = 1;
		table->columns[colno].bits[0] = kinds[colno] == TEST_INT16 ? 16 :
			kinds[colno] == TEST_INT32 || kinds[colno] == TEST_FLOAT4 ? 32 : 64;
	}
	table->values = calloc(nrows * (size_t) ncolumns + 1, sizeof(TestValue));
	CHECK(table->values != NULL);
	for (size_t i = 0; i < nrows * (size_t) ncolumns; i++)
		table->values[i].is_null = true;
	return table;
}

void
table_set_bytes(TestTable *table, size_t row, int colno, const void *bytes, uint32_t len)
{
	TestValue  *value = table_value(table, row, colno);
	unsigned char *copy = new_bytes(table, len);

	memcpy(copy, bytes, len);
	value->is_null = false;
	value->len = len;
	value->u.bytes = copy;
}

void
table_set_number(TestTable *table, size_t row, int colno, int64_t number)
{
	TestValue  *value = table_value(table, row, colno);

	value->is_null = false;
	value->u.number = number;
}

TestTable *
table_make_untied(Dice *dice, size_t nrows)
{
	const TestKind kinds[] = {TEST_INT64};
	TestTable  *table = table_make_empty(kinds, 1, nrows);

	for (size_t row = 0; row < nrows; row++)
		table_set_number(table, row, 0, (int64_t) dice_word(dice));
	return table;
}

void
table_free(TestTable *table)
{
	for (Chunk *chunk = table->chunks, *next; chunk != NULL; chunk = next)
	{
		next = chunk->next;
		free(chunk);
	}
	free(table->values);
	free(table);
}

/* ---------------------------------------------------------- reference order */

static int
compare_values(const TestColumn *column, const TestValue *a, const TestValue *b)
{
	switch (column->kind)
	{
		case TEST_FLOAT4:
			return compare_floats(float_of_bits(a->u.float4_bits),
								  float_of_bits(b->u.float4_bits));
		case TEST_FLOAT8:
			return compare_floats(double_of_bits(a->u.float8_bits),
								  double_of_bits(b->u.float8_bits));
		case TEST_UNSIGNED:
			for (int i = 0; i < column->nfields; i++)
			{
				if (a->u.fields[i] != b->u.fields[i])
					return a->u.fields[i] < b->u.fields[i] ? -1 : 1;
			}
			return 0;
		case TEST_TEXT:
		case TEST_BYTEA:
			{
				int			result = memcmp(a->u.bytes, b->u.bytes,
											a->len < b->len ? a->len : b->len);

				return result != 0 ? result : (a->len > b->len) - (a->len < b->len);
			}
		default:
			return (a->u.number > b->u.number) - (a->u.number < b->u.number);
	}
}

int
table_compare(const TestTable *table, size_t a, size_t b)
{
	for (int colno = 0; colno < table->ncolumns; colno++)
	{
		const TestColumn *column = &table->columns[colno];
		const TestValue *x = table_value(table, a, colno);
		const TestValue *y = table_value(table, b, colno);
		int			result;

		if (x->is_null && y->is_null)
			continue;
		if (x->is_null || y->is_null)
			return x->is_null == column->nulls_first ? -1 : 1;
		result = compare_values(column, x, y);
		if (result != 0)
			return (result < 0) != column->descending ? -1 : 1;
	}
	return 0;
}

static const TestTable *table_of_order; /* qsort() passes no argument on */

static int
compare_rows(const void *a, const void *b)
{
	uint32_t	x = *(const uint32_t *) a;
	uint32_t	y = *(const uint32_t *) b;
	int			result = table_compare(table_of_order, x, y);

	return result != 0 ? result : (x > y) - (x < y);
}

uint32_t *
table_order(const TestTable *table)
{
	uint32_t   *order = malloc(sizeof(uint32_t) * table->nrows + 1);

	CHECK(order != NULL);
	for (size_t i = 0; i < table->nrows; i++)
		order[i] = (uint32_t) i;
	table_of_order = table;
	qsort(order, table->nrows, sizeof(uint32_t), compare_rows);
	return order;
}

/* ---------------------------------------------------------- rows and records */

void
table_layout(const TestTable *table, GsKeyLayout *layout)
{
	memset(layout, 0xA5, sizeof(*layout));	/* it must not count on zeros */
	gs_key_layout_init(layout);
	for (int colno = 0; colno < table->ncolumns; colno++)
	{
		const TestColumn *column = &table->columns[colno];
		GsCanonical canonical = !table->late_fold ? GS_CANONICAL_NONE :
			column->kind == TEST_FLOAT4 ? GS_CANONICAL_FLOAT4 :
			column->kind == TEST_FLOAT8 ? GS_CANONICAL_FLOAT8 : GS_CANONICAL_NONE;

		gs_key_layout_add_column(layout, column->descending, column->nulls_first);
		if (column->kind == TEST_TEXT || column->kind == TEST_BYTEA)
			gs_key_layout_add_bytes(layout, column->kind == TEST_TEXT);
		else
			for (int i = 0; i < column->nfields; i++)
				gs_key_layout_add_field(layout, column->bits[i], canonical);
	}
	layout->keys_only = table->keys_only;
}

static bool
is_stored(const TestColumn *column, const TestValue *value)
{
	return (column->kind == TEST_TEXT || column->kind == TEST_BYTEA) &&
		!value->is_null && value->len > sizeof(uint64_t);
}

#define ROW_HEADER	(2 * sizeof(uint32_t))

static size_t
payload_bytes(const TestTable *table, size_t row)
{
	return mix64(row ^ table->salt << 32) % ((uint64_t) table->max_payload + 1);
}

/* The last column whose bytes are stored in the row, or -1. */
static int
last_stored(const TestTable *table, size_t row)
{
	for (int colno = table->ncolumns - 1; colno >= 0; colno--)
	{
		if (is_stored(&table->columns[colno], table_value(table, row, colno)))
			return colno;
	}
	return -1;
}

/*
 * In half of the tables the payload continues the last string as if it were not
 * truncated, so that reading past its end finds matching bytes.
 */
static void
make_payload(const TestTable *table, size_t row, char *to, size_t nbytes)
{
	int			colno = table->salt & 1 ? last_stored(table, row) : -1;
	const TestColumn *column = colno < 0 ? NULL : &table->columns[colno];
	uint32_t	len = colno < 0 ? 0 : table_value(table, row, colno)->len;

	for (size_t i = 0; i < nbytes; i++)
	{
		if (column != NULL && len + i < column->base_len)
			to[i] = (char) column->base_bytes[len + i];
		else
			to[i] = (char) (table->salt + row * 31 + i * 7);
	}
}

size_t
table_row_bytes(const TestTable *table, size_t row)
{
	size_t		nbytes = ROW_HEADER;

	if (table->keys_only)
		return 0;
	for (int colno = 0; colno < table->ncolumns; colno++)
	{
		if (is_stored(&table->columns[colno], table_value(table, row, colno)))
			nbytes += table_value(table, row, colno)->len;
	}
	return nbytes + payload_bytes(table, row);
}

void
table_put_row(const TestTable *table, size_t row, char *to, uint32_t *offsets)
{
	uint32_t	number = (uint32_t) row;
	uint32_t	at = ROW_HEADER;

	memcpy(to, &number, sizeof(number));
	for (int colno = 0; colno < table->ncolumns; colno++)
	{
		const TestValue *value = table_value(table, row, colno);

		offsets[colno] = 0;
		if (!is_stored(&table->columns[colno], value))
			continue;
		offsets[colno] = at;
		memcpy(to + at, value->u.bytes, value->len);
		at += value->len;
	}
	make_payload(table, row, to + at, payload_bytes(table, row));
}

/* The codes of a value; returns how many. */
static int
encode_value(const TestColumn *column, const TestValue *value, bool late_fold,
			 uint64_t *codes)
{
	switch (column->kind)
	{
		case TEST_INT16:
			codes[0] = gs_encode_int16((int16_t) value->u.number);
			return 1;
		case TEST_INT32:
			codes[0] = gs_encode_int32((int32_t) value->u.number);
			return 1;
		case TEST_INT64:
			codes[0] = gs_encode_int64(value->u.number);
			return 1;
		case TEST_FLOAT4:
			codes[0] = gs_encode_float4_bits(value->u.float4_bits);
			if (!late_fold)
				codes[0] = gs_float4_canonical(codes[0]);
			return 1;
		case TEST_FLOAT8:
			codes[0] = gs_encode_float8_bits(value->u.float8_bits);
			if (!late_fold)
				codes[0] = gs_float8_canonical(codes[0]);
			return 1;
		case TEST_UNSIGNED:
			memcpy(codes, value->u.fields, sizeof(uint64_t) * (size_t) column->nfields);
			return column->nfields;
		default:
			codes[0] = gs_load_prefix(value->u.bytes, value->len);
			return 1;
	}
}

uint32_t
table_put_key(const TestTable *table, size_t row, GsKeyLayout *layout,
			  const uint32_t *offsets, uint64_t *record)
{
	uint32_t	nulls = 0;

	layout->nrows++;
	memset(record, 0, sizeof(uint64_t) * (size_t) layout->nwords);
	for (int colno = 0; colno < table->ncolumns; colno++)
	{
		const TestColumn *column = &table->columns[colno];
		const TestValue *value = table_value(table, row, colno);
		GsKeyColumn *key_column = &layout->columns[colno];
		uint64_t	codes[TEST_MAX_FIELDS];
		int			ncodes;

		if (value->is_null)
		{
			key_column->nnulls++;
			nulls |= UINT32_C(1) << colno;
			continue;
		}
		ncodes = encode_value(column, value, table->late_fold, codes);
		CHECK(ncodes == key_column->nfields);
		for (int i = 0; i < ncodes; i++)
		{
			GsKeyField *field = &layout->fields[key_column->first_field + i];
			uint64_t	folded = field->canonical == GS_CANONICAL_FLOAT8 ?
				gs_float8_canonical(codes[i]) :
				field->canonical == GS_CANONICAL_FLOAT4 ?
				gs_float4_canonical(codes[i]) : codes[i];

			gs_key_field_update_range(field, folded);
			record[field->word] |= codes[i] << field->shift;
		}
		if (key_column->variable)
		{
			if (value->len < key_column->min_len)
				key_column->min_len = value->len;
			if (value->len > key_column->max_len)
				key_column->max_len = value->len;
			record[key_column->tail_word] = gs_tail_make(offsets[colno], value->len);
		}
	}
	return nulls;
}

bool
table_row_is(const TestTable *table, size_t row, const GsKeyLayout *layout,
			 const void *stored)
{
	if (table->keys_only)
	{
		uint64_t	codes[TEST_MAX_FIELDS];
		uint64_t	word;

		encode_value(&table->columns[0], table_value(table, row, 0), table->late_fold, codes);
		memcpy(&word, stored, sizeof(word));
		return word == codes[0] << layout->fields[0].shift;
	}
	else
	{
		const char *bytes = stored;
		uint32_t	at = ROW_HEADER;
		size_t		npayload = payload_bytes(table, row);
		char		payload[4096];

		if (table_row_number(stored) != row)
			return false;
		for (int colno = 0; colno < table->ncolumns; colno++)
		{
			const TestValue *value = table_value(table, row, colno);

			if (!is_stored(&table->columns[colno], value))
				continue;
			if (memcmp(bytes + at, value->u.bytes, value->len) != 0)
				return false;
			at += value->len;
		}
		CHECK(npayload <= sizeof(payload));
		make_payload(table, row, payload, npayload);
		return memcmp(bytes + at, payload, npayload) == 0;
	}
}

uint32_t
table_row_number(const void *stored)
{
	uint32_t	number;

	memcpy(&number, stored, sizeof(number));
	return number;
}
