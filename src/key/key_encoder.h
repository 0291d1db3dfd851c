/*-------------------------------------------------------------------------
 *
 * key_encoder.h
 *	  How the sort columns of a sort become key records.
 *
 * An encoder is created for the columns of one sort; key_encode_row.h writes the record of each row
 * with it.  The choice between *full* keys, and *truncated* or *abbreviated* ones, which leave ties
 * to be compared, is revised while rows arrive: the caller asks gs_key_encoder_wants_dictionary()
 * and gs_key_encoder_wants_full_keys(), and reads the rows again with the encoder of
 * gs_key_encoder_create_next() if one of them says so.
 *
 * Encoders are allocated in the current memory context.  Creating one may ereport what PostgreSQL
 * reports of a locale that it cannot open; the other functions of this header cannot fail.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_ENCODER_H
#define GPUSORT_KEY_ENCODER_H

#include "access/tupdesc.h"

#include "common/key_layout.h"
#include "key/key_columns.h"

/* The length of truncated keys, in bytes. */
#define GS_TRUNCATED_KEY_BYTES	1024

typedef struct GsKeyEncoder GsKeyEncoder;

typedef struct GsKeyFacts
{
	bool		direct;			/* rows can be encoded by gs_key_record_write_direct() */

	bool		first_is_expensive; /* the key of a value of the first column costs more than to
									 * compare two, or tells nothing */
	bool		first_is_numeric;	/* to compare two values copies both */

	/*
	 * The first column by which rows with equal keys have to be compared; -1: their order is equal.
	 * Each row that is encoded can change it, because its key may be truncated.
	 */
	int			first_tied;
	bool		can_key_more;	/* a key can also have that column: read/read_tied.h */
	bool		more_is_expensive;	/* which costs as much as several comparisons */

	/*
	 * Not NULL: keys are approximate, so the order has to be verified by comparators, before a row
	 * is returned (gs_order_verify()), or by the caller.  It tells the user why that failed.
	 */
	const char *mismatch;
	/* the only approximate keys are those of a type that compares them by a function of its own */
	bool		approximate_type;

	bool		dictionary_overflowed;	/* so the last row could not be encoded */
} GsKeyFacts;

/*
 * Creates the encoder for rows of the given type.  The columns must be encodable.  The layout is
 * keys_only if the only column is the whole row and its value can be decoded from its code.
 *
 * nkeyed: the key ends before the first column of variable width after the first nkeyed ones,
 * unless that is the first of all (README.md, "Where a key ends").  full: keys order all rows
 * wherever that is possible, as a device needs it.
 */
extern GsKeyEncoder *gs_key_encoder_create(const GsSortColumn *columns, int ncolumns,
										   TupleDesc desc, int nkeyed, bool full);

/*
 * Creates the encoder for reading the rows again, because the keys of `before` do not suit them:
 * with dictionaries for the columns for which that one wants them, without one that overflowed;
 * else with one more column of variable width if that one can have it, or with keys that are
 * truncated later, or neither truncated nor abbreviated to their first bytes.
 */
extern GsKeyEncoder *gs_key_encoder_create_next(const GsSortColumn *columns, int ncolumns,
												TupleDesc desc, const GsKeyEncoder *before);

/*
 * Creates an encoder that makes the same records as another one of the same
 * columns, even if the catalogs have changed in the meantime.
 * Shares the labels and dictionaries of that one, which must live as long.
 */
extern GsKeyEncoder *gs_key_encoder_create_same(const GsSortColumn *columns, int ncolumns,
												TupleDesc desc, const GsKeyEncoder *of);

/* What is known of its keys so far. */
extern const GsKeyFacts *gs_key_encoder_facts(const GsKeyEncoder *key);

/* The layout of the records, with what was recorded of the rows so far. */
extern GsKeyLayout *gs_key_encoder_layout(GsKeyEncoder *key);

/*
 * A hash of what encoders of the same columns must have in common if their records are to be
 * compared: how much of a value is in its key, and the places of enum labels.
 */
extern uint64 gs_key_encoder_fingerprint(const GsKeyEncoder *key);

/* --------------------------------------------------------------------- ties */

/* Do keys alone decide the order of all rows that were encoded? */
extern bool gs_key_encoder_decides(const GsKeyEncoder *key);

/* Also encodes rows of other participants, whose keys leave ties from this column on. */
extern void gs_key_encoder_tie_from(GsKeyEncoder *key, int column);

/* Truncates no key from now on, as a device needs it.  None was truncated before. */
extern void gs_key_encoder_keep_full(GsKeyEncoder *key);

/* Accepts abbreviated keys with few distinct values, which are an error otherwise. */
extern void gs_key_encoder_keep_low_cardinality(GsKeyEncoder *key);

/*
 * Have the truncated or abbreviated keys so few distinct values that full keys cost less, even if
 * all rows are read again?  To be called after each row, and with at_end after the last.
 */
extern bool gs_key_encoder_wants_full_keys(GsKeyEncoder *key, bool at_end);

/* ------------------------------------------------------------- verification */

/*
 * Can records alone prove the order of two rows that an engine has put next to each other?
 * proves_order: do they?  If they do not, the rows have to be compared.
 */
extern bool gs_key_encoder_can_prove_order(const GsKeyEncoder *key);
extern bool gs_key_encoder_proves_order(const GsKeyEncoder *key, const uint64 *before,
										const uint64 *record);

/* ------------------------------------------------------------- dictionaries */

/*
 * Counts the distinct values of columns for which codes of a dictionary may cost less.  Only for a
 * sort in one process, because each encoder has dictionaries of its own.
 */
extern void gs_key_encoder_count_values(GsKeyEncoder *key);

/* Are there values that are still to be counted? */
extern bool gs_key_encoder_is_counting(const GsKeyEncoder *key);

/*
 * Have the first rows so few distinct values in a column?  To be called after each row, and with
 * at_end when it must be decided.
 */
extern bool gs_key_encoder_wants_dictionary(GsKeyEncoder *key, bool at_end);

/* The number of values that have codes; 0 without dictionaries. */
extern int	gs_key_encoder_dictionary_values(const GsKeyEncoder *key);

#endif							/* GPUSORT_KEY_ENCODER_H */
