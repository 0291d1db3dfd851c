/*-------------------------------------------------------------------------
 *
 * read_limit.c
 *	  How many rows the LIMIT above a sort asks for, computed at execution time.
 *
 * plan_limit.c says which expressions these are, and why the sort computes them;
 * store_topn.c drops the other rows.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "read/read_limit.h"

#include "common/int.h"
#include "executor/executor.h"
#include "store/sort_spec.h"

struct GsReadLimit
{
	ExprState  *count;
	ExprState  *offset;			/* NULL if there is none */
};

GsReadLimit *
gs_read_limit_init(List *exprs, PlanState *parent)
{
	GsReadLimit *limit;

	if (exprs == NIL)
		return NULL;
	limit = palloc(sizeof(GsReadLimit));
	limit->count = ExecInitExpr(linitial(exprs), parent);
	limit->offset = ExecInitExpr(lsecond(exprs), parent);
	return limit;
}

/* The value of an expression; `absent` if there is none, or if it is NULL. */
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
gs_read_limit_compute(GsReadLimit *limit, ExprContext *econtext)
{
	int64		count;
	int64		offset;
	int64		rows;

	if (limit == NULL)
		return GS_UNBOUNDED;
	count = compute(limit->count, econtext, -1);
	offset = compute(limit->offset, econtext, 0);
	ResetExprContext(econtext);
	if (count < 0 || offset < 0 || pg_add_s64_overflow(count, offset, &rows))
		return GS_UNBOUNDED;
	return rows;
}
