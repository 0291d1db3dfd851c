/*-------------------------------------------------------------------------
 *
 * plan_walk.c
 *	  Visits the nodes of a finished plan.
 *
 * PostgreSQL has such walks for the states of a plan and for expressions, but not for a
 * plan.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "node/node_gpusort.h"
#include "plan/plan_walk.h"

#include "miscadmin.h"
#include "nodes/nodeFuncs.h"

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

Bitmapset *
gs_plan_subqueries_that_may_stop(const PlannedStmt *statement)
{
	Bitmapset  *numbers = NULL;

	if (statement->subplans != NIL)
		(void) walk_statement(statement, add_subqueries_of_node, &numbers);
	return numbers;
}
