/*-------------------------------------------------------------------------
 *
 * node_gpusort.c
 *	  The GpuSort executor node.
 *
 * A GpuSort that replaces a Sort keeps all that it guarantees (README.md).  One that replaces an
 * Incremental Sort can be rescanned as that can, and sorts batch by batch (read_groups.c).
 *
 * The executor gives a custom node shared memory only if its plan is parallel_aware.  A GpuSort
 * below a Gather Merge is, since its participants may share its sort (sort_parallel.c).
 *
 * EXPLAIN ANALYZE shows how each participant sorted, also where they share nothing, such as below a
 * merge join, as it does for a Sort.  So all GpuSorts of a parallel query that runs instrumented
 * are parallel_aware (gs_plan_with_reports()) until they are shut down.  EXPLAIN comes after that,
 * and prints the node as it was planned.
 *
 * All that a sort allocates is in one memory context below the query's, which ERROR, cancel and the
 * end of the query free.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/protocol.h"
#include "guc.h"
#include "node/node_gpusort.h"
#include "pg_compat.h"
#include "read/read_limit.h"
#include "share/share_state.h"
#include "sort/sort.h"
#include "sort/sort_group_rows.h"
#include "sort/sort_parallel.h"
#include "sort/sort_ranges.h"
#include "sort/sort_stats.h"
#include "sort/sort_summary.h"

#include "access/htup_details.h"
#include "access/parallel.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"

/* What is in custom_private: the build ID, and lists. */
enum
{
	PRIVATE_BUILD,
	PRIVATE_ATTNOS,
	PRIVATE_OPERATORS,
	PRIVATE_COLLATIONS,
	PRIVATE_NULLS_FIRST,
	PRIVATE_FLAGS,
	PRIVATE_WINDOW,				/* window functions, as node_window.h has them; NIL: none */
	PRIVATE_REPLACED,			/* functions of which gs_node_replaces_function() was told */
	PRIVATE_MEMBERS
};

/* The flags. */
enum
{
	FLAG_REPEATABLE,
	FLAG_SHARED,
	FLAG_PRESORTED,				/* a number of columns */
	FLAG_GROUPED,				/* a number of columns */
	FLAG_GROUP_LIMIT
};

/*
 * The share of work_mem that the rows of a batch may take, as the planner estimates their width:
 * keys take as much as narrow rows, and the last group comes in addition.
 */
#define BATCH_MEMORY_SHARE	0.25

static TupleTableSlot *sort_exec_verified(CustomScanState *node);
static TupleTableSlot *sort_exec_ranges(CustomScanState *node);

/* ----------------------------------------------------------- plan and state */

List *
gs_node_private(const GsSortColumn *columns, int ncolumns, int npresorted, bool repeatable)
{
	List	   *lists[PRIVATE_MEMBERS] = {NIL};
	List	   *members = list_make1(makeString(pstrdup(gs_build_id)));

	for (int i = 0; i < ncolumns; i++)
	{
		lists[PRIVATE_ATTNOS] = lappend_int(lists[PRIVATE_ATTNOS], columns[i].attno);
		lists[PRIVATE_OPERATORS] = lappend_oid(lists[PRIVATE_OPERATORS], columns[i].sort_operator);
		lists[PRIVATE_COLLATIONS] = lappend_oid(lists[PRIVATE_COLLATIONS], columns[i].collation);
		lists[PRIVATE_NULLS_FIRST] =
			lappend_int(lists[PRIVATE_NULLS_FIRST], columns[i].nulls_first);
	}
	lists[PRIVATE_FLAGS] = list_make5_int(repeatable, false, npresorted, 0, 0);
	for (int i = PRIVATE_ATTNOS; i < PRIVATE_MEMBERS; i++)
		members = lappend(members, lists[i]);
	return members;
}

void
gs_sort_node_share(CustomScan *scan)
{
	scan->scan.plan.parallel_aware = true;
	lfirst_int(list_nth_cell(list_nth(scan->custom_private, PRIVATE_FLAGS), FLAG_SHARED)) = true;
}

