/*-------------------------------------------------------------------------
 *
 * index_sort.h
 *	  Sorts the entries of a btree that is built.
 *
 *	  serial	begin { add } perform { next_rows } end
 *	  leader	begin { add } perform make_runs [ adopt [ begin_range | begin_merge ] ]
 *				{ next_rows } end
 *	  worker	begin { add } perform make_runs [ [ adopt ] begin_range { next_rows } ] end
 *
 * next_beyond may follow next_rows.
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

#include "key/key_columns.h"
#include "share/share_streams.h"
#include "share/share_state.h"
#include "sort/sort.h"

typedef struct GsIndexSort
{
	GsSortState sort;
	MemoryContext context;		/* of the sort */
	bool		careful;
	GsShareGather *gather;		/* runs of all participants; NULL: serial build */
	bool		in_range;		/* a part of the entries is returned */
	int64		end;			/* the last column of the first row after it; -1: there is none */
	MinimalTuple beyond;		/* that row, when it has been reached, and until it is returned */
	bool		passed_end;		/* it has been returned */
	bool		entries_lost;	/* a device failed */
	uint64		nreturned;
} GsIndexSort;

/* The sort columns of an index, followed by the heap TID, which *nkeys does not count. */
extern GsSortColumn *gs_index_sort_columns(Relation index, int *nkeys);

/* Why PostgreSQL sorts nrows rows by the key columns of an index; NULL: gpusort does. */
extern char *gs_index_sort_why_not(Relation index, double nrows);

/* The number of tuples that a scan will probably return. */
extern double gs_index_expected_rows(Relation heap);

/* The bytes that values of these columns will probably have. */
extern int	gs_index_expected_width(TupleDesc desc);

/*
 * Creates a memory context below the current one.  careful: uses no device, and verifies the order
 * itself where keys are approximate.  shared, gather: those of several sorts, which may share one
 * job, and whose runs all of them can read; NULL: this is the only one.
 */
extern GsIndexSort *gs_index_sort_begin(Relation index, double expected_rows, int memory_kb,
										bool careful, GsShared *shared, GsShareGather *gather);

/* Adds an entry as a row (index_row.h); nothing if a device has failed. */
extern void gs_index_sort_add(GsIndexSort *sort, TupleTableSlot *row);

/*
 * Can the entries come in wrong order, because keys are approximate?  A careful sort avoids that;
 * otherwise a wrong order is a bug.
 */
extern bool gs_index_sort_may_be_wrong(const GsIndexSort *sort);

/* Sorts.  False: a device failed and lost the entries; only end may be called then. */
extern bool gs_index_sort_perform(GsIndexSort *sort);

/*
 * Makes runs of the entries for a merge with those of others, unless a device has
 * those of the leader.  False as above.
 */
extern bool gs_index_sort_make_runs(GsIndexSort *sort);

/* When all have made runs: adds the runs of the others.  False as above. */
extern bool gs_index_sort_adopt(GsIndexSort *sort);

/*
 * Begins to return one of nranges ranges of all entries, about equal ones; merges runs with
 * memory_kb.  False: there are too few entries, or too many runs for this memory; for all
 * participants, if they pass the same.
 */
extern bool gs_index_sort_begin_range(GsIndexSort *sort, int range, int nranges, int memory_kb);

/* Begins to merge all entries, with maintenance_work_mem. */
extern void gs_index_sort_begin_merge(GsIndexSort *sort);

/*
 * Gets up to nwanted entries as rows (index_row.h), valid until the next call.
 * Returns their number, 0 after the last; some sorts return one at a time.  ERROR at
 * the end if the number of all is wrong.
 */
#define GS_INDEX_ROWS	8

extern int	gs_index_sort_next_rows(GsIndexSort *sort, int nwanted, MinimalTuple *rows);

/* After the last row of a range: the next row after it.  NULL: there is none, or no range. */
extern MinimalTuple gs_index_sort_next_beyond(GsIndexSort *sort);

/* The number of entries, including those of others; and their bytes, if a device has them. */
extern uint64 gs_index_sort_count(const GsIndexSort *sort);
extern uint64 gs_index_sort_bytes_on_device(const GsIndexSort *sort);

/* Raises an ERROR if the participants together have not returned all entries. */
extern void gs_index_sort_check_count(const GsIndexSort *sort, uint64 nreturned);

/* The qualified name of an index, for a log line of its sort. */
extern char *gs_index_sort_name(Relation index);

/* The index was written: counts the build, and logs it if it took long. */
extern void gs_index_sort_report(GsIndexSort *sort, Relation index);

/* It was not, because the order was wrong: logs that. */
extern void gs_index_sort_report_wrong_order(GsIndexSort *sort, Relation index);

extern void gs_index_sort_end(GsIndexSort *sort);

#endif							/* GPUSORT_INDEX_SORT_H */
