/*-------------------------------------------------------------------------
 *
 * index_compare.h
 *	  Which of two index tuples comes first, by the index's own comparators.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INDEX_COMPARE_H
#define GPUSORT_INDEX_COMPARE_H

#include "access/itup.h"
#include "utils/relcache.h"

typedef struct GsIndexCompare GsIndexCompare;

/*
 * For a btree that is open, in the current memory context.  proven: no tuple that is compared
 * with another comes before it, so that it is enough to tell whether they are equal.
 */
extern GsIndexCompare *gs_index_compare_create(Relation index, bool verified);

/*
 * < 0, 0 or > 0 as the key of a is below, equal to or above that of b.  The heap
 * TID is none of the key, and NULLs are equal.  May ereport what comparators
 * report, and leave memory behind in the current context.
 */
extern int	gs_index_compare_entries(GsIndexCompare *order, IndexTuple a, IndexTuple b);

/* Is one of the key columns NULL? */
extern bool gs_index_compare_has_null(const GsIndexCompare *order, IndexTuple tuple);

#endif							/* GPUSORT_INDEX_COMPARE_H */
