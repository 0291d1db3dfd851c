/*-------------------------------------------------------------------------
 *
 * node_window.c
 *	  Window functions that a GpuSort by ranges computes: row_number(), and lag() of columns.
 *
 * plan/plan_groups.c has put parameters in their place.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "node/node_window.h"

#include "executor/executor.h"
#include "utils/datum.h"

/* The value of a column in the row before. */
typedef struct Lag
{
	AttrNumber	attno;
	bool		byval;
	int16		length;
	Datum		kept;			/* of the last row; allocated, unless byval */
	bool		isnull;
	ParamExecData *parameter;
} Lag;

struct GsNodeWindow
{
	ScanState  *node;
	ParamExecData *row_number;	/* NULL: not used */
	Lag		   *lags;
	int			nlags;
};

/*
 * The executor has set up the node for rows in virtual slots, but a GpuSort returns minimal tuples.
 */
static void
begin_projection(ScanState *node, TupleDesc desc)
{
	PlanState  *ps = &node->ps;

	node->ss_ScanTupleSlot = ExecInitExtraTupleSlot(ps->state, desc, &TTSOpsMinimalTuple);
	ps->scandesc = desc;
	ps->scanops = &TTSOpsMinimalTuple;
	ps->scanopsfixed = true;
	ps->scanopsset = true;
	ExecAssignScanProjectionInfoWithVarno(node, INDEX_VAR);
	ps->qual = ExecInitQual(ps->plan->qual, ps);
}

GsNodeWindow *
gs_node_window_begin(ScanState *node, const List *functions, TupleDesc desc, TupleTableSlot **slot)
{
	GsNodeWindow *window = palloc0(sizeof(GsNodeWindow));
	ParamExecData *parameters = node->ps.state->es_param_exec_vals;
	const int	row_number = list_nth_int(functions, GS_WINDOW_ROW_NUMBER);

	begin_projection(node, desc);
	window->node = node;
	window->row_number = row_number < 0 ? NULL : &parameters[row_number];
	window->nlags = (list_length(functions) - GS_WINDOW_LAGS) / 2;
	window->lags = palloc0(sizeof(Lag) * Max(window->nlags, 1));
	for (int i = 0; i < window->nlags; i++)
	{
		Lag		   *lag = &window->lags[i];

		lag->attno = list_nth_int(functions, GS_WINDOW_LAGS + 2 * i);
		lag->byval = TupleDescAttr(desc, lag->attno - 1)->attbyval;
		lag->length = TupleDescAttr(desc, lag->attno - 1)->attlen;
		lag->isnull = true;
		lag->parameter = &parameters[list_nth_int(functions, GS_WINDOW_LAGS + 2 * i + 1)];
	}
	*slot = node->ss_ScanTupleSlot;
	return window;
}

void
gs_node_window_keep(GsNodeWindow *window)
{
	TupleTableSlot *slot = window->node->ss_ScanTupleSlot;
	MemoryContext old;

	if (window->nlags == 0 || TupIsNull(slot))
		return;
	old = MemoryContextSwitchTo(window->node->ps.state->es_query_cxt);
	for (int i = 0; i < window->nlags; i++)
	{
		Lag		   *lag = &window->lags[i];
		Datum		value;

		if (!lag->byval && !lag->isnull)
			pfree(DatumGetPointer(lag->kept));
		lag->isnull = true;
		value = slot_getattr(slot, lag->attno, &lag->isnull);
		if (!lag->isnull)
			lag->kept = datumCopy(value, lag->byval, lag->length);
	}
	MemoryContextSwitchTo(old);
}

TupleTableSlot *
gs_node_window_compute(GsNodeWindow *window, int64 number)
{
	PlanState  *ps = &window->node->ps;
	ExprContext *econtext = ps->ps_ExprContext;

	if (window->row_number != NULL)
		*window->row_number = (ParamExecData) {.value = Int64GetDatum(number)};
	for (int i = 0; i < window->nlags; i++)
	{
		const Lag  *lag = &window->lags[i];

		*lag->parameter = (ParamExecData) {
			.value = lag->kept,.isnull = number == 1 || lag->isnull
		};
	}
	ResetExprContext(econtext);
	econtext->ecxt_scantuple = window->node->ss_ScanTupleSlot;
	if (ExecQual(ps->qual, econtext))
		return ExecProject(ps->ps_ProjInfo);
	InstrCountFiltered1(window->node, 1);
	return NULL;
}
