/*-------------------------------------------------------------------------
 *
 * gpusort.c
 *	  Library load: settings, hooks, the executor node and the supervisor.
 *
 * Loading the library by LOAD, session_preload_libraries or shared_preload_libraries is sufficient.
 * CREATE EXTENSION only adds SQL functions.  README.md lists the folders and the hooks.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "guc.h"
#include "pg_compat.h"
#include "client/supervisor.h"
#include "cluster/cluster.h"
#include "common/key_pack.h"
#include "index/index_hook.h"
#include "node/node_gpusort.h"
#include "plan/plan.h"
#include "plan/plan_ranges.h"

#include "executor/executor.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "optimizer/planmain.h"
#include "optimizer/planner.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

extern PGDLLEXPORT void _PG_init(void);

extern PGDLLEXPORT Datum gpusort_version(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(gpusort_version);

GS_MODULE_MAGIC("gpusort", GPUSORT_VERSION);

static planner_hook_type next_planner_hook = NULL;
static create_upper_paths_hook_type next_upper_paths_hook = NULL;
static ExecutorStart_hook_type next_executor_start_hook = NULL;

/*
 * A query that is being planned.  A planner hook between this one and the planner,
 * such as that of pg_hint_plan, may change settings for the planner and restore
 * them.  Therefore create_upper_paths_hook saves the settings that the planner had.
 */
typedef struct Planning
{
	GsReplaceSettings settings;
	struct Planning *outer;		/* the query whose planning runs a function with this one */
} Planning;

static Planning *planning = NULL;

static PlannedStmt *
gpusort_planner(GS_PLANNER_PARAMS)
{
	Planning	mine = {.settings = gs_replace_settings(), .outer = planning};
	PlannedStmt *statement;
	bool		repeatable;

	/* before the planner, which scribbles on the query */
	repeatable = gpusort_enabled && gpusort_engine != GS_ENGINE_CPU &&
		gs_plan_is_repeatable(parse);
	planning = &mine;
	PG_TRY();
	{
		if (next_planner_hook)
			statement = next_planner_hook(GS_PLANNER_ARGS);
		else
			statement = standard_planner(GS_PLANNER_ARGS);
	}
	PG_FINALLY();
	{
		planning = mine.outer;
	}
	PG_END_TRY();
	/* gpusort_enabled again: the plan will run with the settings of the session */
	if (!gpusort_enabled || !mine.settings.enabled)
		return statement;
	/* another hook may return a plan that it keeps, which lives longer than nodes made here */
	if (GetMemoryChunkContext(statement) != CurrentMemoryContext)
		statement = copyObject(statement);
	gs_plan_rewrite(statement, &mine.settings, repeatable,
					(cursor_options & CURSOR_OPT_FAST_PLAN) != 0 && cursor_tuple_fraction < 1.0);
	return statement;
}

static void
gpusort_create_upper_paths(PlannerInfo *root, UpperRelationKind stage,
						   RelOptInfo *input_rel, RelOptInfo *output_rel, void *extra)
{
	if (next_upper_paths_hook)
		next_upper_paths_hook(root, stage, input_rel, output_rel, extra);
	/* every query has this stage */
	if (stage == UPPERREL_FINAL && planning != NULL)
		planning->settings = gs_replace_settings();
	if (gpusort_enabled && gpusort_planner_cost && stage == UPPERREL_ORDERED)
		gs_plan_path_add(root, input_rel, output_rel, input_rel->partial_pathlist == NIL ? 0 :
						 gs_plan_ranges_saved(linitial(input_rel->partial_pathlist)));
	else if (gpusort_enabled && gpusort_planner_cost)
		gs_plan_ranges_add(root, stage, input_rel, output_rel);
}

/* Will EXPLAIN ANALYZE, or what is like it, show how each participant has worked? */
static bool
reports_workers(const QueryDesc *query, int eflags)
{
	return query->instrument_options != 0 && query->plannedstmt->parallelModeNeeded &&
		(eflags & EXEC_FLAG_EXPLAIN_ONLY) == 0;
}

static void
gpusort_executor_start(QueryDesc *query, int eflags)
{
	if (reports_workers(query, eflags))
		query->plannedstmt = gs_plan_with_reports(query->plannedstmt);
	if (next_executor_start_hook)
		next_executor_start_hook(query, eflags);
	else
		standard_ExecutorStart(query, eflags);
	gs_node_started(query);
}

void
_PG_init(void)
{
	gs_guc_define();
	RegisterCustomScanMethods(&gs_node_scan_methods);
	next_planner_hook = planner_hook;
	planner_hook = gpusort_planner;
	next_upper_paths_hook = create_upper_paths_hook;
	create_upper_paths_hook = gpusort_create_upper_paths;
	next_executor_start_hook = ExecutorStart_hook;
	ExecutorStart_hook = gpusort_executor_start;
	gs_plan_explain_install();
	gs_index_hook_install();
	gs_cluster_hook_install();
	gs_supervisor_register();
	/* sessions inherit what is found out about the processor */
	if (process_shared_preload_libraries_in_progress)
		(void) gs_extract_bits_function();
}

/* gpusort_version() returns text: the version of the loaded library. */
Datum
gpusort_version(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(GPUSORT_VERSION));
}
