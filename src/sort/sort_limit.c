/*-------------------------------------------------------------------------
 *
 * sort_limit.c
 *	  How many rows a LIMIT above a sort asks it for, computed as the sort runs.
 *
 * plan_limit.c says which expressions these are, and why the sort computes them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sort/sort_limit.h"

#include "common/int.h"
#include "executor/executor.h"

struct GsLimitState
{
	ExprState  *count;
	ExprState  *offset;			/* NULL if there is none */
};

GsLimitState *
gs_limit_init(List *exprs, PlanState *parent)
{
	GsLimitState *bound;

	if (exprs == NIL)
		return NULL;
	bound = palloc(sizeof(GsLimitState));
	bound->count = ExecInitExpr(linitial(exprs), parent);
	bound->offset = ExecInitExpr(lsecond(exprs), parent);
	return bound;
}

/* The value of an expression that may be NULL or not there: `absent` then. */
static int64
compute(ExprState *expr, ExprContext *econtext, int64 absent)
{
	bool		is_null;
	Datum		value;

	if (expr == NULL)
		return absent;
	value = ExecEvalExprSwitchContext(expr, econtext, &is_null);
	return is_null ? absent : DatumGetInt64(value);
}

int64
gs_limit_compute(GsLimitState *bound, ExprContext *econtext)
{
	int64		count;
	int64		offset;
	int64		rows;

	if (bound == NULL)
		return GS_UNBOUNDED;
	count = compute(bound->count, econtext, -1);
	offset = compute(bound->offset, econtext, 0);
	ResetExprContext(econtext);
	if (count < 0 || offset < 0 || pg_add_s64_overflow(count, offset, &rows))
		return GS_UNBOUNDED;
	return rows;
}
