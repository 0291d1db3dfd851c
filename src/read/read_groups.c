/*-------------------------------------------------------------------------
 *
 * read_groups.c
 *	  Reads rows that arrive ordered by the first sort columns, a few groups at a time.
 *
 * Rows that are equal in these columns are a group.  Groups arrive in order, so if a batch of rows
 * ends where a group does, all its rows sort before those that follow, and each batch is a sort of
 * its own: it fits in memory unless a group does not, and in the cache unless a group does not.
 *
 * PostgreSQL's incremental sort also reads batches, of 32 rows, and then groups one by one.  An
 * engine needs more rows, because it takes several us to set up.  Until a batch has as many, they
 * are only counted.  After that, each row is compared with one of the last group.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "read/read_groups.h"

#include "executor/executor.h"
#include "utils/lsyscache.h"

/*
 * The first batch is small, because the node above may want no more rows, and each is twice as
 * large as the one before.  Of more rows than store_few.h takes, so that statistics count an
 * engine.
 */
#define FIRST_BATCH_ROWS	128

/*
 * Looks up the equality functions.  Not execTuplesMatchPrepare(): it asks whether the user may
 * execute them, which PostgreSQL does not for a sort.
 */
static void
find_equality(GsSortGroups *groups)
{
	groups->equality = palloc(sizeof(FmgrInfo) * groups->npresorted);
	for (int i = 0; i < groups->npresorted; i++)
	{
		const GsSortColumn *column = &groups->columns[i];
		Oid			operator = get_equality_op_for_ordering_op(column->sort_operator, NULL);

		if (!OidIsValid(operator))
			elog(ERROR, "missing equality operator for ordering operator %u",
				 column->sort_operator);
		fmgr_info(get_opcode(operator), &groups->equality[i]);
	}
}

GsSortGroups *
gs_sort_groups_create(PlanState *child, const GsSortColumn *columns, int npresorted,
					  double memory_rows)
{
	GsSortGroups *groups = palloc0(sizeof(GsSortGroups));
	TupleDesc	desc = ExecGetResultType(child);

	groups->npresorted = npresorted;
	groups->child = child;
	groups->columns = columns;
	find_equality(groups);
	groups->econtext = CreateExprContext(child->state);
	groups->last_group = ExecInitExtraTupleSlot(child->state, desc, &TTSOpsMinimalTuple);
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
	if (groups->verification != NULL)
		gs_verify_output_restart(groups->verification, true);
}

void
gs_sort_groups_begin(GsSortGroups *groups)
{
	ExecClearTuple(groups->last_group);
	groups->enough = groups->enough == 0 ? FIRST_BATCH_ROWS : Min(groups->enough * 2, groups->most);
	groups->nread = 0;
	groups->nbatches++;
}

/* Has a row the same value, or NULL, in a column as the group that ends the batch? */
static bool
is_equal(GsSortGroups *groups, int i, TupleTableSlot *slot)
{
	const GsSortColumn *column = &groups->columns[i];
	bool		is_null;
	bool		group_is_null;
	Datum		value = slot_getattr(slot, column->attno, &is_null);
	Datum		group_value = slot_getattr(groups->last_group, column->attno, &group_is_null);

	if (is_null || group_is_null)
		return is_null && group_is_null;
	return DatumGetBool(FunctionCall2Coll(&groups->equality[i], column->collation, value,
										  group_value));
}

/* Is a row of the group that ends the batch?  The last columns differ most often. */
static bool
is_of_last_group(GsSortGroups *groups, TupleTableSlot *slot)
{
	MemoryContext old;
	int			i = groups->npresorted;

	ResetExprContext(groups->econtext);
	old = MemoryContextSwitchTo(groups->econtext->ecxt_per_tuple_memory);
	while (i > 0 && is_equal(groups, i - 1, slot))
		i--;
	MemoryContextSwitchTo(old);
	return i == 0;
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
		{
			groups->next = slot;	/* it stays in the child's slot until the next batch */
			return NULL;
		}
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
