/*-------------------------------------------------------------------------
 *
 * plan_limit.c
 *	  The LIMIT above a sort, as expressions for the node.
 *
 * The plan node gets copies of the LIMIT and OFFSET expressions (README.md), and computes the
 * bound when it reads its input, or when it is asked whether its rows can be returned again.  The
 * Limit has just computed the same values, and has raised any errors.
 *
 * This requires expressions that give the same value twice.  The node cannot compute volatile
 * ones; nor stable ones, which a changed setting can change between two sorts of a cursor's
 * query; nor those with subplans, as their executor state belongs to the Limit; nor, in a
 * parallel worker, executor parameters, since a Gather passes on only those that the plan below
 * it had when the planner finished.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "plan/plan.h"

#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"

const GsPlanLimit gs_plan_limit_none = {.rows = -1};

/* Gets the value of a constant, or `absent` if it is NULL or there is no expression. */
static bool
is_known(Node *expr, double absent, double *value)
{
	*value = absent;
	if (expr == NULL)
		return true;
	if (!IsA(expr, Const))
		return false;
	if (!((Const *) expr)->constisnull)
		*value = (double) DatumGetInt64(((Const *) expr)->constvalue);
	return true;
}

static bool
is_computable(Node *expr)
{
	return !contain_subplans(expr) && !contain_mutable_functions(expr);
}

/* WITH TIES sets no bound, as the number of ties is not known. */
GsPlanLimit
gs_plan_limit_of_clauses(LimitOption option, Node *count, Node *offset)
{
	GsPlanLimit bound = {.bounded = true};
	double		count_rows;
	double		offset_rows;
	bool		count_known = is_known(count, -1, &count_rows);
	bool		offset_known = is_known(offset, 0, &offset_rows);

	if (option == LIMIT_OPTION_WITH_TIES || (count_known && count_rows < 0))
		return gs_plan_limit_none;
	bound.count = count;
	bound.offset = offset;
	bound.computable = is_computable(count) && is_computable(offset);
	bound.rows = count_known && offset_known ? count_rows + Max(offset_rows, 0) : -1;
	return bound;
}

static bool
has_executor_parameter(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Param) && ((Param *) node)->paramkind == PARAM_EXEC)
		return true;
	return expression_tree_walker(node, has_executor_parameter, context);
}

GsPlanLimit
gs_plan_limit_in_worker(GsPlanLimit bound)
{
	if (has_executor_parameter(bound.count, NULL) || has_executor_parameter(bound.offset, NULL))
		bound.computable = false;
	return bound;
}

List *
gs_plan_limit_exprs(const GsPlanLimit *bound)
{
	if (!bound->bounded)
		return NIL;
	return list_make2(copyObject(bound->count), copyObject(bound->offset));
}
