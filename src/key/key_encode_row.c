/*-------------------------------------------------------------------------
 *
 * key_encode_row.c
 *	  Encodes the sort columns of a row in its key record.
 *
 * The record of `ORDER BY int4 DESC NULLS LAST, text`, for the row (7, 'gpu'),
 * whose text is at byte 20 of the stored row:
 *
 *	  word 0	80000007 00000000		the int4, its sign bit flipped; unused
 *	  word 1	67707500 00000000		'g' 'p' 'u', padded
 *	  word 2	00000014 00000003		offset of the text in the row, and its length
 *	  location	........ 00000000		where the row is; no NULLs
 *
 * DESC and NULLS LAST are not visible in it: the packing (key_pack.h) applies
 * them when the ranges of the codes are known.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/key_codec.h"
#include "key/key_distinct.h"
#include "key/key_encoder_state.h"
#include "key/key_numeric.h"
#include "key/key_encode_row.h"

#include "access/detoast.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

/* ----------------------------------------------------- variable-width values */

/* Does the prefix hold all bytes?  Then the record does not refer to them. */
static inline bool
fits_prefix(const KeyBytes *bytes)
{
	return bytes->len <= sizeof(uint64);
}

/*
 * If the value of the first row must be detoasted, others probably must, too.  Their keys are not
 * part of their rows, so short ones take less memory.  By 8,000 texts of 8 kB, out of line, under
 * "C": 13 ms, and 38 with keys of 1 kB, of PostgreSQL's 26 (2 cores of an AMD EPYC that others used
 * too, PostgreSQL 15.20, 2026-11-24).
 */
static inline void
shorten_keys(const GsKeyEncoder *key, KeyColumn *column)
{
	if (key->truncation == GS_KEYS_SHORT && gs_key_column_is_prefix(key, column) &&
		key->layout.nrows == 0)
		column->most_bytes = SHORT_KEY_BYTES;
}

/* Detoasts a value, as far as its key needs. */
static struct varlena *
detoast_value(GsKeyEncoder *key, const KeyColumn *column, struct varlena *value)
{
	MemoryContext old = MemoryContextSwitchTo(key->value_context);

	/* one byte more than a key has, so that the key is known to be truncated */
	value = gs_key_column_is_prefix(key, column) ?
		pg_detoast_datum_slice(value, 0, column->most_bytes + 1) : pg_detoast_datum_packed(value);
	MemoryContextSwitchTo(old);
	key->value_context_used = true;
	return value;
}

/* Computes the code of a detoasted value. */
static bool
make_bytes(GsKeyEncoder *key, KeyColumn *column, struct varlena *value, const char **why_not)
{
	KeyBytes   *bytes = &column->bytes;
	MemoryContext old = MemoryContextSwitchTo(key->value_context);
	bool		made = gs_key_maker_make(column->maker, PointerGetDatum(value),
										 column->most_bytes,
										 &bytes->data, &bytes->len, why_not);

	MemoryContextSwitchTo(old);
	key->value_context_used = true;
	bytes->separate = true;
	return made;
}

/* Locates or computes the bytes of a value, detoasting it if necessary. */
static bool
locate_bytes(GsKeyEncoder *key, KeyColumn *column, Datum datum, const char **why_not)
{
	KeyBytes   *bytes = &column->bytes;
	struct varlena *value;

	bytes->separate = false;
	if (column->kind == GS_KEY_NAME)
	{
		bytes->data = NameStr(*DatumGetName(datum));
		bytes->len = strnlen(bytes->data, NAMEDATALEN);
		return true;
	}

	value = (struct varlena *) DatumGetPointer(datum);
	if (gs_is_toasted(-1, datum))
	{
		shorten_keys(key, column);
		value = detoast_value(key, column, value);
		bytes->separate = true;
	}
	if (column->maker != NULL)
		return make_bytes(key, column, value, why_not);
	bytes->data = VARDATA_ANY(value);
	bytes->len = VARSIZE_ANY_EXHDR(value);
	if (column->kind == GS_KEY_BPCHAR)
		bytes->len = bpchartruelen(unconstify(char *, bytes->data), bytes->len);
	return true;
}

/* Reads a value of variable width: the bytes that are its key. */
static bool
read_value_bytes(GsKeyEncoder *key, KeyColumn *column, Datum datum, const char **why_not)
{
	KeyBytes   *bytes = &column->bytes;

	if (!locate_bytes(key, column, datum, why_not))
		return false;
	if (column->collation != NULL)
	{
		if (!gs_key_collation_key(column->collation, bytes->data, bytes->len, column->most_bytes,
								  &bytes->data, &bytes->len, why_not))
			return false;
		bytes->separate = true;
	}
	bytes->prefix = gs_load_prefix((const unsigned char *) bytes->data, bytes->len);
	return true;
}

