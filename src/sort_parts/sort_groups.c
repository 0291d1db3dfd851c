/*-------------------------------------------------------------------------
 *
 * sort_groups.c
 *	  Reads rows that arrive ordered by the first sort columns, a few groups at a time.
 *
 * Rows that are equal in these columns are a group.  Groups arrive in order, so if a
 * batch of rows ends where a group does, all its rows sort before those that follow,
 * and each batch is a sort of its own: it fits in memory unless a group does not, and
 * in the cache unless a group does not.
 *
 * PostgreSQL's incremental sort also reads batches, of 32 rows, and then groups one by
 * one.  An engine needs more rows, because it takes several us to set up.  By batches of
 * so many rows and their last group, an ORDER BY of 1 M rows of 150 bytes from an index
 * scan takes this processor time in ms:
 *
 *								stock	256		1024	2048	4096	16384
 *	 bigint, groups of 10		 238	188		 176	 179	 176	 175
 *	 bigint, groups of 1000		 226	195		 185	 179	 179	 177
 *	 libc text, groups of 100	1035	411		 336	 348	 362	 320
 *	 numeric, groups of 100		 697	226		 223	 208	 201	 223
 *	 after a text, groups of 10	 541	404		 426	 437	 528	 695
 *
 * (Zen 5, 2 cores, busy, PostgreSQL 15.20, 2026-11-24; the scan takes 92 of them.)  Until
 * a batch has so many rows, they are only counted.  After that, each row is compared with
 * one of the last group.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sort_parts/sort_groups.h"

#include "executor/executor.h"
#include "utils/lsyscache.h"

/*
 * The first batch is small, because the node above may want no more rows, and each is twice as
 * large as the one before.  Of more rows than sort_few.h takes, so that statistics count an engine.
 */
#define FIRST_BATCH_ROWS	128

static ExprState *
prepare_comparison(PlanState *node, TupleDesc desc, const GsSortColumn *columns, int ncolumns)
{
	AttrNumber *attnos = palloc(sizeof(AttrNumber) * ncolumns);
	Oid		   *operators = palloc(sizeof(Oid) * ncolumns);
	Oid		   *collations = palloc(sizeof(Oid) * ncolumns);

	for (int i = 0; i < ncolumns; i++)
	{
		attnos[i] = columns[i].attno;
		operators[i] = get_equality_op_for_ordering_op(columns[i].sort_operator, NULL);
		if (!OidIsValid(operators[i]))
			elog(ERROR, "missing equality operator for ordering operator %u", columns[i].sort_operator);
		collations[i] = columns[i].collation;
	}
	return execTuplesMatchPrepare(desc, ncolumns, attnos, operators, collations, node);
}

GsSortGroups *
gs_sort_groups_create(PlanState *node, PlanState *child, const GsSortColumn *columns, int npresorted,
					  double memory_rows)
{
	GsSortGroups *groups = palloc0(sizeof(GsSortGroups));
	TupleDesc	desc = ExecGetResultType(child);

	groups->npresorted = npresorted;
	groups->child = child;
	groups->same_group = prepare_comparison(node, desc, columns, npresorted);
	groups->econtext = CreateExprContext(node->state);
	groups->last_group = ExecInitExtraTupleSlot(node->state, desc, &TTSOpsMinimalTuple);
	groups->may_be_in_order = true;
	groups->most = Max(Min(memory_rows, GS_GROUPS_BATCH_ROWS), FIRST_BATCH_ROWS);
	return groups;
}

void
gs_sort_groups_restart(GsSortGroups *groups)
{
	ExecClearTuple(groups->last_group);
	groups->next = NULL;
	groups->at_end = false;
	groups->may_be_in_order = true;
	groups->enough = 0;
	groups->nbatches = 0;
	groups->nrows = 0;
	groups->input_us = 0;
	groups->sort_us = 0;
	groups->largest.any = false;
}

void
gs_sort_groups_begin(GsSortGroups *groups)
{
	ExecClearTuple(groups->last_group);
	groups->enough = groups->enough == 0 ? FIRST_BATCH_ROWS : Min(groups->enough * 2, groups->most);
	groups->nread = 0;
	groups->nbatches++;
}

/* Is a row of the group that ends the batch? */
static bool
is_of_last_group(GsSortGroups *groups, TupleTableSlot *slot)
{
	ExprContext *econtext = groups->econtext;

	ResetExprContext(econtext);
	econtext->ecxt_innertuple = slot;
	econtext->ecxt_outertuple = groups->last_group;
	return ExecQual(groups->same_group, econtext);
}

/* The row that was read last begins the next batch.  It stays in the child's slot until then. */
static TupleTableSlot *
end_batch(GsSortGroups *groups, TupleTableSlot *next)
{
	groups->next = next;
	return NULL;
}

TupleTableSlot *
gs_sort_groups_next(GsSortGroups *groups)
{
	TupleTableSlot *slot = groups->next;

	groups->next = NULL;
	if (slot == NULL && !groups->at_end)
		slot = ExecProcNode(groups->child);
	if (TupIsNull(slot))
	{
		groups->at_end = true;	/* some nodes must not be asked again */
		return NULL;
	}
	if (groups->nread >= groups->enough)
	{
		if (TTS_EMPTY(groups->last_group))
			ExecCopySlot(groups->last_group, slot);
		else if (!is_of_last_group(groups, slot))
			return end_batch(groups, slot);
	}
	groups->nread++;
	return slot;
}

void
gs_sort_groups_add_summary(GsSortGroups *groups, const GsSortSummary *batch)
{
	groups->nrows += groups->nread;
	if (groups->largest.any && groups->nread <= groups->largest.nrows)
		return;
	groups->largest = *batch;
	groups->largest.nrows = groups->nread;	/* a tuplesort does not count them */
}
