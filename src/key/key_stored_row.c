/*-------------------------------------------------------------------------
 *
 * key_stored_row.c
 *	  Converts the row of a slot to a stored row; key_encode_row.c makes its key.
 *
 * Stored rows have the same bytes as those of tuplesort, with TOAST pointers as they are.  A tuple
 * of a table to which columns were added later may have fewer columns than the slot.  As in
 * tuplesort, nothing is done about that, because the scan projects if it matters.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key/key_stored_row.h"

typedef struct FormColumn
{
	int16		len;			/* as pg_type.typlen */
	bool		by_value;
	bool		packs;			/* a long header becomes a short one if possible */
	uint8		align_mask;
} FormColumn;

struct GsRowForm
{
	int			ncolumns;
	FormColumn *columns;		/* NULL: the type has columns that are not supported */
	Size		nbytes;			/* of a row without NULLs, if that is fixed; else 0 */
	uint16	   *value_at;		/* as in GsRowSource */
};

/* Where the values of a row begin. */
static inline Size
header_bytes(int ncolumns, bool has_nulls)
{
	return MAXALIGN(SizeofMinimalTupleHeader + (has_nulls ? BITMAPLEN(ncolumns) : 0));
}

static inline Size
align(Size at, uint8 mask)
{
	return (at + mask) & ~(Size) mask;
}

/* ------------------------------------------------------------------- by a form */

GsRowForm *
gs_row_form_create(TupleDesc desc)
{
	GsRowForm  *form = palloc(sizeof(GsRowForm));
	Size		nbytes = header_bytes(desc->natts, false);
	bool		is_fixed = true;
	bool		is_supported = true;

	form->ncolumns = desc->natts;
	form->columns = palloc(sizeof(FormColumn) * desc->natts);
	form->value_at = palloc(sizeof(uint16) * desc->natts);
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);
		FormColumn *column = &form->columns[i];

		column->len = attribute->attlen;
		column->by_value = attribute->attbyval;
		column->packs = attribute->attstorage != TYPSTORAGE_PLAIN;
		column->align_mask = att_align_nominal(1, attribute->attalign) - 1;
		is_supported &= column->len != -2;
		is_fixed &= column->len > 0;
		nbytes = align(nbytes, column->align_mask) + Max(column->len, 0);
	}
	if (!is_supported)
		form->columns = NULL;
	form->nbytes = is_fixed && nbytes <= PG_UINT16_MAX ? nbytes : 0;
	return form;
}

/* The stored length of a value, alignment aside; 0 if it would have a long header. */
static inline Size
stored_bytes(const FormColumn *column, Datum value)
{
	const void *pointer = DatumGetPointer(value);

	if (column->len > 0)
		return column->len;
	if (VARATT_IS_SHORT(pointer))
		return VARATT_IS_EXTERNAL(pointer) ? 0 : VARSIZE_SHORT(pointer);
	return column->packs && VARATT_CAN_MAKE_SHORT(pointer) ? VARATT_CONVERTED_SHORT_SIZE(pointer) :
		0;
}

/* The length of a row; 0 if it cannot be formed here. */
static Size
measure(const GsRowForm *form, const TupleTableSlot *slot, bool has_nulls)
{
	Size		at = header_bytes(form->ncolumns, has_nulls);

	if (form->columns == NULL)
		return 0;
	if (form->nbytes > 0 && !has_nulls)
		return form->nbytes;
	for (int i = 0; i < form->ncolumns; i++)
	{
		const FormColumn *column = &form->columns[i];
		Size		nbytes;

		if (slot->tts_isnull[i])
			continue;
		nbytes = stored_bytes(column, slot->tts_values[i]);
		if (nbytes == 0)
			return 0;
		at = (column->len > 0 ? align(at, column->align_mask) : at) + nbytes;
	}
	return at <= PG_UINT16_MAX ? at : 0;
}

/* Writes zeros up to the next aligned address. */
static inline char *
pad(char *at, uint8 align_mask)
{
	while (((uintptr_t) at & align_mask) != 0)
		*at++ = 0;
	return at;
}

