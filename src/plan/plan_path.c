/*-------------------------------------------------------------------------
 *
 * plan_path.c
 *	  Adds paths with the cost of a GpuSort.
 *
 * For the ORDER BY of a query, the planner compares a sort of all rows with reading them in
 * order, by an index or by an incremental sort, with or without workers.  This file adds the same
 * sorts again, at the cost of a GpuSort: that of the cheapest path, and that of the cheapest
 * partial path below a Gather Merge, which has nothing to merge if the participants sort
 * together.  plan_rewrite.c replaces their Sorts then; that it will is certain, because both ask
 * plan_replace.c.
 *
 * A LIMIT of a query around this one is not visible here; it only makes the sort cheaper.  A sort
 * that needs disk, or whose cost would not be lower, is not added.
 *
 * Whether a GpuSort uses the GPU is decided at execution time (store/store_device_choice.c); here
 * it is only estimated, for the cost.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pg_compat.h"
#include "key/key_columns.h"
#include "plan/plan.h"
#include "plan/plan_cost.h"
#include "store/store_device_choice.h"

#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "utils/lsyscache.h"

/*
 * The expression that a Sort of this target would sort by, as the planner finds it, and its
 * position in the target, from 1; 0: it is not in the target, but computed before the sort.
 */
static EquivalenceMember *
find_member(PlannerInfo *root, EquivalenceClass *class, const PathTarget *target,
			AttrNumber *position)
{
	ListCell   *lc;

	foreach(lc, target->exprs)
	{
		const int	i = foreach_current_index(lc);
		EquivalenceMember *member = NULL;

		if (!class->ec_has_volatile)
			member = find_ec_member_matching_expr(class, lfirst(lc), NULL);
		else if (class->ec_sortref != 0 &&
				 get_pathtarget_sortgroupref(target, i) == class->ec_sortref)
			member = linitial(class->ec_members);
		if (member != NULL)
		{
			*position = i + 1;
			return member;
		}
	}
	*position = 0;
	return class->ec_has_volatile ? linitial(class->ec_members) :
		find_computable_ec_member(root, class, target->exprs, NULL, false);
}

/* The columns of an order; NULL if they cannot be determined. */
static GsSortColumn *
sort_columns(PlannerInfo *root, List *pathkeys, const PathTarget *target)
{
	GsSortColumn *columns = palloc0(sizeof(GsSortColumn) * list_length(pathkeys));
	ListCell   *lc;

	foreach(lc, pathkeys)
	{
		PathKey    *pathkey = lfirst_node(PathKey, lc);
		GsSortColumn *column = &columns[foreach_current_index(lc)];
		EquivalenceMember *member = find_member(root, pathkey->pk_eclass, target, &column->attno);

		if (member == NULL)
			return NULL;
		column->type = exprType((Node *) member->em_expr);
		column->sort_operator = gs_pathkey_operator(pathkey, member->em_datatype);
		column->collation = pathkey->pk_eclass->ec_collation;
		column->nulls_first = pathkey->pk_nulls_first;
		if (!OidIsValid(column->sort_operator))
			return NULL;
	}
	return columns;
}

bool
gs_plan_path_estimate(PlannerInfo *root, Path *input, List *pathkeys, const GsPlanLimit *bound,
					  GsSortColumn **columns, GsKeyTraits *traits, GsPlanEstimate *estimate)
{
	const GsReplaceSettings settings = gs_replace_settings();
	int			ncolumns = list_length(pathkeys);

	if (gs_plan_replace_is_small(&settings, input->rows))
		return false;
	*columns = sort_columns(root, pathkeys, input->pathtarget);
	if (*columns == NULL || pathkeys_contained_in(pathkeys, input->pathkeys) ||
		gs_plan_replace_why_not(&settings, *columns, ncolumns, input->rows, bound) != NULL)
		return false;
	*traits = gs_key_columns_traits(*columns, ncolumns);
	if (traits->compared)
		return false;
	estimate->nrows = input->rows;
	estimate->width = input->pathtarget->width;
	estimate->ncolumns = ncolumns;
	estimate->key_bytes = gs_key_columns_collated_bytes(*columns, ncolumns, estimate->width);
	estimate->keys_only = ncolumns == 1 && list_length(input->pathtarget->exprs) == 1;
	estimate->bounded = bound->bounded;
	estimate->bound = bound->rows;
	return true;
}

