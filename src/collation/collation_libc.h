/*-------------------------------------------------------------------------
 *
 * collation_libc.h
 *	  Sort keys of the C library in a shorter code: the primary level, or all.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_COLLATION_LIBC_H
#define GPUSORT_COLLATION_LIBC_H

#include <locale.h>

typedef struct GsLibcKeys GsLibcKeys;

/* Tables, made once in a session; locale NULL: the process's.  NULL: keys are not as expected. */
extern const GsLibcKeys *gs_libc_keys_lookup(Oid collation, locale_t locale);

/* Can full keys be encoded?  Otherwise only the primary level can. */
extern bool gs_libc_keys_are_full(const GsLibcKeys *libc_keys);

/* The most bytes of a code, for a text of len bytes, and for a key of len bytes. */
extern Size gs_libc_keys_max_text_bytes(Size len, bool full);
extern Size gs_libc_keys_max_key_bytes(Size len, bool full);

/*
 * Writes the code of a text to out and its length to *out_len.  Returns false if strxfrm() is
 * needed, for contractions or for other characters than printable ASCII, as far as there is a
 * table of their primary level.  Full codes of different texts are different.  A code whose
 * primary level has more than most bytes ends there.
 */
extern bool gs_libc_keys_encode_text(const GsLibcKeys *libc_keys, const char *string, Size len,
									 bool full, Size most, char *out, Size *out_len);

/*
 * Writes the code of a key that strxfrm() made of a text; returns its length.  A code of the
 * primary level has no zero byte.  A full code has to be followed by a zero byte and the text.
 */
extern Size gs_libc_keys_encode(const GsLibcKeys *libc_keys, const char *key, Size len,
								const char *string, Size string_len, bool full, char *out);

#endif							/* GPUSORT_COLLATION_LIBC_H */
