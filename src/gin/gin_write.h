/*-------------------------------------------------------------------------
 *
 * gin_write.h
 *	  Writes a GIN index of sorted entries: gin_pages.c, and what it uses.
 *
 * One process writes all pages; or several write the leaf pages and posting trees of a range of the
 * keys each, and one of them the levels above.  No key may be in two ranges; a range may be empty.
 *
 *	  one process	begin { add_key add_tids { add_tids } } end
 *	  several		each: begin { add_key add_tids { add_tids } } end
 *					then one of them: write_upper
 *
 * All functions may ereport; then memory belongs to the context that was current at the beginning,
 * and the file to the transaction.  They keep a page for each level of both trees and a few
 * thousand TIDs, however many TIDs a key has.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GIN_WRITE_H
#define GPUSORT_GIN_WRITE_H

#include "access/ginblock.h"
#include "storage/itemptr.h"

#include "build/build_blocks.h"
#include "build/build_method.h"

/* ---------------------------------------------------------- pages (gin_pages.c) */

typedef struct GsGinPages GsGinPages;

/*
 * For an empty GIN index, open and locked as for ambuild; allocates in the current memory context.
 * part: a range of it; NULL: all pages.
 */
extern GsGinPages *gs_gin_pages_begin(Relation index, const GsBuildPart *part);

/*
 * The next key, greater than the one before by ginCompareAttEntries(), which only an assertion
 * checks.  attribute: from 1 on.  The key need live only until the call returns.  ERROR if it is
 * too long, as in PostgreSQL.  Checks for interrupts.
 */
extern void gs_gin_pages_add_key(GsGinPages *pages, OffsetNumber attribute, Datum key,
								 GinNullCategory category);

/*
 * Heap TIDs of this key, ascending over all calls for it and without duplicates, at least one in
 * all.  A call that begins before the end of the one before is an ERROR; within a call, only an
 * assertion checks the order.  Checks for interrupts.
 */
extern void gs_gin_pages_add_tids(GsGinPages *pages, const ItemPointerData *tids, int ntids);

/*
 * Writes the remaining pages.  A range: leaves in a file of part->files what the levels above need
 * to know, and leaves the ranges (gs_build_ranges_leave()).  Otherwise also the metapage, and makes
 * sure that the file will be synced.
 */
extern void gs_gin_pages_end(GsGinPages *pages);

/* Instead of the end: the pages are not needed any more. */
extern void gs_gin_pages_abandon(GsGinPages *pages);

/*
 * After all participants have left the ranges: writes the last leaf page of each, the levels above,
 * and the metapage, and makes sure that the file will be synced.  Returns the first range whose
 * first key does not follow the last one before it, and then writes no more; 0: all do.
 */
extern int	gs_gin_pages_write_upper(Relation index, const GsBuildPart *part);

/* ------------------------------------------------- posting trees (gin_posting.c) */

typedef struct GsGinPosting GsGinPosting;

/* For any number of trees, one after another.  Allocates in the current memory context. */
extern GsGinPosting *gs_gin_posting_create(GsBuildBlocks *blocks);

/*
 * Adds ascending TIDs to a tree, the first of which begins it.  Returns how many it took: all if
 * they are the last ones, or else all but fewer than GS_GIN_POSTING_REST, which are to be added
 * again, with more TIDs.
 */
#define GS_GIN_POSTING_REST		384

extern int	gs_gin_posting_add(GsGinPosting *posting, ItemPointerData *tids, int ntids, bool last);

/* Writes what remains of the tree.  Returns the block of its root. */
extern BlockNumber gs_gin_posting_end(GsGinPosting *posting);

/* The number of pages of all trees. */
extern BlockNumber gs_gin_posting_npages(const GsGinPosting *posting);

#endif							/* GPUSORT_GIN_WRITE_H */