/* Stores a value that is passed by reference.  Returns its end. */
static inline char *
store_referenced(const FormColumn *column, Datum value, char *at)
{
	const void *pointer = DatumGetPointer(value);
	const Size	nbytes = stored_bytes(column, value);

	if (column->len > 0 || VARATT_IS_SHORT(pointer))
		memcpy(at, pointer, nbytes);
	else
	{
		SET_VARSIZE_SHORT(at, nbytes);
		memcpy(at + VARHDRSZ_SHORT, VARDATA(pointer), nbytes - VARHDRSZ_SHORT);
	}
	return at + nbytes;
}

/* Writes a row, of measure(), except its t_len. */
static void
form_row(const GsRowForm *form, const TupleTableSlot *slot, bool has_nulls, char *row)
{
	const MinimalTuple tuple = (MinimalTuple) row;
	const Size	header = header_bytes(form->ncolumns, has_nulls);
	uint16		infomask = has_nulls ? HEAP_HASNULL : 0;
	char	   *at = row + header;

	memset(row, 0, header_bytes(form->ncolumns, false));	/* of constant size, unlike the rest */
	if (unlikely(has_nulls))
		memset(tuple->t_bits, 0, row + header - (char *) tuple->t_bits);
	for (int i = 0; i < form->ncolumns; i++)
	{
		const FormColumn *column = &form->columns[i];
		const Datum value = slot->tts_values[i];

		if (unlikely(has_nulls))
		{
			if (slot->tts_isnull[i])
				continue;
			tuple->t_bits[i / BITS_PER_BYTE] |= 1 << i % BITS_PER_BYTE;
		}
		if (column->len > 0)
			at = pad(at, column->align_mask);
		if (column->by_value)
		{
			store_att_byval(at, value, column->len);
			at += column->len;
			continue;
		}
		if (column->len == -1)
			infomask |= HEAP_HASVARWIDTH;
		form->value_at[i] = at - row;
		at = store_referenced(column, value, at);
	}
	HeapTupleHeaderSetNatts(tuple, form->ncolumns);
	tuple->t_infomask = infomask;
	tuple->t_hoff = header + MINIMAL_TUPLE_OFFSET;
}

/* ------------------------------------------------------------- slots of values */

static inline bool
has_nulls(const TupleTableSlot *slot, int ncolumns)
{
	for (int i = 0; i < ncolumns; i++)
	{
		if (slot->tts_isnull[i])
			return true;
	}
	return false;
}

void
gs_row_source_init_values(GsRowSource *source, TupleTableSlot *slot, const GsRowForm *form)
{
	TupleDesc	desc = slot->tts_tupleDescriptor;

	Assert(form == NULL || form->ncolumns == desc->natts);
	slot_getallattrs(slot);
	source->has_nulls = has_nulls(slot, desc->natts);
	source->nbytes = form != NULL ? measure(form, slot, source->has_nulls) : 0;
	source->form = source->nbytes > 0 ? form : NULL;
	if (source->form != NULL)
		source->value_at = form->value_at;
	else
		source->nbytes = header_bytes(desc->natts, source->has_nulls) +
			heap_compute_data_size(desc, slot->tts_values, slot->tts_isnull);
}

void
gs_row_form(const GsRowSource *source, TupleTableSlot *slot, char *row)
{
	MinimalTuple tuple = (MinimalTuple) row;
	TupleDesc	desc = slot->tts_tupleDescriptor;
	const Size	header = header_bytes(desc->natts, source->has_nulls);

	if (source->form != NULL)
	{
		form_row(source->form, slot, source->has_nulls, row);
		return;
	}
	/* heap_fill_tuple() expects zeros in the header and the padding */
	memset(row, 0, source->nbytes);
	HeapTupleHeaderSetNatts(tuple, desc->natts);
	tuple->t_hoff = header + MINIMAL_TUPLE_OFFSET;
	heap_fill_tuple(desc, slot->tts_values, slot->tts_isnull,
					row + header, source->nbytes - header, &tuple->t_infomask,
					source->has_nulls ? tuple->t_bits : NULL);
}
