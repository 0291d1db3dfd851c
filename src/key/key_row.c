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
	int16		len;
	bool		by_value;
	uint8		align_mask;
} FormColumn;

/* Where the values of a row without NULLs begin. */
#define VALUES_OFFSET	MAXALIGN(SizeofMinimalTupleHeader)

struct GsRowForm
{
	int			ncolumns;
	FormColumn *columns;		/* NULL: the type has columns that are not
								 * supported */
	TupleTableSlot *slot;
	char		header[VALUES_OFFSET] pg_attribute_aligned(MAXIMUM_ALIGNOF);	/* of all rows, except t_len */
	char		row[GS_SHORT_FORM_BYTES] pg_attribute_aligned(MAXIMUM_ALIGNOF);
};

void
gs_row_source_init_values(GsRowSource *source, TupleTableSlot *slot)
{
	TupleDesc	desc = slot->tts_tupleDescriptor;
	Size		header = SizeofMinimalTupleHeader;

	slot_getallattrs(slot);
	source->has_nulls = false;
	for (int i = 0; i < desc->natts; i++)
	{
		if (slot->tts_isnull[i])
		{
			source->has_nulls = true;
			header += BITMAPLEN(desc->natts);
			break;
		}
	}
	source->body = NULL;
	source->data_bytes = heap_compute_data_size(desc, slot->tts_values, slot->tts_isnull);
	source->nbytes = MAXALIGN(header) + source->data_bytes;
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
	GsRowForm  *form = palloc0(sizeof(GsRowForm));
	MinimalTuple header = (MinimalTuple) form->header;

	form->ncolumns = desc->natts;
	form->columns = palloc(sizeof(FormColumn) * desc->natts);
	header->t_hoff = VALUES_OFFSET + MINIMAL_TUPLE_OFFSET;
	HeapTupleHeaderSetNatts(header, desc->natts);
	form->slot = slot;
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);

		form->columns[i] = (FormColumn)
		{
			.len = attribute->attlen,
				.by_value = attribute->attbyval,
				.align_mask = att_align_nominal(1, attribute->attalign) - 1
		};
		if (attribute->attlen == -1)
			header->t_infomask = HEAP_HASVARWIDTH;
		if (attribute->attlen == -2)
		{
			form->columns = NULL;
			break;
		}
	}
	return form;
}

/* Writes zeros up to the next aligned address. */
static inline char *
pad(char *at, uint8 align_mask)
{
	while (((uintptr_t) at & align_mask) != 0)
		*at++ = 0;
	return at;
}

Size
gs_row_form_short(const GsRowForm *form, const TupleTableSlot *values, char *row)
{
	char	   *at = row + VALUES_OFFSET;
	char	   *end = row + GS_SHORT_FORM_BYTES;

	if (form->columns == NULL)
		return 0;
	for (int i = 0; i < form->ncolumns; i++)
	{
		const FormColumn *column = &form->columns[i];
		const Datum value = values->tts_values[i];
		Size		len = column->len;

		if (values->tts_isnull[i])
			return 0;
		if (column->len == -1)
		{
			if (!VARATT_IS_SHORT(DatumGetPointer(value)) || VARATT_IS_EXTERNAL(DatumGetPointer(value)))
				return 0;
			len = VARSIZE_SHORT(DatumGetPointer(value));
		}
		if (at + MAXIMUM_ALIGNOF + len > end)
			return 0;
		if (column->len > 0)
			at = pad(at, column->align_mask);
		if (column->by_value)
			store_att_byval(at, value, column->len);
		else
			memcpy(at, DatumGetPointer(value), len);
		at += len;
	}
	memcpy(row, form->header, VALUES_OFFSET);
	((MinimalTuple) row)->t_len = at - row;
	return at - row;
}

TupleTableSlot *
gs_row_form_slot(GsRowForm *form, TupleTableSlot *values)
{
	if (gs_row_form_short(form, values, form->row) == 0)
		return values;
	return ExecStoreMinimalTuple((MinimalTuple) form->row, form->slot, false);
}