/* The columns of a GpuSort. */
static GsSortColumn *
node_columns(const CustomScan *scan, int *ncolumns)
{
	List	   *attnos = list_nth(scan->custom_private, PRIVATE_ATTNOS);
	List	   *operators = list_nth(scan->custom_private, PRIVATE_OPERATORS);
	List	   *collations = list_nth(scan->custom_private, PRIVATE_COLLATIONS);
	List	   *nulls_first = list_nth(scan->custom_private, PRIVATE_NULLS_FIRST);
	GsSortColumn *columns = palloc(sizeof(GsSortColumn) * list_length(attnos));

	*ncolumns = list_length(attnos);
	for (int i = 0; i < *ncolumns; i++)
	{
		columns[i].attno = list_nth_int(attnos, i);
		columns[i].type = exprType((Node *) list_nth_node(TargetEntry, scan->custom_scan_tlist,
														  columns[i].attno - 1)->expr);
		columns[i].sort_operator = list_nth_oid(operators, i);
		columns[i].collation = list_nth_oid(collations, i);
		columns[i].nulls_first = list_nth_int(nulls_first, i) != 0;
	}
	return columns;
}

void
gs_node_divide(List *custom_private, int ngrouped)
{
	List	   *flags = list_nth(custom_private, PRIVATE_FLAGS);

	lfirst_int(list_nth_cell(flags, FLAG_GROUPED)) = ngrouped;
}

void
gs_node_limit_groups(List *custom_private, int group_limit)
{
	List	   *flags = list_nth(custom_private, PRIVATE_FLAGS);

	lfirst_int(list_nth_cell(flags, FLAG_GROUP_LIMIT)) = group_limit;
}

void
gs_node_compute_window(CustomScan *scan, List *functions)
{
	lfirst(list_nth_cell(scan->custom_private, PRIVATE_WINDOW)) = functions;
}

const List *
gs_node_window_functions(const CustomScan *scan)
{
	return list_nth(scan->custom_private, PRIVATE_WINDOW);
}

void
gs_node_replaces_function(CustomScan *scan, Oid function)
{
	ListCell   *functions = list_nth_cell(scan->custom_private, PRIVATE_REPLACED);

	lfirst(functions) = list_append_unique_oid(lfirst(functions), function);
}

/* An ERROR unless the user may execute them, as PostgreSQL's nodes check when they begin. */
static void
check_replaced_functions(const CustomScan *scan)
{
	ListCell   *lc;

	foreach(lc, (List *) list_nth(scan->custom_private, PRIVATE_REPLACED))
		gs_check_execute(lfirst_oid(lc));
}

Bitmapset *
gs_node_grouped_columns(const CustomScan *scan)
{
	const List *flags = list_nth(scan->custom_private, PRIVATE_FLAGS);
	const List *attnos = list_nth(scan->custom_private, PRIVATE_ATTNOS);
	Bitmapset  *columns = NULL;

	for (int i = 0; i < list_nth_int(flags, FLAG_GROUPED); i++)
		columns = bms_add_member(columns, list_nth_int(attnos, i));
	return columns;
}

int
gs_node_group_limit(const CustomScan *scan)
{
	return list_nth_int(list_nth(scan->custom_private, PRIVATE_FLAGS), FLAG_GROUP_LIMIT);
}

int
gs_node_presorted_columns(const CustomScan *scan)
{
	return list_nth_int(list_nth(scan->custom_private, PRIVATE_FLAGS), FLAG_PRESORTED);
}

/* Do the participants of a sort share rows, or does it only report? */
static bool
shares_rows(const GsSortSpec *spec)
{
	return spec->may_share || spec->ngrouped > 0;
}

/* Does a node, or one below it, work on a part of what other processes work on? */
static bool
is_shared(PlanState *node, void *context)
{
	/* parallel_aware may only mean that a GpuSort reports */
	if (gs_node_is_gpusort(node->plan) ?
		shares_rows(&gs_node_sort((CustomScanState *) node)->spec) : node->plan->parallel_aware)
		return true;
	return planstate_tree_walker(node, is_shared, context);
}