/* Reads a value whose bytes are its key, if it need not be detoasted.  Returns false if not. */
static inline bool
read_plain_bytes(KeyColumn *column, Datum datum)
{
	const struct varlena *value = (const struct varlena *) DatumGetPointer(datum);
	KeyBytes   *bytes = &column->bytes;

	if (!column->is_plain || gs_is_toasted(-1, datum))
		return false;
	bytes->separate = false;
	bytes->data = VARDATA_ANY(value);
	bytes->len = VARSIZE_ANY_EXHDR(value);
	bytes->prefix = gs_load_prefix((const unsigned char *) bytes->data, bytes->len);
	return true;
}

/* Reads a numeric whose code fits the prefix, as most do.  Returns false for other values. */
static inline bool
read_numeric_word(KeyColumn *column, Datum datum)
{
	const struct varlena *value = (const struct varlena *) DatumGetPointer(datum);

	if (column->kind != GS_KEY_NUMERIC || gs_is_toasted(-1, datum) ||
		!gs_numeric_code_is_word(VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value),
								 column->fixed_weight, &column->bytes.prefix))
		return false;
	column->bytes.len = sizeof(uint64);
	return true;
}

/* Replaces a value by its abbreviated key. */
static bool
read_abbreviation(const GsKeyEncoder *key, const KeyColumn *column, Datum *value,
				  const char **why_not)
{
	*value = UInt64GetDatum(gs_key_sortsupport_code(column->abbreviation, *value));
	*why_not = gs_key_sortsupport_why_not(column->abbreviation);
	/* few distinct values may get a dictionary */
	return *why_not == NULL || key->may_be_low_cardinality || column->counted != NULL ||
		column->choice == GS_DICTIONARY_WANTED;
}

/* A value of a column; fetched if it is out of line, but not decompressed. */
static inline Datum
stored_value(GsKeyEncoder *key, const KeyColumn *column, Datum value)
{
	MemoryContext old;

	if (column->attlen != -1 || !VARATT_IS_EXTERNAL(DatumGetPointer(value)))
		return value;
	old = MemoryContextSwitchTo(key->value_context);
	value = PointerGetDatum(detoast_external_attr((struct varlena *) DatumGetPointer(value)));
	MemoryContextSwitchTo(old);
	key->value_context_used = true;
	return value;
}

/* Does the key of a value cost less than a code: is it in the row, or one word? */
static bool
is_cheap(KeyColumn *column, Datum datum)
{
	if (column->collation != NULL || column->abbreviation != NULL || column->of_libc)
		return false;
	return column->maker != NULL ? read_numeric_word(column, datum) :
		!gs_is_toasted(-1, datum);
}

/* Counts a value of a column, which may decide about a dictionary. */
static pg_noinline void
count_value(GsKeyEncoder *key, KeyColumn *column, Datum value)
{
	CountedValues *counted = column->counted;

	if (is_cheap(column, value))
		counted->ncheap++;
	else
	{
		Size		nbytes;
		const char *bytes = gs_stored_bytes(column->attlen, stored_value(key, column, value),
											&nbytes);

		gs_distinct_add_hash(&counted->distinct, gs_stored_hash(bytes, nbytes));
	}
	if (counted->ncheap == MAX_CHEAP_VALUES || gs_distinct_check_is_due(&counted->distinct))
		gs_key_column_choose_dictionary(key, column, false);
}

/* Replaces a value by its code of a dictionary. */
static bool
read_dictionary_code(GsKeyEncoder *key, KeyColumn *column, Datum *value, const char **why_not)
{
	uint64		code;

	if (!gs_key_dictionary_code(column->dictionary, stored_value(key, column, *value), &code))
	{
		*why_not = "too many distinct values for a dictionary";
		column->choice = GS_DICTIONARY_REJECTED;
		key->facts.dictionary_overflowed = true;
		return false;
	}
	*value = UInt64GetDatum(code);
	return true;
}

/* ---------------------------------------------------------------------- rows */

/* Can the tuple be deformed here?  Otherwise its slot does it, or has done it. */
static inline bool
deforms_tuple(const GsKeyEncoder *key, TupleTableSlot *slot, const GsRowSource *source)
{
	return slot->tts_nvalid < key->last_attno && source->body != NULL;
}

