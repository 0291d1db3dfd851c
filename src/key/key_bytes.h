/*-------------------------------------------------------------------------
 *
 * key_bytes.h
 *	  Order-preserving codes of values of variable width.
 *
 * A code is a string of bytes.  memcmp() of two codes of one order compares their
 * values, and no code is the beginning of another one.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_BYTES_H
#define GPUSORT_KEY_BYTES_H

#include "key/key_order.h"

/* Does the kind have such a code?  Otherwise the bytes of the value itself are compared. */
static inline bool
gs_key_kind_is_made(GsKeyKind kind)
{
	return kind >= GS_KEY_NUMERIC;
}

/* Makes the codes of one order. */
typedef struct GsKeyMaker GsKeyMaker;

/*
 * Creates a maker in the current memory context; its memory grows with the longest
 * code.  typmod is the column's type modifier (pg_attribute.atttypmod, or -1), which can
 * shorten codes.  Codes can be compared only if they are made with the same typmod.
 */
extern GsKeyMaker *gs_key_maker_create(const GsKeyOrder *order, int32 typmod);

/* Uses the enum labels of another maker of the same order. */
extern void gs_key_maker_share_labels(GsKeyMaker *maker, const GsKeyMaker *with);

/* gs_key_labels_hash() of all its enum labels. */
extern uint64 gs_key_maker_labels(const GsKeyMaker *maker, uint64 seed);

/*
 * Makes the code of a value that is neither compressed nor out of line.  The code is
 * valid until the next call.  If it has more than `enough` bytes, some of its end may be
 * missing.  Returns false, and sets *why_not, if this value cannot be encoded.  May leak
 * into the current memory context.
 */
extern bool gs_key_maker_make(GsKeyMaker *maker, Datum value, uint32 enough, const char **code,
							  uint32 *len, const char **why_not);

#endif							/* GPUSORT_KEY_BYTES_H */
