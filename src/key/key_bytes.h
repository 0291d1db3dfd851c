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

#include "key/key_order.h"

/* Has the kind such a code?  (Else its bytes stand in the value itself.) */
static inline bool
gs_key_kind_is_made(GsKeyKind kind)
{
	return kind >= GS_KEY_NUMERIC;
}

/* Makes the codes of one order. */
typedef struct GsKeyMaker GsKeyMaker;

/*
 * In the current memory context, where it keeps what it needs for the longest code.  typmod
 * is what a column declares of its values (pg_attribute.atttypmod), which makes codes short:
 * makers of codes that are to be compared are given the same.
 */
extern GsKeyMaker *gs_key_maker_create(const GsKeyOrder *order, int32 typmod);

/* Has enum labels placed as another maker of the same order does. */
extern void gs_key_maker_share_labels(GsKeyMaker *maker, const GsKeyMaker *with);

/* As gs_key_labels_hash(), of all of them. */
extern uint64 gs_key_maker_labels(const GsKeyMaker *maker, uint64 seed);

/* As gs_key_collation_is_cheap(), of whatever elements there are. */
extern bool gs_key_maker_is_cheap(const GsKeyMaker *maker);

/*
 * Makes the code of a value that is neither compressed nor out of line.  It is
 * valid until the next.  Returns false, and sets *why_not, if this value has
 * none.  May leave garbage in the current memory context.
 */
extern bool gs_key_maker_make(GsKeyMaker *maker, Datum value, const char **code, uint32 *len,
							  const char **why_not);

#endif							/* GPUSORT_KEY_BYTES_H */
