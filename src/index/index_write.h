/*-------------------------------------------------------------------------
 *
 * index_write.h
 *	  Writes an index of sorted entries, or a range of its leaf pages.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INDEX_WRITE_H
#define GPUSORT_INDEX_WRITE_H

#include "index/index_pages.h"
#include "index/index_sort.h"

/*
 * Writes the entries that the sort returns.  range: their leaf pages; NULL: the whole index.
 * False: their order is wrong, and may be (gs_index_sort_may_be_wrong()); what has been written is
 * worthless.
 */
extern bool gs_index_write(Relation heap, Relation index, const IndexInfo *info, GsIndexSort *sort,
						   const GsIndexRange *range);

/* When all ranges have been written: the rest of the index. */
extern void gs_index_write_upper(Relation heap, Relation index, const GsIndexRange *range);

#endif							/* GPUSORT_INDEX_WRITE_H */
