/*-------------------------------------------------------------------------
 *
 * index_sort.h
 *	  Sorts the entries of a btree that is built.
 *
 *	  begin [ disable_device ] { scan } perform [ make_runs [ merge_shared ] ] { next_rows } end
 *
 * The order is that of the index: by the key columns, then by heap TID, so no two
 * entries are equal.  After an ERROR the memory contexts and resource owners clean up.
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
#include "key/key_columns.h"
#include "sort_parts/sort_shared.h"

typedef struct GsIndexSort GsIndexSort;

/* The sort columns of an index, followed by the heap TID, which *nkeys does not count. */
extern GsSortColumn *gs_index_sort_columns(Relation index, int *nkeys);

/* Why gpusort cannot sort the entries of an index; NULL: it can. */
extern char *gs_index_sort_reason_not(Relation index);

/*
 * Creates a memory context below the current one.  shared: it is one of several sorts
 * that may share one job; gather: the files of their runs.  expected_rows is then the
 * number of each worker.
 */
extern GsIndexSort *gs_index_sort_begin(Relation index, double expected_rows, int memory_kb,
										GsShared *shared, GsIndexGather *gather);

/* Adds the entries of the table, or of a share of it, like gs_index_scan(). */
extern double gs_index_sort_scan(GsIndexSort *sort, Relation heap, Relation index, IndexInfo *info,
								 ParallelTableScanDesc parallel, bool progress);

/* Before the scan: no device may sort the entries. */
extern void gs_index_sort_disable_device(GsIndexSort *sort);

/* Sorts.  False: a device failed and lost the entries; only end may be called then. */
extern bool gs_index_sort_perform(GsIndexSort *sort);

/*
 * Makes runs of the entries for a merge with those of others, unless a device has
 * them all.  A worker leaves them to the leader, and may only call end then.  False as
 * above.
 */
extern bool gs_index_sort_make_runs(GsIndexSort *sort);

/*
 * In the leader, when all workers have finished: adds the nkept entries that they
 * left.  The merge may use merge_kb.  False as above.
 */
extern bool gs_index_sort_merge_shared(GsIndexSort *sort, uint64 nkept, int merge_kb);

/*
 * Has the order of the entries been verified by the comparators of the index?  Then
 * next_rows only checks that it returns the verified rows in the verified order, and
 * raises an ERROR at the end if not.  To be called before the first next_rows.
 */
extern bool gs_index_sort_is_verified(GsIndexSort *sort);

/*
 * Gets up to nwanted entries as rows (index_row.h), valid until the next call.
 * Returns their number, 0 after the last; some sorts return one at a time.  ERROR at
 * the end if the number of all is wrong.
 */
#define GS_INDEX_ROWS	8

extern int	gs_index_sort_next_rows(GsIndexSort *sort, int nwanted, MinimalTuple *rows);

/* The number of entries, including those of workers. */
extern uint64 gs_index_sort_count(const GsIndexSort *sort);

extern void gs_index_sort_end(GsIndexSort *sort);

#endif							/* GPUSORT_INDEX_SORT_H */
