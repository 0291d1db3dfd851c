/*-------------------------------------------------------------------------
 *
 * sort_restart.c
 *	  Prepares a sort to read its rows again after the device failed.
 *
 * If gpusortd or the device fails while rows are read or sorted, the rows that were
 * sent are lost, but none has been returned.  So the child can run again, and the CPU
 * engine sorts, unless that could be noticed: the planner decides whether the query is
 * repeatable (gs_plan_is_repeatable()), and a scan or a sort that is shared with other
 * processes cannot run again, because they have read a part of it.  The loop is
 * gs_sort_read_input() of sort_input.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sort/sort_init.h"
#include "sort/sort_parallel.h"
#include "sort/sort_restart.h"
#include "store/store_failure.h"

#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "utils/memutils.h"

static bool
is_shared(PlanState *node, void *context)
{
	return gs_sort_parallel_is_shared(node) || planstate_tree_walker(node, is_shared, context);
}

const char *
gs_sort_restart(GsSortState *state)
{
	PlanState  *child = state->spec.child;
	char	   *reason;

	gs_sort_parallel_wait_for_error(state);
	if (!state->spec.repeatable || is_shared(child, NULL))
		gs_store_report_failure(&state->store);
	gs_store_log_failure(&state->store);
	reason = MemoryContextStrdup(state->spec.parent_context, state->store.engine->stats.detail);
	gs_sort_clear(state);
	ExecReScan(child);
	return reason;
}
