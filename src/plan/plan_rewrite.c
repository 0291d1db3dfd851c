/*-------------------------------------------------------------------------
 *
 * plan_rewrite.c
 *	  Changes a finished plan: its Sorts and Incremental Sorts become GpuSorts, which may replace
 *	  the nodes above them, and medians of rows in the middle of each group min() and max().
 *
 * set_plan_references() has run, and determines the form of the new node.  The target list of a
 * Sort holds Vars that refer to its child (OUTER_VAR).  A CustomScan without a relation refers to
 * its own custom_scan_tlist (INDEX_VAR), so the old list becomes that one, and the new list
 * refers to it, entry by entry.  EXPLAIN and the executor follow both.  Constants stay constants
 * in both lists, because the executor checks them where the node feeds an INSERT.
 *
 * The child stays in lefttree, where EXPLAIN and rescans with changed parameters look for it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "guc.h"
#include "node/node_gpusort.h"
#include "pg_compat.h"
#include "plan/plan.h"
#include "plan/plan_cost.h"
#include "plan/plan_groups.h"
#include "plan/plan_medians.h"

#include "commands/explain.h"
#include "executor/execdesc.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"

/* -------------------------------------------------------------------- a walk */

/* True: the walk ends.  It calls walk_children() for the nodes below this one. */
typedef bool (*PlanWalker) (Plan *plan, void *context);

static bool
walk_list(List *plans, PlanWalker walker, void *context)
{
	ListCell   *lc;

	foreach(lc, plans)
	{
		if (lfirst(lc) != NULL && walker(lfirst(lc), context))
			return true;
	}
	return false;
}

/* The children that are not in lefttree and righttree. */
static List *
other_children(Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_Append:
			return ((Append *) plan)->appendplans;
		case T_MergeAppend:
			return ((MergeAppend *) plan)->mergeplans;
		case T_SubqueryScan:
			return list_make1(((SubqueryScan *) plan)->subplan);
		case T_CustomScan:
			return ((CustomScan *) plan)->custom_plans;
		default:
			return NIL;
	}
}

/*
 * Calls a walker for each child of a node, but not for those of a foreign scan, whose plans are
 * never executed as such.  Returns true if it did.
 */
static bool
walk_children(Plan *plan, PlanWalker walker, void *context)
{
	check_stack_depth();
	if (IsA(plan, ForeignScan))
		return false;
	return walk_list(other_children(plan), walker, context) ||
		(plan->lefttree != NULL && walker(plan->lefttree, context)) ||
		(plan->righttree != NULL && walker(plan->righttree, context));
}

/* Calls a walker for the plan of a statement and for those of its subqueries. */
static bool
walk_statement(const PlannedStmt *statement, PlanWalker walker, void *context)
{
	return (statement->planTree != NULL && walker(statement->planTree, context)) ||
		walk_list(statement->subplans, walker, context);
}

/* --------------------------------------------- subqueries that may end early */

static bool
ends_with_first(const SubPlan *subquery)
{
	return subquery->subLinkType == EXISTS_SUBLINK ||
		((subquery->subLinkType == ANY_SUBLINK || subquery->subLinkType == ALL_SUBLINK) &&
		 !subquery->useHashTable);
}

static bool
add_subqueries(Node *expression, void *numbers)
{
	Bitmapset **found = numbers;

	if (expression == NULL)
		return false;
	if (IsA(expression, SubPlan) && ends_with_first((SubPlan *) expression))
		*found = bms_add_member(*found, ((SubPlan *) expression)->plan_id);
	return expression_tree_walker(expression, add_subqueries, numbers);
}

/* Those of other expressions, such as of join conditions, are rare. */
static bool
add_subqueries_of_node(Plan *plan, void *numbers)
{
	(void) add_subqueries((Node *) plan->targetlist, numbers);
	(void) add_subqueries((Node *) plan->qual, numbers);
	(void) add_subqueries((Node *) plan->initPlan, numbers);
	return walk_children(plan, add_subqueries_of_node, numbers);
}

/*
 * The numbers of the subqueries of a statement of which only the first rows may be needed, because
 * an EXISTS, or a comparison with the rows one by one, ends with the first one that decides it.
 */
static Bitmapset *
subqueries_that_may_stop(const PlannedStmt *statement)
{
	Bitmapset  *numbers = NULL;

	if (statement->subplans != NIL)
		(void) walk_statement(statement, add_subqueries_of_node, &numbers);
	return numbers;
}

/* ------------------------------------------------------------------- rewrite */

/* Constants of the rewrite of a plan. */
typedef struct Rewrite
{
	const GsReplaceSettings *settings;
	bool		repeatable;

	/* not NULL: replaces nothing, but finds this Sort, and why it is not replaced */
	const Sort *sort;
	char	  **why_not;
} Rewrite;

