/*-------------------------------------------------------------------------
 *
 * plan_ranges.c
 *	  Adds paths for window functions, groups and DISTINCT in which each participant of a parallel
 *	  plan has a range of the sorted rows.
 *
 *		Gather
 *		  -> WindowAgg, GroupAggregate or Unique	PostgreSQL's, in each participant
 *			   -> GpuSort							by ranges, which do not divide a group
 *					-> a partial path of the input
 *
 * PostgreSQL runs these in one process.  It has added its paths before, in which the nodes of the
 * upper relation are above a Sort, or above rows in order.  They are copied above the GpuSort, with
 * the costs that they have, for fewer rows; so what they compute, and whether that is parallel
 * safe, is the planner's decision.  They are also copied above a GpuSort of one process, at its
 * cost.
 *
 * Rows are of one group if their leading sort columns are equal: those by which all nodes above
 * group them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "guc.h"
#include "pg_compat.h"
#include "node/node_gpusort.h"
#include "plan/plan.h"
#include "plan/plan_aggregates.h"
#include "plan/plan_medians.h"
#include "plan/plan_ranges.h"
#include "store/store_device_choice.h"

#include "catalog/pg_proc.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "optimizer/tlist.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

/* The nodes of an upper relation, to be copied above another input. */
typedef struct UpperNodes
{
	PlannerInfo *root;
	RelOptInfo *rel;
	const RelOptInfo *input_rel;
	List	   *pathkeys;		/* of their input */
	int			ngrouped;		/* leading pathkeys by which all of them group rows */
	int			nwindows;		/* how many are WindowAggs */
	bool		safe;			/* what they compute, besides the target, is parallel safe */
	bool		medians;		/* all aggregates are medians of the column after the groups' */
	double		kept;			/* about which part of the rows run conditions keep */
	double		skew;			/* rows of the participant that has most, in relation to the
								 * average */
} UpperNodes;

/* The path of a GpuSort by ranges. */
typedef struct RangesPath
{
	CustomPath	custom;
	const GsSortColumn *columns;
	Cost		saved;			/* by the participants, of what the planner does not count */
} RangesPath;

/* ------------------------------------------------------------------- groups */

/* The pathkeys of a list of SortGroupClauses. */
static List *
clause_pathkeys(const UpperNodes *nodes, List *clauses)
{
	return make_pathkeys_for_sortclauses(nodes->root, clauses, nodes->root->processed_tlist);
}

/* How many of the leading pathkeys are among those by which a node groups rows. */
static int
count_leading(List *pathkeys, List *grouping)
{
	int			count = 0;
	ListCell   *lc;

	foreach(lc, pathkeys)
	{
		if (!list_member_ptr(grouping, lfirst(lc)))
			break;
		count++;
	}
	return count;
}

static void
group_by(UpperNodes *nodes, List *clauses)
{
	nodes->ngrouped = Min(nodes->ngrouped,
						  count_leading(nodes->pathkeys, clause_pathkeys(nodes, clauses)));
}

/* ------------------------------------------------------------ parallel safety */

/* What is evaluated instead of a window function, whose input is in one process and in order. */
static Node *
without_window_functions(Node *node, void *safe)
{
	if (node != NULL && IsA(node, WindowFunc))
	{
		const WindowFunc *function = (const WindowFunc *) node;

		if (func_parallel(function->winfnoid) != PROPARALLEL_SAFE)
			*(bool *) safe = false;
		/* of its type, which casts above it look at */
		return (Node *) makeFuncExpr(function->winfnoid, function->wintype,
									 lappend(list_copy(function->args), function->aggfilter),
									 function->wincollid, function->inputcollid,
									 COERCE_EXPLICIT_CALL);
	}
	return expression_tree_mutator(node, without_window_functions, safe);
}

/*
 * Can an expression be computed in a worker?  To PostgreSQL, window functions are parallel
 * restricted because their order may not be determined, so that two processes that compute them for
 * the same rows may differ.  Here each row is in one process.
 */
