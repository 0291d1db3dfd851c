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

#include "access/heaptoast.h"
#include "access/htup_details.h"
#include "access/itup.h"
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

/* The last column of a row. */
static inline int64
gs_index_row_last(const MinimalTupleData *row)
{
	return *(const int64 *) ((const char *) row + row->t_len - sizeof(int64));
}

/*
 * The index tuple of a row, as index_form_tuple() would have it.  It has the same columns in the
 * same layout behind another header.  The row's last column is 8 bytes at a multiple of 8: up to
 * there the row is what the tuple is, padding included.  Not so a long one, some values of
 * which an index may have to compress (index_leaf.c).
 */
static inline bool
gs_index_row_is_long(const MinimalTupleData *row)
{
	return row->t_len > TOAST_INDEX_TARGET;
}

static inline Size
gs_index_row_header_bytes(const MinimalTupleData *row)
{
	return IndexInfoFindDataOffset((row->t_infomask & HEAP_HASNULL) != 0 ? INDEX_NULL_MASK : 0);
}

static inline Size
gs_index_row_data_bytes(const MinimalTupleData *row)
{
	return row->t_len - (row->t_hoff - MINIMAL_TUPLE_OFFSET) - sizeof(int64);
}

/* Bytes of the tuple, a multiple of 8. */
static inline Size
gs_index_row_tuple_bytes(const MinimalTupleData *row)
{
	return gs_index_row_header_bytes(row) + gs_index_row_data_bytes(row);
}

/*
 * Copies a multiple of 8 bytes, word by word, as they are few: where the compiler knows so, it
 * makes of memcpy() an instruction that takes longer to begin than this to end.
 */
static inline void
gs_copy_words(char *to, const char *from, Size nbytes)
{
	const char *end = from + nbytes;

	for (; from < end; from += sizeof(uint64), to += sizeof(uint64))
		*(uint64 *) to = *(const uint64 *) from;
}

/* All of the tuple but its heap TID. */
static inline void
gs_index_row_form_tuple(const MinimalTupleData *row, int ncolumns, IndexTuple tuple)
{
	const Size	header = gs_index_row_header_bytes(row);
	const Size	nbytes = gs_index_row_data_bytes(row);
	unsigned short info = header + nbytes;

	if ((row->t_infomask & HEAP_HASVARWIDTH) != 0)
		info |= INDEX_VAR_MASK;
	if (unlikely((row->t_infomask & HEAP_HASNULL) != 0))
	{
		bits8	   *bits = (bits8 *) (tuple + 1);

		info |= INDEX_NULL_MASK;
		memset(bits, 0, header - sizeof(IndexTupleData));
		memcpy(bits, row->t_bits, BITMAPLEN(ncolumns));
		/* the row's bitmap has one bit more */
		if (ncolumns % BITS_PER_BYTE != 0)
			bits[ncolumns / BITS_PER_BYTE] &= (1 << ncolumns % BITS_PER_BYTE) - 1;
	}
	tuple->t_info = info;
	gs_copy_words((char *) tuple + header,
				  (const char *) row + row->t_hoff - MINIMAL_TUPLE_OFFSET, nbytes);
}

#endif							/* GPUSORT_INDEX_ROW_H */
