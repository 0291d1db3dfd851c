/*-------------------------------------------------------------------------
 *
 * index_pages.h
 *	  Builds the pages of a btree from items in order.
 *
 * An item is an index tuple, plain or with a posting list.  All functions may ereport.  What is
 * left behind then is memory of the context that was current at the beginning, and the file,
 * which goes with the transaction.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INDEX_PAGES_H
#define GPUSORT_INDEX_PAGES_H

#include "access/itup.h"
#include "utils/relcache.h"

typedef struct GsIndexPages GsIndexPages;

/*
 * For a btree without a page, open and locked as for ambuild; in the current memory context.
 * allequalimage: keys that are equal have the same bytes, as the metapage will say.
 */
extern GsIndexPages *gs_index_pages_begin(Relation heap, Relation index, bool allequalimage);

/*
 * Where to form the next tuple, of that many bytes, a multiple of 8.  last_may_grow: the last one may
 * be replaced before.
 */
extern IndexTuple gs_index_pages_reserve(GsIndexPages *tree, Size nbytes, bool last_may_grow);

/* Is the tuple that was formed there longer than a leaf takes?  To add it is an ERROR then. */
extern bool gs_index_tree_is_too_long(const GsIndexPages *tree, IndexTuple tuple);

/*
 * Adds the tuple that was formed there.  Returns where it stands, until this or the next function is
 * called.  Both may leave memory behind in the current context.
 */
extern IndexTuple gs_index_pages_add(GsIndexPages *tree, IndexTuple tuple);

/* Puts the same tuple, with a posting list, in the place of the last one. */
extern IndexTuple gs_index_pages_replace_last(GsIndexPages *tree, IndexTuple tuple);

/* The rest of the pages, the metapage; and on disk, if that is its duty. */
extern void gs_index_pages_end(GsIndexPages *tree);

#endif							/* GPUSORT_INDEX_PAGES_H */