static Plan *rewrite_plan(Plan *plan, GsPlanLimit bound, const Rewrite *rewrite);

/* False: it reads one table, and asks for no order. */
static bool
may_sort(const Query *query)
{
	return query->sortClause != NIL || query->distinctClause != NIL || query->groupClause != NIL ||
		query->hasAggs || query->hasWindowFuncs || query->hasSubLinks || query->cteList != NIL ||
		list_length(query->rtable) != 1 ||
		linitial_node(RangeTblEntry, query->rtable)->rtekind != RTE_RELATION;
}

/*
 * A query that only reads, without volatile functions.
 *
 * To look for these takes 1.5 % of the instructions of a SELECT of one row by its key, so it
 * is not done where there will be no sort (callgrind, PostgreSQL 15.20, 2026-11-24).
 */
bool
gs_plan_is_repeatable(Query *query)
{
	return query->commandType == CMD_SELECT && !query->hasModifyingCTE && query->rowMarks == NIL &&
		may_sort(query) && !contain_volatile_functions((Node *) query);
}

static void
rewrite_statement(PlannedStmt *statement, bool may_stop, const Rewrite *rewrite)
{
	const Bitmapset *may_stop_too = subqueries_that_may_stop(statement);
	GsPlanLimit bound = gs_plan_limit_none;
	ListCell   *lc;

	bound.may_stop = may_stop;
	statement->planTree = rewrite_plan(statement->planTree, bound, rewrite);
	foreach(lc, statement->subplans)
	{
		bound.may_stop = bms_is_member(foreach_current_index(lc) + 1, may_stop_too);
		lfirst(lc) = rewrite_plan(lfirst(lc), bound, rewrite);
	}
}

void
gs_plan_rewrite(PlannedStmt *statement, const GsReplaceSettings *settings, bool repeatable,
				bool may_stop)
{
	const Rewrite rewrite = {.settings = settings, .repeatable = repeatable};

	rewrite_statement(statement, may_stop, &rewrite);
}

/* The columns of a Sort's ORDER BY. */
static GsSortColumn *
sort_columns(const Sort *sort)
{
	GsSortColumn *columns = palloc(sizeof(GsSortColumn) * sort->numCols);

	for (int i = 0; i < sort->numCols; i++)
	{
		columns[i].attno = sort->sortColIdx[i];
		columns[i].type = exprType((Node *) list_nth_node(TargetEntry, sort->plan.targetlist,
														  columns[i].attno - 1)->expr);
		columns[i].sort_operator = sort->sortOperators[i];
		columns[i].collation = sort->collations[i];
		columns[i].nulls_first = sort->nullsFirst[i];
	}
	return columns;
}

/* By how many columns the input of a Sort is sorted; 0: unknown. */
static int
presorted_columns(const Sort *sort)
{
	return IsA(sort, IncrementalSort) ? ((const IncrementalSort *) sort)->nPresortedCols : 0;
}

/* Makes the expressions of a target list refer to those in the same places of another one. */
static void
refer_to(List *targetlist, int varno)
{
	ListCell   *lc;

	foreach(lc, targetlist)
	{
		TargetEntry *entry = lfirst_node(TargetEntry, lc);

		if (!IsA(entry->expr, Const))
			entry->expr = (Expr *) makeVar(varno, entry->resno, exprType((Node *) entry->expr),
										   exprTypmod((Node *) entry->expr),
										   exprCollation((Node *) entry->expr), 0);
	}
}

/* Makes the GpuSort that replaces a Sort. */
static Plan *
replace_sort(Sort *sort, const GsSortColumn *columns, const GsPlanLimit *bound, bool repeatable)
{
	const int	npresorted = presorted_columns(sort);
	CustomScan *scan = makeNode(CustomScan);
	List	   *targetlist = NIL;
	ListCell   *lc;

	Assert(sort->plan.qual == NIL && sort->plan.righttree == NULL);
	/* costs, parameters, node id and child are the Sort's */
	memcpy(&scan->scan.plan, &sort->plan, sizeof(Plan));
	NodeSetTag(scan, T_CustomScan);
	scan->scan.scanrelid = 0;
	if (npresorted == 0)
		scan->flags = CUSTOMPATH_SUPPORT_BACKWARD_SCAN | CUSTOMPATH_SUPPORT_MARK_RESTORE;
	scan->custom_relids = NULL;
	scan->custom_scan_tlist = sort->plan.targetlist;
	scan->custom_exprs = gs_plan_limit_exprs(bound);
	scan->custom_private = gs_node_private(columns, sort->numCols, npresorted, repeatable);
	scan->methods = &gs_node_scan_methods;

	foreach(lc, sort->plan.targetlist)
		targetlist = lappend(targetlist, flatCopyTargetEntry(lfirst_node(TargetEntry, lc)));
	refer_to(targetlist, INDEX_VAR);
	scan->scan.plan.targetlist = targetlist;
	return (Plan *) scan;
}

