/*-------------------------------------------------------------------------
 *
 * cluster_hook.c
 *	  Decides whether gpusort sorts the rows of a table that CLUSTER copies.
 *
 * CLUSTER, and REPACK of PostgreSQL 19, call a function of the table's access method
 * to copy the table.  The relcache entry of a heap gets another one
 * (gs_set_cluster() in pg_compat.c) shortly before that:
 *
 *	- CLUSTER asks the planner whether to scan the index or to sort.  For that the
 *	  planner makes a query without FROM, and calls a hook for the table, without
 *	  those that inherit from it.
 *
 *	- With enable_indexscan = off the planner is not asked.  But the statement
 *	  has created the new table before, which calls relcache callbacks.
 *
 * Other statements may get the function, too, which does nothing if the rows need not
 * be sorted.  Whether they are is PostgreSQL's choice.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "guc.h"
#include "cluster/cluster_copy.h"
#include "cluster/cluster_hook.h"
#include "index/index_scan.h"
#include "index/index_sort.h"
#include "pg_compat.h"

#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/catalog.h"
#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/pathnode.h"
#include "optimizer/plancat.h"
#include "utils/inval.h"
#include "utils/rel.h"

static GsTableHook next_table_hook = NULL;

/* -------------------------------------------------------------------- choice */

static inline bool
is_enabled(void)
{
	return gpusort_enabled && gpusort_enable_cluster;
}

/* Why PostgreSQL sorts the rows; NULL: gpusort does. */
static char *
reason_for_postgres(const GsClusterCopy *copy, double nrows)
{
	char	   *reason;

	if (IsSystemRelation(copy->old_heap))
		return "the table is a system catalog";
	reason = gs_index_sort_why_not(copy->index);
	if (reason != NULL || gpusort_force)
		return reason;
	if (nrows < gpusort_min_rows)
		return psprintf("the estimated number of rows, %.0f, is less than gpusort.min_rows (%d)",
						nrows, gpusort_min_rows);
	return NULL;
}

/* A GsClusterFunction. */
static bool
cluster(GsClusterCopy *copy)
{
	const double nrows = gs_index_expected_rows(copy->old_heap);
	char	   *reason;

	if (!is_enabled())
		return false;
	reason = reason_for_postgres(copy, nrows);
	if (gpusort_debug_plan)
	{
		if (reason == NULL)
			ereport(NOTICE,
					(errmsg("clustering table \"%s\" with gpusort",
							RelationGetRelationName(copy->old_heap))));
		else
			ereport(NOTICE,
					(errmsg("clustering table \"%s\" without gpusort",
							RelationGetRelationName(copy->old_heap)),
					 gs_errdetail_reason(reason)));
	}
	if (reason == NULL)
		gs_cluster_copy(copy, nrows);
	return reason == NULL;
}

/* --------------------------------------------------------------------- hooks */

/* Sets the function of a table if this may be CLUSTER. */
static void
set_cluster(Oid table)
{
	Relation	heap;

	if (!gs_holds_exclusive_lock(table))
		return;
	heap = RelationIdGetRelation(table);
	if (heap == NULL)
		return;
	if (heap->rd_refcnt > 1)
		gs_set_cluster(heap, cluster);
	RelationClose(heap);
}

static void
gpusort_table(GS_TABLE_HOOK_PARAMS)
{
	if (next_table_hook)
		next_table_hook(GS_TABLE_HOOK_ARGS);
	if (is_enabled() && root->parse->jointree == NULL && !GS_TABLE_HOOK_INHERITS)
		set_cluster(GS_TABLE_HOOK_TABLE);
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
	if (enable_indexscan || !is_enabled() || !IsTransactionState() || relation < FirstNormalObjectId ||
		!gs_holds_exclusive_lock(relation))
		return;
	table = gs_copied_table(relation);
	if (OidIsValid(table))
		set_cluster(table);
}

void
gs_cluster_hook_install(void)
{
	next_table_hook = gs_table_hook;
	gs_table_hook = gpusort_table;
	CacheRegisterRelcacheCallback(gpusort_relation_changed, (Datum) 0);
}
