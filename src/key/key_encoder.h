/*-------------------------------------------------------------------------
 *
 * key_encoder.h
 *	  From the sort columns of a row to its key record.
 *
 * The planner side asks which columns can be encoded at all; the executor
 * side encodes.  For each row:
 *
 *	  gs_key_encoder_read()	finds the sort columns in the slot's tuple
 *	  (the driver stores the row)
 *	  gs_key_encoder_write()	writes the record
 *
 * two steps, since the bytes of a text are referred to where they stand in
 * the stored row, and those that do not stand there (fetched, or made: key_bytes.h)
 * must be stored behind it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_ENCODER_H
#define GPUSORT_KEY_ENCODER_H

#include "access/tupdesc.h"
#include "executor/tuptable.h"

#include "common/key_layout.h"
#include "key/key_order.h"
#include "key/key_row.h"

/* One column of an ORDER BY, as a plan has it. */
typedef struct GsSortColumn
{
	AttrNumber	attno;			/* in the row that is sorted */
	Oid			type;
	Oid			sort_operator;
	Oid			collation;
	bool		nulls_first;
} GsSortColumn;

/*
 * Can these columns be encoded?  If not, *why_not becomes a reason for people
 * (palloc'd or constant).
 */
extern bool gs_key_columns_can_encode(const GsSortColumn *columns, int ncolumns,
								   char **why_not);

/* Are keys of these only a hint, whose order has to be proven? */
extern bool gs_key_columns_are_approximate(const GsSortColumn *columns, int ncolumns);

/* Is one of them text under a collation of the C library? */
extern bool gs_key_encoder_uses_libc(const GsSortColumn *columns, int ncolumns);

/* Will rows with equal keys have to be compared, although keys are as whole as can be? */
extern bool gs_key_columns_leave_ties(const GsSortColumn *columns, int ncolumns);

/*
 * About how many bytes of keys go behind a row whose values have `width` bytes, because
 * texts are not compared byte by byte.
 */
extern double gs_key_columns_collated_bytes(const GsSortColumn *columns, int ncolumns, int width);

typedef struct GsKeyEncoder GsKeyEncoder;

/*
 * Makes the encoder of rows of the given type, in the current memory context,
 * where it also makes a small one of its own.  The columns must be encodable.
 * Where the one column is the whole row and its value can be had back from
 * its code, the layout is keys_only.
 *
 * whole: the keys are to order all rows wherever that can be done, as a device
 * needs it; else only as far as it is cheaper to make them and compare ties, and
 * long ones are cut.
 */
extern GsKeyEncoder *gs_key_encoder_create(const GsSortColumn *columns, int ncolumns,
									 TupleDesc desc, bool whole);

/*
 * Another key of the same columns, for rows that are loaded again, since the one that they have
 * does not suit them: their texts are few, or too many; or the keys were cut too short.  Then
 * none is cut, and of a text it is more than the first bytes.
 */
extern GsKeyEncoder *gs_key_encoder_create_next(const GsSortColumn *columns, int ncolumns,
										  TupleDesc desc, const GsKeyEncoder *before);

/*
 * Another key that makes the same records, of rows that this one has made them of, whatever the
 * catalog says by now.  That one must live as long, and keys be whole.
 */
extern GsKeyEncoder *gs_key_encoder_create_twin(const GsSortColumn *columns, int ncolumns,
										  TupleDesc desc, const GsKeyEncoder *of);

/*
 * Rows with equal keys have to be compared by the sort columns from this one on;
 * -1: they are equal.  Only an engine that can call comparators takes them.  That
 * can change with each row that is loaded, as its key may be one that is cut.
 */
extern int	gs_key_encoder_first_tied(const GsKeyEncoder *key);

/* Rows that come with keys of the same form have ties from that column on. */
extern void gs_key_encoder_tie_from(GsKeyEncoder *key, int column);

/*
 * Has abbreviated keys go on however few values they tell apart: without that such rows
 * are left to the stock sort.
 */
extern void gs_key_encoder_keep_low_cardinality(GsKeyEncoder *key);

/* Has no key cut from now on, as a device gets them: none was so far. */
extern void gs_key_encoder_keep_full(GsKeyEncoder *key);

/*
 * Are many of the cut keys alike, or of the codes of texts, so that uncut ones had better be
 * made from the first row on?  To be asked at each row, and for the last time.
 */
extern bool gs_key_encoder_prefix_is_poor(GsKeyEncoder *key, bool at_last);

/*
 * Are the codes of a column only a hint, so that the order has to be proven
 * by PostgreSQL's comparators (sort_verify.h) before a row leaves?
 */
