/*-------------------------------------------------------------------------
 *
 * sort_external.h
 *	  A sort of more rows than memory holds: runs are written, then merged.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_EXTERNAL_H
#define GPUSORT_SORT_EXTERNAL_H

#include "sort/sort_state.h"

/* ------------------------------------------------------- within a sort */

/* May the rows become a run? */
extern bool gs_sort_may_spill(const GsSortState *state);

/*
 * Writes the engine's rows as a run; an empty CPU engine, which allows a row of row_bytes, takes its
 * place.  FULL or DISPROVED: the rows are still in the engine, and cannot become a run.
 */
extern GsStatus gs_sort_spill(GsSortState *state, Size row_bytes);

/*
 * No more rows go into a job that is shared with other participants, and those in it belong to its
 * consumer.  A producer's sort continues with the rows that the device did not take.  OK or FAILED.
 */
extern GsStatus gs_sort_end_shared_input(GsSortState *state);

/*
 * Writes the engine's rows as the last run and begins to merge all runs, unless the caller does
 * (spec.merged_elsewhere).
 */
extern GsStatus gs_sort_merge_runs(GsSortState *state);

/* -------------------------------------------- the runs of several sorts */

/*
 * A parallel index build merges the runs of several processes.  The legal calls, in order, after
 * gs_sort_perform():
 *
 *	  worker	make_runs share_runs
 *	  leader	make_runs { adopt_runs } begin_merge
 *
 * make_runs turns all rows into runs, none of which may have been returned.  False: the engine
 * failed and has lost the rows.
 */
extern bool gs_sort_make_runs(GsSortState *state);

/* Describes the runs, in shared memory.  They stay in the files of spec.run_files. */
extern void gs_sort_share_runs(GsSortState *state, GsSharedRuns *runs);

/* Adds the runs of another process; their files are at `where`.  Merges by keys if both have them. */
extern void gs_sort_adopt_runs(GsSortState *state, const GsSharedRuns *runs,
							   const GsRunFiles *where);

/* The sort returns the rows of all its runs from now on, in order. */
extern void gs_sort_begin_merge(GsSortState *state);

/* How much memory a merge may take; if this is not called, as much as the sort. */
extern void gs_sort_limit_merge(GsSortState *state, int memory_kb);

#endif							/* GPUSORT_SORT_EXTERNAL_H */
