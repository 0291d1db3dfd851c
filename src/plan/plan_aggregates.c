/*-------------------------------------------------------------------------
 *
 * plan_aggregates.c
 *	  In which order the rows of groups should arrive for aggregates that sort them.
 *
 * percentile_cont(), percentile_disc() and mode() sort the rows of each group by tuplesort.c, and
 * before PostgreSQL 16 all aggregates with ORDER BY or DISTINCT do.  It compares rows that arrive
 * in order with their neighbors only, once.  The result does not depend on the order in which they
 * arrive, so it need not be exact.
 *
 * By ranges, 3 M rows in 366 groups, the time with rows in the order of GROUP BY divided by the
 * time with rows in this order (medians of 3 to 7 by turns; several runs; 2 busy cores of an AMD
 * EPYC, 2026-11-28):
 *
 *						PostgreSQL 18				PostgreSQL 15
 *	percentile_cont		1.13, 1.30, 1.13, 1.37		1.16, 1.11, 1.15
 *	text in "C"			1.22, 1.16, 1.21, 1.15		ORDER BY 1.42, DISTINCT 1.16, 1.02, 0.98
 *	array_agg(a ORDER BY bigint)					1.11, 1.10, 1.16
 *	bigint, uuid		mode() 0.97, 0.98			DISTINCT 1.01, 1.00
 *	numeric				0.93, 0.86
 *	text by ICU			0.83						DISTINCT 0.78, ORDER BY 1.01
 *
 * tuplesort.c calls a function to compare two floats; for integers, and for abbreviated keys, it
 * has code of its own, which leaves less to gain unless it sorts rows of several columns.  In
 * groups of 3,000 rows, percentile_cont() took 1.09, of 1,000 0.96, and of 3 0.95, where most of
 * the work is to begin a tuplesort for each group.  In one process: 366 groups 1.32.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "guc.h"
#include "pg_compat.h"
#include "plan/plan.h"
#include "plan/plan_aggregates.h"

#include "catalog/pg_aggregate.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "optimizer/tlist.h"
#include "parser/parse_coerce.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/typcache.h"

/* The least rows of a group, that it matters how they are compared. */
#define LEAST_GROUP_ROWS	5000

static bool
is_number(const Node *expr)
{
	return TypeCategory(exprType(expr)) == TYPCATEGORY_NUMERIC;
}

Expr *
gs_plan_without_cast(Expr *expr)
{
	const FuncExpr *cast = (const FuncExpr *) expr;

	return IsA(expr, FuncExpr) && cast->funcformat != COERCE_EXPLICIT_CALL &&
		list_length(cast->args) == 1 && is_number((Node *) expr) &&
		is_number(linitial(cast->args)) ? linitial(cast->args) : expr;
}

/* Makes a clause of the same direction for another type.  False: it has no order. */
static bool
change_type(SortGroupClause *clause, Oid type)
{
	const TypeCacheEntry *order = lookup_type_cache(type, TYPECACHE_LT_OPR | TYPECACHE_GT_OPR |
													TYPECACHE_EQ_OPR);
	bool		descending = false;

	(void) get_equality_op_for_ordering_op(clause->sortop, &descending);
	clause->sortop = descending ? order->gt_opr : order->lt_opr;
	clause->eqop = order->eq_opr;
	return OidIsValid(clause->sortop);
}

List *
gs_plan_aggregate_pathkeys(PlannerInfo *root, const Aggref *aggregate)
{
	List	   *sorted = aggregate->aggdistinct != NIL ? aggregate->aggdistinct :
		aggregate->aggorder;
	List	   *clauses = NIL;
	List	   *entries = NIL;
	ListCell   *lc;

	foreach(lc, sorted)
	{
		SortGroupClause *clause = copyObject(lfirst_node(SortGroupClause, lc));
		TargetEntry *entry = flatCopyTargetEntry(get_sortgroupclause_tle(clause, aggregate->args));
		Expr	   *expr = gs_plan_without_cast(entry->expr);

		if (expr != entry->expr && !change_type(clause, exprType((Node *) expr)))
			return NIL;
		entry->expr = expr;
		clauses = lappend(clauses, clause);
		entries = lappend(entries, entry);
	}
	return make_pathkeys_for_sortclauses(root, clauses, entries);
}

/* Is what fewer comparisons of this aggregate save more than a column costs? */
static bool
compares_slowly(const Aggref *aggregate, const GsSortColumn *column)
{
	const Oid	type = exprType((Node *) linitial_node(TargetEntry, aggregate->args)->expr);
	const bool	sorts_rows = list_length(aggregate->args) > 1;

	if (type_is_collatable(column->type))
		return (sorts_rows || AGGKIND_IS_ORDERED_SET(aggregate->aggkind)) &&
			!gs_key_columns_traits(column, 1).collated;
	return get_typbyval(column->type) &&
		(sorts_rows || type == FLOAT8OID || type == FLOAT4OID);
}

/* Is a sort by the pathkeys that an aggregate adds to those of GROUP BY worth it? */
static bool
is_worth_it(PlannerInfo *root, Path *input, List *pathkeys, const Aggref *aggregate)
{
	const int	ngrouped = list_length(root->group_pathkeys);
	GsSortColumn *columns;
	GsKeyTraits traits;
	GsPlanEstimate estimate;

	return aggregate->aggkind != AGGKIND_HYPOTHETICAL &&	/* it sorts another row, too */
		gs_plan_path_estimate(root, input, pathkeys, &gs_plan_limit_none, &columns, &traits,
							  &estimate) &&
		compares_slowly(aggregate, &columns[ngrouped]) &&
		gs_plan_path_has_columns(&columns[ngrouped], list_length(pathkeys) - ngrouped);
}

bool
gs_plan_are_groups_large(PlannerInfo *root, double nrows, double least)
{
	List	   *exprs = get_sortgrouplist_exprs(root->parse->groupClause, root->processed_tlist);

	return gpusort_force ||
		nrows >= least * estimate_num_groups(root, exprs, nrows, NULL, NULL);
}

List *
gs_plan_aggregates_pathkeys(PlannerInfo *root, Path *input)
{
	ListCell   *lc;

	/* from 16 on, there is an aggregate whose order PostgreSQL has added */
	if (list_length(root->group_pathkeys) > gs_count_group_pathkeys(root))
		return root->group_pathkeys;
	foreach(lc, root->agginfos)
	{
		const AggInfo *info = lfirst(lc);	/* no Node in PostgreSQL 15 */
		const Aggref *aggregate = gs_aggregate(info);
		List	   *pathkeys = list_concat_unique_ptr(list_copy(root->group_pathkeys),
													  gs_plan_aggregate_pathkeys(root, aggregate));

		if (list_length(pathkeys) > list_length(root->group_pathkeys))
			return is_worth_it(root, input, pathkeys, aggregate) &&
				gs_plan_are_groups_large(root, input->rows, LEAST_GROUP_ROWS) ? pathkeys :
				root->group_pathkeys;
	}
	return root->group_pathkeys;
}