/* Locates the sort columns of the slot's row. */
static void
locate_values(GsKeyEncoder *key, TupleTableSlot *slot, const GsRowSource *source)
{
	if (deforms_tuple(key, slot, source) &&
		gs_deform(key->deform, gs_row_header(source->body), key->values, key->nulls))
		return;
	slot_getsomeattrs(slot, key->last_attno);
	for (int i = 0; i < key->ncolumns; i++)
	{
		key->values[i] = slot->tts_values[key->columns[i].attno - 1];
		key->nulls[i] = slot->tts_isnull[key->columns[i].attno - 1];
	}
}

/* Frees what was computed for the previous row. */
static inline void
reset_values(GsKeyEncoder *key)
{
	if (key->value_context_used)
	{
		MemoryContextReset(key->value_context);
		key->value_context_used = false;
	}
}

/* Computes the key of a column that has been located, if it is not the value itself. */
static inline bool
read_column(GsKeyEncoder *key, int colno, const char **why_not)
{
	KeyColumn  *column = &key->columns[colno];

	if (key->nulls[colno])
		return true;
	if (column->kind == GS_KEY_ENUM)
		return gs_key_labels_find(&column->labels, &key->values[colno], why_not);
	if (column->dictionary != NULL)
		return read_dictionary_code(key, column, &key->values[colno], why_not);
	if (unlikely(column->counted != NULL))
		count_value(key, column, key->values[colno]);
	if (column->kind == GS_KEY_ABBREVIATED)
		return read_abbreviation(key, column, &key->values[colno], why_not);
	if (key->layout.columns[colno].variable)
		return read_plain_bytes(column, key->values[colno]) ||
			read_numeric_word(column, key->values[colno]) ||
			read_value_bytes(key, column, key->values[colno], why_not);
	return true;
}

/* Truncates a long key: the comparator resolves ties by this column and those after it. */
static pg_noinline void
truncate_key(GsKeyEncoder *key, int colno)
{
	KeyColumn  *column = &key->columns[colno];
	GsDistinct *distinct = &key->truncated_keys;

	if (distinct->nvalues == 0 && distinct->next_check <= LAST_TRUNCATION_CHECK)
	{
		MemoryContext old = MemoryContextSwitchTo(GetMemoryChunkContext(key));

		/*
		 * Where values are detoasted only in part, decide late: that costs little, and full keys
		 * can cost three times PostgreSQL's sort if only the first few values begin alike.
		 */
		gs_distinct_init(distinct, gs_key_column_is_prefix(key, column) ?
						 LAST_TRUNCATION_CHECK : FIRST_TRUNCATION_CHECK);
		key->short_was_truncated = column->most_bytes < GS_TRUNCATED_KEY_BYTES;
		MemoryContextSwitchTo(old);
	}
	column->bytes.len = column->most_bytes;
	if (distinct->next_check <= LAST_TRUNCATION_CHECK)
		gs_distinct_add(distinct, column->bytes.data, column->bytes.len);
	key->ncolumns = colno + 1;
	key->layout.ndecisive = colno + 1;
	key->facts.first_tied = colno;
	key->facts.can_key_more = false;
}

/* The number of bytes of a column's key that are stored behind the row; truncates it. */
static inline size_t
separate_bytes(GsKeyEncoder *key, int colno)
{
	const KeyBytes *bytes = &key->columns[colno].bytes;

	if (key->nulls[colno] || !key->layout.columns[colno].variable)
		return 0;
	if (bytes->len > key->columns[colno].most_bytes)
		truncate_key(key, colno);
	return bytes->separate && !fits_prefix(bytes) ? bytes->len : 0;
}

/* Computes the keys of the columns that have been located. */
static inline bool
read_columns(GsKeyEncoder *key, size_t *extra_bytes, const char **why_not)
{
	*extra_bytes = 0;
	reset_values(key);
	for (int i = 0; i < key->ncolumns; i++)
	{
		if (key->columns[i].is_read)
			continue;
		if (!read_column(key, i, why_not))
			return false;
		*extra_bytes += separate_bytes(key, i);
	}
	return true;
}

bool
gs_key_record_read(GsKeyEncoder *key, TupleTableSlot *slot, const GsRowSource *source,
				   size_t *extra_bytes, const char **why_not)
{
	locate_values(key, slot, source);
	return read_columns(key, extra_bytes, why_not);
}

bool
gs_key_record_read_row(GsKeyEncoder *key, const GsRowSource *source, size_t *extra_bytes,
					   const char **why_not)
{
	gs_deform_any(key->deform, gs_row_header(source->body), key->values, key->nulls);
	return read_columns(key, extra_bytes, why_not);
}

/* ------------------------------------------------------------------ writing */

/*
 * Writes a value of variable width: its prefix, and the offset of all its bytes
 * from the row.  Bytes that are not part of the row are copied to *extra.
 */
