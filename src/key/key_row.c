/*-------------------------------------------------------------------------
 *
 * key_row.c
 *	  Converts the row of a slot to a stored row.
 *
 * Stored rows have the same bytes as those of tuplesort, with TOAST pointers as they
 * are.  A tuple of a table to which columns were added later may have fewer columns than
 * the slot.  As in tuplesort, nothing is done about that, because the scan projects if it
 * matters.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key/key_row.h"

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
	FormColumn *columns;		/* NULL: the type has columns that are not
								 * supported */
	TupleTableSlot *slot;
	char		row[GS_SHORT_FORM_BYTES] pg_attribute_aligned(MAXIMUM_ALIGNOF);
};

/* Where the values of a row begin. */
static inline Size
header_bytes(int ncolumns, bool has_nulls)
{
	return MAXALIGN(SizeofMinimalTupleHeader + (has_nulls ? BITMAPLEN(ncolumns) : 0));
}

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
gs_row_source_init_values(GsRowSource *source, TupleTableSlot *slot)
{
	TupleDesc	desc = slot->tts_tupleDescriptor;

	slot_getallattrs(slot);
	source->has_nulls = has_nulls(slot, desc->natts);
	source->body = NULL;
	source->data_bytes = heap_compute_data_size(desc, slot->tts_values, slot->tts_isnull);
	source->nbytes = header_bytes(desc->natts, source->has_nulls) + source->data_bytes;
}

void
gs_row_form(const GsRowSource *source, TupleTableSlot *slot, char *row)
{
	MinimalTuple tuple = (MinimalTuple) row;
	TupleDesc	desc = slot->tts_tupleDescriptor;
	Size		header = source->nbytes - source->data_bytes;

	/* heap_fill_tuple() expects zeros in the header and the padding */
	memset(row, 0, source->nbytes);
	HeapTupleHeaderSetNatts(tuple, desc->natts);
	tuple->t_hoff = header + MINIMAL_TUPLE_OFFSET;
	heap_fill_tuple(desc, slot->tts_values, slot->tts_isnull,
					row + header, source->data_bytes, &tuple->t_infomask,
					source->has_nulls ? tuple->t_bits : NULL);
}

GsRowForm *
gs_row_form_create(TupleDesc desc, TupleTableSlot *slot)
{
	GsRowForm  *form = palloc(sizeof(GsRowForm));
	bool		supported = header_bytes(desc->natts, true) < GS_SHORT_FORM_BYTES;

	form->ncolumns = desc->natts;
	form->columns = palloc(sizeof(FormColumn) * desc->natts);
	form->slot = slot;
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);

		form->columns[i] = (FormColumn)
		{
			.len = attribute->attlen,
				.by_value = attribute->attbyval,
				.packs = attribute->attstorage != TYPSTORAGE_PLAIN,
				.align_mask = att_align_nominal(1, attribute->attalign) - 1
		};
		supported &= attribute->attlen != -2;
	}
	if (!supported)
		form->columns = NULL;
	return form;
}

/* The stored length of a value, alignment aside; 0 if it would have a long header. */
static inline Size
stored_bytes(const FormColumn *column, Datum value)
{
	if (column->len > 0)
		return column->len;
	if (VARATT_IS_SHORT(DatumGetPointer(value)))
		return VARATT_IS_EXTERNAL(DatumGetPointer(value)) ? 0 : VARSIZE_SHORT(DatumGetPointer(value));
	return column->packs && VARATT_CAN_MAKE_SHORT(DatumGetPointer(value)) ?
		VARATT_CONVERTED_SHORT_SIZE(DatumGetPointer(value)) : 0;
}

/* Writes zeros up to the next aligned address. */
static inline char *
pad(char *at, uint8 align_mask)
{
	while (((uintptr_t) at & align_mask) != 0)
		*at++ = 0;
	return at;
}

/* Stores a value, of stored_bytes().  Returns where. */
static inline char *
store_value(const FormColumn *column, Datum value, Size nbytes, char *at)
{
	if (column->len > 0)
		at = pad(at, column->align_mask);
	if (column->by_value)
		store_att_byval(at, value, column->len);
	else if (column->len > 0 || VARATT_IS_SHORT(DatumGetPointer(value)))
		memcpy(at, DatumGetPointer(value), nbytes);
	else
	{
		SET_VARSIZE_SHORT(at, nbytes);
		memcpy(at + VARHDRSZ_SHORT, VARDATA(DatumGetPointer(value)), nbytes - VARHDRSZ_SHORT);
	}
	return at;
}

Size
gs_row_form_short(const GsRowForm *form, const TupleTableSlot *values, char *row)
{
	const MinimalTuple tuple = (MinimalTuple) row;
	const bool	any_null = has_nulls(values, form->ncolumns);
	const Size	header = header_bytes(form->ncolumns, any_null);
	const char *end = row + GS_SHORT_FORM_BYTES;
	char	   *at = row + header;
	uint16		infomask = any_null ? HEAP_HASNULL : 0;

	if (form->columns == NULL)
		return 0;
	memset(row, 0, header_bytes(form->ncolumns, false));	/* of constant size, unlike the rest */
	if (unlikely(any_null))
		memset(tuple->t_bits, 0, row + header - (char *) tuple->t_bits);
	for (int i = 0; i < form->ncolumns; i++)
	{
		const FormColumn *column = &form->columns[i];
		Size		nbytes;

		if (values->tts_isnull[i])
			continue;
		if (unlikely(any_null))
			tuple->t_bits[i / BITS_PER_BYTE] |= 1 << i % BITS_PER_BYTE;
		nbytes = stored_bytes(column, values->tts_values[i]);
		if (nbytes == 0 || at + MAXIMUM_ALIGNOF + nbytes > end)
			return 0;
		if (column->len == -1)
			infomask |= HEAP_HASVARWIDTH;
		at = store_value(column, values->tts_values[i], nbytes, at) + nbytes;
	}
	HeapTupleHeaderSetNatts(tuple, form->ncolumns);
	tuple->t_hoff = header + MINIMAL_TUPLE_OFFSET;
	tuple->t_infomask = infomask;
	tuple->t_len = at - row;
	return tuple->t_len;
}

TupleTableSlot *
gs_row_form_slot(GsRowForm *form, TupleTableSlot *values)
{
	if (gs_row_form_short(form, values, form->row) == 0)
		return values;
	return ExecStoreMinimalTuple((MinimalTuple) form->row, form->slot, false);
}
