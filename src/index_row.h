/*-------------------------------------------------------------------------
 *
 * index_row.h
 *	  An entry of a btree that is built, as a row to be sorted.
 *
 * All columns of the index, INCLUDE columns too, and a last one of type bigint that is the
 * heap TID and whether the tuple is alive:
 *
 *	   63   49 48			17 16	   1   0
 *	  |   0	  |   block number | offset | alive |
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INDEX_ROW_H
#define GPUSORT_INDEX_ROW_H

#include "storage/itemptr.h"

static inline int64
gs_index_row_tid(BlockNumber block, OffsetNumber offset, bool alive)
{
	return (int64) block << 17 | (int64) offset << 1 | alive;
}

/* The same backwards. */
static inline void
gs_index_row_get_tid(int64 code, ItemPointer tid, bool *alive)
{
	ItemPointerSet(tid, (BlockNumber) (code >> 17), (OffsetNumber) (code >> 1));
	*alive = (code & 1) != 0;
}

#endif							/* GPUSORT_INDEX_ROW_H */
