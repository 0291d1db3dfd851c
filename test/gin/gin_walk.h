/*-------------------------------------------------------------------------
 *
 * gin_walk.h
 *	  Reads a GIN index page by page, and checks all that its README says of them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GIN_WALK_H
#define GPUSORT_GIN_WALK_H

#include "access/gin_private.h"
#include "utils/relcache.h"

/*
 * A key and some of its TIDs; more calls for the same key follow each other, with first = false.
 * The key and the TIDs live until the call returns.
 */
typedef void (*GinWalkFunction) (void *arg, bool first, OffsetNumber attribute, Datum key,
								 GinNullCategory category, ItemPointerData *tids, int ntids);

/* What was found. */
typedef struct GinWalkCounts
{
	int64		nkeys;
	int64		ntids;
	int64		nentry_pages;
	int64		ndata_pages;
	int64		nlist_pages;	/* of the pending list */
	int64		nfree_pages;	/* deleted, or never written */
	int64		nblocks;
	int			height;			/* of the entry tree; 1: the root is a leaf */
	int			tree_height;	/* of the highest posting tree; 0: there is none */
	GinMetaPageData meta;
} GinWalkCounts;

/*
 * Walks through an index, which nobody may change meanwhile.  function: NULL: none.  ERROR if
 * anything is wrong.
 */
extern GinWalkCounts gin_walk(Relation index, GinWalkFunction function, void *arg);

#endif							/* GPUSORT_GIN_WALK_H */