static bool
is_safe(PlannerInfo *root, List *exprs)
{
	bool		safe = true;
	Node	   *others = without_window_functions((Node *) exprs, &safe);

	return safe && is_parallel_safe(root, others);
}

/* Its target is that of the relation. */
static bool
is_window_safe(PlannerInfo *root, const WindowAggPath *path)
{
	return is_safe(root, list_make2(path->winclause->startOffset, path->winclause->endOffset)) &&
		is_safe(root, gs_run_condition(path)) && is_safe(root, path->qual);
}

/* -------------------------------------------------------------------- copies */

/* How many bytes a path has, and where its input is; no bytes: such paths are not copied. */
typedef struct PathShape
{
	Size		nbytes;
	Size		input;
} PathShape;

#define SHAPE_OF(type)	((PathShape) {sizeof(type), offsetof(type, subpath)})

static PathShape
shape_of(const Path *path)
{
	switch (nodeTag(path))
	{
		case T_SortPath:
		case T_IncrementalSortPath: /* begins with a SortPath, and is not copied as it is */
			return SHAPE_OF(SortPath);
		case T_WindowAggPath:
			return SHAPE_OF(WindowAggPath);
		case T_AggPath:
			return SHAPE_OF(AggPath);
		case T_GroupPath:
			return SHAPE_OF(GroupPath);
		case GS_T_UNIQUE_PATH:
			return SHAPE_OF(GsUniquePath);
		case T_ProjectionPath:
			return SHAPE_OF(ProjectionPath);
		default:
			return (PathShape) {0};
	}
}

/* The input of a path; NULL: such paths are not copied. */
static const Path *
input_of(const Path *path)
{
	const PathShape shape = shape_of(path);

	return shape.nbytes == 0 ? NULL : *(Path *const *) ((const char *) path + shape.input);
}

static bool
is_sort(const Path *path)
{
	return IsA(path, SortPath) || IsA(path, IncrementalSortPath);
}

/* Is it the input of all nodes, which one process or several have sorted, or which was in order? */
static bool
is_sorted_input(const UpperNodes *nodes, const Path *path)
{
	if (path->parent != nodes->input_rel && IsA(path, GatherMergePath))
		path = ((const GatherMergePath *) path)->subpath;
	if (path->parent != nodes->input_rel && is_sort(path))
		path = input_of(path);
	return path->parent == nodes->input_rel;
}

/* Notes by what a node groups rows, and the like.  False: it cannot be copied. */
static bool
note_node(UpperNodes *nodes, const Path *path)
{
	switch (nodeTag(path))
	{
		case T_WindowAggPath:
			nodes->nwindows++;
			nodes->safe &= is_window_safe(nodes->root, (const WindowAggPath *) path);
			/* the planner counts all rows */
			if (gs_run_condition((const WindowAggPath *) path) != NIL)
				nodes->kept = DEFAULT_INEQ_SEL;
			group_by(nodes, ((const WindowAggPath *) path)->winclause->partitionClause);
			return true;
		case T_AggPath:
			group_by(nodes, ((const AggPath *) path)->groupClause);
			return ((const AggPath *) path)->aggstrategy == AGG_SORTED &&
				((const AggPath *) path)->aggsplit == AGGSPLIT_SIMPLE;
		case T_GroupPath:
			group_by(nodes, ((const GroupPath *) path)->groupClause);
			return true;
		case GS_T_UNIQUE_PATH:
			nodes->ngrouped = Min(nodes->ngrouped, ((const GsUniquePath *) path)->numkeys);
			return true;
		default:
			return input_of(path) != NULL;
	}
}

/* Notes what the nodes of a path do, down to their input.  False: they cannot be copied. */
static bool
note_nodes(UpperNodes *nodes, const Path *path)
{
	nodes->ngrouped = list_length(nodes->pathkeys);
	nodes->nwindows = 0;
	nodes->kept = 1;
	nodes->safe = true;
	while (!is_sorted_input(nodes, path))
	{
		/* others are such as groups that are aggregated in part */
		if (path->parent != nodes->rel || !note_node(nodes, path))
			return false;
		path = input_of(path);
	}
	return pathkeys_contained_in(path->pathkeys, nodes->pathkeys);
}

