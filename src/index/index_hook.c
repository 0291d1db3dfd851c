/*-------------------------------------------------------------------------
 *
 * index_hook.c
 *	  Decides whether gpusort builds an index.
 *
 * The relcache entry of an index that is about to be built gets another ambuild function, by a hook
 * of the planner or a relcache callback (README.md, "Getting control"; docs/inside-the-server.md
 * says what these rest on).  The planner's query for an index build has no FROM.  An entry that
 * keeps the function longer than needed does no harm, because the function calls that of the access
 * method for other indexes.
 *
 * CREATE INDEX and REINDEX CONCURRENTLY create an index in one transaction, build it in another one
 * and validate it in a third.  PostgreSQL calls ambulkdelete first to validate it
 * (index_validate.c).  The entry would be gone by then, so its reference count is raised, as if
 * it were open, from the end of the first transaction to the validation, or to the next ERROR.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "guc.h"
#include "build/build_sort.h"
#include "gin/gin_build.h"
#include "gin/gin_columns.h"
#include "index/index_btree.h"
#include "index/index_columns.h"
#include "index/index_hook.h"
#include "pg_compat.h"
#include "sort/sort_parallel.h"

#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/catalog.h"
#include "catalog/pg_am_d.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/plancat.h"
#include "storage/proc.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"

static GsTableHook next_table_hook = NULL;

/* An index that a statement builds CONCURRENTLY. */
typedef struct NewIndex
{
	Relation	relation;
	bool		kept;			/* its reference count is raised */
	bool		used;			/* its functions are no longer needed */
	GsEndedTransactions *before;	/* when its build began; NULL: it has not */
} NewIndex;

/* In TopMemoryContext. */
static List *new_indexes = NIL;

/* -------------------------------------------------------------------- choice */

/* May gpusort build indexes of an access method? */
static inline bool
builds(Oid access_method)
{
	return gpusort_enabled &&
		((access_method == BTREE_AM_OID && gpusort_enable_create_index) ||
		 (access_method == GIN_AM_OID && gpusort_enable_gin));
}

static inline bool
is_enabled(void)
{
	return builds(BTREE_AM_OID) || builds(GIN_AM_OID);
}

static inline bool
validation_is_enabled(void)
{
	return gpusort_enabled && gpusort_enable_index_validation;
}

char *
gs_index_hook_why_not(Relation heap, Relation index, double *nrows)
{
	*nrows = 0;
	if (heap->rd_rel->relpersistence == RELPERSISTENCE_TEMP)
		return "the table is temporary";
	if (!gs_is_heap(heap))
		return "the table is not a heap";
	*nrows = gs_build_expected_rows(heap);
	return index->rd_rel->relam == GIN_AM_OID ? gs_gin_columns_why_not(index, *nrows) :
		gs_index_columns_why_not(index, *nrows);
}

static NewIndex *
find_new_index(Relation index)
{
	ListCell   *cell;

	foreach(cell, new_indexes)
	{
		NewIndex   *new_index = lfirst(cell);

		if (new_index->relation == index && !new_index->used)
			return new_index;
	}
	return NULL;
}

static void
keep(NewIndex *new_index)
{
	if (!new_index->kept)
		gs_keep_relation(new_index->relation);
	new_index->kept = true;
}

/* Reverses keep(), as long as the entry exists. */
static void
forget(NewIndex *new_index)
{
	if (new_index->kept)
		gs_forget_relation(new_index->relation);
	new_index->kept = false;
}

/* Notes which transactions have ended before an index is built of the rows that a snapshot sees. */
static void
note_build(Relation index, const IndexInfo *info)
{
	NewIndex   *new_index = info->ii_Concurrent ? find_new_index(index) : NULL;
	MemoryContext old;

	if (new_index == NULL || new_index->before != NULL)
		return;
	old = MemoryContextSwitchTo(TopMemoryContext);
	new_index->before = gs_ended_transactions_note(GetActiveSnapshot());
	MemoryContextSwitchTo(old);
}

/* An ambulkdelete function. */
static IndexBulkDeleteResult *
validate_index(IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
			   IndexBulkDeleteCallback callback, void *state)
{
	Relation	index = info->index;
	NewIndex   *new_index = find_new_index(index);
	Relation	heap;

	/*
	 * No other use of a new index is known.  VACUUM would free line pointers to which the index
	 * points.
	 */
	if (new_index == NULL || index->rd_index->indisvalid ||
		(MyProc->statusFlags & PROC_IN_VACUUM) != 0)
		return gs_access_method_functions(index)->ambulkdelete(info, stats, callback, state);
	/* the index is open now, and so is the table */
	new_index->used = true;
	forget(new_index);
	heap = RelationIdGetRelation(index->rd_index->indrelid);
	RelationClose(heap);
	if (!validation_is_enabled() || new_index->before == NULL || gs_snapshots_expire() ||
		!gs_index_validate_begin(heap, info, callback, state, new_index->before))
		return gs_access_method_functions(index)->ambulkdelete(info, stats, callback, state);
	return palloc0(sizeof(IndexBulkDeleteResult));
}

