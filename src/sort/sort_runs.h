/*-------------------------------------------------------------------------
 *
 * sort_runs.h
 *	  Merges runs, of one sort or several.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_RUNS_H
#define GPUSORT_SORT_RUNS_H

#include "sort/sort_state.h"

/*
 * Writes the engine's rows as the last run and begins to merge all runs, unless the caller does
 * (spec.merged_elsewhere).
 */
extern GsStatus gs_sort_merge_runs(GsSortState *state);

/* -------------------------------------------- the runs of several sorts */

/*
 * Participants of a parallel plan or index build merge the runs of several processes.  The legal calls,
 * in order, after gs_sort_perform():
 *
 *	  make_runs [ share_runs ] { adopt_runs | adopt_stream } [ begin_merge | begin_range ]
 *	  make_runs complete_runs [ describe_rows ] { adopt_stream } [ begin_merge ]
 *
 * make_runs turns all rows into runs, none of which may have been returned.  False: the engine
 * failed and has lost the rows.
 */
extern bool gs_sort_make_runs(GsSortState *state);

/*
 * Turns rows that are all in a CPU engine into a run without a copy: it is read from the engine,
 * and only a stream can share it.
 */
extern void gs_sort_make_run_of_engine(GsSortState *state);

/* Describes the runs, in shared memory.  They stay in the files of spec.run_files.  Optional. */
extern void gs_sort_share_runs(GsSortState *state, GsSharedRuns *runs);

/* Adds the runs of another process; their files are at `where`.  Merges by keys if both have them. */
extern void gs_sort_adopt_runs(GsSortState *state, const GsSharedRuns *runs,
							   const GsRunPlace *where);

/* Decides whether rows have keys, and merges some of the runs if there are too many for one merge. */
extern void gs_sort_complete_runs(GsSortState *state);

/* Describes the rows of all runs, for a stream. */
extern void gs_sort_describe_rows(GsSortState *state, GsSharedRows *rows);

/* Does adopt_stream merge these rows in the way in which they were merged: by the same keys, or both without keys? */
extern bool gs_sort_merges_alike(const GsSortState *state, const GsSharedRows *rows);

/* Adds the rows that another process sends, as a run; NULL: they come with those of another stream. */
extern void gs_sort_adopt_stream(GsSortState *state, const GsSharedRows *rows, GsRunStream *stream,
								 dsa_area *memory);

/* The sort returns the rows of all its runs from now on, in order. */
extern void gs_sort_begin_merge(GsSortState *state);

/*
 * The sort returns the rows of all its runs from now on, in order, from the first row of one of
 * nranges ranges on; see gs_run_set_begin_range().  The caller ends with the row that follows the
 * range, *end, and verifies what is returned.
 */
extern bool gs_sort_begin_range(GsSortState *state, int range, int nranges, MinimalTuple *end);

/* Sets how much memory a merge may take; if this is not called, as much as the sort. */
extern void gs_sort_set_merge_memory(GsSortState *state, int memory_kb);

#endif							/* GPUSORT_SORT_RUNS_H */
