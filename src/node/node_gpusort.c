/*-------------------------------------------------------------------------
 *
 * node_gpusort.c
 *	  The GpuSort executor node: a driver of the engine frontier.
 *
 * A GpuSort stands where a Sort stood and keeps all its promises: it can be
 * rescanned, rewound, read backward, marked and restored, and it hands out
 * MinimalTuples in a slot that says so.  Two promises are its own, as long as
 * an engine sorts: the sort is stable, and every row is copied once on its way
 * in and not at all on its way out.
 *
 *				 first row wanted	  few? ------> FEW
 *		IDLE ------------------------> load ------> ENGINE
 *		 ^							 ^	|  \
 *		 | rescan		 memory is	 |	|	`-----> MERGE
 *		 |				 full: a run +--+
 *		 |								 | no code for a value, gpusort
 *		 |								 v switched off
 *		 +------------------------- drain and load ---> STOCK
 *
 * sort_input.c reads the child and sorts, sort_output.c hands out; here are the executor's calls.
 *
 * Everything a sort holds is in one memory context below the query's.  An
 * ERROR, a cancel, or the end of the query frees it; the engine has nothing
 * that would need more.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "guc.h"
#include "node/node_explain.h"
#include "sort/sort_output.h"
#include "sort/sort_input.h"
#include "node/node_gpusort.h"
#include "sort/sort_parallel.h"
#include "sort/sort_state.h"

#include "executor/executor.h"
#include "nodes/nodeFuncs.h"

/* The lists in custom_private. */
enum
{
	PRIVATE_ATTNOS,
	PRIVATE_OPERATORS,
	PRIVATE_COLLATIONS,
	PRIVATE_NULLS_FIRST,
	PRIVATE_FLAGS,
	PRIVATE_LISTS
};

/* The flags. */
enum
{
	FLAG_REPEATABLE,
	FLAG_SHARED
};

static Node *sort_create_state(CustomScan *scan);
static void sort_begin(CustomScanState *node, EState *estate, int eflags);
static TupleTableSlot *sort_exec(CustomScanState *node);
static TupleTableSlot *sort_exec_verified(CustomScanState *node);
static void sort_end(CustomScanState *node);
static void sort_rescan(CustomScanState *node);
static void sort_mark(CustomScanState *node);
static void sort_restore(CustomScanState *node);

const CustomScanMethods gs_node_scan_methods = {
	.CustomName = "GpuSort",
	.CreateCustomScanState = sort_create_state
};

#define SORT_METHODS(exec) \
	{ \
		.CustomName = "GpuSort", \
		.BeginCustomScan = sort_begin, \
		.ExecCustomScan = exec, \
		.EndCustomScan = sort_end, \
		.ReScanCustomScan = sort_rescan, \
		.MarkPosCustomScan = sort_mark, \
		.RestrPosCustomScan = sort_restore, \
		.EstimateDSMCustomScan = gs_sort_parallel_estimate, \
		.InitializeDSMCustomScan = gs_sort_parallel_initialize, \
		.ReInitializeDSMCustomScan = gs_sort_parallel_reinitialize, \
		.InitializeWorkerCustomScan = gs_sort_parallel_attach, \
		.ShutdownCustomScan = gs_sort_parallel_shutdown, \
		.ExplainCustomScan = gs_node_explain \
	}

static const CustomExecMethods sort_exec_methods = SORT_METHODS(sort_exec);
static const CustomExecMethods sort_exec_methods_verified = SORT_METHODS(sort_exec_verified);

/* ----------------------------------------------------------- plan and state */

List *
gs_node_private(const GsSortColumn *columns, int ncolumns, bool repeatable)
{
	List	   *lists[PRIVATE_LISTS] = {NIL};

	for (int i = 0; i < ncolumns; i++)
	{
		lists[PRIVATE_ATTNOS] = lappend_int(lists[PRIVATE_ATTNOS], columns[i].attno);
		lists[PRIVATE_OPERATORS] = lappend_oid(lists[PRIVATE_OPERATORS], columns[i].sort_operator);
		lists[PRIVATE_COLLATIONS] = lappend_oid(lists[PRIVATE_COLLATIONS], columns[i].collation);
		lists[PRIVATE_NULLS_FIRST] = lappend_int(lists[PRIVATE_NULLS_FIRST], columns[i].nulls_first);
	}
	lists[PRIVATE_FLAGS] = list_make2_int(repeatable, false);
	return list_make5(lists[0], lists[1], lists[2], lists[3], lists[4]);
}

void
gs_sort_node_share(CustomScan *scan)
{
	scan->scan.plan.parallel_aware = true;
	lfirst_int(list_nth_cell(list_nth(scan->custom_private, PRIVATE_FLAGS), FLAG_SHARED)) = true;
}

static GsSortColumn *
columns_of_plan(const CustomScan *scan, int *ncolumns)
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

static Node *
sort_create_state(CustomScan *scan)
{
	GsSortNode *node = palloc0(sizeof(GsSortNode));

	NodeSetTag(node, T_CustomScanState);
	node->sort.verified = gpusort_verify;
	node->css.methods = gpusort_verify ? &sort_exec_methods_verified : &sort_exec_methods;
	return (Node *) node;
}

