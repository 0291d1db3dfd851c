/*-------------------------------------------------------------------------
 *
 * key_collation.h
 *	  Keys of text under a collation: bytes whose order is the collation's.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_COLLATION_H
#define GPUSORT_KEY_COLLATION_H

/*
 * Can text of this collation be encoded?  If not, *why_not becomes a reason for the user (palloc'd
 * or constant).  Reads the catalog only, so that EXPLAIN works if the locale is missing.
 */
extern bool gs_key_collation_can_encode(Oid collation, char **why_not);

/* That reason for a collation of the C library, if gpusort.libc_collations is off. */
extern char *gs_key_collation_libc_off(Oid collation);

/* Is it of libc, and does not compare bytes?  Then the order has to be verified. */
extern bool gs_key_collation_is_libc(Oid collation);

/*
 * Is it a collation of ICU for which ICU's comparison and its sort keys may disagree?  Then an
 * order by keys has to be verified by comparing neighbors, and comparisons may contradict each
 * other, so that no order is right by all of them.  May ereport what PostgreSQL reports of a locale
 * that it cannot open.
 */
extern bool gs_icu_disagrees(Oid collation);

typedef struct GsKeyCollation GsKeyCollation;

/*
 * Creates the keys of a collation in the current memory context.  Returns NULL if the text itself
 * is the key.  May ereport what PostgreSQL reports of a locale that it cannot open.
 *
 * full: different texts have different keys.  Otherwise texts with equal keys may have
 * to be compared, if such keys cost less; gs_key_collation_is_full() tells whether so.
 */
extern GsKeyCollation *gs_key_collation_create(Oid collation, bool full);
extern bool gs_key_collation_is_full(const GsKeyCollation *collation);

/*
 * Returns the key of a string, valid until the next call.  It has at most one zero byte before its
 * end, between the sort key and the text.  If it has more than most bytes, some of what follows
 * these may be missing.  Returns false, and sets *why_not, if it would be too long.
 */
extern bool gs_key_collation_key(GsKeyCollation *collation, const char *string, Size len, Size most,
								 const char **key, uint32 *key_len, const char **why_not);

/* The estimated bytes of key for each byte of text; 0 if the text is the key. */
extern double gs_key_collation_expansion(Oid collation, bool full);

#endif							/* GPUSORT_KEY_COLLATION_H */