/* An ambuild function. */
static IndexBuildResult *
build_index(Relation heap, Relation index, IndexInfo *info)
{
	double		nrows;
	char	   *reason;

	note_build(index, info);
	if (!builds(index->rd_rel->relam) || IsSystemRelation(heap))
		return gs_access_method_functions(index)->ambuild(heap, index, info);
	reason = gs_index_hook_why_not(heap, index, &nrows);
	gs_report_choice("building index", RelationGetRelationName(index), reason == NULL, reason);
	if (reason != NULL)
		return gs_access_method_functions(index)->ambuild(heap, index, info);
	return index->rd_rel->relam == GIN_AM_OID ? gs_gin_build(heap, index, info, nrows) :
		gs_index_btree_build(heap, index, info, nrows);
}

/* --------------------------------------------------------------------- hooks */

/* Sets the ambuild functions of the table's open indexes that gpusort may build. */
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
		if (index->rd_refcnt > 1 && builds(index->rd_rel->relam) &&
			index->rd_rel->relkind == RELKIND_INDEX)
			gs_index_functions(index)->ambuild = build_index;
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

/* Has this transaction created the index, which others will build and validate? */
static bool
is_new_index(Relation index)
{
	return !index->rd_index->indisready && index->rd_createSubid == TopSubTransactionId;
}

static void
remember(Relation index)
{
	MemoryContext old;
	NewIndex   *new_index;

	if (find_new_index(index) != NULL)
		return;
	old = MemoryContextSwitchTo(TopMemoryContext);
	new_index = palloc0(sizeof(NewIndex));
	new_index->relation = index;
	new_indexes = lappend(new_indexes, new_index);
	MemoryContextSwitchTo(old);
}

/* Does PostgreSQL ask the planner how many workers build an index? */
static bool
planner_is_asked(Relation index)
{
	return max_parallel_maintenance_workers > 0 &&
		(index->rd_rel->relam == BTREE_AM_OID || GS_GIN_BUILDS_ARE_PARALLEL);
}

/* A RelcacheCallbackFunction: the entry was removed, or rebuilt if it is open. */
static void
gpusort_relation_changed(Datum arg, Oid relation)
{
	Relation	index;

	if (!(is_enabled() || validation_is_enabled()) || !IsTransactionState() ||
		relation < FirstNormalObjectId || !gs_holds_exclusive_lock(relation) ||
		get_rel_relkind(relation) != RELKIND_INDEX)
		return;
	index = RelationIdGetRelation(relation);
	if (index == NULL)
		return;
	if (is_new_index(index))
	{
		gs_index_functions(index)->ambuild = build_index;
		gs_index_functions(index)->ambulkdelete = validate_index;
		remember(index);
	}
	else if (builds(index->rd_rel->relam) && !planner_is_asked(index))
		gs_index_functions(index)->ambuild = build_index;
	RelationClose(index);
}

static void
free_new_index(NewIndex *new_index)
{
	if (new_index->before != NULL)
		pfree(new_index->before);
	pfree(new_index);
}

/* Keeps those that are not validated yet, if the transaction was committed. */
static void
keep_new_indexes(bool is_commit)
{
	ListCell   *cell;

	foreach(cell, new_indexes)
	{
		NewIndex   *new_index = lfirst(cell);

		if (!is_commit || new_index->used)
		{
			free_new_index(new_index);
			new_indexes = foreach_delete_current(new_indexes, cell);
		}
		else
			keep(new_index);
	}
}

/* Entries of indexes that this transaction has created and dropped will soon be gone. */
static void
forget_new_indexes(bool is_commit)
{
	ListCell   *cell;

	foreach(cell, new_indexes)
	{
		NewIndex   *new_index = lfirst(cell);

		forget(new_index);
		if (is_commit && new_index->relation->rd_droppedSubid != InvalidSubTransactionId)
			new_index->used = true;
	}
}

/*
 * A ResourceReleaseCallback, called once or more in each phase.  Between the two phases
 * AtEOXact_RelationCache() expects that no relation is open; after an abort the entries of this
 * transaction's relations are gone.
 */
static void
gpusort_transaction_end(ResourceReleasePhase phase, bool is_commit, bool is_top_level, void *arg)
{
	if (new_indexes == NIL || !is_top_level)
		return;
	/* no ERROR here */
	if (phase == RESOURCE_RELEASE_BEFORE_LOCKS)
		forget_new_indexes(is_commit);
	else if (phase == RESOURCE_RELEASE_AFTER_LOCKS)
		keep_new_indexes(is_commit);
}

void
gs_index_hook_install(void)
{
	next_table_hook = gs_table_hook;
	gs_table_hook = gpusort_table;
	CacheRegisterRelcacheCallback(gpusort_relation_changed, (Datum) 0);
	RegisterResourceReleaseCallback(gpusort_transaction_end, NULL);
	gs_index_validate_install();
}
