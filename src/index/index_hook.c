/*-------------------------------------------------------------------------
 *
 * index_hook.c
 *	  Decides whether gpusort builds an index.
 *
 * PostgreSQL has no hook for index builds.  Therefore the relcache entry of an index
 * that is about to be built gets another ambuild function.  An entry stays as it is
 * while the index is open.  One that keeps the function longer than needed does no
 * harm, because the function calls btbuild() for other indexes.  There are two ways
 * to such an entry:
 *
 *	- Before index_build() calls the access method, it asks the planner how many
 *	  parallel workers a btree is worth.  For that the planner makes a query without
 *	  FROM, and calls a hook for the table.
 *
 *	- With max_parallel_maintenance_workers = 0 the planner is not asked.  But a
 *	  statement that creates an index, or a new file for one, changes the catalogs
 *	  while it has the index open and locked, which calls relcache callbacks.
 *
 * CREATE INDEX CONCURRENTLY and REINDEX CONCURRENTLY create an index in one
 * transaction and build it in another one, which changes no catalog before that.
 * The entry would be gone by then, so its reference count is raised, as if it were
 * open, from the end of the first transaction to the build, or to the next ERROR.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "guc.h"
#include "index/index_build.h"
#include "index/index_hook.h"
#include "index/index_scan.h"
#include "index/index_sort.h"
#include "pg_compat.h"
#include "sort/sort_parallel.h"

#include "access/nbtree.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/catalog.h"
#include "catalog/pg_am_d.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/plancat.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

static GsTableHook next_table_hook = NULL;

/*
 * Relcache entries of indexes that have been created, and that another transaction
 * will build.  The reference counts of the first nkept are raised; the others were
 * created by this transaction.  In TopMemoryContext.
 */
static List *unbuilt = NIL;
static int	nkept = 0;

/* -------------------------------------------------------------------- choice */

static inline bool
is_enabled(void)
{
	return gpusort_enabled && gpusort_enable_create_index;
}

char *
gs_index_hook_why_not(Relation heap, Relation index, double *nrows)
{
	char	   *reason;

	*nrows = 0;
	if (heap->rd_rel->relpersistence == RELPERSISTENCE_TEMP)
		return "the table is temporary";
	if (!gs_is_heap(heap))
		return "the table is not a heap";
	*nrows = gs_index_expected_rows(heap);
	reason = gs_index_sort_why_not(index);
	if (reason != NULL || gpusort_force)
		return reason;
	if (*nrows < gpusort_min_rows)
		return psprintf("the estimated number of rows, %.0f, is less than gpusort.min_rows (%d)",
						*nrows, gpusort_min_rows);
	return NULL;
}

/* The index is open now: its reference count need not be raised any longer. */
static void
forget_unbuilt(Relation index)
{
	for (int i = 0; i < nkept; i++)
	{
		if (list_nth(unbuilt, i) != index)
			continue;
		unbuilt = list_delete_nth_cell(unbuilt, i);
		nkept--;
		gs_forget_relation(index);
		break;
	}
}

/* An ambuild function. */
static IndexBuildResult *
build_index(Relation heap, Relation index, IndexInfo *info)
{
	double		nrows;
	char	   *reason;

	Assert(index->rd_rel->relam == BTREE_AM_OID);
	forget_unbuilt(index);
	if (!is_enabled() || IsSystemRelation(heap))
		return btbuild(heap, index, info);
	reason = gs_index_hook_why_not(heap, index, &nrows);
	if (gpusort_debug_plan)
	{
		if (reason == NULL)
			ereport(NOTICE,
					(errmsg("building index \"%s\" with gpusort",
							RelationGetRelationName(index))));
		else
			ereport(NOTICE,
					(errmsg("building index \"%s\" without gpusort",
							RelationGetRelationName(index)),
					 gs_errdetail_reason(reason)));
	}
	if (reason != NULL)
		return btbuild(heap, index, info);
	return gs_index_build(heap, index, info, nrows);
}

/* --------------------------------------------------------------------- hooks */

/* Sets the ambuild function of an open index, if it is a btree. */
static bool
set_ambuild(Relation index)
{
	if (index->rd_rel->relam != BTREE_AM_OID || index->rd_rel->relkind != RELKIND_INDEX)
		return false;
	gs_set_ambuild(index, build_index);
	return true;
}

/* Sets the ambuild functions of the table's open btrees. */
static void
set_ambuild_of_table(Oid table)
{
	Relation	heap = table_open(table, NoLock);
	List	   *indexes = RelationGetIndexList(heap);
	ListCell   *lc;

	foreach(lc, indexes)
	{
		Relation	index = RelationIdGetRelation(lfirst_oid(lc));

		if (index == NULL)
			continue;
		if (index->rd_refcnt > 1)
			(void) set_ambuild(index);
		RelationClose(index);
	}
	list_free(indexes);
	table_close(heap, NoLock);
}

static void
gpusort_table(GS_TABLE_HOOK_PARAMS)
{
	if (next_table_hook)
		next_table_hook(GS_TABLE_HOOK_ARGS);
	if (is_enabled() && root->parse->jointree == NULL && GS_TABLE_HOOK_INHERITS)
		set_ambuild_of_table(GS_TABLE_HOOK_TABLE);
}

static void
remember_unbuilt(Relation index)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);

	unbuilt = list_append_unique_ptr(unbuilt, index);
	MemoryContextSwitchTo(old);
}

/* A RelcacheCallbackFunction: the entry was removed, or rebuilt if it is open. */
static void
gpusort_relation_changed(Datum arg, Oid relation)
{
	Relation	index;

	if (max_parallel_maintenance_workers > 0 || !is_enabled() || !IsTransactionState() ||
		relation < FirstNormalObjectId || !gs_holds_exclusive_lock(relation) ||
		get_rel_relkind(relation) != RELKIND_INDEX)
		return;
	index = RelationIdGetRelation(relation);
	if (index == NULL)
		return;
	if (set_ambuild(index) && !index->rd_index->indisready &&
		index->rd_createSubid != InvalidSubTransactionId)
		remember_unbuilt(index);
	RelationClose(index);
}

/*
 * A ResourceReleaseCallback.  Between its phases PostgreSQL looks at relcache entries, and expects that
 * none is open; after an abort those of this transaction's relations are gone.
 */
static void
gpusort_transaction_end(ResourceReleasePhase phase, bool is_commit, bool is_top_level, void *arg)
{
	if (unbuilt == NIL || !is_top_level)
		return;
	/* no ERROR here */
	if (phase == RESOURCE_RELEASE_BEFORE_LOCKS)
	{
		while (nkept > 0)
			gs_forget_relation(list_nth(unbuilt, --nkept));
	}
	else if (phase == RESOURCE_RELEASE_AFTER_LOCKS && is_commit)
	{
		for (; nkept < list_length(unbuilt); nkept++)
			gs_keep_relation(list_nth(unbuilt, nkept));
	}
	else if (phase == RESOURCE_RELEASE_AFTER_LOCKS)
	{
		list_free(unbuilt);
		unbuilt = NIL;
	}
}

void
gs_index_hook_install(void)
{
	next_table_hook = gs_table_hook;
	gs_table_hook = gpusort_table;
	CacheRegisterRelcacheCallback(gpusort_relation_changed, (Datum) 0);
	RegisterResourceReleaseCallback(gpusort_transaction_end, NULL);
}
