/*-------------------------------------------------------------------------
 *
 * key_dictionary.h
 *	  Codes for texts with few distinct values.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_DICTIONARY_H
#define GPUSORT_KEY_DICTIONARY_H

/* The most texts of a dictionary. */
#define GS_DICTIONARY_TEXTS		256

typedef struct GsKeyDictionary GsKeyDictionary;

/*
 * Creates a dictionary in the current memory context, for a sort operator of text,
 * character or, if is_name, name.  The collation must be deterministic.  May ereport what
 * PostgreSQL reports of a locale that it cannot open.
 */
extern GsKeyDictionary *gs_key_dictionary_create(Oid sort_operator, Oid collation, bool is_name);

/*
 * Returns the code of a text, which must not have the trailing blanks that its type
 * ignores.  Codes ascend in the order of the collation, even if the operator is
 * descending, and never change.  Returns false if there is no code for another text.
 */
extern bool gs_key_dictionary_code(GsKeyDictionary *dictionary, const char *string, Size len,
								   uint64 *code);

/* The number of texts. */
extern int	gs_key_dictionary_count(const GsKeyDictionary *dictionary);

#endif							/* GPUSORT_KEY_DICTIONARY_H */
