/*-------------------------------------------------------------------------
 *
 * build_method.h
 *	  How indexes of an access method are built: what differs between them.
 *
 * An entry of an index is a row to be sorted.  Its last column is a bigint that begins with the
 * heap TID (build_row.h, gin/gin_row.h).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BUILD_METHOD_H
#define GPUSORT_BUILD_METHOD_H

#include "access/tableam.h"
#include "nodes/execnodes.h"

#include "build/build_ranges.h"
#include "key/key_columns.h"

typedef struct GsBuildSort GsBuildSort;

typedef struct GsBuildMethod
{
	const char *setting;		/* avoids this code: for hints */
	const char *worker_main;	/* the exported function of workers, which calls
								 * gs_build_parallel_work() */
	BlockNumber first_block;	/* of leaf pages; those before it have a fixed use */
	int			scan_phase;		/* pg_stat_progress_create_index */
	int			sort_phase;
	int			write_phase;
	int			memory_parts;	/* the sort has one of so many parts of the memory, the scan the
								 * rest */

	/* The row type, in the current memory context. */
	TupleDesc	(*row_type) (Relation index);

	/* The sort columns, *nkeys of them, and after these that of the heap TID. */
	GsSortColumn *(*columns) (Relation index, int *nkeys);

	/*
	 * The heap TID is always a sort column, because rows with equal keys do not come in its order.
	 * Otherwise it is one only if several processes scan the heap.
	 */
	bool		sorts_tids;

	/*
	 * Ranges do not divide rows that are equal in all key columns.  Otherwise they divide rows
	 * anywhere, and next_beyond finds those after a range.
	 */
	bool		keeps_groups;

	/*
	 * Adds the rows of a heap to a sort; or, if parallel is not NULL, those of this process's share
	 * of a parallel scan.  Rows with equal keys are added in the order of their heap TIDs if the
	 * sort relies on it (nstable).  progress: reports it.  Returns the number of tuples.
	 */
	double		(*scan) (GsBuildSort *sort, Relation heap, Relation index, IndexInfo *info,
						 ParallelTableScanDesc parallel, bool progress);

	/*
	 * Writes the rows that the sort returns to an empty index, open and locked as for ambuild.
	 * part: to the leaf pages of a range; NULL: the whole index.  *ntuples: how many index tuples
	 * that are; of a range, they are added to those of others before the process leaves the ranges
	 * (gs_build_ranges_add_tuples()).  A wrong order is an ERROR, or false if it may be wrong
	 * (gs_build_sort_may_be_wrong()); then what has been written is worthless, also the ranges of
	 * others.
	 */
	bool		(*write) (Relation heap, Relation index, const IndexInfo *info, GsBuildSort *sort,
						  const GsBuildPart *part, uint64 *ntuples);

	/*
	 * After all ranges: writes the levels above, and the metapage.  Returns the first range that
	 * does not follow the one before, which makes the index worthless; 0: all do.
	 */
	int			(*write_upper) (Relation heap, Relation index, const GsBuildPart *part);
} GsBuildMethod;

#endif							/* GPUSORT_BUILD_METHOD_H */