extern bool gs_key_encoder_is_approximate(const GsKeyEncoder *key);

/*
 * Are these only the abbreviated keys of a type that compares them by a function of its own?  Then
 * the records of two rows, the second of which an engine has put behind the first, can confirm
 * it; false: the rows have to be compared.
 */
extern bool gs_key_encoder_can_confirm(const GsKeyEncoder *key);
extern bool gs_key_encoder_confirms(const GsKeyEncoder *key, const uint64 *before, const uint64 *record);

/* Why the order did not hold, for people. */
extern const char *gs_key_encoder_disproof(const GsKeyEncoder *key);

/*
 * Has the key look for texts that need a proof and of which there are few different ones: with codes
 * of a dictionary (key_dictionary.h) they need none.  A key of one sort only can have them.
 */
extern void gs_key_encoder_look_for_few(GsKeyEncoder *key);

/* Are there so few in the first rows?  To be asked at each row. */
extern bool gs_key_encoder_texts_are_few(const GsKeyEncoder *key);

/* Is that why a row cannot be encoded: it has one text more than codes are for? */
extern bool gs_key_encoder_texts_are_many(const GsKeyEncoder *key);

/* How many texts have codes; 0: it has no dictionaries. */
extern int	gs_key_encoder_dictionary_texts(const GsKeyEncoder *key);

/*
 * What keys of the same columns must have in common, if they are to be compared with each other:
 * as how much of a value they are made, and where they place enum labels, of which the catalog may
 * say something else in the meantime.
 */
extern uint64 gs_key_encoder_fingerprint(const GsKeyEncoder *key);

/* The layout of the records, with what was observed so far. */
extern GsKeyLayout *gs_key_encoder_layout(GsKeyEncoder *key);

/*
 * Finds the sort columns of the slot's row, whose source is given; looks no
 * further than the last of them.  *extra_bytes becomes how many bytes of keys have to be stored
 * behind the row; they are valid until the next load.  Returns false, and
 * sets *why_not, if this value cannot be encoded although its type can (a label that
 * was added to an enum while the sort ran, a code of more than 1 GB): such rows need
 * the stock sort.  May ereport what detoasting reports.
 */
extern bool gs_key_encoder_read(GsKeyEncoder *key, TupleTableSlot *slot,
							 const GsRowSource *source, size_t *extra_bytes,
							 const char **why_not);

/*
 * The same of a stored row, which needs no slot; the source is of it.
 */
extern bool gs_key_encoder_load_row(GsKeyEncoder *key, const GsRowSource *source, size_t *extra_bytes,
								 const char **why_not);

/* As long are those that are cut. */
#define GS_SORT_KEY_CUT		1024

/*
 * Is a record better made again by a twin than kept, if none of its keys was cut?  To be asked once
 * there were rows, as the texts of a collation decide.
 */
extern bool gs_key_encoder_is_cheap(const GsKeyEncoder *key);

/* Does the first sort column's code cost more than a comparison of two values? */
extern bool gs_key_encoder_first_is_expensive(const GsKeyEncoder *key);

/*
 * A look at the first sort column of the slot's row, and no further: *is_null,
 * or the *code of its first field.  Returns false if it cannot be encoded, as
 * gs_key_encoder_read() will say.  What was loaded before is lost.
 */
extern bool gs_key_encoder_read_first(GsKeyEncoder *key, TupleTableSlot *slot, bool *is_null,
							 uint64 *code);

/*
 * Writes what was loaded to the record of a stored row, behind row_bytes of
 * which the extra bytes go.  Returns the NULL bits.
 */
extern uint32 gs_key_encoder_write(GsKeyEncoder *key, const GsRowSource *source,
								char *row, size_t row_bytes, uint64 *record);

/*
 * Load and write in one where no value has to be fetched or looked up: for
 * most keys of fixed width.
 */
extern bool gs_key_encoder_is_direct(const GsKeyEncoder *key);
extern uint32 gs_key_encoder_write_direct(GsKeyEncoder *key, TupleTableSlot *slot,
									   const GsRowSource *source, uint64 *record);
extern uint32 gs_key_encoder_write_direct_row(GsKeyEncoder *key, const GsRowSource *source,
										   uint64 *record);

/*
 * Load and write in one for keys_only layouts: writes the record of a value
 * that is not NULL.  Returns as gs_key_encoder_read() does.
 */
extern bool gs_key_encoder_write_value(GsKeyEncoder *key, Datum value, uint64 *record,
									const char **why_not);

/* The value that a keys_only record was made from. */
extern Datum gs_key_encoder_decode(const GsKeyEncoder *key, const uint64 *record);

#endif							/* GPUSORT_KEY_ENCODER_H */
