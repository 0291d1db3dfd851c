/*-------------------------------------------------------------------------
 *
 * plan_explain.c
 *	  EXPLAIN (GPUSORT): why Sorts of a plan are not GpuSorts.
 *
 * A plan has no place for the reasons, so EXPLAIN asks for them again.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pg_compat.h"
#include "plan/plan_explain.h"
#include "plan/plan_rewrite.h"

#include "commands/explain.h"
#include "nodes/execnodes.h"

static void
explain_sort(PlanState *node, ExplainState *es)
{
	if (IsA(node->plan, Sort) || IsA(node->plan, IncrementalSort))
		ExplainPropertyText("GpuSort Not Used",
							gs_plan_rewrite_why_not(es->pstmt, (Sort *) node->plan), es);
}

void
gs_plan_explain_install(void)
{
	gs_explain_add_option("gpusort", explain_sort);
}
