/*-------------------------------------------------------------------------
 *
 * collation_icu.h
 *	  ICU's sort keys, put together from the collation elements of characters.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_COLLATION_ICU_H
#define GPUSORT_COLLATION_ICU_H

typedef struct GsIcuKeys GsIcuKeys;

/* Of a collation, for as long as the session lasts.  NULL: ICU's functions are not to be had. */
extern GsIcuKeys *gs_icu_keys_lookup(Oid collation);

/*
 * Makes the sort key of a text in out, or its first level: the bytes that ucol_getSortKey()
 * would give, without the one that ends them.  False if that is for ICU to do, which must
 * then be asked.
 */
extern bool gs_icu_keys_key(GsIcuKeys *icu_keys, const char *string, Size len,
								bool whole, char *out, Size *out_len);

/* Is that likely to be false, for the characters of the text? */
extern bool gs_icu_keys_is_unmapped(const char *string, Size len);

/* Are there tables, made now if need be? */
extern bool gs_icu_keys_are_ready(GsIcuKeys *icu_keys);

/* Room that it may take. */
extern Size gs_icu_keys_max_bytes(Size len);

/* How long the first level of a key is. */
extern Size gs_icu_keys_primary(const char *key, Size len);

/* The first 8 bytes of the sort key's first level, as a number; likewise. */
extern bool gs_icu_keys_prefix(GsIcuKeys *icu_keys, const char *string, Size len,
								  uint64 *code);

/* The same of what ICU gave: the first 8 bytes of a sort key. */
extern uint64 gs_icu_keys_prefix_of_datum(uint64 key);

#endif							/* GPUSORT_COLLATION_ICU_H */