static void
write_value_bytes(GsKeyEncoder *key, int colno, const GsRowSource *source,
				  char *row, char **extra, uint64 *record)
{
	KeyColumn  *column = &key->columns[colno];
	GsKeyColumn *layout = &key->layout.columns[colno];
	KeyBytes   *bytes = &column->bytes;
	const char *stored;

	gs_key_field_write(&key->layout.fields[layout->first_field], record, bytes->prefix);
	if (bytes->len < layout->min_len)
		layout->min_len = bytes->len;
	if (bytes->len > layout->max_len)
		layout->max_len = bytes->len;

	if (fits_prefix(bytes))
		stored = row;
	else if (bytes->separate)
	{
		memcpy(*extra, bytes->data, bytes->len);
		stored = *extra;
		*extra += bytes->len;
	}
	else if (gs_row_source_contains(source, bytes->data))
		stored = row + (bytes->data - source->body);
	else if (source->value_at != NULL)
		stored = row + source->value_at[column->attno - 1] +
			(column->kind == GS_KEY_NAME ? 0 : VARHDRSZ_SHORT);
	else
	{
		/* the row was formed from the slot's values: locate the copy of this one */
		HeapTupleData tuple = gs_row_tuple(row);
		bool		is_null;
		const Datum value = heap_getattr(&tuple, column->attno, key->desc, &is_null);

		stored = column->kind == GS_KEY_NAME ?
			NameStr(*DatumGetName(value)) : VARDATA_ANY(DatumGetPointer(value));
	}
	record[layout->tail_word] = gs_tail_make((uint32) (stored - row), bytes->len);
}

/* The code of a value that is passed by value. */
static inline uint64
value_code(const KeyColumn *column, Datum value)
{
	return column->is_integer ? (value ^ column->flip) & column->mask :
		gs_key_value_code(column->kind, column->field, &column->labels, value);
}

/* Writes a value of fixed width that is not an integer. */
static pg_noinline void
write_by_kind(const KeyColumn *column, Datum value, uint64 *record)
{
	if (column->by_value)
		gs_key_field_write(column->field, record, value_code(column, value));
	else
		gs_key_fields_write(column->kind, column->field, value, record);
}

/*
 * Writes a value of fixed width; count: counts it, too.  Only integers, the most frequent,
 * are inlined: with the other kinds inlined too, the loop over columns runs out of registers.
 */
static pg_attribute_always_inline void
write_fixed(const KeyColumn *column, Datum value, uint64 *record, bool count)
{
	if (likely(column->is_integer))
	{
		GsKeyField *field = column->field;
		uint64		code = value_code(column, value);

		if (count)
			gs_key_field_update_range(field, code);
		record[field->word] |= code << field->shift;
	}
	else
		write_by_kind(column, value, record);
}

/* The code of the first field of the first column, of a value that is passed by reference. */
static pg_noinline uint64
by_reference_code(const KeyColumn *column, int nfields, Datum value)
{
	GsKeyField *field = column->field;
	uint64		record[GS_MAX_FIELDS];

	for (int i = 0; i < nfields; i++)
		record[field[i].word] = 0;
	gs_key_fields_write(column->kind, field, value, record);
	return (record[field->word] >> field->shift) & gs_key_field_mask(field);
}

/* The code of the first field of the first column, which has been read and is not NULL. */
static inline uint64
first_code(const GsKeyEncoder *key)
{
	const KeyColumn *column = &key->columns[0];

	if (column->by_value)
		return value_code(column, key->values[0]);
	if (key->layout.columns[0].variable)
		return column->bytes.prefix;
	return by_reference_code(column, key->layout.columns[0].nfields, key->values[0]);
}

bool
gs_key_record_read_first(GsKeyEncoder *key, TupleTableSlot *slot, bool *is_null, uint64 *code)
{
	Size		nbytes;
	const char *body = gs_row_body(slot, &nbytes);
	AttrNumber	attno = key->columns[0].attno;
	const char *why_not;

	if (slot->tts_nvalid >= attno || body == NULL ||
		!gs_deform(key->first_deform, gs_row_header(body), key->values, key->nulls))
		key->values[0] = slot_getattr(slot, attno, &key->nulls[0]);
	*is_null = key->nulls[0];
	if (*is_null)
		return true;
	reset_values(key);
	if (!read_column(key, 0, &why_not))
		return false;
	*code = first_code(key);
	return true;
}

/* Clears the record of a row; count: counts the row, too. */
static inline void
begin_record(GsKeyLayout *layout, uint64 *record, bool count)
{
	if (count)
		layout->nrows++;
	for (int w = 0; w < layout->nwords; w++)
		record[w] = 0;
}

