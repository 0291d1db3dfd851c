/*-------------------------------------------------------------------------
 *
 * key_layout.h
 *	  Where the sort columns of a row are in its key record, and statistics of
 *	  their codes.
 *
 * A sort column becomes one or more *fields* of at most 64 bits: an int4 one
 * of 32, a uuid two of 64.  Fields are placed one after the other in 64-bit
 * *words*; a field never crosses a word.  A variable-width column (text,
 * bytea) becomes a 64-bit field with its first eight bytes, and a *tail word*
 * that says where all its bytes are.
 *
 * The record of `ORDER BY date, int4 DESC, text`:
 *
 *	  word 0                      word 1               word 2
 *	  | date code | int4 code |   | text bytes 0..7 |  | offset  | length |
 *	   63 ..    32 31 ..     0     63 ..           0    63 ..  32 31 ..  0
 *
 * The offset counts from the start of the row, so the bytes of a text that are
 * part of the row are not stored twice.  NULLs are bits of the location word, which
 * follows the key words (batch.h); the fields of a NULL are zero.
 *
 * While rows are encoded, the layout records statistics: the smallest and the
 * largest code of each field, the bits that were set and clear in any code, and
 * the NULLs of each column.  key_pack.h derives from them the fewest bits that
 * order the rows.  Records have the codes ascending and unpacked: the packing
 * applies DESC and NULLS FIRST/LAST.
 *
 * C without PostgreSQL.  Nothing here fails or allocates.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_LAYOUT_H
#define GPUSORT_KEY_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/key_codec.h"

#define GS_MAX_COLUMNS	32		/* one NULL bit each in a uint32 */
#define GS_MAX_FIELDS	64

/* How codes of values that SQL considers equal are made equal before they are compared. */
typedef enum GsCanonical
{
	GS_CANONICAL_NONE = 0,		/* equal values have equal codes */
	GS_CANONICAL_FLOAT4,		/* all NaNs are equal, and so are -0 and +0 */
	GS_CANONICAL_FLOAT8
} GsCanonical;

typedef struct GsKeyField
{
	uint8_t		word;			/* which word of the record */
	uint8_t		shift;			/* lowest bit within it */
	uint8_t		bits;			/* width, 1..64 */
	uint8_t		canonical;		/* a GsCanonical */
	uint64_t	min;			/* statistics of canonical non-NULL codes */
	uint64_t	max;
	uint64_t	ever_set;		/* OR of all codes */
	uint64_t	always_set;		/* AND of all codes */
} GsKeyField;

typedef struct GsKeyColumn
{
	bool		descending;
	bool		nulls_first;
	bool		variable;		/* a byte string: one prefix field and a tail
								 * word */
	bool		nul_free;		/* no byte is zero (text), so that padding
								 * with zeros orders as a terminator does */
	uint8_t		first_field;
	uint8_t		nfields;
	uint8_t		tail_word;		/* if variable */
	uint32_t	min_len;		/* statistics of non-NULL lengths, if variable */
	uint32_t	max_len;
	uint64_t	nnulls;
} GsKeyColumn;

typedef struct GsKeyLayout
{
	int			ncolumns;
	int			ndecisive;		/* the number of columns that the keys order
								 * rows by; a function compares the others */
	int			nfields;
	int			nwords;
	bool		keys_only;		/* the only word is the whole row (batch.h) */
	bool		ascending;		/* if keys_only: no code was below the
								 * previous one; see
								 * gs_key_layout_update_order() */
	uint64_t	last_code;		/* the previous one */
	uint64_t	nrows;			/* of which the statistics are */
	GsKeyColumn columns[GS_MAX_COLUMNS];
	GsKeyField	fields[GS_MAX_FIELDS];
} GsKeyLayout;

static inline void
gs_key_layout_init(GsKeyLayout *layout)
{
	memset(layout, 0, offsetof(GsKeyLayout, columns));
}

/* Adds a column without fields, less significant than those before it. */
static inline GsKeyColumn *
gs_key_layout_add_column(GsKeyLayout *layout, bool descending, bool nulls_first)
{
	GsKeyColumn *column = &layout->columns[layout->ncolumns++];

	layout->ndecisive = layout->ncolumns;
	memset(column, 0, sizeof(*column));
	column->descending = descending;
	column->nulls_first = nulls_first;
	column->first_field = (uint8_t) layout->nfields;
	column->min_len = UINT32_MAX;
	return column;
}

/*
 * Adds a field to the last column, less significant than those before it.  It is
 * placed in the last word if that has enough free bits.
 */
