/*-------------------------------------------------------------------------
 *
 * unit_table.h
 *	  Random tables, their reference order, and their rows and keys as a
 *	  driver would write them.
 *
 * A table is a sort as SQL sees it: columns with types and directions, rows
 * with values and NULLs.  table_compare() says what the order is, in terms of
 * the values alone, and shares nothing with the sources under test; the rest
 * puts the same values into rows and key records, as key_encoder.c does.
 *
 * A row is 4 bytes of its number, 4 that belong to the batch, the strings that
 * are longer than eight bytes, one after the other at any alignment, and a
 * payload:
 *
 *	  | number | entry | 'a longer string' | 'another one' | payload |
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_UNIT_TABLE_H
#define GPUSORT_UNIT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/key_layout.h"
#include "unit_random.h"

typedef enum TestKind
{
	TEST_ANY,
	TEST_INT16,
	TEST_INT32,
	TEST_INT64,
	TEST_FLOAT4,
	TEST_FLOAT8,
	TEST_UNSIGNED,				/* up to TEST_MAX_FIELDS of any widths, as a
								 * uuid or an inet */
	TEST_TEXT,
	TEST_BYTEA,
	TEST_KINDS
} TestKind;

#define TEST_MAX_FIELDS	6

typedef struct TestColumn
{
	TestKind	kind;
	bool		descending;
	bool		nulls_first;
	bool		all_null;
	int			null_one_in;	/* 0: never NULL */
	int			style;			/* of the values: see unit_table.c */
	int			nfields;
	int			bits[TEST_MAX_FIELDS];
	uint64_t	base[TEST_MAX_FIELDS];	/* the style's own */
	uint64_t	mask[TEST_MAX_FIELDS];
	unsigned char *base_bytes;
	uint32_t	base_len;
} TestColumn;

typedef struct TestValue
{
	bool		is_null;
	uint32_t	len;
	union
	{
		int64_t		number;
		uint32_t	float4_bits;
		uint64_t	float8_bits;
		uint64_t	fields[TEST_MAX_FIELDS];
		const unsigned char *bytes;
	}			u;
} TestValue;

typedef enum TestShape
{
	SHAPE_ANY,
	SHAPE_RANDOM,
	SHAPE_FEW,					/* distinct rows */
	SHAPE_EQUAL,				/* all rows are the same */
	SHAPE_SORTED,
	SHAPE_REVERSED,
	SHAPE_NEARLY,				/* sorted but for a few rows */
	SHAPES
} TestShape;

typedef struct TestTable
{
	int			ncolumns;
	size_t		nrows;
	bool		keys_only;
	bool		late_fold;		/* floats keep their codes: packing folds them */
	TestShape	shape;
	uint32_t	max_payload;
	uint64_t	salt;
	TestColumn	columns[GS_MAX_COLUMNS];
	TestValue  *values;			/* row by row */
	void	   *chunks;			/* memory of the strings */
	size_t		chunk_left;
} TestTable;

/* What is zero has the default. */
typedef struct TableOptions
{
	size_t		min_rows;
	size_t		max_rows;		/* default 300 */
	uint32_t	max_payload;	/* default 40 */
	uint32_t	max_len;		/* of strings, about; default 40 */
	bool		keys_only;
	int			ncolumns;		/* default: any number */
	TestShape	shape;
	TestKind	kind;			/* of the first column */
} TableOptions;

extern TestTable *table_make(Dice *dice, const TableOptions *options);
extern void table_free(TestTable *table);

/* Makes a table with new dice of this seed; a check that fails names the seed. */
extern TestTable *table_of_seed(uint64_t seed, Dice *dice, const TableOptions *options);

/* A table to be filled by hand: columns of the given kinds, all values NULL. */
extern TestTable *table_make_empty(const TestKind *kinds, int ncolumns, size_t nrows);
extern void table_set_bytes(TestTable *table, size_t row, int colno,
							const void *bytes, uint32_t len);
extern void table_set_number(TestTable *table, size_t row, int colno, int64_t number);

/* Rows with a column of 64 random bits, so that hardly any tie. */
extern TestTable *table_make_untied(Dice *dice, size_t nrows);

static inline TestValue *
table_value(const TestTable *table, size_t row, int colno)
{
	return &table->values[row * (size_t) table->ncolumns + (size_t) colno];
}

/* The SQL order of two rows; 0 for ties. */
extern int	table_compare(const TestTable *table, size_t a, size_t b);

/* Row numbers in order, ties as they came.  To be freed. */
extern uint32_t *table_order(const TestTable *table);

/* ---------------------------------------------------- what a driver would do */

extern void table_layout(const TestTable *table, GsKeyLayout *layout);
extern size_t table_row_bytes(const TestTable *table, size_t row);

/* Writes a row; offsets[] becomes where each column's bytes stand in it. */
extern void table_put_row(const TestTable *table, size_t row, char *to, uint32_t *offsets);

/* Writes the words of its record and updates the statistics; returns the NULL bits. */
extern uint32_t table_put_key(const TestTable *table, size_t row, GsKeyLayout *layout,
							  const uint32_t *offsets, uint64_t *record);

/* Is that what was put?  (A keys_only row is its word.) */
extern bool table_row_is(const TestTable *table, size_t row, const GsKeyLayout *layout,
						 const void *stored);

/* The number of a stored row. */
extern uint32_t table_row_number(const void *stored);

#endif							/* GPUSORT_UNIT_TABLE_H */