/* Counts a NULL; returns its bit. */
static inline uint32
count_null(GsKeyLayout *layout, int column)
{
	layout->columns[column].nnulls++;
	return UINT32_C(1) << column;
}

uint32
gs_key_record_write(GsKeyEncoder *key, const GsRowSource *source, char *row,
					size_t row_bytes, uint64 *record)
{
	char	   *extra = row + row_bytes;
	uint32		nulls = 0;

	begin_record(&key->layout, record, true);
	for (int i = 0; i < key->ncolumns; i++)
	{
		if (key->nulls[i])
			nulls |= count_null(&key->layout, i);
		else if (key->layout.columns[i].variable)
			write_value_bytes(key, i, source, row, &extra, record);
		else
			write_fixed(&key->columns[i], key->values[i], record, true);
	}
	return nulls;
}

/* The argument of write_visited(). */
typedef struct RecordTarget
{
	const KeyColumn *columns;
	uint64	   *record;
	bool		count;
} RecordTarget;

static pg_attribute_always_inline void
write_visited(void *arg, int column, Datum value)
{
	const RecordTarget *target = arg;

	write_fixed(&target->columns[column], value, target->record, target->count);
}

static pg_noinline void
write_columns(const GsKeyEncoder *key, HeapTupleHeader tuple, uint64 *record, bool count)
{
	RecordTarget target = {key->columns, record, count};

	gs_deform_visit(key->deform, tuple, write_visited, &target);
}

/* Deforms a tuple into its record.  Returns false if it has NULLs or lacks columns. */
static pg_attribute_always_inline bool
write_tuple(GsKeyEncoder *key, HeapTupleHeader tuple, uint64 *record, bool count)
{
	if (unlikely(!gs_deform_can_visit(key->deform, tuple)))
		return false;
	begin_record(&key->layout, record, count);
	if (key->deform->only != NULL)
		write_fixed(&key->columns[0], gs_deform_only(key->deform, tuple), record, count);
	else
		write_columns(key, tuple, record, count);
	return true;
}

bool
gs_key_record_write_tuple(GsKeyEncoder *key, HeapTupleHeader tuple, uint64 *record)
{
	return write_tuple(key, tuple, record, true);
}

/* Writes the record of a slot that has only values. */
static uint32
write_values(GsKeyEncoder *key, const TupleTableSlot *slot, uint64 *record)
{
	uint32		nulls = 0;

	begin_record(&key->layout, record, true);
	for (int i = 0; i < key->ncolumns; i++)
	{
		const KeyColumn *column = &key->columns[i];

		if (unlikely(slot->tts_isnull[column->attno - 1]))
			nulls |= count_null(&key->layout, i);
		else
			write_fixed(column, slot->tts_values[column->attno - 1], record, true);
	}
	return nulls;
}

uint32
gs_key_record_write_direct(GsKeyEncoder *key, TupleTableSlot *slot, const GsRowSource *source,
						   uint64 *record)
{
	if (source->body == NULL)
		return write_values(key, slot, record);
	if (likely(deforms_tuple(key, slot, source) &&
			   write_tuple(key, gs_row_header(source->body), record, true)))
		return 0;
	locate_values(key, slot, source);
	return gs_key_record_write(key, source, NULL, 0, record);
}

uint32
gs_key_record_write_direct_row(GsKeyEncoder *key, const GsRowSource *source, uint64 *record)
{
	if (likely(write_tuple(key, gs_row_header(source->body), record, false)))
		return 0;
	gs_deform_any(key->deform, gs_row_header(source->body), key->values, key->nulls);
	return gs_key_record_write(key, source, NULL, 0, record);
}

/* ----------------------------------------------------------------- keys only */

bool
gs_key_record_write_value(GsKeyEncoder *key, Datum value, uint64 *record, const char **why_not)
{
	KeyColumn  *column = &key->columns[0];

	if (column->kind == GS_KEY_ENUM && !gs_key_labels_find(&column->labels, &value, why_not))
		return false;
	key->layout.nrows++;
	record[0] = 0;
	gs_key_layout_update_order(&key->layout,
							   gs_key_field_write(column->field, record,
												  value_code(column, value)));
	return true;
}

Datum
gs_key_record_decode(const GsKeyEncoder *key, const uint64 *record)
{
	const KeyColumn *column = &key->columns[0];
	uint64		code = (record[0] >> column->field->shift) & column->mask;

	/* the code of a signed integer is its distance from the least one */
	return column->flip != 0 ? (Datum) (code - column->flip) :
		gs_key_value_decode(column->kind, code);
}
