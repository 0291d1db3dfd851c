/*-------------------------------------------------------------------------
 *
 * index_pages.h
 *	  Builds the pages of a btree from items in order.
 *
 * An item is an index tuple, with or without a posting list.  All functions may
 * ereport.  Memory then belongs to the context that was current at the beginning,
 * the file to the transaction.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INDEX_PAGES_H
#define GPUSORT_INDEX_PAGES_H

#include "access/itup.h"
#include "utils/relcache.h"

typedef struct GsIndexPages GsIndexPages;

/*
 * For an empty btree, open and locked as for ambuild; allocates in the current
 * memory context.  allequalimage: equal keys have the same bytes; goes to the
 * metapage.
 */
extern GsIndexPages *gs_index_pages_begin(Relation heap, Relation index, bool allequalimage);

/*
 * Returns memory to form the next tuple in, of that many bytes, a multiple of 8.
 * last_may_grow: the last tuple may be replaced before the next is added.
 */
extern IndexTuple gs_index_pages_reserve(GsIndexPages *tree, Size nbytes, bool last_may_grow);

/* Is the tuple too long for a leaf?  Then adding it is an ERROR. */
extern bool gs_index_pages_is_too_long(const GsIndexPages *tree, IndexTuple tuple);

/*
 * Adds the tuple that was formed there.  Returns its place on the page, valid until
 * the next call of this or the next function.  Both may allocate in the current
 * context.
 */
extern IndexTuple gs_index_pages_add(GsIndexPages *tree, IndexTuple tuple);

/* Replaces the last tuple by the same one with a posting list. */
extern IndexTuple gs_index_pages_replace_last(GsIndexPages *tree, IndexTuple tuple);

/* Writes the remaining pages and the metapage, and makes sure that the file will be synced. */
extern void gs_index_pages_end(GsIndexPages *tree);

#endif							/* GPUSORT_INDEX_PAGES_H */
