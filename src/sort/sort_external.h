/*-------------------------------------------------------------------------
 *
 * sort_place.h
 *	  Room for the rows of a sort: in an engine, on a device, in runs on disk.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_PLACE_H
#define GPUSORT_SORT_PLACE_H

#include "sort/sort_state.h"

/*
 * Begins another batch for a row, wherever there is room for one.  Returns
 * NULL, or why there is none, for people.
 */
extern const char *gs_sort_begin_batch(GsSortState *state, Size row_bytes, GsBatch **batch);

/* Will the rows move to a device, as far as one can know?  It can compare nothing but keys. */
extern bool gs_sort_device_is_likely(const GsSortState *state);

/* Moves the rows to a device if that pays; loaded: no more will come. */
extern void gs_sort_consider_device(GsSortState *state, bool loaded);

/* May the rows become a run? */
extern bool gs_sort_may_spill(const GsSortState *state);

/*
 * Makes the engine's rows a run, and goes on with an empty engine, which has room for a
 * row of row_bytes.
 */
extern GsStatus gs_sort_spill(GsSortState *state, Size row_bytes);

/* How much memory an engine may take that begins now. */
extern Size gs_sort_engine_limit(const GsSortState *state);

/*
 * No further row goes into a job that other participants have a part in, and
 * those that it has are where they belong: with its owner.  OK or FAILED.
 */
extern GsStatus gs_sort_end_shared_input(GsSortState *state);

/*
 * Writes the last run and begins to merge them all, unless others' are to join them.  Where that was a
 * device's, some rows may be left for another.
 */
extern GsStatus gs_sort_merge_runs(GsSortState *state);

/*
 * What that is made of, for a sort whose runs are merged with others' (index_gather.c).  begin_runs
 * has a place for runs, if there is none; append_run writes the rows that the engine has sorted there:
 * OK or FAILED; begin_merge has them handed out from now on.
 */
extern void gs_sort_begin_runs(GsSortState *state);
extern GsStatus gs_sort_append_run(GsSortState *state);
extern void gs_sort_begin_merge(GsSortState *state);

/* The order of runs without keys. */
extern GsMergeOrder gs_sort_compared_order(GsSortState *state);

/*
 * Proves the order that the engine found, if its keys are only a hint, unless the rows
 * came in order, or all were compared.  If it does not hold, the CPU engine sorts by
 * comparisons what is mostly in order.  DISPROVED: only a tuplesort will do.
 */
extern GsStatus gs_sort_verify_order(GsSortState *state);

/* A GsRowCompare of rows whose keys are equal; the argument is the state. */
extern int	gs_sort_compare_tied(void *arg, const void *a, const void *b);

/* Has rows with equal keys compared, since a key was cut. */
extern void gs_sort_compare_ties(GsSortState *state);

/* Why an engine gave a status other than OK. */
extern const char *gs_sort_status_reason(const GsSortState *state, GsStatus status);

#endif							/* GPUSORT_SORT_PLACE_H */
