/*-------------------------------------------------------------------------
 *
 * index_write.h
 *	  Writes a btree of sorted entries: index_tuples.c, and what it uses.
 *
 * One process writes all pages; or several write the leaf pages of a range of the entries each, and
 * one of them the levels above.  All functions may ereport; then memory belongs to the context that
 * was current at the beginning, and the file to the transaction.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INDEX_WRITE_H
#define GPUSORT_INDEX_WRITE_H

#include "access/itup.h"
#include "storage/bufpage.h"

#include "build/build_method.h"

/*
 * Writes the entries that the sort returns to an empty btree, open and locked as for ambuild.
 * part: to their leaf pages; NULL: the whole index, byte for byte as PostgreSQL.  A wrong order is
 * an ERROR, or false if it may be wrong (gs_build_sort_may_be_wrong()); then what has been written
 * is worthless, also the ranges of others.  *ntuples: the number of entries.  Checks for interrupts
 * with each entry.
 */
extern bool gs_index_tuples_write(Relation heap, Relation index, const IndexInfo *info,
								  GsBuildSort *sort, const GsBuildPart *part, uint64 *ntuples);

/* ------------------------------------------------ comparisons (index_compare.c) */

typedef struct GsIndexCompare GsIndexCompare;

/* For an open btree; allocates in the current memory context. */
extern GsIndexCompare *gs_index_compare_create(Relation index);

/*
 * Returns < 0, 0 or > 0 if the key of a is less than, equal to or greater than that
 * of b.  The heap TID is not part of the key, and NULLs are equal.  Comparators may
 * allocate in the current context.
 */
extern int	gs_index_compare_entries(GsIndexCompare *compare, IndexTuple a, IndexTuple b);

/* Is one of the key columns NULL? */
extern bool gs_index_compare_has_null(const GsIndexCompare *compare, IndexTuple tuple);

/* ------------------------------------------------------- pages (index_pages.c) */

typedef struct GsIndexPages GsIndexPages;

/*
 * For an empty btree, open and locked as for ambuild; allocates in the current
 * memory context.  allequalimage: equal keys have the same bytes; goes to the
 * metapage.  part: only its leaves; NULL: all pages.
 */
extern GsIndexPages *gs_index_pages_begin(Relation heap, Relation index, bool allequalimage,
										  const GsBuildPart *part);

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
extern void gs_index_pages_write_upper(Relation heap, Relation index, const GsBuildPart *part);

#endif							/* GPUSORT_INDEX_WRITE_H */