/* What the plan node asks of its sort. */
static GsSortSpec
spec_of_plan(CustomScanState *node, PlanState *child, TupleTableSlot *slot, int eflags)
{
	CustomScan *scan = (CustomScan *) node->ss.ps.plan;
	PlanState  *ps = &node->ss.ps;
	List	   *flags = list_nth(scan->custom_private, PRIVATE_FLAGS);
	const int	npresorted = gs_node_presorted_columns(scan);
	GsSortSpec	spec = {
		.desc = ExecGetResultType(child),
		.expected_rows = child->plan->plan_rows,
		.expected_width = child->plan->plan_width,
		.child = child,
		.repeatable = list_nth_int(flags, FLAG_REPEATABLE) != 0 && npresorted == 0 &&
			!is_shared(child, NULL),
		.limit = gs_read_limit_init(scan->custom_exprs, ps),
		.econtext = ps->ps_ExprContext,
		.verify_output = gpusort_verify,
		.slot = slot,
		.may_share = list_nth_int(flags, FLAG_SHARED) != 0,
		.ngrouped = list_nth_int(flags, FLAG_GROUPED),
		.group_limit = list_nth_int(flags, FLAG_GROUP_LIMIT),
		.numbers_rows = gs_node_window_functions(scan) != NIL,
		.parent_context = ps->state->es_query_cxt
	};

	spec.columns = node_columns(scan, &spec.ncolumns);
	/* if a Gather Merge is rewound, its workers and the leader read and sort again */
	spec.random_access = !spec.may_share && spec.ngrouped == 0 && npresorted == 0 &&
		(eflags & (EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK)) != 0;
	if (npresorted > 0)
	{
		spec.groups = gs_sort_groups_create(child, spec.columns, npresorted,
											work_mem * BATCH_MEMORY_SHARE * 1024.0 /
											(SizeofMinimalTupleHeader + spec.expected_width));
		/* with space for the group that ends a batch */
		spec.expected_rows = Min(spec.expected_rows, 2 * GS_GROUPS_BATCH_ROWS);
	}
	return spec;
}

/*
 * The executor has set up the node as one that projects to virtual slots.  It does not, and the
 * nodes above must know, because they compile how a tuple is deformed for the type of slot that is
 * announced here.
 */
static TupleTableSlot *
return_rows(PlanState *ps)
{
	ps->ps_ProjInfo = NULL;
	ps->ps_ResultTupleSlot =
		ExecInitExtraTupleSlot(ps->state, ps->ps_ResultTupleDesc, &TTSOpsMinimalTuple);
	ps->resultops = &TTSOpsMinimalTuple;
	ps->resultopsfixed = true;
	ps->resultopsset = true;
	return ps->ps_ResultTupleSlot;
}

static void
sort_begin(CustomScanState *node, EState *estate, int eflags)
{
	const List *functions = gs_node_window_functions((CustomScan *) node->ss.ps.plan);
	PlanState  *ps = &node->ss.ps;
	PlanState  *child;
	TupleTableSlot *slot;
	GsSortSpec	spec;

	check_replaced_functions((CustomScan *) ps->plan);
	/* the sort keeps the rows, so the child needs none of these */
	child = ExecInitNode(outerPlan(ps->plan), estate,
						 eflags & ~(EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK));
	outerPlanState(node) = child;
	if (functions == NIL)
		slot = return_rows(ps);
	else
	{
		slot = ExecInitExtraTupleSlot(estate, ExecGetResultType(child), &TTSOpsMinimalTuple);
		((GsSortNode *) node)->window = gs_node_window_begin(&node->ss, functions);
	}
	spec = spec_of_plan(node, child, slot, eflags);
	gs_sort_init(gs_node_sort(node), &spec);
}

/* -------------------------------------------------------------------- rows */

/* A batch was sorted. */
static void
count_batch(const GsSortState *state)
{
	GsSortSummary summary;

	gs_sort_summarize(state, &summary);
	gs_sort_groups_add_summary(state->spec.groups, &summary);
	if (state->store.phase != GS_STORE_FEW)
		state->spec.groups->may_be_in_order = state->store.order.presorted;
}

/*
 * Brings the rows of participants together, and reports how this one sorted to the leader, for
 * EXPLAIN.
 */
static void
share(GsSortState *state)
{
	GsSortSummary summary;

	gs_sort_summarize(state, &summary);
	if (state->participants.ranges != NULL)
		gs_sort_ranges_share(state);
	else
		gs_sort_parallel_gather(state);
	summary.nsent = state->participants.nsent;
	if (state->spec.groups != NULL)
	{
		summary = state->spec.groups->largest;
		summary.nrows = state->spec.groups->nrows;
	}
	gs_sort_parallel_report(state, &summary);
}

/* The sort of a node, after its input. */
static inline GsSortState *
sort_with_input(CustomScanState *node)
{
	GsSortState *state = gs_node_sort(node);

	if (unlikely(state->store.phase == GS_STORE_IDLE))
	{
		gs_sort_read_input(state);
		if (state->spec.groups != NULL)
			count_batch(state);
		if (gs_sort_is_slow(state))
			gs_sort_log_duration(state, gs_node_describe_key(node));
		if (state->participants.shared != NULL)
			share(state);
	}
	return state;
}

