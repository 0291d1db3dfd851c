/*-------------------------------------------------------------------------
 *
 * key_row.h
 *	  From a slot to a stored row and back.
 *
 * A stored row is a MinimalTuple.  A slot that holds a heap or minimal tuple
 * gives its body in one memcpy, whatever the number of columns; deforming and
 * forming it again would cost several times the rest of the sort.  Only a
 * slot of loose values (the output of a projection) is formed, straight into
 * the batch.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_ROW_H
#define GPUSORT_KEY_ROW_H

#include "access/htup_details.h"
#include "executor/tuptable.h"

/* Where the next row comes from. */
typedef struct GsRowSource
{
	const char *body;			/* the MinimalTuple to be, but for its t_len;
								 * NULL if it must be formed */
	Size		nbytes;			/* of the stored row */
	Size		data_bytes;		/* of the values, if it must be formed */
	bool		has_nulls;		/* the same */
} GsRowSource;

/* The same for a slot of loose values, which it deforms wholly. */
extern void gs_row_source_init_values(GsRowSource *source, TupleTableSlot *slot);
extern void gs_row_form(const GsRowSource *source, TupleTableSlot *slot, char *row);

/* The tuple that a slot holds, as GsRowSource.body; *nbytes is of the stored row. */
static inline const char *
gs_row_body(const TupleTableSlot *slot, Size *nbytes)
{
	if (slot->tts_ops == &TTSOpsBufferHeapTuple || slot->tts_ops == &TTSOpsHeapTuple)
	{
		HeapTuple	tuple = ((const HeapTupleTableSlot *) slot)->tuple;

		if (tuple != NULL)
		{
			*nbytes = tuple->t_len - MINIMAL_TUPLE_OFFSET;
			return (const char *) tuple->t_data + MINIMAL_TUPLE_OFFSET;
		}
	}
	else if (slot->tts_ops == &TTSOpsMinimalTuple)
	{
		MinimalTuple tuple = ((const MinimalTupleTableSlot *) slot)->mintuple;

		if (tuple != NULL)
		{
			*nbytes = tuple->t_len;
			return (const char *) tuple;
		}
	}
	return NULL;
}

/* Looks at a slot. */
static inline void
gs_row_source_init(GsRowSource *source, TupleTableSlot *slot)
{
	source->body = gs_row_body(slot, &source->nbytes);
	if (source->body == NULL)
		gs_row_source_init_values(source, slot);
}

/* Stores the row at the 8-aligned row, source->nbytes of it. */
static inline void
gs_row_store(const GsRowSource *source, TupleTableSlot *slot, char *row)
{
	if (source->body != NULL)
		memcpy(row, source->body, source->nbytes);
	else
		gs_row_form(source, slot, row);
	((MinimalTuple) row)->t_len = source->nbytes;
}

/*
 * How rows of a type are formed where none of the values is NULL and all are short, in one go.
 */
#define GS_ROW_SHORT	256

typedef struct GsRowFormColumn
{
	int16		len;
	bool		by_value;
	uint8		align_mask;
} GsRowFormColumn;

typedef struct GsRowForm
{
	int			ncolumns;
	GsRowFormColumn *columns;	/* NULL: there are columns that are not formed here */
	uint16		infomask;
} GsRowForm;

/* In the current memory context. */
extern void gs_row_form_init(GsRowForm *form, TupleDesc desc);

/*
 * Forms a row in at most GS_ROW_SHORT bytes, 8-aligned; as gs_row_store() would, but for
 * t_len.  Returns its length; 0: it has NULLs, or is not short.
 */
extern Size gs_row_form_short(const GsRowForm *form, const TupleTableSlot *values, char *row);

/* Does an address that a slot handed out lie in what gs_row_store copies? */
static inline bool
gs_row_source_contains(const GsRowSource *source, const void *address)
{
	return source->body != NULL &&
		(const char *) address >= source->body &&
		(const char *) address < source->body + source->nbytes;
}

#endif							/* GPUSORT_KEY_ROW_H */
