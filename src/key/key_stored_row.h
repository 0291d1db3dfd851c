/*-------------------------------------------------------------------------
 *
 * key_stored_row.h
 *	  Converts the row of a slot to a stored row.
 *
 * A stored row is a MinimalTuple.  If a slot has a heap or minimal tuple, its body is copied in one
 * memcpy: to deform it and form it again would cost several times the rest of the sort.  A slot
 * that has only values, such as the result of a projection, is formed, directly in the batch.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_STORED_ROW_H
#define GPUSORT_KEY_STORED_ROW_H

#include "access/htup_details.h"
#include "executor/tuptable.h"
#include "utils/memutils.h"

/* How rows of one type are formed of values faster than by PostgreSQL. */
typedef struct GsRowForm GsRowForm;

/* The source of a stored row. */
typedef struct GsRowSource
{
	const char *body;			/* the MinimalTuple, except its t_len; NULL if
								 * it has to be formed */
	Size		nbytes;			/* of the stored row */

	/* if it has to be formed */
	bool		has_nulls;
	const GsRowForm *form;		/* NULL: by heap_fill_tuple() */
	const uint16 *value_at;		/* with a form: where gs_row_store() puts values that are passed by
								 * reference, with short headers */
} GsRowSource;

/* Allocates in the current memory context. */
extern GsRowForm *gs_row_form_create(TupleDesc desc);

/* gs_row_source_init() for a slot that has only values; deforms all of it. */
extern void gs_row_source_init_values(GsRowSource *source, TupleTableSlot *slot,
									  const GsRowForm *form);

/* gs_row_store() for such a slot. */
extern void gs_row_form(const GsRowSource *source, TupleTableSlot *slot, char *row);

/* The tuple of a slot, as GsRowSource.body; *nbytes becomes the length of the stored row. */
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

/* Sets the source to the row of a slot.  form: if the slot has only values; or NULL. */
static inline void
gs_row_source_init(GsRowSource *source, TupleTableSlot *slot, const GsRowForm *form)
{
	source->value_at = NULL;
	source->body = gs_row_body(slot, &source->nbytes);
	if (source->body == NULL)
		gs_row_source_init_values(source, slot, form);
}

/* Writes the stored row, source->nbytes bytes, to an 8-aligned address. */
static inline void
gs_row_store(const GsRowSource *source, TupleTableSlot *slot, char *row)
{
	if (source->body != NULL)
		memcpy(row, source->body, source->nbytes);
	else
		gs_row_form(source, slot, row);
	((MinimalTuple) row)->t_len = source->nbytes;
}

/* Is an address of a slot's value in what gs_row_store() copies? */
static inline bool
gs_row_source_contains(const GsRowSource *source, const void *address)
{
	return source->body != NULL &&
		(const char *) address >= source->body &&
		(const char *) address < source->body + source->nbytes;
}

/* --------------------------------------------------------------- stored rows */

/* The header of a stored row, of which it has only the end. */
static inline HeapTupleHeader
gs_row_header(const void *row)
{
	return (HeapTupleHeader) ((const char *) row - MINIMAL_TUPLE_OFFSET);
}

/* A stored row, for heap_getattr(). */
static inline HeapTupleData
gs_row_tuple(const void *row)
{
	return (HeapTupleData) {
		.t_len = ((const MinimalTupleData *) row)->t_len + MINIMAL_TUPLE_OFFSET,
		.t_data = gs_row_header(row)
	};
}

/* A copy of a row, in memory that the next copy uses again. */
typedef struct GsRowCopy
{
	MemoryContext context;
	MinimalTuple row;			/* NULL: none yet */
	Size		size;			/* of the memory */
} GsRowCopy;

/* Copies a row; returns the copy. */
static inline MinimalTuple
gs_row_copy(GsRowCopy *copy, const MinimalTupleData *row)
{
	if (row->t_len > copy->size)
	{
		if (copy->row != NULL)
			pfree(copy->row);
		copy->row = NULL;
		copy->size = 0;
		copy->row = (MinimalTuple) MemoryContextAllocHuge(copy->context, (Size) row->t_len * 2);
		copy->size = (Size) row->t_len * 2;
	}
	memcpy(copy->row, row, row->t_len);
	return copy->row;
}

#endif							/* GPUSORT_KEY_STORED_ROW_H */