static inline GsKeyField *
gs_key_layout_add_field(GsKeyLayout *layout, int bits, GsCanonical canonical)
{
	GsKeyField *field = &layout->fields[layout->nfields];
	int			free_bits = 0;

	if (layout->nfields > 0 &&
		field[-1].word == layout->nwords - 1)
		free_bits = field[-1].shift;
	if (free_bits < bits)
	{
		layout->nwords++;
		free_bits = 64;
	}
	field->word = (uint8_t) (layout->nwords - 1);
	field->shift = (uint8_t) (free_bits - bits);
	field->bits = (uint8_t) bits;
	field->canonical = (uint8_t) canonical;
	field->min = UINT64_MAX;
	field->max = 0;
	field->ever_set = 0;
	field->always_set = UINT64_MAX;
	layout->nfields++;
	layout->columns[layout->ncolumns - 1].nfields++;
	return field;
}

/* Makes the last column a byte string: adds a prefix field and a tail word. */
static inline void
gs_key_layout_add_bytes(GsKeyLayout *layout, bool nul_free)
{
	GsKeyColumn *column = &layout->columns[layout->ncolumns - 1];

	gs_key_layout_add_field(layout, 64, GS_CANONICAL_NONE);
	column->variable = true;
	column->nul_free = nul_free;
	column->tail_word = (uint8_t) layout->nwords++;
}

/* Adds a canonical, non-NULL code to the statistics of its field. */
static inline void
gs_key_field_update_range(GsKeyField *field, uint64_t code)
{
	if (code < field->min)
		field->min = code;
	if (code > field->max)
		field->max = code;
	field->ever_set |= code;
	field->always_set &= code;
}

/* Records whether canonical codes are in ascending order. */
static inline void
gs_key_layout_update_order(GsKeyLayout *layout, uint64_t code)
{
	layout->ascending &= code >= layout->last_code;
	layout->last_code = code;
}

/* Adds `by` (1 or -1) to the NULLs of each column whose bit is set. */
static inline void
gs_key_layout_count_nulls(GsKeyLayout *layout, uint32_t nulls, int by)
{
	for (; nulls != 0; nulls &= nulls - 1)
		layout->columns[__builtin_ctz(nulls)].nnulls += (uint64_t) by;
}

/*
 * Removes a row with these NULL bits from the counts.  The ranges of the fields
 * stay as they are.
 */
static inline void
gs_key_layout_remove_row(GsKeyLayout *layout, uint32_t nulls)
{
	layout->nrows--;
	gs_key_layout_count_nulls(layout, nulls, -1);
}

/*
 * Adds the statistics of another layout of the same shape.  The order in which
 * rows of both arrive is not known, so the result is not ascending.
 */
static inline void
gs_key_layout_merge(GsKeyLayout *into, const GsKeyLayout *from)
{
	into->nrows += from->nrows;
	into->ascending = false;
	for (int i = 0; i < into->ncolumns; i++)
	{
		GsKeyColumn *column = &into->columns[i];
		const GsKeyColumn *other = &from->columns[i];

		column->nnulls += other->nnulls;
		if (other->min_len < column->min_len)
			column->min_len = other->min_len;
		if (other->max_len > column->max_len)
			column->max_len = other->max_len;
	}
	for (int i = 0; i < into->nfields; i++)
	{
		GsKeyField *field = &into->fields[i];
		const GsKeyField *other = &from->fields[i];

		if (other->min < field->min)
			field->min = other->min;
		if (other->max > field->max)
			field->max = other->max;
		field->ever_set |= other->ever_set;
		field->always_set &= other->always_set;
	}
}

/* A code as it is compared; canonical is a GsCanonical. */
GS_HOST_DEVICE uint64_t
gs_canonical_code(uint8_t canonical, uint64_t code)
{
	if (canonical == GS_CANONICAL_FLOAT8)
		return gs_float8_canonical(code);
	if (canonical == GS_CANONICAL_FLOAT4)
		return gs_float4_canonical(code);
	return code;
}

GS_HOST_DEVICE uint64_t
gs_key_field_mask(const GsKeyField *field)
{
	return UINT64_MAX >> (64 - field->bits);
}

/* The tail word: the offset and the length of a variable-width value, in bytes. */
GS_HOST_DEVICE uint64_t
gs_tail_make(uint32_t row_offset, uint32_t len)
{
	return ((uint64_t) row_offset << 32) | len;
}

GS_HOST_DEVICE uint32_t
gs_tail_offset(uint64_t tail)
{
	return (uint32_t) (tail >> 32);
}

GS_HOST_DEVICE uint32_t
gs_tail_len(uint64_t tail)
{
	return (uint32_t) tail;
}

#endif							/* GPUSORT_KEY_LAYOUT_H */
