/*-------------------------------------------------------------------------
 *
 * index_tuples.h
 *	  Writes a btree of sorted entries, or a range of its leaf pages.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INDEX_TUPLES_H
#define GPUSORT_INDEX_TUPLES_H

#include "index/index_pages.h"
#include "index/index_sort.h"

/*
 * Writes the entries that the sort returns to an empty btree, open and locked as for ambuild.
 * range: to their leaf pages; NULL: the whole index, byte for byte as PostgreSQL.  A wrong order is
 * an ERROR, or false if it may be wrong (gs_index_sort_may_be_wrong()); then what has been written
 * is worthless, also the ranges of others.  Checks for interrupts with each entry.  After an ERROR
 * the memory belongs to the current context, and the file to the transaction.
 */
extern bool gs_index_tuples_write(Relation heap, Relation index, const IndexInfo *info,
								  GsIndexSort *sort, const GsIndexRange *range);

#endif							/* GPUSORT_INDEX_TUPLES_H */
