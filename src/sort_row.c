/*-------------------------------------------------------------------------
 *
 * sort_row.c
 *	  From a slot to a stored row and back.
 *
 * The stored rows are what tuplesort would have stored: the same bytes, with
 * TOAST pointers left as they are.  A tuple of a table to which columns were
 * added later may have fewer columns than the slot; like tuplesort, nothing
 * is done about it here, as the scan below projects where that would matter.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sort_row.h"

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

	/* heap_fill_tuple counts on zeros in the header and the padding */
	memset(row, 0, source->nbytes);
	HeapTupleHeaderSetNatts(tuple, desc->natts);
	tuple->t_hoff = header + MINIMAL_TUPLE_OFFSET;
	heap_fill_tuple(desc, slot->tts_values, slot->tts_isnull,
					row + header, source->data_bytes, &tuple->t_infomask,
					source->has_nulls ? tuple->t_bits : NULL);
}
