/*-------------------------------------------------------------------------
 *
 * key_code.h
 *	  A string of bytes that orders a value, while it is written.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_CODE_H
#define GPUSORT_KEY_CODE_H

#include "collation/key_collation.h"
#include "common/key_codec.h"

#include "tsearch/ts_type.h"
#include "utils/jsonb.h"

/* Reused for the next code. */
typedef struct GsKeyCode
{
	unsigned char *data;
	size_t		len;
	size_t		size;
	size_t		enough;			/* a code that is longer need not be completed */
} GsKeyCode;

/* Makes space for nbytes more, and returns where they go. */
static inline unsigned char *
gs_key_code_reserve(GsKeyCode *code, size_t nbytes)
{
	if (unlikely(code->size - code->len < nbytes))
	{
		code->size = Max(code->size * 2, code->len + nbytes);
		code->data = repalloc_huge(code->data, code->size);
	}
	return code->data + code->len;
}

static inline void
gs_key_code_add_byte(GsKeyCode *code, unsigned char byte)
{
	*gs_key_code_reserve(code, 1) = byte;
	code->len++;
}

/* Writes the upper nbytes of a word. */
static inline void
gs_key_code_add_word(GsKeyCode *code, uint64 word, size_t nbytes)
{
	gs_store_be64(gs_key_code_reserve(code, sizeof(word)), word);
	code->len += nbytes;
}

static inline void
gs_key_code_add_int32(GsKeyCode *code, int32 value)
{
	gs_key_code_add_word(code, gs_encode_int32(value) << 32, sizeof(int32));
}

extern void gs_key_code_add_bytes(GsKeyCode *code, const char *data, size_t nbytes);

/*
 * A number of bits.  They are split into groups of seven bytes, the last one padded with
 * zeros.  Each group is followed by a byte: the number of its bits, or 0xFF if more groups
 * follow, which is more than any number.  Bit strings of up to 56 bits fit the prefix.
 */
extern void gs_key_code_add_groups(GsKeyCode *code, const char *data, size_t nbits);

/* data: of a numeric, behind its header; fixed_weight is as in key_numeric.h. */
extern void gs_key_code_add_numeric(GsKeyCode *code, int fixed_weight, const char *data,
									size_t nbytes);

/*
 * A text, or its key under a collation, and a zero byte.  The text contains none; the key contains
 * at most one, between the two parts that each key of the collation has.  A collation of NULL
 * compares bytes.  Returns false, and sets *why_not, if there is no key of this text.
 */
extern bool gs_key_code_add_text(GsKeyCode *code, GsKeyCollation *collation, const char *data,
								 size_t nbytes, const char **why_not);

/*
 * Documents, aligned and neither compressed nor out of line; of hstore and ltree, what is behind
 * the header.  The collation is that of the strings, as above.  False: *why_not is why the value
 * has no code.
 */
extern bool gs_key_code_add_jsonb(GsKeyCode *code, GsKeyCollation *collation, Jsonb *jsonb,
								  const char **why_not);
extern void gs_key_code_add_tsvector(GsKeyCode *code, TSVector vector);
extern bool gs_key_code_add_hstore(GsKeyCode *code, const char *data, const char **why_not);
extern void gs_key_code_add_ltree(GsKeyCode *code, const char *data);

#endif							/* GPUSORT_KEY_CODE_H */
