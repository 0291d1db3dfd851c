/*-------------------------------------------------------------------------
 *
 * key_collation.h
 *	  How text of a collation becomes bytes whose order is the collation's.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_COLLATION_H
#define GPUSORT_KEY_COLLATION_H

/*
 * Can it?  If not, *why_not becomes a reason for people (palloc'd or constant).
 * Asks the catalog only: the plan of a sort whose locale is missing can still
 * be shown.
 */
extern bool gs_key_collation_can_encode(Oid collation, char **why_not);

/*
 * Must an order by these bytes be proven by comparing neighbours?  So it is
 * with all collations of libc that do not compare bytes anyway.
 */
extern bool gs_key_collation_is_approximate(Oid collation);

typedef struct GsKeyCollation GsKeyCollation;

/*
 * In the current memory context.  NULL: the text's own bytes are the key.  May
 * ereport what PostgreSQL reports of a locale that it cannot open.
 *
 * Not whole: equal keys may be of different texts, whose order is not known, if that is
 * cheaper.  gs_key_collation_is_full() says what it came to.
 */
extern GsKeyCollation *gs_key_collation_create(Oid collation, bool whole);
extern bool gs_key_collation_is_full(const GsKeyCollation *collation);

/*
 * The key of a string, valid until the next call.  But for their end, its bytes are
 * never zero, or only once.  False, and *why_not, if it would be too long.
 */
extern bool gs_key_collation_key(GsKeyCollation *collation, const char *string, Size len,
								 const char **key, uint32 *key_len, const char **why_not);

/*
 * Does it take less time to make such a key again than to write and read it?  So it does
 * with ICU's where tables have the characters of most texts so far; it makes the tables, if need be.
 */
extern bool gs_key_collation_is_cheap(const GsKeyCollation *collation);

/* About how many bytes of key a byte of text gives; 0 where the text is the key. */
extern double gs_key_collation_expansion(Oid collation, bool whole);

#endif							/* GPUSORT_KEY_COLLATION_H */