static void
rewrite_list(List *plans, GsPlanLimit bound, const Rewrite *rewrite)
{
	ListCell   *lc;

	foreach(lc, plans)
		lfirst(lc) = rewrite_plan(lfirst(lc), bound, rewrite);
}

/* Is it cheap enough that one participant computes a Result for all rows? */
static bool
may_emit_from_one(const Plan *result)
{
	QualCost	cost;

	cost_qual_eval(&cost, result->targetlist, NULL);
	return !gs_plan_cost_is_expensive(cost.per_tuple);
}

/*
 * Makes the participants below a Gather Merge sort their rows together if it merges their sorts:
 * then it does not matter which of them returns which rows.  Not below a LIMIT, where each drops
 * most of its own rows; nor if much is computed from each row afterward, which one participant
 * would have to do alone; nor batch by batch.
 */
static void
share_sort(Plan *plan)
{
	while (IsA(plan, Result) && plan->lefttree != NULL &&
		   ((Result *) plan)->resconstantqual == NULL && may_emit_from_one(plan))
		plan = plan->lefttree;
	if (gs_node_is_gpusort(plan) && ((CustomScan *) plan)->custom_exprs == NIL &&
		gs_node_presorted_columns((CustomScan *) plan) == 0)
		gs_sort_node_share((CustomScan *) plan);
}

/* Does a node return only the rows in the middle of each group? */
static bool
returns_middle(const Plan *plan)
{
	return gs_node_is_gpusort(plan) &&
		gs_node_group_limit((const CustomScan *) plan) == GS_GROUP_MIDDLE;
}

/* No bound, for a node that is read to the end only if the one above is. */
static GsPlanLimit
unbounded(const GsPlanLimit *bound)
{
	GsPlanLimit none = gs_plan_limit_none;

	none.may_stop = bound->may_stop;
	return none;
}

/* Does a node read its input to the end before it returns a row? */
static bool
reads_all_first(const Plan *plan)
{
	return IsA(plan, Sort) || IsA(plan, Hash) ||
		(IsA(plan, Agg) && (((const Agg *) plan)->aggstrategy == AGG_PLAIN ||
						   ((const Agg *) plan)->aggstrategy == AGG_HASHED));
}

/*
 * Does PostgreSQL sort values without rows, and gpusort compare them, unless it guesses their
 * order?  1 M integers by a C function take 180 ms, and 230 or 130 ms (Zen 5, PostgreSQL 15.20,
 * 2026-11-24).
 */
static bool
is_faster_without_rows(const Sort *sort, const GsSortColumn *columns)
{
	return list_length(sort->plan.targetlist) == 1 && sort->numCols == 1 &&
		get_typbyval(columns[0].type) && gs_key_columns_traits(columns, 1).compared;
}

/* Why a Sort or an Incremental Sort is not replaced; NULL: it is. */
static char *
why_not(const Sort *sort, const GsSortColumn *columns, const GsPlanLimit *bound,
		const GsReplaceSettings *settings)
{
	const Plan *plan = &sort->plan;
	const Plan *input = plan->lefttree;
	char	   *reason =
		gs_plan_replace_why_not(settings, columns, sort->numCols, input->plan_rows, bound);
	double		group_rows;

	if (reason == NULL && !settings->force && is_faster_without_rows(sort, columns))
		return "a single column that is passed by value and only compared";
	if (reason != NULL || !IsA(plan, IncrementalSort))
		return reason;
	group_rows = gs_plan_cost_group_rows(plan->startup_cost, input->startup_cost,
										 input->total_cost, input->plan_rows);
	return gs_plan_replace_why_not_groups(settings, columns, sort->numCols, presorted_columns(sort),
										  group_rows, bound);
}

/*
 * Rewrites a tree and returns its root.  A bound passes through the same nodes
 * as ExecSetTupleBound().
 *
 * Not visited: the Sorts in Agg.chain, which are parameters of the Agg and are
 * never executed; the local join plan of a foreign scan; the children of other
 * extensions' nodes, which may depend on their type.
 */