/* The first path of the relation that can be copied, of which it notes what it does, or NULL. */
static const Path *
find_nodes(UpperNodes *nodes)
{
	ListCell   *lc;

	foreach(lc, nodes->rel->pathlist)
	{
		if (note_nodes(nodes, lfirst(lc)))
			return lfirst(lc);
	}
	return NULL;
}

/*
 * Completes the copy of a path, whose input was `from` and is `to`: it does for each row what it
 * did.
 */
static Path *
place_above(const UpperNodes *nodes, Path *copy, const Path *from, Path *to)
{
	/* to one process of all rows, they may only be rounded */
	const double share = to->parallel_workers == 0 ? 1 : to->rows / Max(from->rows, 1);
	const double work = share * nodes->skew;

	copy->parallel_safe = nodes->rel->consider_parallel && to->parallel_safe;
	copy->parallel_aware = false;
	copy->parallel_workers = to->parallel_workers;
	copy->startup_cost = to->startup_cost + Max(copy->startup_cost - from->startup_cost, 0) * work;
	copy->total_cost = to->total_cost + Max(copy->total_cost - from->total_cost, 0) * work;
	copy->startup_cost = Min(copy->startup_cost, copy->total_cost);
	copy->rows = clamp_row_est(copy->rows * share);
	gs_path_change_disabled(copy, from, to);
	return copy;
}

/* Copies a path that find_nodes() has found above another input. */
static Path *
copy_above(const UpperNodes *nodes, const Path *path, Path *input)
{
	const PathShape shape = shape_of(path);
	const Path *from;
	Path	   *to;
	Path	   *copy;

	check_stack_depth();
	if (is_sorted_input(nodes, path))
		return input;
	from = input_of(path);
	to = copy_above(nodes, from, input);
	/* also in place of an Incremental Sort */
	if (is_sort(path))
		return (Path *) create_sort_path(nodes->root, nodes->rel, to, path->pathkeys, -1);
	copy = memcpy(palloc(shape.nbytes), path, shape.nbytes);
	*(Path **) ((char *) copy + shape.input) = to;
	return place_above(nodes, copy, from, to);
}

/* ------------------------------------------------------------------- ranges */

static int
compare_attnos(const void *a, const void *b, void *exprs)
{
	return ((const Var *) list_nth(exprs, *(const int *) a))->varattno -
		((const Var *) list_nth(exprs, *(const int *) b))->varattno;
}

/*
 * A path that returns the columns of a table in the order in which it has them.  The planner begins
 * the input of windows with the columns that they sort by; then a scan of all columns would form
 * each row anew.  The first 3 of each of 300,000 groups of 3 M rows of 167 bytes: 1,670 and
 * 1,470 ms (medians of 4 by turns; 2 cores of an AMD EPYC, PostgreSQL 18.6, 2026-11-28).
 */
static Path *
order_as_stored(PlannerInfo *root, RelOptInfo *rel, Path *path)
{
	const PathTarget *target = path->pathtarget;
	const int	count = list_length(target->exprs);
	int		   *order = palloc(sizeof(int) * count);
	PathTarget *ordered = create_empty_pathtarget();

	for (int i = 0; i < count; i++)
	{
		const Var  *var = list_nth(target->exprs, i);

		if (!IsA(var, Var) || var->varno != ((const Var *) linitial(target->exprs))->varno)
			return path;
		order[i] = i;
	}
	qsort_arg(order, count, sizeof(int), compare_attnos, target->exprs);
	for (int i = 0; i < count; i++)
		add_column_to_pathtarget(ordered, list_nth(target->exprs, order[i]),
								 get_pathtarget_sortgroupref(target, order[i]));
	ordered->cost = target->cost;
	ordered->width = target->width;
	return (Path *) create_projection_path(root, rel, path, ordered);
}

/* Ranges cannot be found of more runs than can be merged at once (run/run_merge.c). */
#define MOST_RUNS	512
#define BUFFER_KB	5

