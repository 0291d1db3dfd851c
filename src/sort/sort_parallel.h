/*-------------------------------------------------------------------------
 *
 * sort_parallel.h
 *	  A GpuSort in a parallel plan: one participant returns the rows of all.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_PARALLEL_H
#define GPUSORT_SORT_PARALLEL_H

#include "access/parallel.h"
#include "executor/execdesc.h"
#include "nodes/extensible.h"

#include "sort/sort_state.h"

/*
 * Will EXPLAIN ANALYZE, or what is like it, show how the participants of a query that starts have
 * worked?
 */
extern bool gs_sort_parallel_makes_reports(const QueryDesc *query, int eflags);

/*
 * Then lets it show how each of them sorts.  To be called before a query with a GpuSort starts,
 * which gets a copy of its plan.
 */
extern void gs_sort_parallel_prepare(QueryDesc *query);

/* After a query has started: its GpuSorts learn which Gather Merge they are below. */
extern void gs_sort_parallel_started(QueryDesc *query);

/* A node has begun: it reports, if its plan was prepared. */
extern void gs_sort_parallel_begin(CustomScanState *node);

/* Is a node of any type shared with other processes? */
extern bool gs_sort_parallel_is_shared(const PlanState *node);

/* Callbacks of CustomExecMethods, which the executor calls while the plan is parallel_aware. */
extern Size gs_sort_parallel_estimate(CustomScanState *node, ParallelContext *pcxt);
extern void gs_sort_parallel_initialize(CustomScanState *node, ParallelContext *pcxt,
										void *coordinate);
extern void gs_sort_parallel_reinitialize(CustomScanState *node, ParallelContext *pcxt,
										  void *coordinate);
extern void gs_sort_parallel_attach(CustomScanState *node, shm_toc *toc, void *coordinate);
extern void gs_sort_parallel_shutdown(CustomScanState *node);

/* Is one device job for nrows rows, of all participants together, faster? */
extern bool gs_sort_parallel_pays(const GsSortColumn *columns, int ncolumns, int nparticipants,
								  double nrows);

/* Sets the shared memory of a sort that is not an executor node's.  Before it begins. */
extern void gs_sort_parallel_set_shared(GsSortState *state, GsShared *shared);

/*
 * A sort begins: determines its role, for which it may have to wait, and whether a serial one may
 * use a device of its own.
 */
extern void gs_sort_parallel_join(GsSortState *state);

/*
 * Opens the engine of a consumer or a producer.  NULL: it cannot be opened, and the role is SERIAL
 * from then on.
 */
extern GsEngine *gs_sort_parallel_open(GsSortState *state, const GsEngineRequest *request);

/* Does a participant need keys as a device does, because others have such keys? */
extern bool gs_sort_parallel_needs_full_keys(const GsSortState *state);

/*
 * The sort is performed.  Where rows are sent through streams, a producer returns none, if it can
 * send its rows; the leader waits until it is known which producers do, and merges.
 */
extern void gs_sort_parallel_gather(GsSortState *state);

/* The node ends: a producer sends its rows; the leader takes no more. */
extern void gs_sort_parallel_end(GsSortState *state);

/*
 * For a performed sort whose rows are all in the consumer's job: prepares to read those of all
 * there.  False: it cannot.  Once the consumer's sort has been performed, begin_reading makes its
 * nrows rows those of this sort.
 */
extern bool gs_sort_parallel_open_reader(GsSortState *state);
extern void gs_sort_parallel_begin_reading(GsSortState *state, uint64 nrows);

/* Leaves a shared job; the role is SERIAL from then on. */
extern void gs_sort_parallel_leave(GsSortState *state);

/*
 * Ends the input of a shared job, if there is one: this participant sends no more rows.  A consumer
 * waits for the producers, whose rows are its own then.  The role is SERIAL from then on.  OK or
 * FAILED.
 */
extern GsStatus gs_sort_parallel_end_input(GsSortState *state);

/*
 * The engine failed, perhaps because another participant did, whose error says more: waits for it,
 * as it cancels this process.  Returns if there is none.
 */
extern void gs_sort_parallel_wait_for_error(GsSortState *state);

/* Stores how this participant sorted, for EXPLAIN in the leader. */
extern void gs_sort_parallel_report(GsSortState *state, const GsSortSummary *summary);

#endif							/* GPUSORT_SORT_PARALLEL_H */