/* After the last row: does another batch follow? */
static bool
begin_next_batch(CustomScanState *node)
{
	GsSortState *state = gs_node_sort(node);

	if (state->spec.groups == NULL || state->spec.groups->at_end)
		return false;
	gs_sort_reset(state);
	return true;
}

static TupleTableSlot *
sort_exec_ranges(CustomScanState *node)
{
	return gs_sort_ranges_next(sort_with_input(node));
}

/* Returns what is computed from the rows, window functions among it. */
static TupleTableSlot *
sort_exec_window(CustomScanState *node)
{
	GsNodeWindow *window = ((GsSortNode *) node)->window;
	TupleTableSlot *result = NULL;

	while (result == NULL)
	{
		TupleTableSlot *slot;

		CHECK_FOR_INTERRUPTS();
		gs_node_window_keep(window);
		slot = sort_exec_ranges(node);
		if (TupIsNull(slot))
		{
			gs_node_window_restart(window);
			return NULL;
		}
		result = gs_node_window_compute(window, slot,
										gs_sort_group_rows_number(gs_node_sort(node)));
	}
	return result;
}

static TupleTableSlot *
sort_exec(CustomScanState *node)
{
	const bool	forward = ScanDirectionIsForward(node->ss.ps.state->es_direction);
	TupleTableSlot *slot;

	do
		slot = gs_sort_next(sort_with_input(node), forward);
	while (TupIsNull(slot) && begin_next_batch(node));
	return slot;
}

/* Like sort_exec(), but verifies the order of the rows (gpusort.verify). */
static TupleTableSlot *
sort_exec_verified(CustomScanState *node)
{
	const bool	forward = ScanDirectionIsForward(node->ss.ps.state->es_direction);
	TupleTableSlot *slot;

	do
		slot = gs_sort_next_verified(sort_with_input(node), forward);
	while (TupIsNull(slot) && begin_next_batch(node));
	return slot;
}

/* --------------------------------------------------------- end, rescan, mark */

static void
sort_end(CustomScanState *node)
{
	gs_sort_parallel_end(gs_node_sort(node));
	gs_sort_reset(gs_node_sort(node));
	ExecEndNode(outerPlanState(node));
}

static void
sort_rescan(CustomScanState *node)
{
	GsSortState *state = gs_node_sort(node);
	PlanState  *child = outerPlanState(node);

	if (((GsSortNode *) node)->window != NULL)
		gs_node_window_restart(((GsSortNode *) node)->window);
	if (state->store.phase == GS_STORE_IDLE)
		return;
	if (child->chgParam == NULL && gs_sort_can_rewind(state))
	{
		gs_sort_rewind(state);
		return;
	}
	/* the child returns other rows, or more of them are needed */
	gs_sort_reset(state);
	if (state->spec.groups != NULL)
		gs_sort_groups_restart(state->spec.groups);
	if (child->chgParam == NULL)
		ExecReScan(child);		/* otherwise ExecProcNode() does this */
}

static void
sort_mark(CustomScanState *node)
{
	gs_store_mark(&gs_node_sort(node)->store);
}

static void
sort_restore(CustomScanState *node)
{
	gs_sort_restore(gs_node_sort(node));
}

/* ------------------------------------------------------------ parallel plans */

/* Finds the GpuSorts of a Gather Merge, whose rows they return. */
static bool
find_sorts(PlanState *node, void *gather)
{
	if (gs_node_is_gpusort(node->plan))
		gs_sort_parallel_set_gather(gs_node_sort((CustomScanState *) node),
									((PlanState *) gather)->ps_ExprContext);
	return planstate_tree_walker(node, find_sorts, gather);
}

/* The only child of a node that always reads it, or else NULL. */
static PlanState *
child_that_is_read(PlanState *node)
{
	switch (nodeTag(node))
	{
		case T_SubqueryScanState:
			return ((SubqueryScanState *) node)->subplan;
		case T_WindowAggState:
		case T_AggState:
		case T_GroupState:
		case T_UniqueState:
		case T_ResultState:
		case T_SortState:
		case T_IncrementalSortState:
			return outerPlanState(node);
		default:
			return gs_node_is_gpusort(node->plan) ? outerPlanState(node) : NULL;
	}
}

