/*-------------------------------------------------------------------------
 *
 * plan_groups.c
 *	  Nodes of a finished plan whose work a GpuSort by ranges does.
 *
 * A GpuSort by ranges knows which rows are of one group, and can return only the first ones
 * (sort/sort_group_rows.c).  So the first row of each needs no Unique; and row_number() and lag() need
 * no WindowAgg, which stores each row and reads it again.  They become parameters, which the GpuSort
 * sets before it computes its output (node/node_window.c):
 *
 *	  WindowAgg						GpuSort
 *		Output: g, row_number()		  Output: g, $0
 *		-> GpuSort
 *			 Output: g, b
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
is_row_number(Node *node)
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

static Plan *
replace_unique(Unique *unique, CustomScan *sort)
{
	if (!groups_alike(sort, unique->uniqColIdx, unique->numCols))
		return &unique->plan;
	gs_node_limit_groups(sort, 1);
	return &sort->scan.plan;
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

/* Window functions that become parameters of a statement. */
typedef struct Functions
{
	PlannedStmt *statement;
	Param	   *row_number;		/* NULL: there is none yet */
	List	   *lags;			/* as node_window.h has them */
} Functions;

/* Adds a parameter of the type of a function. */
static Param *
add_parameter(PlannedStmt *statement, const WindowFunc *function)
{
	Param	   *parameter = makeNode(Param);

	parameter->paramkind = PARAM_EXEC;
	parameter->paramid = list_length(statement->paramExecTypes);
	parameter->paramtype = function->wintype;
	parameter->paramtypmod = exprTypmod((const Node *) function);
	parameter->paramcollid = function->wincollid;
	parameter->location = function->location;
	statement->paramExecTypes = lappend_oid(statement->paramExecTypes, function->wintype);
	return parameter;
}

static Param *
parameter_for(Functions *functions, const WindowFunc *function)
{
	Param	   *parameter;

	if (function->winfnoid == F_ROW_NUMBER && functions->row_number != NULL)
		return copyObject(functions->row_number);
	parameter = add_parameter(functions->statement, function);
	if (function->winfnoid == F_ROW_NUMBER)
		functions->row_number = parameter;
	else
	{
		functions->lags = lappend_int(functions->lags,
									  linitial_node(Var, function->args)->varattno);
		functions->lags = lappend_int(functions->lags, parameter->paramid);
	}
	return parameter;
}

/* Replaces window functions by parameters, and columns of the node below by those of a GpuSort. */
static Node *
replace_functions(Node *node, void *functions)
{
	Node	   *copy;

	if (node != NULL && IsA(node, WindowFunc))
		return (Node *) parameter_for(functions, (const WindowFunc *) node);
	copy = expression_tree_mutator(node, replace_functions, functions);
	if (copy != NULL && IsA(copy, Var))
		((Var *) copy)->varno = INDEX_VAR;
	return copy;
}

/*
 * The lowest of several WindowAggs returns the rows for which its run condition is false, too, with
 * NULLs.
 */
static Plan *
replace_window(WindowAgg *window, CustomScan *sort, PlannedStmt *statement)
{
	Plan	   *plan = &window->plan;
	const int	limit = run_limit(window->runConditionOrig);
	Functions	functions = {.statement = statement};
	int			row_number;

	if ((window->runCondition != NIL && !(limit > 0 && window->topWindow)) ||
		has_other_function((Node *) plan->targetlist, NULL) ||
		has_other_function((Node *) plan->qual, NULL) ||
		!groups_alike(sort, window->partColIdx, window->partNumCols))
		return plan;
	sort->scan.plan.targetlist = (List *) replace_functions((Node *) plan->targetlist, &functions);
	sort->scan.plan.qual = (List *) replace_functions((Node *) plan->qual, &functions);
	sort->scan.plan.startup_cost = plan->startup_cost;
	sort->scan.plan.total_cost = plan->total_cost;
	sort->scan.plan.extParam = plan->extParam;
	sort->scan.plan.allParam = plan->allParam;
	row_number = functions.row_number == NULL ? -1 : functions.row_number->paramid;
	gs_node_compute_window(sort, lcons_int(row_number, functions.lags));
	gs_node_limit_groups(sort, limit);
	return &sort->scan.plan;
}

Plan *
gs_plan_groups_replace(Plan *plan, PlannedStmt *statement)
{
	CustomScan *sort = (CustomScan *) plan->lefttree;

	if (sort == NULL || !gs_node_is_gpusort(plan->lefttree) ||
		gs_node_grouped_columns(sort) == NULL || plan->initPlan != NIL)
		return plan;
	switch (nodeTag(plan))
	{
		case T_Unique:
			return replace_unique((Unique *) plan, sort);
		case T_WindowAgg:
			return replace_window((WindowAgg *) plan, sort, statement);
		default:
			return plan;
	}
}
