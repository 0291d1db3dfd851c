/*-------------------------------------------------------------------------
 *
 * key_first_level.h
 *	  The first level of libc's sort keys, densely coded.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_FIRST_LEVEL_H
#define GPUSORT_KEY_FIRST_LEVEL_H

#include <locale.h>

typedef struct GsFirstLevel GsFirstLevel;

/*
 * Of a collation, whose locale is given (NULL: the process's own).  Made once
 * in a session.  NULL: its keys are not as is expected of them.
 */
extern const GsFirstLevel *gs_first_level_of(Oid collation, locale_t locale);

/*
 * Codes a text of ASCII characters into out, which has room for len bytes;
 * *out_len becomes the code's length.  False if it must go through strxfrm()
 * first.
 */
extern bool gs_first_level_code_ascii(const GsFirstLevel *level, const char *string, Size len,
									  char *out, Size *out_len);

/*
 * Codes what strxfrm() gave; out has room for twice its length.  Returns the length of
 * the code, in which no byte is zero.
 */
extern Size gs_first_level_code_key(const GsFirstLevel *level, const char *key, Size len,
									char *out);

#endif							/* GPUSORT_KEY_FIRST_LEVEL_H */
