/*-------------------------------------------------------------------------
 *
 * index_compare.h
 *	  Compares index tuples by the comparators of the index.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INDEX_COMPARE_H
#define GPUSORT_INDEX_COMPARE_H

#include "access/itup.h"
#include "utils/relcache.h"

typedef struct GsIndexCompare GsIndexCompare;

/* For an open btree; allocates in the current memory context. */
extern GsIndexCompare *gs_index_compare_create(Relation index);

/*
 * Returns < 0, 0 or > 0 if the key of a is less than, equal to or greater than that
 * of b.  The heap TID is not part of the key, and NULLs are equal.  Comparators may
 * ereport, and allocate in the current context.
 */
extern int	gs_index_compare_entries(GsIndexCompare *compare, IndexTuple a, IndexTuple b);

/* Is one of the key columns NULL? */
extern bool gs_index_compare_has_null(const GsIndexCompare *compare, IndexTuple tuple);

#endif							/* GPUSORT_INDEX_COMPARE_H */
