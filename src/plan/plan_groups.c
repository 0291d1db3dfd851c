/*-------------------------------------------------------------------------
 *
 * plan_groups.c
 *	  Nodes of a finished plan whose work a GpuSort by ranges does.
 *
 * A GpuSort by ranges knows which rows are of one group, and can return only the first ones
 * (sort/sort_group_rows.c).  So the first row of each needs no Unique; and row_number() and lag()
 * need no WindowAgg, which stores each row and reads it again.  The GpuSort computes its target
 * list and its qual (node/node_window.c).
 *
 * Of 3 M rows of 167 bytes in 950,000 groups, default settings: the first 3 of each take 0.63 of
 * the time with a WindowAgg, and lag() 0.68 (medians of 5 and more by turns, 2 cores of an Intel
 * Xeon, PostgreSQL 18.6, 2026-11-29).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "node/node_gpusort.h"
#include "pg_compat.h"
#include "plan/plan_groups.h"

#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

static bool
is_row_number(const Node *node)
{
	return IsA(node, WindowFunc) && ((const WindowFunc *) node)->winfnoid == F_ROW_NUMBER;
}

/* The n of row_number() <= n, if that is the only run condition and n is a constant; else 0. */
static int
run_limit(List *conditions)
{
	const OpExpr *condition = conditions == NIL ? NULL : linitial(conditions);
	RegProcedure compare;
	const Const *most;
	bool		is_less;
	int64		limit;

	if (list_length(conditions) != 1 || !IsA(condition, OpExpr) ||
		!is_row_number(linitial(condition->args)))
		return 0;
	compare = get_opcode(condition->opno);
	is_less = compare == F_INT8LT || compare == F_INT84LT;
	most = lsecond(condition->args);
	if (!IsA(most, Const) || most->constisnull ||
		!(is_less || compare == F_INT8LE || compare == F_INT84LE))
		return 0;
	limit = (most->consttype == INT8OID ? DatumGetInt64(most->constvalue) :
			 DatumGetInt32(most->constvalue)) - is_less;
	return limit > 0 && limit < PG_INT32_MAX ? (int) limit : 0;
}

/* Does a node group the rows of a GpuSort by the columns by which it groups them? */
static bool
groups_alike(const CustomScan *sort, const AttrNumber *attnos, int nattnos)
{
	Bitmapset  *columns = NULL;

	for (int i = 0; i < nattnos; i++)
		columns = bms_add_member(columns, attnos[i]);
	return bms_equal(columns, gs_node_grouped_columns(sort));
}

/* A GpuSort takes the place of the node above it, with the estimates of that. */
static Plan *
take_place(const Plan *above, CustomScan *sort)
{
	Plan	   *plan = &sort->scan.plan;

	plan->startup_cost = above->startup_cost;
	plan->total_cost = above->total_cost;
	plan->plan_rows = above->plan_rows;
	plan->plan_width = above->plan_width;
	plan->extParam = above->extParam;
	plan->allParam = above->allParam;
	return plan;
}

/* The functions of operators would be executed by the node that a GpuSort replaces. */
static void
replace_operators(CustomScan *sort, const Oid *operators, int count)
{
	for (int i = 0; i < count; i++)
		gs_node_replaces_function(sort, get_opcode(operators[i]));
}

static Plan *
replace_unique(Unique *unique, CustomScan *sort)
{
	if (!groups_alike(sort, unique->uniqColIdx, unique->numCols))
		return &unique->plan;
	replace_operators(sort, unique->uniqOperators, unique->numCols);
	gs_node_limit_groups(sort->custom_private, 1);
	return take_place(&unique->plan, sort);
}

/* Is it lag() of a column, by one row, NULL in the first row? */
static bool
is_lag(const WindowFunc *function)
{
	const Const *offset = list_length(function->args) == 2 ? lsecond(function->args) : NULL;

	return !gs_window_ignores_nulls(function) &&
		(function->winfnoid == F_LAG_ANYELEMENT ||
		 (function->winfnoid == F_LAG_ANYELEMENT_INT4 && IsA(offset, Const) &&
		  !offset->constisnull && DatumGetInt32(offset->constvalue) == 1)) &&
		IsA(linitial(function->args), Var);
}

