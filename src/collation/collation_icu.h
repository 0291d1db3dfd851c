/*-------------------------------------------------------------------------
 *
 * collation_icu.h
 *	  Sort keys of ICU, built from the collation elements of characters.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_COLLATION_ICU_H
#define GPUSORT_COLLATION_ICU_H

typedef struct GsIcuKeys GsIcuKeys;

/* Keys of a collation, until the session ends.  NULL: ICU cannot be called, or it is not of ICU. */
extern GsIcuKeys *gs_icu_keys_lookup(Oid collation);

/*
 * Writes the sort key of a text to out, or its primary level: the bytes that
 * ucol_getSortKey() returns, without the terminating one.  Returns false if the text has
 * to be left to ICU.  out has gs_icu_keys_max_bytes() bytes.
 */
extern bool gs_icu_keys_key(GsIcuKeys *icu_keys, const char *string, Size len,
							bool full, char *out, Size *out_len);

/* Does the text have characters that are not in the tables, or will not be? */
extern bool gs_icu_keys_is_unmapped(const GsIcuKeys *icu_keys, const char *string, Size len);

/* Are there tables?  Makes them if necessary. */
extern bool gs_icu_keys_are_ready(GsIcuKeys *icu_keys);

/* The most bytes of the sort key of a text of len bytes. */
extern Size gs_icu_keys_max_bytes(Size len);

/* The length of the primary level of a key. */
extern Size gs_icu_keys_primary(const char *key, Size len);

/* The first 8 bytes of the primary level as a number.  False: the text has to be left to ICU. */
extern bool gs_icu_keys_prefix(GsIcuKeys *icu_keys, const char *string, Size len,
							   uint64 *code);

/* That number, from the first 8 bytes of a sort key, which may have other levels. */
extern uint64 gs_icu_keys_prefix_of_datum(uint64 key);

#endif							/* GPUSORT_COLLATION_ICU_H */
