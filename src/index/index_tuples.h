/*-------------------------------------------------------------------------
 *
 * index_tuples.h
 *	  Builds the leaf level of a btree from rows in order.
 *
 *		builder = gs_index_tuples_begin(heap, index, info, verified);
 *		for each row, in index order:
 *			gs_index_tuples_add(builder, row);
 *		gs_index_tuples_end(builder);
 *
 * The result is byte for byte what PostgreSQL builds from the same rows.  All
 * three functions may ereport, and check for interrupts with each tuple.  After an
 * ERROR nothing needs to be undone: memory belongs to the context that was current
 * at the beginning, the file to the transaction.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INDEX_TUPLES_H
#define GPUSORT_INDEX_TUPLES_H

#include "access/htup_details.h"
#include "nodes/execnodes.h"
#include "utils/relcache.h"

typedef struct GsIndexLeafBuilder GsIndexLeafBuilder;

/*
 * For an empty btree, open and locked as for ambuild.  verified: the order of the
 * rows has been verified by the comparators of the index.
 */
extern GsIndexLeafBuilder *gs_index_tuples_begin(Relation heap, Relation index,
											   const IndexInfo *info, bool verified);

/*
 * Adds the next row (index_row.h).  It must be greater than the previous one by the
 * key, or equal with a higher heap TID; otherwise it is an ERROR, as the index
 * would be corrupt.  In a unique index no two live rows may be equal.
 */
extern void gs_index_tuples_add(GsIndexLeafBuilder *builder, MinimalTuple row);

/* Writes the remaining pages and the metapage, and syncs the file if it is WAL-logged. */
extern void gs_index_tuples_end(GsIndexLeafBuilder *builder);

#endif							/* GPUSORT_INDEX_TUPLES_H */
