/*-------------------------------------------------------------------------
 *
 * collation_libc.h
 *	  libc's sort keys, densely coded: the first level, or all.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_COLLATION_LIBC_H
#define GPUSORT_COLLATION_LIBC_H

#include <locale.h>

typedef struct GsLibcKeys GsLibcKeys;

/*
 * Of a collation, whose locale is given (NULL: the process's own).  Made once
 * in a session.  NULL: its keys are not as is expected of them.
 */
extern const GsLibcKeys *gs_libc_keys_lookup(Oid collation, locale_t locale);

/* The same where only the first level is; the codes of all are then no use. */
extern bool gs_libc_keys_are_full(const GsLibcKeys *libc_keys);

/* Room that codes may take. */
extern Size gs_libc_keys_max_ascii_bytes(Size len, bool whole);
extern Size gs_libc_keys_max_key_bytes(Size len, bool whole);

/*
 * Codes a text of ASCII characters into out; *out_len becomes the code's
 * length.  False if it must go through strxfrm() first.  Whole codes of two such
 * texts differ if the texts do.
 */
extern bool gs_libc_keys_encode_ascii(const GsLibcKeys *libc_keys, const char *string, Size len,
									 bool whole, char *out, Size *out_len);

/*
 * Codes what strxfrm() gave for a text.  Returns the length of the code, which if of the first
 * level has no byte of zero.  Behind a whole one belong a zero and the text.
 */
extern Size gs_libc_keys_encode(const GsLibcKeys *libc_keys, const char *key, Size len,
								   const char *string, Size string_len, bool whole, char *out);

#endif							/* GPUSORT_COLLATION_LIBC_H */