/* Is there memory for ranges of the rows of all participants? */
static bool
has_memory(const GsPlanEstimate *estimate, double nparticipants)
{
	const double nruns = gs_plan_cost_bytes(estimate) * nparticipants / (work_mem * 1024.0);

	return gpusort_force || nruns < Min(MOST_RUNS, work_mem / BUFFER_KB) ||
		gs_device_is_likely(estimate->nrows * nparticipants);
}

/* A GpuSort by ranges of a partial path; NULL: it cannot be made, or is not much faster. */
static RangesPath *
make_ranges(const UpperNodes *nodes, Path *partial)
{
	GsSortColumn *columns;
	GsKeyTraits traits;
	const double nparticipants = gs_plan_cost_participants(partial->parallel_workers);
	GsPlanEstimate estimate;
	RangesPath *ranges;
	CustomPath *path;

	/* one column alone has no rows */
	if (list_length(partial->pathtarget->exprs) == 1 ||
		!gs_plan_path_estimate(nodes->root, partial, nodes->pathkeys, &gs_plan_limit_none, &columns,
							   &traits, &estimate) ||
		!has_memory(&estimate, nparticipants) ||
		!gs_plan_path_has_columns(columns, list_length(nodes->pathkeys)))
		return NULL;
	ranges = (RangesPath *) newNode(sizeof(RangesPath), T_CustomPath);
	path = &ranges->custom;
	path->path.pathtype = T_CustomScan;
	path->path.parent = nodes->rel;
	path->path.pathtarget = partial->pathtarget;
	path->path.parallel_aware = true;
	path->path.parallel_safe = true;
	path->path.parallel_workers = partial->parallel_workers;
	path->path.rows = partial->rows;
	gs_path_change_disabled(&path->path, NULL, partial);
	path->path.pathkeys = nodes->pathkeys;
	path->path.startup_cost = path->path.total_cost = partial->total_cost;
	if (!gpusort_force)
	{
		path->path.startup_cost += gs_plan_cost_startup(&estimate, false);
		path->path.total_cost = path->path.startup_cost +
			gs_plan_cost_exchange(&estimate, gs_device_is_likely(partial->rows * nparticipants));
	}
	ranges->columns = columns;
	path->custom_paths = list_make1(partial);
	path->custom_private = gs_node_private(columns, list_length(nodes->pathkeys), 0, false);
	path->methods = &gs_ranges_path_methods;
	return ranges;
}

/*
 * Estimates which part of so many rows is at least in the largest group: as if all were as large,
 * or as the statistics of the most common values have it.
 */
static double
largest_group(const UpperNodes *nodes, const RangesPath *ranges, double nrows)
{
	double		largest = 1;
	List	   *exprs = NIL;

	for (int i = 0; i < nodes->ngrouped; i++)
	{
		Node	   *expr = list_nth(ranges->custom.path.pathtarget->exprs,
									ranges->columns[i].attno - 1);
		Selectivity most_common;
		Selectivity bucket;

		estimate_hash_bucket_stats(nodes->root, expr, nrows, &most_common, &bucket);
		largest = Min(largest, most_common);
		exprs = lappend(exprs, expr);
	}
	return Max(largest, 1 / Max(estimate_num_groups(nodes->root, exprs, nrows, NULL, NULL), 1));
}

/* The Gather above a path whose participants each have a range, of so many rows in all. */
static Path *
make_gather(const UpperNodes *nodes, Path *path, double total)
{
	double		nrows = total * nodes->kept;
	Path	   *gather = (Path *) create_gather_path(nodes->root, nodes->rel, path,
													 path->pathtarget, NULL, &nrows);

	gather->rows = total;
	gather->total_cost = Max(gather->total_cost - gs_plan_ranges_saved(path),
							 path->total_cost + parallel_setup_cost);
	if (gpusort_force)
		gather->startup_cost = gather->total_cost = 0;
	return gather;
}

/*
 * Each participant returns its rows in order, but a Gather Merge of them would read one range after
 * the other, while most participants wait.  So the planner is not told.
 */
