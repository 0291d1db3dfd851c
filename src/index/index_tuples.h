/*-------------------------------------------------------------------------
 *
 * index_tuples.h
 *	  Builds the leaf level of a btree from rows in order.
 *
 *		builder = gs_index_tuples_begin(heap, index, info, may_be_wrong, range);
 *		for each row, in index order:
 *			if (!gs_index_tuples_add(builder, row))
 *				break;
 *		for each row after the range:
 *			if (!gs_index_tuples_add_beyond(builder, row))
 *				break;
 *		if (gs_index_tuples_are_right(builder))
 *			gs_index_tuples_end(builder);
 *		else
 *			gs_index_tuples_abandon(builder);
 *
 * One process builds byte for byte what PostgreSQL builds from the same rows.  All
 * functions may ereport, and check for interrupts with each tuple.  After an
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

#include "index/index_pages.h"

typedef struct GsIndexLeafBuilder GsIndexLeafBuilder;

/*
 * For an empty btree, open and locked as for ambuild.  may_be_wrong: a wrong order is no
 * bug, because keys are approximate.  range: only its leaf
 * pages; NULL: the whole index.
 */
extern GsIndexLeafBuilder *gs_index_tuples_begin(Relation heap, Relation index,
												 const IndexInfo *info,
												 bool may_be_wrong, const GsIndexRange *range);

/*
 * Adds the next row (index_row.h).  It must be greater than the previous one by the
 * key, or equal with a higher heap TID; otherwise it is an ERROR, as the index
 * would be corrupt, or returns false if may_be_wrong.  In a unique index no two live
 * rows may be equal.
 */
extern bool gs_index_tuples_add(GsIndexLeafBuilder *builder, MinimalTuple row);

/*
 * Compares a row after the range with its last one, which the process of the next range does not
 * have.  Returns whether the next row must be compared, too.  To be called until then, unless the
 * range is the last one.
 */
extern bool gs_index_tuples_add_beyond(GsIndexLeafBuilder *builder, MinimalTuple row);

/* Were the rows in order, also those after the range?  No range is without rows, either. */
extern bool gs_index_tuples_are_right(const GsIndexLeafBuilder *builder);

/* Writes the remaining pages, as gs_index_pages_end() does. */
extern void gs_index_tuples_end(GsIndexLeafBuilder *builder);

/* Ends without that: the file is worthless, also the ranges of others. */
extern void gs_index_tuples_abandon(GsIndexLeafBuilder *builder);

#endif							/* GPUSORT_INDEX_TUPLES_H */
