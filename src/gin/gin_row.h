/*-------------------------------------------------------------------------
 *
 * gin_row.h
 *	  The TIDs of a key of a GIN index as a row to be sorted.
 *
 * A row has these columns:
 *
 *	  [ attribute ]	 int2, if the index has several columns: the number of one, from 1 on
 *	  key ...		 one for each column of the index; NULL but for that of the attribute
 *	  category		 "char": a GinNullCategory
 *	  rest			 bytea: the other TIDs
 *	  tid			 bigint: the first TID (build/build_row.h)
 *
 * The TIDs of a row are ascending.  The rest is the differences of successive TIDs as numbers, 7
 * bits to a byte, low bits first; the high bit says that another byte follows.  These numbers are
 * those of GIN's own posting lists, so most differences take one or two bytes:
 *
 *	   63   43 42			11 10	   0
 *	  |   0	  |   block number |  offset |
 *
 * A key has several rows if it has many TIDs, if memory was full in between, or from several
 * processes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GIN_ROW_H
#define GPUSORT_GIN_ROW_H

#include "access/ginblock.h"

#include "build/build_row.h"

/* The most bytes of the rest, with its header. */
#define GS_GIN_REST_BYTES	1024

/* The most bytes of a difference. */
#define GS_GIN_DIFFERENCE_BYTES		7

/* The bits of an offset. */
#define GS_GIN_OFFSET_BITS	11

/* A key with TIDs. */
typedef struct GsGinItem
{
	OffsetNumber attribute;
	GinNullCategory category;
	Datum		key;			/* if the category is GIN_CAT_NORM_KEY */
	uint64		first;			/* the number of a TID */
	struct varlena *rest;
} GsGinItem;

static inline uint64
gs_gin_number_of_tid(BlockNumber block, OffsetNumber offset)
{
	return (uint64) block << GS_GIN_OFFSET_BITS | offset;
}

static inline BlockNumber
gs_gin_block_of(uint64 number)
{
	return (BlockNumber) (number >> GS_GIN_OFFSET_BITS);
}

static inline OffsetNumber
gs_gin_offset_of(uint64 number)
{
	return (OffsetNumber) (number & ((1 << GS_GIN_OFFSET_BITS) - 1));
}

/* The number of the TID in the last column of a row. */
static inline uint64
gs_gin_number_of_column(int64 tid)
{
	ItemPointerData pointer;
	bool		alive;

	gs_build_row_get_tid(tid, &pointer, &alive);
	return gs_gin_number_of_tid(ItemPointerGetBlockNumberNoCheck(&pointer),
								ItemPointerGetOffsetNumberNoCheck(&pointer));
}

/*
 * Writes a difference; there must be space for the longest.  Returns the end.  Whether it takes one
 * byte or two is not decided by a branch, which would be mispredicted often.
 */
static inline char *
gs_gin_difference_put(char *at, uint64 difference)
{
	if (likely(difference < 1 << 14))
	{
		const int	is_long = difference >= 0x80;

		at[0] = (char) ((difference & 0x7F) | is_long << 7);
		at[1] = (char) (difference >> 7);
		return at + 1 + is_long;
	}
	for (; difference >= 0x80; difference >>= 7)
		*at++ = (char) (difference | 0x80);
	*at++ = (char) difference;
	return at;
}

/* Reads a difference, which is complete.  Returns the end. */
static inline const uint8 *
gs_gin_difference_get(const uint8 *at, uint64 *difference)
{
	uint64		value = *at & 0x7F;

	for (int shift = 7; (*at++ & 0x80) != 0; shift += 7)
		value |= (uint64) (*at & 0x7F) << shift;
	*difference = value;
	return at;
}

#endif							/* GPUSORT_GIN_ROW_H */
