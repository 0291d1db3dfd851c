/*-------------------------------------------------------------------------
 *
 * row_copy.h
 *	  A copy of a row, in memory that the next copy uses again.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ROW_COPY_H
#define GPUSORT_ROW_COPY_H

#include "access/htup_details.h"
#include "utils/memutils.h"

typedef struct GsRowCopy
{
	MemoryContext context;
	MinimalTuple row;			/* NULL: none yet */
	Size		size;			/* of the memory */
} GsRowCopy;

/* Copies a row; returns the copy. */
static inline MinimalTuple
gs_row_copy(GsRowCopy *copy, MinimalTuple row)
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

#endif							/* GPUSORT_ROW_COPY_H */
