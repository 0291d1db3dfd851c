/*-------------------------------------------------------------------------
 *
 * key_dictionary.h
 *	  Codes of texts of which there are few different ones.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_DICTIONARY_H
#define GPUSORT_KEY_DICTIONARY_H

/* It has no more texts than that. */
#define GS_DICTIONARY_TEXTS		256

typedef struct GsKeyDictionary GsKeyDictionary;

/*
 * In the current memory context.  For a sort operator of text, character or, if is_name, name
 * whose collation calls only those texts equal that have the same bytes.  May ereport what
 * PostgreSQL reports of a locale that it cannot open.
 */
extern GsKeyDictionary *gs_key_dictionary_create(Oid sort_operator, Oid collation, bool is_name);

/*
 * The code of a text, without the blanks that its type ignores.  Codes are ascending in the
 * collation's order, whatever the operator's direction, and never change.  False: there are too many
 * texts, and no more codes.
 */
extern bool gs_key_dictionary_code(GsKeyDictionary *dictionary, const char *string, Size len,
								   uint64 *code);

/* How many texts it has. */
extern int	gs_key_dictionary_count(const GsKeyDictionary *dictionary);

#endif							/* GPUSORT_KEY_DICTIONARY_H */
