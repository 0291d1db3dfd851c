/*-------------------------------------------------------------------------
 *
 * index_hook.c
 *	  Which index builds are gpusort's.
 *
 * There is no hook for index builds.  But before the access method is called,
 * index_build() asks the planner how many parallel workers a btree is worth, whatever
 * statement it is built for; the planner makes itself a query without FROM for that, and asks
 * get_relation_info_hook about the table.  All of the index's catalog work is done then,
 * and its relcache entry is open.  So there it gets another ambuild function.  An entry that has
 * it longer than needed does no harm, since for others it calls btbuild().
 *
 * The planner is not asked where max_parallel_maintenance_workers is 0.  Then it
 * is 1 for the time of a statement that builds indexes, and no build has any workers.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "gpusort.h"
#include "index_build.h"
#include "index_hook.h"
#include "index_sort.h"
#include "pgcompat.h"
#include "sort_parallel.h"

#include "access/nbtree.h"
#include "access/table.h"
#include "catalog/catalog.h"
#include "catalog/pg_am_d.h"
#include "commands/defrem.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "optimizer/plancat.h"
#include "tcop/utility.h"

static get_relation_info_hook_type next_relation_info_hook = NULL;
static ProcessUtility_hook_type next_utility_hook = NULL;

/* Is max_parallel_maintenance_workers 0, and we have made it 1? */
static bool no_workers = false;

/* -------------------------------------------------------------------- choice */

static double
expected_rows(Relation heap)
{
	BlockNumber npages;
	double		ntuples;
	double		all_visible;

	estimate_rel_size(heap, NULL, &npages, &ntuples, &all_visible);
	return ntuples;
}

/* Why PostgreSQL builds the index; NULL: it is ours. */
static char *
reason_not(Relation heap, Relation index, IndexInfo *info, double nrows)
{
	GsSortColumn *columns;
	int			ncolumns;
	char	   *reason;

	if (heap->rd_rel->relpersistence == RELPERSISTENCE_TEMP)
		return "its table is temporary";
	if (!gs_is_heap(heap))
		return "its table is not a heap";
	reason = gs_index_sort_reason_not(index);
	if (reason != NULL || gpusort_force)
		return reason;
	if (nrows < gpusort_min_rows)
		return psprintf("%.0f rows are fewer than gpusort.min_rows = %d",
						nrows, gpusort_min_rows);
	columns = gs_index_sort_columns(index, &ncolumns);
	if (gs_sort_key_will_need_proof(columns, ncolumns) ||
		gs_sort_parallel_pays(columns, ncolumns, info->ii_ParallelWorkers + 1, nrows))
		return NULL;
	return gs_index_build_reason_not(index, info, nrows);
}

/*
 * Had the workers better stay away?  Where strcoll() decides and no device sorts, one process
 * compares each entry once, to prove its order; to merge what several have sorted takes some three
 * comparisons of each.  5 M random texts of en_US.UTF-8: alone 2.1 s, with two workers 5.2 s,
 * PostgreSQL's 16.9 s (2 cores, 2026-11-22).
 */
static bool
is_faster_alone(Relation index, const IndexInfo *info, double nrows)
{
	int			ncolumns;
	const GsSortColumn *columns = gs_index_sort_columns(index, &ncolumns);

	return gs_sort_key_will_need_proof(columns, ncolumns) &&
		!gs_sort_parallel_pays(columns, ncolumns, info->ii_ParallelWorkers + 1, nrows);
}

static IndexBuildResult *
build_or_leave(Relation heap, Relation index, IndexInfo *info)
{
	double		nrows;
	char	   *reason;

	if (!gpusort_enabled || !gpusort_enable_create_index || IsSystemRelation(heap))
		return btbuild(heap, index, info);
	nrows = expected_rows(heap);
	reason = reason_not(heap, index, info, nrows);
	if (gpusort_debug_plan)
	{
		if (reason == NULL)
			ereport(NOTICE,
					(errmsg("gpusort sorts for index \"%s\"", RelationGetRelationName(index))));
		else
			ereport(NOTICE,
					(errmsg("gpusort leaves index \"%s\" to PostgreSQL: %s",
							RelationGetRelationName(index), reason)));
	}
	if (reason != NULL)
		return btbuild(heap, index, info);
	if (!gpusort_force && is_faster_alone(index, info, nrows))
		info->ii_ParallelWorkers = 0;
	return gs_index_build(heap, index, info, nrows);
}

