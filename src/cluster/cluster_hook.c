/*-------------------------------------------------------------------------
 *
 * cluster_hook.c
 *	  Lets gpusort sort the rows of a table that CLUSTER copies.
 *
 * The relcache entry of a heap gets another copy function (gs_set_cluster() in pg_compat.c) shortly
 * before CLUSTER or REPACK calls it:
 *
 *	- CLUSTER asks the planner whether to scan the index or to sort.  For that the planner makes a
 *	  query without FROM, and calls a hook for the table, without those that inherit from it.  If
 *	  the hook hides the index, the answer is to sort.
 *
 *	- With enable_indexscan = off the planner is not asked.  But the statement has created the new
 *	  table before, which calls relcache callbacks.
 *
 * Other statements may get the function, too, which does nothing if the rows need not be sorted.
 * docs/inside-the-server.md says what this rests on.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "cluster/cluster.h"
#include "guc.h"
#include "build/build_sort.h"
#include "pg_compat.h"

#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/pathnode.h"
#include "optimizer/plancat.h"
#include "utils/inval.h"
#include "utils/rel.h"

static GsTableHook next_table_hook = NULL;

static inline bool
is_enabled(void)
{
	return gpusort_enabled && gpusort_enable_cluster;
}

/* A GsClusterFunction. */
static bool
cluster(GsClusterCopy *copy)
{
	const double nrows = gs_build_expected_rows(copy->old_heap);
	char	   *reason;

	if (!is_enabled())
		return false;
	reason = gs_cluster_why_not(copy->old_heap, copy->index, nrows);
	gs_report_choice("clustering table", RelationGetRelationName(copy->old_heap), reason == NULL,
					 reason);
	if (reason == NULL)
		gs_cluster_copy(copy, nrows);
	return reason == NULL;
}

/* --------------------------------------------------------------------- hooks */

/* The open table, with another reference, if this may be CLUSTER; or NULL. */
static Relation
clustered_table(Oid table)
{
	Relation	heap;

	if (!gs_holds_exclusive_lock(table))
		return NULL;
	heap = RelationIdGetRelation(table);
	if (heap != NULL && heap->rd_refcnt == 1)
	{
		RelationClose(heap);
		heap = NULL;
	}
	return heap;
}

/*
 * Hides indexes from the planner, which then sorts instead of scanning them.  The indexes that it
 * knows of are locked, but for hypothetical ones.
 */
static void
hide_indexes(Relation heap, RelOptInfo *rel)
{
	ListCell   *cell;

	foreach(cell, rel->indexlist)
	{
		const IndexOptInfo *info = lfirst_node(IndexOptInfo, cell);
		Relation	index;

		if (info->hypothetical)
			continue;
		index = index_open(info->indexoid, NoLock);
		if (gs_cluster_prefers_sort(heap, index, info, rel))
			rel->indexlist = foreach_delete_current(rel->indexlist, cell);
		index_close(index, NoLock);
	}
}

/*
 * Sets the function of a table if this may be CLUSTER.  rel: what the planner knows of it; NULL: it
 * was not asked.
 */
static void
set_cluster(Oid table, RelOptInfo *rel)
{
	Relation	heap = clustered_table(table);

	if (heap == NULL)
		return;
	if (gs_set_cluster(heap, cluster) && rel != NULL)
		hide_indexes(heap, rel);
	RelationClose(heap);
}

static void
gpusort_table(GS_TABLE_HOOK_PARAMS)
{
	if (next_table_hook)
		next_table_hook(GS_TABLE_HOOK_ARGS);
	if (is_enabled() && root->parse->jointree == NULL && !GS_TABLE_HOOK_INHERITS)
		set_cluster(GS_TABLE_HOOK_TABLE, rel);
}

/* A RelcacheCallbackFunction: the entry was removed, or rebuilt if it is open. */
static void
gpusort_relation_changed(Datum arg, Oid relation)
{
	Oid			table;

	/*
	 * Of a relation that is not locked, not even the name is read: that would accept the next
	 * message of another session, and so call this again, for each relation that it has changed.
	 */
	if (enable_indexscan || !is_enabled() || !IsTransactionState() ||
		relation < FirstNormalObjectId || !gs_holds_exclusive_lock(relation))
		return;
	table = gs_copied_table(relation);
	if (OidIsValid(table))
		set_cluster(table, NULL);
}

void
gs_cluster_hook_install(void)
{
	next_table_hook = gs_table_hook;
	gs_table_hook = gpusort_table;
	CacheRegisterRelcacheCallback(gpusort_relation_changed, (Datum) 0);
}
