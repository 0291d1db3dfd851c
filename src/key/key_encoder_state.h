/*-------------------------------------------------------------------------
 *
 * key_encoder_state.h
 *	  The state of a key encoder.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_ENCODER_STATE_H
#define GPUSORT_KEY_ENCODER_STATE_H

#include "collation/key_collation.h"
#include "key/key_bytes.h"
#include "key/key_deform.h"
#include "key/key_dictionary.h"
#include "key/key_distinct.h"
#include "key/key_encoder.h"
#include "key/key_fields.h"
#include "key/key_sortsupport.h"

/* Distinct truncated keys are estimated at 10 keys, 20 .. 320; to count more costs too much. */
#define FIRST_TRUNCATION_CHECK	10
#define LAST_TRUNCATION_CHECK	320

/*
 * The values of a column are counted until there are so many, and evaluated at 32 of them, 64
 * and so on.  A dictionary pays for up to MAX_DICTIONARY_VALUES distinct ones, which is less than
 * it has room for, because the count is an estimate and more rows follow.
 */
#define FIRST_COUNTED_VALUES	32
#define COUNTED_VALUES			512
#define MAX_DICTIONARY_VALUES	(GS_DICTIONARY_VALUES - 32)

/* So many values whose keys cost less than their codes mean that a dictionary does not pay. */
#define MAX_CHEAP_VALUES		128

/* A dictionary may have this share of work_mem. */
#define DICTIONARY_SHARE		8

/*
 * The length of truncated keys of text of the C library: its comparisons end at the first letters
 * that differ, and the order is verified by them anyway.  ORDER BY a text of 265 letters in
 * en_US.UTF-8 and an integer: 0.34 of PostgreSQL's processor time, and 0.98 with 1 kB
 * (work_mem = 4MB, 2 busy cores of an AMD EPYC, PostgreSQL 15.20, 2026-11-24).
 */
#define SHORT_KEY_BYTES	32

/* How long keys may be. */
typedef enum GsKeyTruncation
{
	GS_KEYS_WHOLE,				/* of any length */
	GS_KEYS_LONG,				/* GS_TRUNCATED_KEY_BYTES */
	GS_KEYS_SHORT				/* SHORT_KEY_BYTES, where these cost less */
} GsKeyTruncation;

/* Does a dictionary suit a column? */
typedef enum GsDictionaryChoice
{
	GS_DICTIONARY_UNDECIDED,
	GS_DICTIONARY_WANTED,
	GS_DICTIONARY_REJECTED
} GsDictionaryChoice;

/* The first values of a column. */
typedef struct CountedValues
{
	GsDistinct	distinct;
	double		ndistinct;		/* at the last evaluation; 0 before the first */
	int			ncheap;			/* others, whose keys cost less than codes */
} CountedValues;

/* The key of a variable-width value of the current row. */
typedef struct KeyBytes
{
	uint64		prefix;			/* the first eight bytes, padded with zeros */
	const char *data;			/* all bytes; not valid if they fit the prefix */
	uint32		len;
	bool		separate;		/* not part of the row: to be stored behind it */
} KeyBytes;

typedef struct KeyColumn
{
	GsKeyKind	kind;
	bool		by_value;		/* passed by value, and one field */
	bool		is_integer;		/* by_value, and the code is (value ^ flip) & mask */
	bool		is_read;		/* the located value is all that its code needs */
	bool		is_plain;		/* variable width, and the bytes of the value are its key */
	uint64		flip;			/* the sign bit of signed integers */
	uint64		mask;
	AttrNumber	attno;
	int16		attlen;
	GsKeyField *field;			/* the first of its fields in the layout */
	GsKeyLabels labels;			/* enum */
	GsKeySortSupport *abbreviation; /* makes abbreviated keys; else NULL */
	GsKeyCollation *collation;	/* makes collation keys; else NULL */
	GsKeyDictionary *dictionary;	/* has the codes of its values; else NULL */
	GsKeyMaker *maker;			/* makes other codes of variable width; else NULL */
	int			fixed_weight;	/* numeric: as the maker has it */
	bool		of_libc;		/* text whose keys are the C library's */
	CountedValues *counted;		/* NULL if they are not or no longer counted */
	GsDictionaryChoice choice;
	uint32		most_bytes;		/* longer keys are truncated */
	KeyBytes	bytes;			/* variable width: of the current row */
} KeyColumn;

struct GsKeyEncoder
{
	int			ncolumns;		/* that are encoded: those after are compared */
	AttrNumber	last_attno;
	TupleDesc	desc;
	KeyColumn  *columns;
	GsKeyFacts	facts;
	int			nkeyed;			/* see gs_key_encoder_create() */

	/* dictionaries */
	bool		counts_values;	/* see gs_key_encoder_count_values() */
	bool		wants_dictionary;

	/* abbreviated and truncated keys */
	bool		may_be_low_cardinality; /* see gs_key_encoder_keep_low_cardinality() */
	bool		full;			/* see gs_key_encoder_create() */
	GsKeyTruncation truncation;
	GsDistinct	truncated_keys; /* initialized with the first of them */
	bool		short_was_truncated;	/* the first of them has SHORT_KEY_BYTES */

	/* the current row */
	GsDeform   *deform;			/* locates the columns in a tuple */
	GsDeform   *first_deform;	/* locates the first column only */
	Datum	   *values;			/* its sort columns */
	bool	   *nulls;
	MemoryContext value_context;	/* its detoasted values and codes */
	bool		value_context_used;

	GsKeyLayout layout;			/* of 4 kB: behind what each row needs */
};

/* Is the beginning of a value also the beginning of its key? */
static inline bool
gs_key_column_is_prefix(const GsKeyEncoder *key, const KeyColumn *column)
{
	return key->truncation != GS_KEYS_WHOLE && column->maker == NULL && column->collation == NULL &&
		(column->kind == GS_KEY_TEXT || column->kind == GS_KEY_BYTEA);
}

/* Decides by the values counted so far whether a dictionary suits a column, if that is known. */
extern void gs_key_column_choose_dictionary(GsKeyEncoder *key, KeyColumn *column, bool all_counted);

#endif							/* GPUSORT_KEY_ENCODER_STATE_H */
