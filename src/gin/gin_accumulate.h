/*-------------------------------------------------------------------------
 *
 * gin_accumulate.h
 *	  Collects the TIDs of each key of a GIN index.
 *
 *	  create { add } flush
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GIN_ACCUMULATE_H
#define GPUSORT_GIN_ACCUMULATE_H

#include "access/gin_private.h"

#include "gin/gin_row.h"

typedef struct GsGinAccumulator GsGinAccumulator;

/* Called with some TIDs of a key; the item is valid until it returns. */
typedef void (*GsGinEmit) (void *arg, const GsGinItem *item);

/*
 * In the current memory context.  Takes up to memory_limit bytes before it emits what it has; some
 * memory more while it adds to its hash table.
 */
extern GsGinAccumulator *gs_gin_accumulator_create(GinState *state, Size memory_limit,
												   GsGinEmit emit, void *arg);

/*
 * Adds a TID, by its number, to some keys of an attribute, which may repeat; nulls[i] != 0: the key
 * is NULL.  nulls may be NULL.  ERROR if a key is so long that no index can have it; others that
 * are too long are found when they are written.  Allocates some memory in the current context.
 */
extern void gs_gin_accumulator_add(GsGinAccumulator *accumulator, OffsetNumber attribute,
								   const Datum *keys, const bool *nulls, int nkeys, uint64 tid);

/* Adds a TID to a placeholder of an attribute: GIN_CAT_EMPTY_ITEM or GIN_CAT_NULL_ITEM. */
extern void gs_gin_accumulator_add_placeholder(GsGinAccumulator *accumulator,
											   OffsetNumber attribute, GinNullCategory category,
											   uint64 tid);

/* Emits all that has not been emitted; the accumulator is empty then. */
extern void gs_gin_accumulator_flush(GsGinAccumulator *accumulator);

#endif							/* GPUSORT_GIN_ACCUMULATE_H */
