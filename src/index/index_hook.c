/*-------------------------------------------------------------------------
 *
 * index_hook.c
 *	  Which index builds are gpusort's.
 *
 * There is no hook for index builds.  So an index that is about to be built gets another ambuild
 * function in its relcache entry, which stays as it is while the index is open.  An entry that has
 * it longer than needed does no harm, since for others it calls btbuild().  There are two ways
 * to such an entry:
 *
 *	- Before the access method is called, index_build() asks the planner how many parallel
 *	  workers a btree is worth, whatever statement it is built for; the planner makes itself a
 *	  query without FROM for that, and asks get_relation_info_hook about the table.
 *
 *	- The planner is not asked where max_parallel_maintenance_workers is 0.  But a statement that
 *	  creates an index, or a new file for one, changes the catalogs while it has the index open and
 *	  locked, and relcache callbacks hear of that.
 *
 * CREATE INDEX CONCURRENTLY and REINDEX CONCURRENTLY create an index in one transaction and build
 * it in another, which changes nothing before it builds.  The entry would be gone by then, so it is
 * kept from the end of the first transaction to the build, or to the next ERROR: as an open one is,
 * by its reference count.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "guc.h"
#include "index/index_build.h"
#include "index/index_hook.h"
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
#include "optimizer/plancat.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

static get_relation_info_hook_type next_relation_info_hook = NULL;

/*
 * Entries of indexes that are created, and yet to be built by another transaction.  The first
 * nkept are kept until then; this transaction has created the others.  In TopMemoryContext.
 */
static List *unbuilt = NIL;
static int	nkept = 0;

/* -------------------------------------------------------------------- choice */

static inline bool
is_enabled(void)
{
	return gpusort_enabled && gpusort_enable_create_index;
}

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
reason_not(Relation heap, Relation index, double nrows)
{
	char	   *reason;

	if (heap->rd_rel->relpersistence == RELPERSISTENCE_TEMP)
		return "the table is temporary";
	if (!gs_is_heap(heap))
		return "the table is not a heap";
	reason = gs_index_sort_reason_not(index);
	if (reason != NULL || gpusort_force)
		return reason;
	if (nrows < gpusort_min_rows)
		return psprintf("the estimated number of rows, %.0f, is less than gpusort.min_rows (%d)",
						nrows, gpusort_min_rows);
	return NULL;
}

/*
 * Had the workers better stay away?  Where strcoll() decides and no device sorts, one process
 * compares each entry once, to prove its order; to merge what several have sorted takes some three
 * comparisons of each.  5 M random texts of en_US.UTF-8: alone 2.1 s, with two workers 5.2 s,
 * PostgreSQL's 16.9 s (2 cores, 2026-11-22).
 */
static bool
is_faster_serial(Relation index, const IndexInfo *info, double nrows)
{
	int			ncolumns;
	const GsSortColumn *columns = gs_index_sort_columns(index, &ncolumns);

	return gs_key_columns_are_approximate(columns, ncolumns) &&
		!gs_sort_parallel_pays(columns, ncolumns, info->ii_ParallelWorkers + 1, nrows);
}

/* The index is open for its build, which was not to be missed. */
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

	forget_unbuilt(index);
	if (!is_enabled() || IsSystemRelation(heap))
		return btbuild(heap, index, info);
	nrows = expected_rows(heap);
	reason = reason_not(heap, index, nrows);
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
					 errdetail("%c%s.", pg_toupper(reason[0]), reason + 1)));
	}
	if (reason != NULL)
		return btbuild(heap, index, info);
	if (!gpusort_force && is_faster_serial(index, info, nrows))
		info->ii_ParallelWorkers = 0;
	return gs_index_build(heap, index, info, nrows);
}

/* --------------------------------------------------------------------- hooks */

/* An open index is built by us, if it is a btree. */
static bool
take_over(Relation index)
{
	if (index->rd_rel->relam != BTREE_AM_OID || index->rd_rel->relkind != RELKIND_INDEX)
		return false;
	gs_set_ambuild(index, build_index);
	return true;
}

/* The table's open btrees are built by us. */
static void
intercept_indexes(Oid table)
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
			(void) take_over(index);
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
	if (is_enabled() && root->parse->jointree == NULL && inhparent)
		intercept_indexes(table);
}

/* Does the statement that runs have the relation for itself, as it has an index that it builds? */
static bool
is_locked(Oid relation)
{
	LOCKTAG		tag;

	SET_LOCKTAG_RELATION(tag, MyDatabaseId, relation);
	return LockHeldByMe(&tag, AccessExclusiveLock);
}

static void
remember_unbuilt(Relation index)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);

	unbuilt = list_append_unique_ptr(unbuilt, index);
	MemoryContextSwitchTo(old);
}

/* A RelcacheCallbackFunction: the entry is gone, or was made anew as it is open. */
static void
gpusort_relation_changed(Datum arg, Oid relation)
{
	Relation	index;

	if (max_parallel_maintenance_workers > 0 || !is_enabled() || !IsTransactionState() ||
		relation < FirstNormalObjectId || !is_locked(relation) ||
		get_rel_relkind(relation) != RELKIND_INDEX)
		return;
	index = RelationIdGetRelation(relation);
	if (index == NULL)
		return;
	if (take_over(index) && !index->rd_index->indisready &&
		index->rd_createSubid != InvalidSubTransactionId)
		remember_unbuilt(index);
	RelationClose(index);
}

/* A ResourceReleaseCallback: a transaction has ended, and so have the entries of what it undid. */
static void
gpusort_transaction_end(ResourceReleasePhase phase, bool is_commit, bool is_top_level, void *arg)
{
	if (unbuilt == NIL || phase != RESOURCE_RELEASE_AFTER_LOCKS || !is_top_level)
		return;
	if (is_commit)
	{
		/* no ERROR here */
		for (; nkept < list_length(unbuilt); nkept++)
			gs_keep_relation(list_nth(unbuilt, nkept));
		return;
	}
	while (nkept > 0)
		gs_forget_relation(list_nth(unbuilt, --nkept));
	list_free(unbuilt);
	unbuilt = NIL;
}

void
gs_index_hook_install(void)
{
	next_relation_info_hook = get_relation_info_hook;
	get_relation_info_hook = gpusort_relation_info;
	CacheRegisterRelcacheCallback(gpusort_relation_changed, (Datum) 0);
	RegisterResourceReleaseCallback(gpusort_transaction_end, NULL);
}