/* An ambuild function. */
static IndexBuildResult *
build_index(Relation heap, Relation index, IndexInfo *info)
{
	IndexBuildResult *result;

	if (!no_workers)
		return build_or_leave(heap, index, info);
	/* functions that the index calls may look at the setting; after an ERROR it is 0 again anyway */
	info->ii_ParallelWorkers = 0;
	max_parallel_maintenance_workers = 0;
	result = build_or_leave(heap, index, info);
	max_parallel_maintenance_workers = 1;
	return result;
}

/* --------------------------------------------------------------------- hooks */

/* The table's open btrees are built by us. */
static void
take_over_indexes(Oid table)
{
	Relation	heap = table_open(table, NoLock);
	List	   *indexes = RelationGetIndexList(heap);
	ListCell   *lc;

	foreach(lc, indexes)
	{
		Relation	index = RelationIdGetRelation(lfirst_oid(lc));

		if (index == NULL)
			continue;
		if (index->rd_refcnt > 1 && index->rd_rel->relam == BTREE_AM_OID &&
			index->rd_rel->relkind == RELKIND_INDEX)
			gs_set_ambuild(index, build_index);
		RelationClose(index);
	}
	list_free(indexes);
	table_close(heap, NoLock);
}

static void
gpusort_relation_info(PlannerInfo *root, Oid table, bool inhparent, RelOptInfo *rel)
{
	if (next_relation_info_hook)
		next_relation_info_hook(root, table, inhparent, rel);
	if (root->parse->jointree == NULL && inhparent)
		take_over_indexes(table);
}

/* May a statement build an index of rows that there are? */
static bool
builds_indexes(Node *statement)
{
	ListCell   *lc;

	switch (nodeTag(statement))
	{
		case T_IndexStmt:
		case T_ReindexStmt:
		case T_ClusterStmt:
		case T_AlterTableStmt:
		case T_RefreshMatViewStmt:
			return true;
		case T_VacuumStmt:
			/* others have workers, too */
			foreach(lc, ((VacuumStmt *) statement)->options)
			{
				DefElem    *option = lfirst_node(DefElem, lc);

				if (strcmp(option->defname, "full") == 0)
					return defGetBoolean(option);
			}
			return false;
		default:
			return false;
	}
}

static void
run_utility(PlannedStmt *statement, const char *query_string, bool read_only_tree,
			ProcessUtilityContext context, ParamListInfo params,
			QueryEnvironment *environment, DestReceiver *dest, QueryCompletion *completion)
{
	if (next_utility_hook)
		next_utility_hook(statement, query_string, read_only_tree, context, params,
						  environment, dest, completion);
	else
		standard_ProcessUtility(statement, query_string, read_only_tree, context, params,
								environment, dest, completion);
}

/*
 * The setting is changed behind PostgreSQL's back, since a statement like CREATE INDEX
 * CONCURRENTLY commits in between, and a nest level of settings would end there.
 */
static void
gpusort_utility(PlannedStmt *statement, const char *query_string, bool read_only_tree,
				ProcessUtilityContext context, ParamListInfo params,
				QueryEnvironment *environment, DestReceiver *dest, QueryCompletion *completion)
{
	if (max_parallel_maintenance_workers > 0 || !builds_indexes(statement->utilityStmt))
	{
		run_utility(statement, query_string, read_only_tree, context, params,
					environment, dest, completion);
		return;
	}
	max_parallel_maintenance_workers = 1;
	no_workers = true;
	PG_TRY();
	{
		run_utility(statement, query_string, read_only_tree, context, params,
					environment, dest, completion);
	}
	PG_FINALLY();
	{
		max_parallel_maintenance_workers = 0;
		no_workers = false;
	}
	PG_END_TRY();
}

void
gs_index_hook_install(void)
{
	next_relation_info_hook = get_relation_info_hook;
	get_relation_info_hook = gpusort_relation_info;
	next_utility_hook = ProcessUtility_hook;
	ProcessUtility_hook = gpusort_utility;
}