/*
 * Finds the GpuSorts that the leader executes whenever its workers do.  Below an Append, for
 * example, it may execute another child.
 */
static void
find_sorts_of_leader(PlanState *node)
{
	for (; node != NULL; node = child_that_is_read(node))
	{
		if (gs_node_is_gpusort(node->plan))
			gs_sort_parallel_expect_leader(gs_node_sort((CustomScanState *) node));
	}
}

static bool
find_gathers(PlanState *node, void *context)
{
	if (IsA(node, GatherMergeState))
		(void) find_sorts(outerPlanState(node), node);
	if (IsA(node, GatherMergeState) || IsA(node, GatherState))
		find_sorts_of_leader(outerPlanState(node));
	/* another one below it, or in its subplans, has sorts of its own */
	return planstate_tree_walker(node, find_gathers, context);
}

void
gs_node_started(QueryDesc *query)
{
	if (query->plannedstmt->parallelModeNeeded && !IsParallelWorker())
		(void) find_gathers(query->planstate, NULL);
}

static Size
parallel_estimate(CustomScanState *node, ParallelContext *pcxt)
{
	return gs_sort_parallel_bytes(gs_node_sort(node), pcxt->nworkers + 1);
}

static void
parallel_initialize(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	/* without a segment there are no workers */
	gs_sort_parallel_create(gs_node_sort(node), coordinate, pcxt->nworkers + 1, pcxt->seg,
							node->ss.ps.state->es_query_dsa);
}

static void
parallel_reinitialize(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	gs_sort_parallel_recreate(gs_node_sort(node));
}

static void
parallel_attach(CustomScanState *node, shm_toc *toc, void *coordinate)
{
	gs_sort_parallel_attach(gs_node_sort(node), coordinate, node->ss.ps.state->es_query_dsa);
}

/* The shared memory is released before EXPLAIN runs.  A sort that runs again reports no more. */
static void
parallel_shutdown(CustomScanState *node)
{
	GsSortState *state = gs_node_sort(node);

	if (IsParallelWorker())
		return;
	/* the plan is a copy for this query, if it is parallel_aware only to report */
	if (!shares_rows(&state->spec) && node->ss.ps.plan->parallel_aware)
		node->ss.ps.plan->parallel_aware = false;
	gs_sort_parallel_detach(state);
}

/* ------------------------------------------------------------------ callbacks */

#define SORT_METHODS(exec) \
	{ \
		.CustomName = "GpuSort", \
		.BeginCustomScan = sort_begin, \
		.ExecCustomScan = exec, \
		.EndCustomScan = sort_end, \
		.ReScanCustomScan = sort_rescan, \
		.MarkPosCustomScan = sort_mark, \
		.RestrPosCustomScan = sort_restore, \
		.EstimateDSMCustomScan = parallel_estimate, \
		.InitializeDSMCustomScan = parallel_initialize, \
		.ReInitializeDSMCustomScan = parallel_reinitialize, \
		.InitializeWorkerCustomScan = parallel_attach, \
		.ShutdownCustomScan = parallel_shutdown, \
		.ExplainCustomScan = gs_node_explain \
	}

static const CustomExecMethods sort_exec_methods = SORT_METHODS(sort_exec);
static const CustomExecMethods sort_exec_methods_verified = SORT_METHODS(sort_exec_verified);
static const CustomExecMethods sort_exec_methods_ranges = SORT_METHODS(sort_exec_ranges);
static const CustomExecMethods sort_exec_methods_window = SORT_METHODS(sort_exec_window);

static Node *
sort_create_state(CustomScan *scan)
{
	GsSortNode *node = palloc0(sizeof(GsSortNode));

	/* before a worker reads anything else that the leader has written */
	gs_shared_check_build(strVal(list_nth(scan->custom_private, PRIVATE_BUILD)));
	NodeSetTag(node, T_CustomScanState);
	node->css.methods = gs_node_window_functions(scan) != NIL ? &sort_exec_methods_window :
		gs_node_grouped_columns(scan) != NULL ? &sort_exec_methods_ranges :
		gpusort_verify ? &sort_exec_methods_verified : &sort_exec_methods;
	return (Node *) node;
}

const CustomScanMethods gs_node_scan_methods = {
	.CustomName = "GpuSort",
	.CreateCustomScanState = sort_create_state
};
