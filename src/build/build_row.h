/*-------------------------------------------------------------------------
 *
 * build_row.h
 *	  The last column of a row that is sorted: the heap TID of an entry.
 *
 * It is of type bigint, and says whether the tuple is live:
 *
 *	   63   49 48			17 16	   1   0
 *	  |   0	  |   block number | offset | live |
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BUILD_ROW_H
#define GPUSORT_BUILD_ROW_H

#include "access/htup_details.h"
#include "storage/itemptr.h"

static inline int64
gs_build_row_tid(BlockNumber block, OffsetNumber offset, bool alive)
{
	return (int64) block << 17 | (int64) offset << 1 | alive;
}

/* Reverses gs_build_row_tid(). */
static inline void
gs_build_row_get_tid(int64 code, ItemPointer tid, bool *alive)
{
	ItemPointerSet(tid, (BlockNumber) (code >> 17), (OffsetNumber) (code >> 1));
	*alive = (code & 1) != 0;
}

/* The last column of a row. */
static inline int64
gs_build_row_last(const MinimalTupleData *row)
{
	Assert(row->t_len % sizeof(int64) == 0);
	return *(const int64 *) ((const char *) row + row->t_len - sizeof(int64));
}

#endif							/* GPUSORT_BUILD_ROW_H */
