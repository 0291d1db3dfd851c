/*-------------------------------------------------------------------------
 *
 * index_pages.h
 *	  Builds the pages of a btree from items in order.
 *
 * An item is an index tuple, with or without a posting list.  All functions may ereport.  Memory
 * then belongs to the context that was current at the beginning, the file to the transaction.
 *
 * Several processes can write the leaves of a range of the items each; then one of them
 * writes the levels above.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INDEX_PAGES_H
#define GPUSORT_INDEX_PAGES_H

#include "access/itup.h"
#include "storage/sharedfileset.h"
#include "utils/relcache.h"

#include "index/index_ranges.h"

typedef struct GsIndexPages GsIndexPages;

/* The part of an index that a process writes. */
typedef struct GsIndexRange
{
	GsIndexRanges *ranges;
	int			number;			/* of its range */
	SharedFileSet *files;		/* for what the levels above need to know of the leaves */
} GsIndexRange;

/*
 * For an empty btree, open and locked as for ambuild; allocates in the current
 * memory context.  allequalimage: equal keys have the same bytes; goes to the
 * metapage.  range: only its leaves; NULL: all pages.
 */
extern GsIndexPages *gs_index_pages_begin(Relation heap, Relation index, bool allequalimage,
										  const GsIndexRange *range);

/*
 * Returns memory to form the next tuple in, of that many bytes, a multiple of 8.
 * last_may_grow: the last tuple may be replaced before the next is added.
 */
extern IndexTuple gs_index_pages_reserve(GsIndexPages *tree, Size nbytes, bool last_may_grow);

/*
 * Adds the tuple that was formed there; ERROR if it is too long for a leaf.  Returns its place on
 * the page, valid until the next call of this or the next function.  Both may allocate in the
 * current context.
 */
extern IndexTuple gs_index_pages_add(GsIndexPages *tree, IndexTuple tuple);

/* Replaces the last tuple by the same one with a posting list. */
extern IndexTuple gs_index_pages_replace_last(GsIndexPages *tree, IndexTuple tuple);

/*
 * Writes the remaining pages and, except in a range, the metapage, and makes sure that the file
 * will be synced.  next: the first item of the next range; NULL: there is none.
 */
extern void gs_index_pages_end(GsIndexPages *tree, IndexTuple next);

/* Instead of the end: the pages are not needed any more. */
extern void gs_index_pages_abandon(GsIndexPages *tree);

/* After all ranges: writes the levels above, and the metapage, and makes sure of the same. */
extern void gs_index_pages_write_upper(Relation heap, Relation index, GsIndexRanges *ranges,
									   SharedFileSet *files);

#endif							/* GPUSORT_INDEX_PAGES_H */
