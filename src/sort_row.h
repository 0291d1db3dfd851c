/*-------------------------------------------------------------------------
 *
 * sort_row.h
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
#ifndef GPUSORT_SORT_ROW_H
#define GPUSORT_SORT_ROW_H

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

/* Looks at a slot; deforms it wholly if it holds no tuple. */
extern void gs_row_source_init(GsRowSource *source, TupleTableSlot *slot);

/* Stores the row at the 8-aligned row, source->nbytes of it. */
extern void gs_row_store(const GsRowSource *source, TupleTableSlot *slot, char *row);

/* Does an address that a slot handed out lie in what gs_row_store copies? */
static inline bool
gs_row_source_contains(const GsRowSource *source, const void *address)
{
	return source->body != NULL &&
		(const char *) address >= source->body &&
		(const char *) address < source->body + source->nbytes;
}

#endif							/* GPUSORT_SORT_ROW_H */
