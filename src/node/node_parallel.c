/*-------------------------------------------------------------------------
 *
 * node_parallel.c
 *	  A GpuSort in a parallel plan, as the executor sees it.
 *
 * The executor gives a custom node shared memory only if its plan is parallel_aware.  A GpuSort
 * below a Gather Merge is, since its participants may share its sort (sort_parallel.c).
 *
 * EXPLAIN ANALYZE shows how each participant sorted, also where they share nothing, such as below a
 * merge join, as it does for a Sort.  So all GpuSorts of a parallel query that runs instrumented
 * are parallel_aware (gs_plan_with_reports()) until they are shut down.  EXPLAIN comes after that,
 * and prints the node as it was planned.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "node/node_gpusort.h"
#include "node/node_parallel.h"
#include "sort/sort_parallel.h"

#include "access/parallel.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"

/* Finds the GpuSorts of a Gather Merge, whose rows they return. */
static bool
find_sorts(PlanState *node, void *gather)
{
	if (gs_node_is_gpusort(node->plan))
		gs_sort_parallel_set_gather(gs_node_sort((CustomScanState *) node),
									((PlanState *) gather)->ps_ExprContext);
	return planstate_tree_walker(node, find_sorts, gather);
}

static bool
find_gathers(PlanState *node, void *context)
{
	if (IsA(node, GatherMergeState))
		(void) find_sorts(outerPlanState(node), node);
	/* another one below it, or in its subplans, has sorts of its own */
	return planstate_tree_walker(node, find_gathers, context);
}

void
gs_node_parallel_started(QueryDesc *query)
{
	if (query->plannedstmt->parallelModeNeeded && !IsParallelWorker())
		(void) find_gathers(query->planstate, NULL);
}

static bool
is_shared(PlanState *node, void *context)
{
	/* parallel_aware may only mean that a GpuSort reports */
	if (gs_node_is_gpusort(node->plan) ? gs_node_sort((CustomScanState *) node)->spec.may_share :
		node->plan->parallel_aware)
		return true;
	return planstate_tree_walker(node, is_shared, context);
}

bool
gs_node_is_shared(PlanState *node)
{
	return is_shared(node, NULL);
}

Size
gs_node_parallel_estimate(CustomScanState *node, ParallelContext *pcxt)
{
	return gs_sort_parallel_bytes(gs_node_sort(node), pcxt->nworkers + 1);
}

void
gs_node_parallel_initialize(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	/* without a segment there are no workers */
	gs_sort_parallel_create(gs_node_sort(node), coordinate, pcxt->nworkers + 1, pcxt->seg != NULL,
							node->ss.ps.state->es_query_dsa);
}

void
gs_node_parallel_reinitialize(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	gs_sort_parallel_recreate(gs_node_sort(node));
}

void
gs_node_parallel_attach(CustomScanState *node, shm_toc *toc, void *coordinate)
{
	gs_sort_parallel_attach(gs_node_sort(node), coordinate, node->ss.ps.state->es_query_dsa);
}

/* The shared memory is released before EXPLAIN runs.  A sort that runs again reports no more. */
void
gs_node_parallel_shutdown(CustomScanState *node)
{
	GsSortState *state = gs_node_sort(node);

	if (IsParallelWorker())
		return;
	/* the plan is a copy for this query, if it is parallel_aware only to report */
	if (!state->spec.may_share && node->ss.ps.plan->parallel_aware)
		node->ss.ps.plan->parallel_aware = false;
	gs_sort_parallel_detach(state);
}
