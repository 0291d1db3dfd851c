/*-------------------------------------------------------------------------
 *
 * key_dictionary.h
 *	  Codes for columns with few distinct values.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_DICTIONARY_H
#define GPUSORT_KEY_DICTIONARY_H

#include "key/key_columns.h"

/* The most values of a dictionary. */
#define GS_DICTIONARY_VALUES	256

typedef struct GsKeyDictionary GsKeyDictionary;

/*
 * Creates a dictionary in the current memory context, for a column of values of variable width or
 * names: attlen is that of pg_attribute.  It may have max_bytes bytes of values.  May ereport what
 * PostgreSQL reports of a locale that it cannot open.
 */
extern GsKeyDictionary *gs_key_dictionary_create(const GsSortColumn *column, int16 attlen,
												 Size max_bytes);

/*
 * Returns the code of a value that is not out of line.  Codes ascend in the order of the type,
 * even if the operator is descending, and never change; equal values have the same code.  Returns
 * false if there is no code for another value.  The type's comparator may raise errors.
 */
extern bool gs_key_dictionary_code(GsKeyDictionary *dictionary, Datum value, uint64 *code);

/* The number of values; equal ones that are stored differently are counted separately. */
extern int	gs_key_dictionary_count(const GsKeyDictionary *dictionary);

#endif							/* GPUSORT_KEY_DICTIONARY_H */