bool
gs_plan_path_has_columns(const GsSortColumn *columns, int ncolumns)
{
	for (int i = 0; i < ncolumns; i++)
	{
		if (columns[i].attno == 0)
			return false;
	}
	return true;
}

/* The sort of a path at the given cost; NULL if that of PostgreSQL's sort is not higher. */
static Path *
make_sort_at(PlannerInfo *root, RelOptInfo *rel, Path *input, List *pathkeys,
			 const GsPlanLimit *bound, Cost startup)
{
	SortPath   *path = create_sort_path(root, rel, input, pathkeys,
										bound->bounded && bound->rows > 0 ? bound->rows : -1);
	Cost		sort_startup = path->path.startup_cost - input->total_cost;

	if (startup >= sort_startup)
		return NULL;
	path->path.startup_cost -= sort_startup - startup;
	path->path.total_cost -= sort_startup - startup;
	return (Path *) path;
}

Path *
gs_plan_path_sort(PlannerInfo *root, RelOptInfo *rel, Path *input, List *pathkeys,
				  const GsPlanLimit *bound, bool on_disk)
{
	GsSortColumn *columns;
	GsKeyTraits traits;
	GsPlanEstimate estimate;
	bool		on_device;
	Cost		cost;

	if (!gs_plan_path_estimate(root, input, pathkeys, bound, &columns, &traits, &estimate))
		return NULL;
	on_device = gs_device_is_likely(input->rows) && !traits.leave_ties;
	cost = gs_plan_cost_startup(&estimate, on_device);
	if (!on_device && gs_plan_cost_bytes(&estimate) > work_mem * 1024.0)
	{
		if (!on_disk)
			return NULL;
		cost += gs_plan_cost_disk(&estimate);
	}
	return make_sort_at(root, rel, input, pathkeys, bound, cost);
}

/* A Gather Merge of the rows that each participant has sorted. */
static Path *
make_merge(PlannerInfo *root, RelOptInfo *rel, Path *sort, List *pathkeys)
{
	double		nrows = sort->rows * sort->parallel_workers;

	/* also where the relation is not, because its target has window functions */
	sort->parallel_safe = ((SortPath *) sort)->subpath->parallel_safe;
	return (Path *) create_gather_merge_path(root, rel, sort, sort->pathtarget, pathkeys, NULL,
											 &nrows);
}

/*
 * A Gather Merge above one sort on a device that will have the rows of all participants
 * (sort_parallel.c): the leader returns them, without a queue and without a merge.  NULL if that
 * is not expected.  The target is what is computed from the rows afterward.
 */
static Path *
make_shared_merge(PlannerInfo *root, RelOptInfo *rel, Path *input, List *pathkeys,
				  const GsPlanLimit *bound, const PathTarget *target)
{
	double		nrows = input->rows * input->parallel_workers;
	GsSortColumn *columns;
	GsKeyTraits traits;
	GsPlanEstimate estimate;
	Path	   *path;

	if (bound->bounded || !parallel_leader_participation ||
		(target != input->pathtarget && gs_plan_cost_is_expensive(target->cost.per_tuple)) ||
		!gs_plan_path_estimate(root, input, pathkeys, bound, &columns, &traits, &estimate) ||
		traits.leave_ties || !gs_device_is_likely(nrows))
		return NULL;
	path = make_sort_at(root, rel, input, pathkeys, bound, gs_plan_cost_shared_input(&estimate));
	if (path == NULL)
		return NULL;
	path = make_merge(root, rel, path, pathkeys);
	path->startup_cost = ((GatherMergePath *) path)->subpath->startup_cost + parallel_setup_cost;
	path->total_cost = path->startup_cost + nrows * cpu_operator_cost +
		gs_plan_cost_emit(&estimate, nrows);
	return path;
}

