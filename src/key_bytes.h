/*-------------------------------------------------------------------------
 *
 * key_bytes.h
 *	  Order-preserving codes of values of variable width.
 *
 * A code is a string of bytes: of two codes of one order, the one that memcmp()
 * finds smaller is of the smaller value, and no code begins another.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_BYTES_H
#define GPUSORT_KEY_BYTES_H

#include "key_order.h"

/* Where a code is written to.  Kept for the next one. */
typedef struct GsKeyBuffer
{
	MemoryContext context;
	unsigned char *data;
	size_t		len;
	size_t		size;
} GsKeyBuffer;

extern void gs_key_buffer_init(GsKeyBuffer *buffer);

/* Is the code of the kind made here?  (Else it stands in the value itself.) */
static inline bool
gs_key_bytes_is_made(GsKeyKind kind)
{
	return kind >= GS_KEY_NUMERIC;
}

/* Appends the code of a value, which is not compressed and not out of line. */
extern void gs_key_bytes_put(GsKeyBuffer *buffer, const GsKeyOrder *order,
							 const struct varlena *value);

#endif							/* GPUSORT_KEY_BYTES_H */