static Path *
hide_order(const UpperNodes *nodes, Path *path)
{
	/* no node of its own */
	Path	   *hidden = (Path *) create_projection_path(nodes->root, nodes->rel, path,
														 path->pathtarget);

	hidden->parallel_safe = path->parallel_safe;
	hidden->pathkeys = NIL;
	return hidden;
}

Cost
gs_plan_ranges_saved(const Path *partial)
{
	while (partial != NULL && !(IsA(partial, CustomPath) &&
								((const CustomPath *) partial)->methods == &gs_ranges_path_methods))
		partial = input_of(partial);
	return partial == NULL ? 0 : ((const RangesPath *) partial)->saved;
}

static bool
count_aggregate(Node *node, void *count)
{
	if (node == NULL)
		return false;
	*(int *) count += IsA(node, WindowFunc) && ((const WindowFunc *) node)->winagg;
	return expression_tree_walker(node, count_aggregate, count);
}

/* The number of aggregates that are used as window functions. */
static int
count_aggregates(const UpperNodes *nodes)
{
	int			count = 0;

	if (nodes->nwindows > 0)
		(void) count_aggregate((Node *) nodes->root->processed_tlist, &count);
	return count;
}

/*
 * If a group has more than this part of the rows, one participant returns nearly all of them, which
 * the estimates do not show well: DISTINCT ON of 1.5 M rows, nine tenths of them in one group,
 * took 1.08 times as long by ranges, and lag() 1.03 times, but medians 0.93 (three processes on
 * 2 cores of an Intel Xeon, medians of 11, 2026-11-28).
 */
#define MOST_IN_A_GROUP	0.75

/*
 * Each participant has a range.  Returns why not, a phrase that starts in lower case, or NULL if
 * the path was added.
 */
static const char *
add_ranges(UpperNodes *nodes, Path *partial)
{
	const double nparticipants = gs_plan_cost_participants(partial->parallel_workers);
	const double nrows = partial->rows * nparticipants;
	double		largest;
	RangesPath *ranges = make_ranges(nodes, partial);
	const Path *top = ranges == NULL ? NULL : find_nodes(nodes);
	Path	   *sort;
	Path	   *path;

	if (ranges == NULL)
		return "a GpuSort cannot sort its share of the rows, or work_mem is too small";
	if (top == NULL)
		return "no plan of PostgreSQL reads its input in one order";
	if (nodes->ngrouped == 0)
		return "there are no columns by which all window functions or groups divide the rows";
	if (!nodes->safe)
		return "an expression is not parallel safe";
	sort = &ranges->custom.path;
	largest = largest_group(nodes, ranges, nrows);
	if (largest > MOST_IN_A_GROUP && !gpusort_force)
		return "one group has most of the rows";
	nodes->skew = Max(1, nparticipants * largest);
	sort->total_cost += (sort->total_cost - sort->startup_cost) * (nodes->skew - 1);
	path = copy_above(nodes, top, sort);
	ranges->saved = nrows * (1 - nodes->skew / nparticipants) *
		gs_plan_cost_windows(nodes->nwindows, count_aggregates(nodes));
	gs_node_divide(ranges->custom.custom_private, nodes->ngrouped);
	/* the last column is what medians are of */
	if (nodes->medians && nodes->ngrouped == list_length(nodes->pathkeys) - 1)
		gs_node_limit_groups(ranges->custom.custom_private, GS_GROUP_MIDDLE);
	path = hide_order(nodes, path);
	add_partial_path(nodes->rel, path);
	if (list_member_ptr(nodes->rel->partial_pathlist, path))
	{
		path = make_gather(nodes, path, top->rows);
		add_path(nodes->rel, path);
		if (list_member_ptr(nodes->rel->pathlist, path))
			return NULL;
	}
	return "another plan costs less";	/* the path was freed */
}

/* By what the participants sort if the query has only medians. */
static void
note_medians(UpperNodes *nodes, Path *input)
{
	List	   *pathkeys = gs_plan_medians_pathkeys(nodes->root, input);

	nodes->medians = pathkeys != NIL;
	if (nodes->medians)
		nodes->pathkeys = pathkeys;
}

