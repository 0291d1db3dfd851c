/*-------------------------------------------------------------------------
 *
 * index_sort.h
 *	  Sorts the entries of a btree that is built.
 *
 *	  begin [ stay_here ] { scan } perform [ make_runs [ gather ] ] { next } end
 *
 * Their order is the index's: by its key columns, and then by heap TID, so no two of
 * them are equal.  After an ERROR the memory contexts and resource owners do what end does.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INDEX_SORT_H
#define GPUSORT_INDEX_SORT_H

#include "access/htup.h"
#include "access/tableam.h"
#include "nodes/execnodes.h"
#include "utils/relcache.h"

#include "index/index_gather.h"
#include "key/key_encoder.h"
#include "sort/sort_shared.h"

typedef struct GsIndexSort GsIndexSort;

/* What an index is sorted by, and behind these its heap TIDs. */
extern GsSortColumn *gs_index_sort_columns(Relation index, int *nkeys);

/* Why the entries of an index cannot be sorted here, for people; NULL: they can. */
extern char *gs_index_sort_reason_not(Relation index);

/*
 * In the current memory context, where it makes one of its own.  shared: it is one of several
 * that may feed one job, and has others' runs, or its own for the leader, in these files;
 * expected_rows are those of each of the others.
 */
extern GsIndexSort *gs_index_sort_begin(Relation index, double expected_rows, int memory_kb,
										GsShared *shared, GsIndexGather *gather);

/*
 * Takes the entries of the index's table, or of a share of it: as gs_index_scan().
 */
extern double gs_index_sort_scan(GsIndexSort *sort, Relation heap, Relation index, IndexInfo *info,
								 ParallelTableScanDesc parallel, bool progress);

/* Before the first entry: no device is to sort them. */
extern void gs_index_sort_disable_device(GsIndexSort *sort);

/*
 * Sorts.  False: a device failed, and has lost the entries; end is the only call left.
 */
extern bool gs_index_sort_perform(GsIndexSort *sort);

/*
 * Has its entries ready to be merged with those of others: as runs, unless a device has them all.  A
 * worker leaves them to the leader: end is the only call left there.  False as before.
 */
extern bool gs_index_sort_make_runs(GsIndexSort *sort);

/*
 * In the leader: workers have left it so many, which leave among its own.  They are through, so it
 * may hold merge_kb from now on.  False as before.
 */
extern bool gs_index_sort_merge_shared(GsIndexSort *sort, uint64 nkept, int merge_kb);

/*
 * Has the order of the entries been proven by the index's comparators?  Then nobody needs to do
 * that again: from now on it is checked that they leave as they were compared, with an ERROR at
 * the end if not.  To be asked before the first entry leaves.
 */
extern bool gs_index_sort_is_verified(GsIndexSort *sort);

/*
 * The next entries as rows (index_row.h), up to so many, there until the next call; returns how many,
 * 0 after the last.  For some sorts it is one at a time.  ERROR if as many have not left as came.
 */
#define GS_INDEX_ROWS	8

extern int	gs_index_sort_next_rows(GsIndexSort *sort, int nwanted, MinimalTuple *rows);

/* How many entries there are, those gathered too. */
extern uint64 gs_index_sort_count(const GsIndexSort *sort);

extern void gs_index_sort_end(GsIndexSort *sort);

#endif							/* GPUSORT_INDEX_SORT_H */
