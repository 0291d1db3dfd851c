/*-------------------------------------------------------------------------
 *
 * sort_parallel.h
 *	  A GpuSort in a parallel plan: one job for the rows of all participants.
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
 * EXPLAIN ANALYZE is to show how each participant sorted.  To be called before a query starts: it
 * may get a plan of its own.
 */
extern void gs_sort_parallel_prepare(QueryDesc *query, int eflags);

/* A node has begun: has it report, if its plan was prepared. */
extern void gs_sort_parallel_begin(CustomScanState *node);

/* Is a node, whatever it is, shared with other processes? */
extern bool gs_sort_parallel_is_shared(const PlanState *node);

/* The executor's calls, of CustomExecMethods: while the plan is parallel_aware only. */
extern Size gs_sort_parallel_estimate(CustomScanState *node, ParallelContext *pcxt);
extern void gs_sort_parallel_initialize(CustomScanState *node, ParallelContext *pcxt,
										void *coordinate);
extern void gs_sort_parallel_reinitialize(CustomScanState *node, ParallelContext *pcxt,
										  void *coordinate);
extern void gs_sort_parallel_attach(CustomScanState *node, shm_toc *toc, void *coordinate);
extern void gs_sort_parallel_shutdown(CustomScanState *node);

/* Had participants better share a device's job for so many rows in all? */
extern bool gs_sort_parallel_pays(const GsSortColumn *columns, int ncolumns, int nparticipants,
								  double nrows);

/*
 * A load begins: finds the node's role, which may take a while, and be ALONE; and whether
 * it may have a device to itself then.
 */
extern void gs_sort_parallel_join(GsSortState *state);

/*
 * The engine that the role has the rows go to; NULL if that cannot be, or if the
 * role is ALONE, which it is from then on.
 */
extern GsEngine *gs_sort_parallel_open(GsSortState *state, const GsJob *job);

/* The node has no part in a shared job, whatever its role was. */
extern void gs_sort_parallel_leave(GsSortState *state);

/*
 * A feeder ends its feed, having pushed what it has: those rows are the owner's.
 * gs_engine_next_batch() then gives the ones that the device did not take.  OK or FAILED.
 */
extern GsStatus gs_sort_parallel_end_producer(GsSortState *state);

/* The owner ends its input: waits for the feeders, whose rows are its own then. */
extern void gs_sort_parallel_end_input(GsSortState *state);

/*
 * The engine failed, and that may be another participant's error, which says more:
 * lets it come first.  Returns if none does.
 */
extern void gs_sort_parallel_wait_for_error(GsSortState *state);

/* How a participant's sort went, for the leader's EXPLAIN. */
extern void gs_sort_parallel_report(GsSortState *state, const GsSortSummary *summary);

#endif							/* GPUSORT_SORT_PARALLEL_H */