static Plan *
rewrite_plan(Plan *plan, GsPlanLimit bound, const Rewrite *rewrite)
{
	GsPlanLimit child_bound = unbounded(&bound);
	GsPlanLimit right_bound = child_bound;

	if (plan == NULL)
		return NULL;
	check_stack_depth();

	switch (nodeTag(plan))
	{
		case T_ForeignScan:
			return plan;
		case T_CustomScan:
			if (!gs_node_is_gpusort(plan))
				return plan;
			/* a GpuSort by ranges has the expressions of its child; later, window functions, too */
			if (gs_node_window_functions((CustomScan *) plan) == NIL)
				refer_to(((CustomScan *) plan)->custom_scan_tlist, OUTER_VAR);
			break;
		case T_Append:
			rewrite_list(((Append *) plan)->appendplans, bound, rewrite);
			break;
		case T_MergeAppend:
			rewrite_list(((MergeAppend *) plan)->mergeplans, bound, rewrite);
			break;
		case T_SubqueryScan:
			{
				SubqueryScan *scan = (SubqueryScan *) plan;

				scan->subplan = rewrite_plan(scan->subplan,
											 plan->qual == NIL ? bound : child_bound,
											 rewrite);
				break;
			}
		case T_Limit:
			child_bound = gs_plan_limit_of_clauses(((Limit *) plan)->limitOption,
												   ((Limit *) plan)->limitCount,
												   ((Limit *) plan)->limitOffset);
			child_bound.may_stop = true;
			break;
		case T_Result:
			child_bound = bound;
			break;
		case T_Gather:
		case T_GatherMerge:
			child_bound = gs_plan_limit_in_worker(bound);
			break;
		case T_NestLoop:
			right_bound.may_stop |= ((NestLoop *) plan)->join.inner_unique ||
				((NestLoop *) plan)->join.jointype == JOIN_SEMI ||
				((NestLoop *) plan)->join.jointype == JOIN_ANTI;
			break;
		default:
			if (reads_all_first(plan))
				child_bound = gs_plan_limit_none;
			break;
	}
	plan->lefttree = rewrite_plan(plan->lefttree, child_bound, rewrite);
	plan->righttree = rewrite_plan(plan->righttree, right_bound, rewrite);
	if (IsA(plan, GatherMerge) && rewrite->sort == NULL)
		share_sort(plan->lefttree);
	if (IsA(plan, Agg) && rewrite->sort == NULL && returns_middle(plan->lefttree))
		gs_plan_medians_replace((Agg *) plan);
	if (rewrite->sort == NULL)
		plan = gs_plan_groups_replace(plan);

	if ((IsA(plan, Sort) || IsA(plan, IncrementalSort)) && plan->lefttree != NULL &&
		(rewrite->sort == NULL || rewrite->sort == (Sort *) plan))
	{
		Sort	   *sort = (Sort *) plan;
		GsSortColumn *columns = sort_columns(sort);
		char	   *reason = why_not(sort, columns, &bound, rewrite->settings);

		if (rewrite->sort != NULL)
			*rewrite->why_not = reason;
		else if (reason == NULL)
			return replace_sort(sort, columns, &bound, rewrite->repeatable);
		else if (rewrite->settings->debug_plan)
			ereport(NOTICE,
					(errmsg("GpuSort not used: %s", reason)));
	}
	return plan;
}

/* ------------------------------------------------------------------- EXPLAIN */

/*
 * Why a Sort of a plan, which was rewritten, is not a GpuSort: a phrase that starts in lower case.
 * By the current settings, which may differ from those of the planner.
 */
static const char *
why_not_replaced(PlannedStmt *statement, const Sort *sort)
{
	const GsReplaceSettings settings = gs_replace_settings();
	char	   *why_not = "another extension's node is above the sort";
	const Rewrite rewrite = {.settings = &settings, .sort = sort, .why_not = &why_not};

	if (!settings.enabled)
		return "gpusort.enabled is off";
	rewrite_statement(statement, false, &rewrite);
	/* the statement does not say whether it was planned for its first rows */
	if (why_not == NULL && IsA(sort, IncrementalSort))
		rewrite_statement(statement, true, &rewrite);
	return why_not != NULL ? why_not :
		"settings of gpusort have changed since the query was planned";
}

/* A plan has no place for the reasons, so EXPLAIN asks for them again. */
static void
explain_sort(PlanState *node, ExplainState *es)
{
	if (IsA(node->plan, Sort) || IsA(node->plan, IncrementalSort))
		ExplainPropertyText("GpuSort Not Used",
							why_not_replaced(es->pstmt, (Sort *) node->plan), es);
}

void
gs_plan_explain_install(void)
{
	gs_explain_add_option("gpusort", explain_sort);
}

/* For EXPLAIN ANALYZE: see node_gpusort.c. */
static bool
is_gpusort(Plan *plan, void *context)
{
	return gs_node_is_gpusort(plan) || walk_children(plan, is_gpusort, context);
}

static bool
make_report(Plan *plan, void *context)
{
	plan->parallel_aware |= gs_node_is_gpusort(plan);
	return walk_children(plan, make_report, context);
}

PlannedStmt *
gs_plan_with_reports(PlannedStmt *statement)
{
	if (!walk_statement(statement, is_gpusort, NULL))
		return statement;
	statement = copyObject(statement);
	(void) walk_statement(statement, make_report, NULL);
	return statement;
}
