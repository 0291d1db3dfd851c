/*-------------------------------------------------------------------------
 *
 * build_sort.h
 *	  Sorts the entries of an index that is built.
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
#ifndef GPUSORT_BUILD_SORT_H
#define GPUSORT_BUILD_SORT_H

#include "access/htup.h"
#include "access/tableam.h"
#include "nodes/execnodes.h"
#include "utils/relcache.h"

#include "build/build_method.h"
#include "key/key_columns.h"
#include "share/share_streams.h"
#include "share/share_state.h"
#include "sort/sort.h"

struct GsBuildSort
{
	GsSortState sort;
	const GsBuildMethod *method;
	int			memory_kb;		/* of the process, while it scans */
	MemoryContext context;		/* of the sort */
	bool		careful;
	GsShareGather *gather;		/* runs of all participants; NULL: serial build */
	bool		in_groups;		/* a part of the entries is returned, which the sort ends */
	bool		in_range;		/* or one that ends before a row */
	int64		end;			/* the last column of the first row after it; -1: there is none */
	MinimalTuple beyond;		/* that row, when it has been reached, and until it is returned */
	bool		passed_end;		/* it has been returned */
	bool		entries_lost;	/* a device failed */
	uint64		nreturned;
	bool		warned;			/* that ICU contradicts itself */
};

/* The number of tuples that a scan will probably return. */
extern double gs_build_expected_rows(Relation heap);

/* Why PostgreSQL builds an index of so many rows; NULL: there are enough. */
extern char *gs_build_few_rows(double nrows);

/* The bytes that values of these columns will probably have. */
extern int	gs_build_expected_width(TupleDesc desc);

/*
 * Creates a memory context below the current one.  memory_kb is for the scan, too.  careful: uses
 * no device, and verifies the order itself where keys are approximate.  shared, gather: those of
 * several sorts, which may share one job, and whose runs all of them can read; NULL: this is the
 * only one.
 */
extern GsBuildSort *gs_build_sort_begin(const GsBuildMethod *method, Relation index,
										double expected_rows, int memory_kb, bool careful,
										GsShared *shared, GsShareGather *gather);

/* Adds an entry as a row (build_method.h); nothing if a device has failed. */
extern void gs_build_sort_add(GsBuildSort *sort, TupleTableSlot *row);

/*
 * Can the entries come in wrong order, because keys are approximate?  A careful sort avoids that;
 * otherwise a wrong order is a bug.
 */
extern bool gs_build_sort_may_be_wrong(const GsBuildSort *sort);

/*
 * A row, from 1 on, does not sort after the previous one.  False: it may be wrong, and the
 * index is to be built again.  True: ICU contradicts itself, so that no order may be right; the
 * first time with a WARNING, because PostgreSQL would build the index, too.  Otherwise an ERROR.
 */
extern bool gs_build_sort_permits_wrong_order(GsBuildSort *sort, Relation index, uint64 tuple);

/* Sorts.  False: a device failed and lost the entries; only end may be called then. */
extern bool gs_build_sort_perform(GsBuildSort *sort);

/*
 * Makes runs of the entries for a merge with those of others, unless a device has
 * those of the leader.  False as above.
 */
extern bool gs_build_sort_make_runs(GsBuildSort *sort);

/* When all have made runs: adds the runs of the others.  False as above. */
extern bool gs_build_sort_adopt(GsBuildSort *sort);

/*
 * Begins to return one of nranges ranges of all entries, about equal ones; merges runs with
 * memory_kb.  False: there are too few entries, or too many runs for this memory; for all
 * participants, if they pass the same.
 */
extern bool gs_build_sort_begin_range(GsBuildSort *sort, int range, int nranges, int memory_kb);

/* Begins to merge all entries, with maintenance_work_mem. */
extern void gs_build_sort_begin_merge(GsBuildSort *sort);

/*
 * Gets up to nwanted entries as rows (build_method.h), valid until the next call.
 * Returns their number, 0 after the last; some sorts return one at a time.  ERROR at
 * the end if the number of all is wrong.
 */
#define GS_BUILD_ROWS	8

extern int	gs_build_sort_next_rows(GsBuildSort *sort, int nwanted, MinimalTuple *rows);

/* After the last row of a range: the next row after it.  NULL: there is none, or no range. */
extern MinimalTuple gs_build_sort_next_beyond(GsBuildSort *sort);

/* The number of entries, including those of others; and their bytes, if a device has them. */
extern uint64 gs_build_sort_count(const GsBuildSort *sort);
extern uint64 gs_build_sort_bytes_on_device(const GsBuildSort *sort);

/* Raises an ERROR if the participants together have not returned all entries. */
extern void gs_build_sort_check_count(const GsBuildSort *sort, uint64 nreturned);

/* The qualified name of an index, for a log line of its sort. */
extern char *gs_build_sort_name(Relation index);

/* The index was written: counts the build, and logs it if it took long. */
extern void gs_build_sort_report(GsBuildSort *sort, Relation index);

/* It was not, because the order was wrong: logs that. */
extern void gs_build_sort_report_wrong_order(GsBuildSort *sort, Relation index);

extern void gs_build_sort_end(GsBuildSort *sort);

#endif							/* GPUSORT_BUILD_SORT_H */
