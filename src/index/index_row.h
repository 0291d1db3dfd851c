/*-------------------------------------------------------------------------
 *
 * index_row.h
 *	  An entry of a btree as a row to be sorted.
 *
 * A row has all columns of the index, INCLUDE columns too, and a last column with the heap TID
 * (build/build_row.h).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INDEX_ROW_H
#define GPUSORT_INDEX_ROW_H

#include "access/heaptoast.h"
#include "access/htup_details.h"
#include "access/itup.h"

/*
 * The index tuple of a row has the same columns in the same layout behind another
 * header.  As the last column of the row has 8 bytes at a multiple of 8, the body of
 * the tuple is that of the row up to there, padding included.  A long row is
 * different, as an index may have to compress its values (index_tuples.c).
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

/* The size of the tuple, a multiple of 8. */
static inline Size
gs_index_row_tuple_bytes(const MinimalTupleData *row)
{
	return gs_index_row_header_bytes(row) + gs_index_row_data_bytes(row);
}

/*
 * Copies a multiple of 8 bytes by words.  For few bytes, this is faster than the
 * string instruction that the compiler makes of memcpy().
 */
static inline void
gs_copy_words(char *to, const char *from, Size nbytes)
{
	const char *end = from + nbytes;

	for (; from < end; from += sizeof(uint64), to += sizeof(uint64))
		*(uint64 *) to = *(const uint64 *) from;
}

/* Forms the tuple, except for its heap TID. */
static inline void
gs_index_row_form_tuple(const MinimalTupleData *row, int ncolumns, IndexTuple tuple)
{
	const Size	header = gs_index_row_header_bytes(row);
	const Size	nbytes = gs_index_row_data_bytes(row);
	unsigned short info = header + nbytes;

	Assert(header + nbytes <= INDEX_SIZE_MASK);
	if ((row->t_infomask & HEAP_HASVARWIDTH) != 0)
		info |= INDEX_VAR_MASK;
	if (unlikely((row->t_infomask & HEAP_HASNULL) != 0))
	{
		uint8	   *bits = (uint8 *) (tuple + 1);

		info |= INDEX_NULL_MASK;
		memset(bits, 0, header - sizeof(IndexTupleData));
		memcpy(bits, row->t_bits, BITMAPLEN(ncolumns));
		/* the bitmap of the row has one more bit */
		if (ncolumns % BITS_PER_BYTE != 0)
			bits[ncolumns / BITS_PER_BYTE] &= (1 << ncolumns % BITS_PER_BYTE) - 1;
	}
	tuple->t_info = info;
	gs_copy_words((char *) tuple + header,
				  (const char *) row + row->t_hoff - MINIMAL_TUPLE_OFFSET, nbytes);
}

#endif							/* GPUSORT_INDEX_ROW_H */