Path *
gs_plan_path_merge(PlannerInfo *root, RelOptInfo *rel, Path *partial, List *pathkeys,
				   const GsPlanLimit *bound, const PathTarget *target, bool on_disk)
{
	Path	   *path = make_shared_merge(root, rel, partial, pathkeys, bound, target);
	Path	   *merge;

	if (path != NULL)
		return path;
	path = gs_plan_path_sort(root, rel, partial, pathkeys, bound, on_disk);
	if (path == NULL)
		return NULL;
	merge = make_merge(root, rel, path, pathkeys);
	if (on_disk)
		merge->total_cost = Min(merge->total_cost, merge->startup_cost +
								gs_plan_cost_streams(merge->rows));
	return merge;
}

/* Adds a path in the required order, with the final projection of the query. */
static void
add_ordered(PlannerInfo *root, RelOptInfo *ordered_rel, Path *path, PathTarget *target)
{
	if (path->pathtarget != target)
		path = apply_projection_to_path(root, ordered_rel, path, target);
	add_path(ordered_rel, path);
}

/*
 * The cheapest path of the input; NULL if it is in order already.  PostgreSQL has added the input's
 * paths that are in order to ordered_rel as they are, and add_path() frees a path when another one
 * is as good, although input_rel still points to it.  Nothing tells whether it was freed.  But it
 * can be read before anything is allocated: its memory still belongs to the planner, and either is
 * as it was, or was used again for something else than a path of input_rel.  A path that is not in
 * order has not been freed.
 */
static Path *
cheapest_path(PlannerInfo *root, const RelOptInfo *input_rel)
{
	Path	   *path = input_rel->cheapest_total_path;
	/* a UNION of PostgreSQL 15 and 16 has paths of other relations */
	const bool	is_path = path->parent == input_rel ||
		list_member_ptr(root->upper_rels[UPPERREL_SETOP], path->parent);

	return is_path && !pathkeys_contained_in(root->sort_pathkeys, path->pathkeys) ? path : NULL;
}

void
gs_plan_path_add(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *ordered_rel, Cost saved)
{
	Query	   *parse = root->parse;
	PathTarget *target;
	GsPlanLimit bound = gs_plan_limit_none;
	Path	   *cheapest = cheapest_path(root, input_rel);
	Path	   *partial;
	Path	   *path;

	/* a LIMIT does not bound a sort below functions that return sets, nor below FOR UPDATE */
	if (!enable_sort || root->sort_pathkeys == NIL || ordered_rel->pathlist == NIL ||
		parse->hasTargetSRFs)
		return;
	target = ((Path *) linitial(ordered_rel->pathlist))->pathtarget;
	if (parse->limitCount != NULL && parse->rowMarks == NIL)
		bound = gs_plan_limit_of_clauses(parse->limitOption, parse->limitCount, parse->limitOffset);

	path = cheapest == NULL ? NULL :
		gs_plan_path_sort(root, ordered_rel, cheapest, root->sort_pathkeys, &bound, false);
	if (path != NULL)
		add_ordered(root, ordered_rel, path, target);

	/* what is computed from the sorted rows is computed in the leader */
	if (input_rel->partial_pathlist == NIL)
		return;
	bound = gs_plan_limit_in_worker(bound);
	partial = linitial(input_rel->partial_pathlist);
	path = gs_plan_path_merge(root, ordered_rel, partial, root->sort_pathkeys, &bound, target,
							  false);
	if (path == NULL)
		return;
	saved = Min(saved, path->startup_cost - parallel_setup_cost);
	path->startup_cost -= saved;
	path->total_cost -= saved;
	add_ordered(root, ordered_rel, path, target);
}