static void
sort_begin(CustomScanState *node, EState *estate, int eflags)
{
	GsSortState *state = gs_node_sort(node);
	CustomScan *scan = (CustomScan *) node->ss.ps.plan;
	PlanState  *ps = &node->ss.ps;
	List	   *flags = list_nth(scan->custom_private, PRIVATE_FLAGS);

	state->columns = columns_of_plan(scan, &state->ncolumns);
	state->repeatable = list_nth_int(flags, FLAG_REPEATABLE) != 0;
	state->may_share = list_nth_int(flags, FLAG_SHARED) != 0;
	gs_sort_parallel_begin(node);
	/* a Gather Merge that is rewound has its workers load once more, and the leader */
	state->random_access = !state->may_share &&
		(eflags & (EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK)) != 0;
	state->bound = gs_limit_init(scan->custom_exprs, ps);
	state->econtext = ps->ps_ExprContext;
	state->expected_rows = scan->scan.plan.plan_rows;
	state->expected_width = scan->scan.plan.plan_width;
	state->parent_context = estate->es_query_cxt;

	/* we shield the child from all of these */
	eflags &= ~(EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK);
	state->child = outerPlanState(node) = ExecInitNode(outerPlan(scan), estate, eflags);
	state->desc = ExecGetResultType(state->child);

	/*
	 * The executor has set up the node as one that projects to virtual slots.
	 * It does neither, and nodes above must know: they compile how a tuple is
	 * deformed for the kind of slot that is promised here.
	 */
	ps->ps_ProjInfo = NULL;
	state->slot = ps->ps_ResultTupleSlot =
		ExecInitExtraTupleSlot(estate, ps->ps_ResultTupleDesc, &TTSOpsMinimalTuple);
	ps->resultops = &TTSOpsMinimalTuple;
	ps->resultopsfixed = true;
	ps->resultopsset = true;
}

/* ----------------------------------------------------------------- hand-out */

/* Tells the leader how the sort went, for EXPLAIN. */
static void
report(GsSortState *state)
{
	GsSortSummary summary;

	gs_node_summarize(state, &summary);
	gs_sort_parallel_report(state, &summary);
}

/* The sort of a node, its rows loaded. */
static inline GsSortState *
sort_with_input(CustomScanState *node)
{
	GsSortState *state = gs_node_sort(node);

	if (unlikely(state->phase == GS_SORT_IDLE))
	{
		gs_sort_read_input(state);
		if (state->shared != NULL)
			report(state);
	}
	return state;
}

static TupleTableSlot *
sort_exec(CustomScanState *node)
{
	return gs_sort_next(sort_with_input(node),
						ScanDirectionIsForward(node->ss.ps.state->es_direction));
}

/* The same under gpusort.verify. */
static TupleTableSlot *
sort_exec_verified(CustomScanState *node)
{
	return gs_sort_next_verified(sort_with_input(node),
								 ScanDirectionIsForward(node->ss.ps.state->es_direction));
}

/* ------------------------------------------------------ the rest of the life */

static void
sort_end(CustomScanState *node)
{
	gs_sort_reset(gs_node_sort(node));
	ExecEndNode(outerPlanState(node));
}

/* Will the rows that were kept do for the bound as it is now? */
static bool
bound_is_kept(const GsSortState *state)
{
	int64		bound = gs_limit_compute(state->bound, state->econtext);

	if (state->phase == GS_SORT_FEW || state->phase == GS_SORT_ENGINE)
		return bound <= gs_topn_nrows(&state->top);
	return bound <= state->top.bound;
}

static void
sort_rescan(CustomScanState *node)
{
	GsSortState *state = gs_node_sort(node);
	PlanState  *child = outerPlanState(node);

	/* ExecReScan() of a child with changed parameters happens by itself */
	if (state->phase == GS_SORT_IDLE)
		return;

	/*
	 * The rows can be handed out again if the child would give the same ones,
	 * and no more of them are wanted.  Without random_access nobody promised
	 * that it would.
	 */
	if (child->chgParam != NULL || !state->random_access || !bound_is_kept(state))
	{
		gs_sort_reset(state);
		if (child->chgParam == NULL)
			ExecReScan(child);
		return;
	}
	ExecClearTuple(state->slot);
	if (state->phase == GS_SORT_FALLBACK)
		tuplesort_rescan(state->fallback.state);
	if (state->verify != NULL)
		gs_sort_verify_restart(state->verify, true);
	state->position = -1;
}

static void
sort_mark(CustomScanState *node)
{
	GsSortState *state = gs_node_sort(node);

	if (state->phase == GS_SORT_FALLBACK)
		tuplesort_markpos(state->fallback.state);
	else
		state->mark = state->position;
}

static void
sort_restore(CustomScanState *node)
{
	GsSortState *state = gs_node_sort(node);

	if (state->phase == GS_SORT_FALLBACK)
		tuplesort_restorepos(state->fallback.state);
	else
		state->position = state->mark;
	if (state->verify != NULL)
		gs_sort_verify_restart(state->verify, false);
}