/* One process sorts, or merges what others have sorted. */
static void
add_serial(UpperNodes *nodes, Path *sort)
{
	const Path *top = sort == NULL ? NULL : find_nodes(nodes);

	if (top != NULL)
		add_path(nodes->rel, copy_above(nodes, top, sort));
}

/* By what the lowest node of the relation needs its input ordered. */
static List *
input_pathkeys(const PlannerInfo *root, UpperRelationKind stage)
{
	switch (stage)
	{
		case UPPERREL_WINDOW:
			return root->window_pathkeys;
		case UPPERREL_GROUP_AGG:
			return root->parse->groupingSets == NIL ? root->group_pathkeys : NIL;
		case UPPERREL_DISTINCT:
			/* the order of DISTINCT ON is that of the query */
			return root->parse->hasDistinctOn &&
				list_length(root->distinct_pathkeys) < list_length(root->sort_pathkeys) ?
				root->sort_pathkeys : root->distinct_pathkeys;
		default:
			return NIL;
	}
}

void
gs_plan_ranges_add(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input_rel,
				   RelOptInfo *output_rel)
{
	UpperNodes	nodes = {
		.root = root,.rel = output_rel,.input_rel = input_rel,
		.pathkeys = input_pathkeys(root, stage),.skew = 1
	};
	const GsReplaceSettings settings = gs_replace_settings();
	const char *why_not;
	Path	   *input;
	Path	   *partial;

	/* a set operation has no input_rel */
	if (nodes.pathkeys == NIL)
		return;
	input = input_rel->cheapest_total_path;
	/* most queries are small, and should not pay for what they cannot use */
	if (gs_plan_replace_is_small(&settings, input->rows) || !enable_sort ||
		root->parse->hasTargetSRFs || output_rel->reloptkind != RELOPT_UPPER_REL)
		return;
	if (stage == UPPERREL_GROUP_AGG)
		nodes.pathkeys = gs_plan_aggregates_pathkeys(root, input);
	add_serial(&nodes, gs_plan_path_sort(root, output_rel, input, nodes.pathkeys,
										 &gs_plan_limit_none, true));
	if (stage == UPPERREL_WINDOW && gpusort_enable_ranges && !output_rel->consider_parallel)
		output_rel->consider_parallel = input_rel->consider_parallel &&
			is_safe(root, ((Path *) linitial(output_rel->pathlist))->pathtarget->exprs);
	partial = input_rel->consider_parallel && input_rel->partial_pathlist != NIL ?
		linitial(input_rel->partial_pathlist) : NULL;
	if (partial != NULL)
		add_serial(&nodes, gs_plan_path_merge(root, output_rel, partial, nodes.pathkeys,
											  &gs_plan_limit_none, partial->pathtarget, true));
	if (stage == UPPERREL_GROUP_AGG && partial != NULL && gpusort_enable_ranges)
		note_medians(&nodes, input);
	why_not = partial == NULL ? NULL :
		!gpusort_enable_ranges ? "gpusort.enable_ranges is off" :
		!output_rel->consider_parallel ? "a function is not parallel safe" :
		/* a Unique returns the columns as it gets them, so their order is the query's */
		add_ranges(&nodes, stage == UPPERREL_DISTINCT ? partial :
				   order_as_stored(root, input_rel, partial));
	if (gpusort_debug_plan && why_not != NULL)
		ereport(NOTICE,
				(errmsg("GpuSort by ranges not used: %s", why_not)));
}

/* --------------------------------------------------------------------- plan */

static Plan *
plan_ranges(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses,
			List *custom_plans)
{
	CustomScan *scan = makeNode(CustomScan);
	Plan	   *child = linitial(custom_plans);

	scan->scan.plan.targetlist = tlist;
	scan->scan.plan.lefttree = child;
	scan->custom_scan_tlist = copyObject(child->targetlist);
	scan->custom_private = path->custom_private;
	scan->methods = &gs_node_scan_methods;
	return (Plan *) scan;
}

const CustomPathMethods gs_ranges_path_methods = {
	.CustomName = "GpuSort",
	.PlanCustomPath = plan_ranges
};
