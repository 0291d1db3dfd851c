/*-------------------------------------------------------------------------
 *
 * node_window.c
 *	  Window functions that a GpuSort by ranges computes: row_number(), and lag() of columns.
 *
 * plan/plan_groups.c has put them into the plan.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "node/node_window.h"

#include "executor/executor.h"
#include "executor/instrument.h"
#include "utils/datum.h"

typedef struct Function
{
	int			column;			/* of a lag(), or GS_WINDOW_ROW_NUMBER */
	Datum		last;			/* of a lag(): the value in the last row, allocated unless it is
								 * passed by value */
	bool		last_is_null;
} Function;

struct GsNodeWindow
{
	ScanState  *node;
	int			nfunctions;
	Function	functions[FLEXIBLE_ARRAY_MEMBER];
};

GsNodeWindow *
gs_node_window_begin(ScanState *node, const List *functions)
{
	const int	count = list_length(functions);
	GsNodeWindow *window = palloc0(offsetof(GsNodeWindow, functions) + sizeof(Function) * count);

	window->node = node;
	window->nfunctions = count;
	for (int i = 0; i < count; i++)
	{
		window->functions[i].column = list_nth_int(functions, i);
		window->functions[i].last_is_null = true;
	}
	return window;
}

/* Keeps the value that a lag() will have. */
static void
keep(Function *function, const TupleTableSlot *row)
{
	const int	i = function->column - 1;
	const Form_pg_attribute attribute = TupleDescAttr(row->tts_tupleDescriptor, i);

	if (!attribute->attbyval && !function->last_is_null)
		pfree(DatumGetPointer(function->last));
	function->last_is_null = true;
	if (row->tts_isnull[i])
		return;
	function->last = datumCopy(row->tts_values[i], attribute->attbyval, attribute->attlen);
	function->last_is_null = false;
}

void
gs_node_window_keep(GsNodeWindow *window)
{
	const TupleTableSlot *row = window->node->ss_ScanTupleSlot;
	MemoryContext old;

	if (TupIsNull(row))
		return;
	old = MemoryContextSwitchTo(window->node->ps.state->es_query_cxt);
	for (int i = 0; i < window->nfunctions; i++)
	{
		if (window->functions[i].column != GS_WINDOW_ROW_NUMBER)
			keep(&window->functions[i], row);
	}
	MemoryContextSwitchTo(old);
}

/* Puts a row, followed by the functions, into the slot that expressions read. */
static TupleTableSlot *
extend(GsNodeWindow *window, TupleTableSlot *row, int64 number)
{
	TupleTableSlot *slot = window->node->ss_ScanTupleSlot;
	const int	ncolumns = row->tts_tupleDescriptor->natts;

	ExecClearTuple(slot);
	slot_getallattrs(row);
	memcpy(slot->tts_values, row->tts_values, sizeof(Datum) * ncolumns);
	memcpy(slot->tts_isnull, row->tts_isnull, sizeof(bool) * ncolumns);
	for (int i = 0; i < window->nfunctions; i++)
	{
		const Function *function = &window->functions[i];
		const bool	is_number = function->column == GS_WINDOW_ROW_NUMBER;

		slot->tts_values[ncolumns + i] = is_number ? Int64GetDatum(number) : function->last;
		slot->tts_isnull[ncolumns + i] = !is_number && (number == 1 || function->last_is_null);
	}
	return ExecStoreVirtualTuple(slot);
}

TupleTableSlot *
gs_node_window_compute(GsNodeWindow *window, TupleTableSlot *row, int64 number)
{
	PlanState  *ps = &window->node->ps;
	ExprContext *econtext = ps->ps_ExprContext;

	ResetExprContext(econtext);
	econtext->ecxt_scantuple = extend(window, row, number);
	if (ExecQual(ps->qual, econtext))
		return ps->ps_ProjInfo == NULL ? econtext->ecxt_scantuple : ExecProject(ps->ps_ProjInfo);
	InstrCountFiltered1(window->node, 1);
	return NULL;
}

void
gs_node_window_restart(GsNodeWindow *window)
{
	ExecClearTuple(window->node->ss_ScanTupleSlot);
}