static bool
has_other_function(Node *node, void *context)
{
	if (node != NULL && IsA(node, WindowFunc))
		return !is_row_number(node) && !is_lag((const WindowFunc *) node);
	return expression_tree_walker(node, has_other_function, context);
}

/* Window functions that become columns of a GpuSort, after those of the rows. */
typedef struct Functions
{
	CustomScan *sort;
	List	   *list;			/* as node_window.h has it */
} Functions;

/*
 * A reference to the column of a window function.  It is added as a call, for EXPLAIN, which is not
 * executed.
 */
static Node *
add_column(Functions *functions, const WindowFunc *function)
{
	const int	number = is_row_number((const Node *) function) ? GS_WINDOW_ROW_NUMBER :
		linitial_node(Var, function->args)->varattno;
	List	  **columns = &functions->sort->custom_scan_tlist;
	int			resno = list_length(*columns) - list_length(functions->list) + 1;
	ListCell   *lc;

	foreach(lc, functions->list)
	{
		if (lfirst_int(lc) == number)
			break;
		resno++;
	}
	if (lc == NULL)
	{
		FuncExpr   *call = makeFuncExpr(function->winfnoid, function->wintype,
										copyObject(function->args), function->wincollid,
										function->inputcollid, COERCE_EXPLICIT_CALL);

		*columns = lappend(*columns, makeTargetEntry((Expr *) call, resno, NULL, false));
		functions->list = lappend_int(functions->list, number);
	}
	gs_node_replaces_function(functions->sort, function->winfnoid);
	return (Node *) makeVar(INDEX_VAR, resno, function->wintype,
							exprTypmod((const Node *) function), function->wincollid, 0);
}

/* Makes expressions of a node above refer to the columns of a GpuSort. */
static Node *
refer_to_columns(Node *node, void *functions)
{
	Node	   *copy;

	if (node != NULL && IsA(node, WindowFunc))
		return add_column(functions, (const WindowFunc *) node);
	copy = expression_tree_mutator(node, refer_to_columns, functions);
	if (copy != NULL && IsA(copy, Var))
		((Var *) copy)->varno = INDEX_VAR;
	return copy;
}

/*
 * The lowest of several WindowAggs returns the rows for which its run condition is false, too, with
 * NULLs.
 */
static Plan *
replace_window(WindowAgg *window, CustomScan *sort)
{
	const int	limit = run_limit(window->runConditionOrig);
	Functions	functions = {.sort = sort};
	const Plan *plan = &window->plan;
	List	   *targetlist;
	List	   *qual;

	/* an offset of the frame may be an error */
	if ((window->runCondition != NIL && !(limit > 0 && window->topWindow)) ||
		window->startOffset != NULL || window->endOffset != NULL ||
		has_other_function((Node *) plan->targetlist, NULL) ||
		has_other_function((Node *) plan->qual, NULL) ||
		!groups_alike(sort, window->partColIdx, window->partNumCols))
		return &window->plan;
	targetlist = (List *) refer_to_columns((Node *) plan->targetlist, &functions);
	qual = (List *) refer_to_columns((Node *) plan->qual, &functions);
	if (functions.list == NIL)
		return &window->plan;
	sort->scan.plan.targetlist = targetlist;
	sort->scan.plan.qual = qual;
	replace_operators(sort, window->partOperators, window->partNumCols);
	replace_operators(sort, window->ordOperators, window->ordNumCols);
	if (limit > 0)
		replace_operators(sort, &linitial_node(OpExpr, window->runConditionOrig)->opno, 1);
	gs_node_compute_window(sort, functions.list);
	gs_node_limit_groups(sort->custom_private, limit);
	return take_place(plan, sort);
}

Plan *
gs_plan_groups_replace(Plan *plan)
{
	CustomScan *sort = (CustomScan *) plan->lefttree;

	if (sort == NULL || !gs_node_is_gpusort(plan->lefttree) ||
		gs_node_grouped_columns(sort) == NULL || gs_node_window_functions(sort) != NIL ||
		plan->initPlan != NIL)
		return plan;
	switch (nodeTag(plan))
	{
		case T_Unique:
			return replace_unique((Unique *) plan, sort);
		case T_WindowAgg:
			return replace_window((WindowAgg *) plan, sort);
		default:
			return plan;
	}
}
