/*-------------------------------------------------------------------------
 *
 * index_leaf.h
 *	  Builds a btree from rows in order.
 *
 *		load = gs_index_leaf_begin(heap, index, info);
 *		for each row, in index order:
 *			gs_index_leaf_add(load, row);
 *		gs_index_leaf_end(load);
 *
 * What comes out is byte by byte what PostgreSQL's own build makes of the same
 * rows.  All three may ereport, and a cancel is heard within a tuple.  After an
 * ERROR nothing is to be undone: memory goes with the context that was current
 * at the beginning, the file with the transaction.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INDEX_LEAF_H
#define GPUSORT_INDEX_LEAF_H

#include "access/htup_details.h"
#include "nodes/execnodes.h"
#include "utils/relcache.h"

typedef struct GsIndexLeafBuilder GsIndexLeafBuilder;

/*
 * For a btree without a page, open and locked as for ambuild.  proven: the order of the tuples
 * has been proven by the index's comparators.
 */
extern GsIndexLeafBuilder *gs_index_leaf_begin(Relation heap, Relation index, const IndexInfo *info,
										bool verified);

/*
 * The next row (index_row.h): above the one before by the key, or equal to it with a higher
 * heap TID; an ERROR if not, as it would be a corrupt index.  In a unique index no two that are
 * alive may be equal.
 */
extern void gs_index_leaf_add(GsIndexLeafBuilder *load, MinimalTuple row);

/* The rest of the pages, the metapage; and on disk, if that is the loader's duty. */
extern void gs_index_leaf_end(GsIndexLeafBuilder *load);

#endif							/* GPUSORT_INDEX_LEAF_H */
