/*-------------------------------------------------------------------------
 *
 * store_merge.h
 *	  Merges runs, of one sort or several.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_STORE_MERGE_H
#define GPUSORT_STORE_MERGE_H

#include "store/store.h"

/*
 * Writes the engine's rows as the last run and begins to merge all runs, unless the caller does
 * (spec.merged_elsewhere).
 */
extern GsStatus gs_store_merge_runs(GsStore *store);

/* -------------------------------------------- the runs of several sorts */

/*
 * Participants of a parallel plan or index build merge the runs of several processes.  The legal
 * calls, in order, after gs_sort_perform():
 *
 *	  make_runs [ share_runs ] { adopt_runs | adopt_stream }
 *		[ begin_merge | begin_range | { begin_groups } ]
 *	  make_runs complete_runs [ describe_rows ] { adopt_stream } [ begin_merge ]
 *
 * make_runs turns all rows into runs, none of which may have been returned.  False: the engine
 * failed and has lost the rows.
 */
extern bool gs_store_make_runs(GsStore *store);

/*
 * Turns rows that are all in a CPU engine into a run without a copy: it is read from the engine,
 * and only a stream can share it.
 */
extern void gs_store_make_run_of_engine(GsStore *store);

/*
 * Describes the runs, in shared memory, so few of them that those of all participants can be merged
 * at once.  They stay in the files of spec.run_files.  Optional.
 */
extern void gs_store_share_runs(GsStore *store, GsSharedRuns *runs, int nparticipants);

/*
 * Adds the runs of another process; their files are at `where`.  Merges by keys if both have them.
 */
extern void gs_store_adopt_runs(GsStore *store, const GsSharedRuns *runs,
							   const GsRunPlace *where);

/*
 * Decides whether rows have keys, and merges some of the runs if there are too many for one merge.
 */
extern void gs_store_complete_runs(GsStore *store);

/* Describes the rows of all runs, for a stream. */
extern void gs_store_describe_rows(GsStore *store, GsSharedRows *rows);

/*
 * Does adopt_stream merge these rows in the way in which they were merged: by the same keys, or
 * both without keys?
 */
extern bool gs_store_merges_alike(const GsStore *store, const GsSharedRows *rows);

/*
 * Adds the rows that another process sends, as a run; NULL: they come with those of another stream.
 */
extern void gs_store_adopt_stream(GsStore *store, const GsSharedRows *rows, GsRunStream *stream,
								 dsa_area *memory);

/* The sort returns the rows of all its runs from now on, in order. */
extern void gs_store_begin_merge(GsStore *store);

/*
 * The sort returns the rows of all its runs from now on, in order, from the first row of one of
 * nranges ranges on; see gs_run_set_begin_range().  The caller ends with the row that follows the
 * range, *end, and verifies what is returned.
 */
extern bool gs_store_begin_range(GsStore *store, int range, int nranges, MinimalTuple *end);

/*
 * The sort returns the rows of one of nranges ranges from now on, in order, and then none; legal
 * again for another range.  Each group is in one range (spec.ngrouped).
 * False, for all processes: the runs cannot be divided.  Then begin_merge is legal.
 */
extern bool gs_store_begin_groups(GsStore *store, int range, int nranges);

/* Sets how much memory a merge may take; if this is not called, as much as the sort. */
extern void gs_store_set_merge_memory(GsStore *store, int memory_kb);

#endif							/* GPUSORT_STORE_MERGE_H */
