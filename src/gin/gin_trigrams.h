/*-------------------------------------------------------------------------
 *
 * gin_trigrams.h
 *	  The trigrams of a text, as the operator class gin_trgm_ops of pg_trgm extracts them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GIN_TRIGRAMS_H
#define GPUSORT_GIN_TRIGRAMS_H

#include "gin/gin_accumulate.h"

typedef struct GsGinTrigrams GsGinTrigrams;

/*
 * For an attribute whose values are extracted by a function under a collation; the FmgrInfo must
 * outlive the result.  In the current memory context.  NULL: the function is not pg_trgm's, or its
 * trigrams are not those of this module, so it must be called for each value.
 */
extern GsGinTrigrams *gs_gin_trigrams_create(FmgrInfo *extract, Oid collation);

/*
 * Adds a TID, by its number, to the trigrams of a text.  False: it has none.  Allocates some memory
 * in the current context.
 */
extern bool gs_gin_trigrams_add(const GsGinTrigrams *trigrams, GsGinAccumulator *accumulator,
								OffsetNumber attribute, Datum value, uint64 tid);

#endif							/* GPUSORT_GIN_TRIGRAMS_H */
