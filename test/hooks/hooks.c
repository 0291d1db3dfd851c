/*-------------------------------------------------------------------------
 *
 * hooks.c
 *	  An extension that has the hooks that gpusort has, counts their calls, and keeps plans.
 *
 * hook_calls() returns how often each was called since it was called before.
 *
 * The planner sees another index, which does not exist, of each table whose name is "hypothetical".
 * like_heap_handler() is a table access method that does what heap does.
 *
 * A query that begins with a comment of a plus sign and the word "keep" is planned once.  Its plan is
 * returned each time, as it is, while the next query of this kind has the same text.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/tableam.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "optimizer/pathnode.h"
#include "optimizer/plancat.h"
#include "optimizer/planner.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "pg_compat.h"

PG_MODULE_MAGIC;

void		_PG_init(void);
PG_FUNCTION_INFO_V1(hook_calls);
PG_FUNCTION_INFO_V1(like_heap_handler);

static planner_hook_type next_planner_hook;
static create_upper_paths_hook_type next_upper_paths_hook;
static GsTableHook next_table_hook;
static ExecutorStart_hook_type next_executor_start_hook;

static int	nplanned;
static int	nupper;
static int	nrelations;
static int	nstarted;

static PlannedStmt *kept = NULL;
static char *kept_query = NULL;

static PlannedStmt *
plan_query(GS_PLANNER_PARAMS)
{
	if (next_planner_hook)
		return next_planner_hook(GS_PLANNER_ARGS);
	return standard_planner(GS_PLANNER_ARGS);
}

static PlannedStmt *
counting_planner(GS_PLANNER_PARAMS)
{
	PlannedStmt *statement;
	MemoryContext old;

	nplanned++;
	if (strstr(query_string, "/*+ keep */") == NULL)
		return plan_query(GS_PLANNER_ARGS);
	if (kept_query == NULL || strcmp(kept_query, query_string) != 0)
	{
		statement = plan_query(GS_PLANNER_ARGS);
		old = MemoryContextSwitchTo(TopMemoryContext);
		kept = copyObject(statement);
		kept_query = pstrdup(query_string);
		MemoryContextSwitchTo(old);
	}
	return kept;
}

static void
count_upper_paths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input_rel, RelOptInfo *output_rel, void *extra)
{
	nupper++;
	if (next_upper_paths_hook)
		next_upper_paths_hook(root, stage, input_rel, output_rel, extra);
}

static void
add_hypothetical_index(RelOptInfo *rel)
{
	IndexOptInfo *index = makeNode(IndexOptInfo);

	*index = *linitial_node(IndexOptInfo, rel->indexlist);
	index->indexoid = InvalidOid;
	index->hypothetical = true;
	rel->indexlist = lcons(index, rel->indexlist);
}

static void
count_relation(GS_TABLE_HOOK_PARAMS)
{
	nrelations++;
	if (next_table_hook)
		next_table_hook(GS_TABLE_HOOK_ARGS);
	if (rel->indexlist != NIL && strcmp(get_rel_name(GS_TABLE_HOOK_TABLE), "hypothetical") == 0)
		add_hypothetical_index(rel);
}

static void
count_start(QueryDesc *query, int eflags)
{
	nstarted++;
	if (next_executor_start_hook)
		next_executor_start_hook(query, eflags);
	else
		standard_ExecutorStart(query, eflags);
}

Datum
hook_calls(PG_FUNCTION_ARGS)
{
	char	   *calls = psprintf("planner %d, upper paths %d, relations %d, executor %d", nplanned, nupper, nrelations, nstarted);

	nplanned = nupper = nrelations = nstarted = 0;
	PG_RETURN_TEXT_P(cstring_to_text(calls));
}

/* heap's function reads tables of no other access method. */
static double
build_index(Relation table, Relation index, struct IndexInfo *info, bool allow_sync, bool anyvisible, bool progress,
			BlockNumber start, BlockNumber nblocks, IndexBuildCallback callback, void *state, TableScanDesc scan)
{
	const TableAmRoutine *routine = table->rd_tableam;
	double		nrows;

	table->rd_tableam = GetHeapamTableAmRoutine();
	nrows = table->rd_tableam->index_build_range_scan(table, index, info, allow_sync, anyvisible, progress, start, nblocks,
													  callback, state, scan);
	table->rd_tableam = routine;
	return nrows;
}

Datum
like_heap_handler(PG_FUNCTION_ARGS)
{
	static TableAmRoutine routine;

	routine = *GetHeapamTableAmRoutine();
	routine.index_build_range_scan = build_index;
	PG_RETURN_POINTER(&routine);
}

void
_PG_init(void)
{
	next_planner_hook = planner_hook;
	planner_hook = counting_planner;
	next_upper_paths_hook = create_upper_paths_hook;
	create_upper_paths_hook = count_upper_paths;
	next_table_hook = gs_table_hook;
	gs_table_hook = count_relation;
	next_executor_start_hook = ExecutorStart_hook;
	ExecutorStart_hook = count_start;
}
