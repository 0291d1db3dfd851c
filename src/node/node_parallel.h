/*-------------------------------------------------------------------------
 *
 * node_parallel.h
 *	  A GpuSort in a parallel plan, as the executor sees it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_NODE_PARALLEL_H
#define GPUSORT_NODE_PARALLEL_H

#include "access/parallel.h"
#include "executor/execdesc.h"
#include "nodes/extensible.h"

/* Callbacks of CustomExecMethods, which the executor calls while the plan is parallel_aware. */
extern Size gs_node_parallel_estimate(CustomScanState *node, ParallelContext *pcxt);
extern void gs_node_parallel_initialize(CustomScanState *node, ParallelContext *pcxt,
										void *coordinate);
extern void gs_node_parallel_reinitialize(CustomScanState *node, ParallelContext *pcxt,
										  void *coordinate);
extern void gs_node_parallel_attach(CustomScanState *node, shm_toc *toc, void *coordinate);
extern void gs_node_parallel_shutdown(CustomScanState *node);

/* After a query has started: its GpuSorts learn which Gather Merge they are below. */
extern void gs_node_parallel_started(QueryDesc *query);

/* Does a node, or one below it, work on a part of what other processes work on? */
extern bool gs_node_is_shared(PlanState *node);

#endif							/* GPUSORT_NODE_PARALLEL_H */
