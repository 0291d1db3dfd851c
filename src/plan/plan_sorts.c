/*-------------------------------------------------------------------------
 *
 * plan_sorts.c
 *	  The sorts of a plan, and what they cost.
 *
 * For gpusort_advise(), which compares the plans of a statement with gpusort and
 * without.  The planner knows the cost of a GpuSort only at the top of a query, and a
 * cautious one (plan_cost.c); all other GpuSorts of a plan have PostgreSQL's cost.  The
 * costs that are expected by what was measured are lower, and the differences are
 * counted here.  With a LIMIT little was measured, so the cautious cost is the least.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "node/node_gpusort.h"
#include "plan/plan_cost.h"
#include "plan/plan_rewrite.h"
#include "plan/plan_sorts.h"
#include "plan/plan_walk.h"
#include "sort_parts/sort_device.h"

#include "miscadmin.h"

typedef struct Walk
{
	PlannedStmt *statement;
	GsPlanSorts *sorts;
	Bitmapset  *changing;		/* the parameters that nested loops above change */
	double		nloops;			/* how often they change */
} Walk;

static bool walk_plan(Plan *plan, void *walk);

bool
gs_plan_sorts_on_device(const GsSortColumn *columns, int ncolumns, double nrows)
{
	return gs_device_is_likely(nrows) && !gs_key_columns_leave_ties(columns, ncolumns);
}

/* How often a node runs, as far as it can be told from the plan; a correlated subquery counts once. */
static double
loops(const Plan *plan, const Walk *walk)
{
	return bms_overlap(plan->extParam, walk->changing) ? walk->nloops : 1;
}

static void
set_why_not(GsPlanSorts *sorts, double cost, const char *why_not)
{
	if (sorts->why_not != NULL && cost <= sorts->why_not_cost)
		return;
	sorts->why_not = why_not;
	sorts->why_not_cost = cost;
}

/* What a GpuSort saves beyond the cost of its plan node. */
static void
add_gpusort(const CustomScan *scan, double cost, double nloops, GsPlanSorts *sorts)
{
	const double nrows = scan->scan.plan.lefttree->plan_rows;
	int			ncolumns;
	const GsSortColumn *columns = gs_node_columns(scan, &ncolumns);
	const GsPlanEstimate estimate = {.nrows = nrows, .ncolumns = ncolumns};
	bool		on_device;
	double		expected;

	sorts->nreplaced++;
	if (gs_key_columns_are_compared(columns, ncolumns))
	{
		set_why_not(sorts, cost * nloops, "a GpuSort by comparisons, whose gain is not known");
		return;
	}
	on_device = gs_plan_sorts_on_device(columns, ncolumns, nrows);
	expected = gs_plan_cost_expected(cost, nrows, on_device);
	/* the cost of the node may be that of a GpuSort already */
	if (gs_node_presorted_columns(scan) > 0)
		;						/* PostgreSQL's, of its incremental sort */
	else if (scan->custom_exprs == NIL)
		expected = Max(expected, gs_plan_cost_expected(gs_plan_cost_comparisons(nrows), nrows, on_device));
	else
		expected = Max(expected, gs_plan_cost_startup(&estimate, on_device));
	if (expected < cost)
		sorts->saved += (cost - expected) * nloops;
	else if (cost < 0.99 * expected && scan->custom_exprs != NIL)
		set_why_not(sorts, cost * nloops, "a GpuSort of which the LIMIT needs too few rows for a known gain");
}

/* The inner side of a nested loop runs again for each outer row whose values it has as parameters. */
static void
walk_nested_loop(NestLoop *join, Walk walk)
{
	ListCell   *lc;

	(void) walk_plan(outerPlan(join), &walk);
	walk.nloops = loops(outerPlan(join), &walk) * Max(outerPlan(join)->plan_rows, 1);
	walk.changing = bms_copy(walk.changing);
	foreach(lc, join->nestParams)
		walk.changing = bms_add_member(walk.changing, lfirst_node(NestLoopParam, lc)->paramno);
	(void) walk_plan(innerPlan(join), &walk);
}

/* Adds a Sort or a GpuSort. */
static void
add_sort(Plan *plan, const Walk *walk)
{
	GsPlanSorts *sorts = walk->sorts;
	const double nloops = loops(plan, walk);
	const double input = plan->lefttree->total_cost;
	const bool	incremental = IsA(plan, IncrementalSort) ||
		(gs_node_is_gpusort(plan) && gs_node_presorted_columns((CustomScan *) plan) > 0);
	const double cost = (incremental ? plan->total_cost : plan->startup_cost) - input;

	sorts->nsorts++;
	sorts->cost += cost * nloops;
	if (gs_node_is_gpusort(plan))
		add_gpusort((CustomScan *) plan, cost, nloops, sorts);
	else
		set_why_not(sorts, cost * nloops, gs_plan_rewrite_why_not(walk->statement, (Sort *) plan));
}

static bool
walk_plan(Plan *plan, void *walk)
{
	if (IsA(plan, NestLoop))
	{
		check_stack_depth();
		walk_nested_loop((NestLoop *) plan, *(const Walk *) walk);
		return false;
	}
	if (IsA(plan, Sort) || IsA(plan, IncrementalSort) || gs_node_is_gpusort(plan))
		add_sort(plan, walk);
	return gs_plan_walk_children(plan, walk_plan, walk);
}

void
gs_plan_sorts_add(PlannedStmt *statement, GsPlanSorts *sorts)
{
	Walk		walk = {.statement = statement, .sorts = sorts, .nloops = 1};

	(void) gs_plan_walk_statement(statement, walk_plan, &walk);
}
