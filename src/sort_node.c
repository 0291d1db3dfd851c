/*-------------------------------------------------------------------------
 *
 * sort_node.c
 *	  The GpuSort executor node: a driver of the engine frontier.
 *
 * A GpuSort stands where a Sort stood and keeps all its promises: it can be
 * rescanned, rewound, read backward, marked and restored, and it hands out
 * MinimalTuples in a slot that says so.  Two promises are its own, as long as
 * an engine sorts: the sort is stable, and every row is copied once on its way
 * in and not at all on its way out.
 *
 *				 first row wanted		   runs?
 *		IDLE ------------------------> load ------> ENGINE
 *		 ^							 ^	|  \
 *		 | rescan		 memory is	 |	|	`-----> MERGE
 *		 |				 full: a run +--+
 *		 |								 | no code for a value, gpusort
 *		 |								 v switched off
 *		 +------------------------- drain and load ---> STOCK
 *
 * The engine is the CPU's at first; once there are rows enough for a device,
 * or memory is at its end, they move there (engine_choice.h).  A device can be
 * lost, with all the rows that it has: as long as nothing was handed out, and
 * if the child can be run again unnoticed, the sort starts once more and
 * stays with the CPU.  A device's memory can be full, too; then it sorts what it took,
 * which becomes a run like any other.
 *
 * A LIMIT above has the rows dropped that cannot be among those that it wants
 * (sort_top.c), most of them before they are stored.
 *
 * load reads the child to its end.  For each row the sort columns are taken
 * from the slot, the stored row is written to the engine's batch, and the key
 * record beside it.  When the engine can take no more, it sorts the rows that it has, they
 * are written to a temporary file as a run, and a fresh engine goes on; in the
 * end the runs are merged as rows are asked for (sort_spill.h).  A value without a code stops
 * that: the rows taken so far go to a tuplesort, memory being freed on the way,
 * and the child's remaining rows follow; nothing was handed out yet, so nobody
 * can tell.  So do rows that outgrow memory where they may be asked for backward or
 * again, as a merge gives them once.
 *
 * Where keys are only a hint (sort_key.h) the sorted rows are fetched once
 * before the first one leaves, to prove their order; if it does not hold they go
 * to a tuplesort, too.
 *
 * Where the one sort column is the whole row and can be had back from its
 * code, no row is stored at all, and NULLs are only counted: one is as good as
 * another.
 *
 * Everything a sort holds is in one memory context below the query's.  An
 * ERROR, a cancel, or the end of the query frees it; the engine has nothing
 * that would need more.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "engine.h"
#include "engine_choice.h"
#include "engine_host.h"
#include "gpusort.h"
#include "service_client.h"
#include "sort_bound.h"
#include "sort_compare.h"
#include "sort_explain.h"
#include "sort_key.h"
#include "sort_node.h"
#include "sort_row.h"
#include "sort_stock.h"
#include "sort_top.h"
#include "sort_verify.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/memutils.h"

/* The lists in custom_private. */
enum
{
	PRIVATE_ATTNOS,
	PRIVATE_OPERATORS,
	PRIVATE_COLLATIONS,
	PRIVATE_NULLS_FIRST,
	PRIVATE_REPEATABLE,
	PRIVATE_LISTS
};

/* What an engine needs beside its one row, and some more. */
#define LEAST_ENGINE_BYTES	((Size) 32 << 10)

static Node *sort_create_state(CustomScan *scan);
static void sort_begin(CustomScanState *node, EState *estate, int eflags);
static TupleTableSlot *sort_exec(CustomScanState *node);
static TupleTableSlot *sort_exec_verified(CustomScanState *node);
static void sort_end(CustomScanState *node);
static void sort_rescan(CustomScanState *node);
static void sort_mark(CustomScanState *node);
static void sort_restore(CustomScanState *node);
static GsStatus reserve(GsSortState *state, Size row_bytes, GsBatch **batch);
static void forget(GsSortState *state);

const CustomScanMethods gs_sort_scan_methods = {
	.CustomName = "GpuSort",
	.CreateCustomScanState = sort_create_state
};

#define SORT_METHODS(exec) \
	{ \
		.CustomName = "GpuSort", \
		.BeginCustomScan = sort_begin, \
		.ExecCustomScan = exec, \
		.EndCustomScan = sort_end, \
		.ReScanCustomScan = sort_rescan, \
		.MarkPosCustomScan = sort_mark, \
		.RestrPosCustomScan = sort_restore, \
		.ExplainCustomScan = gs_sort_explain \
	}

static const CustomExecMethods sort_exec_methods = SORT_METHODS(sort_exec);
static const CustomExecMethods sort_exec_methods_verified = SORT_METHODS(sort_exec_verified);

/* ----------------------------------------------------------- plan and state */

List *
gs_sort_node_private(const GsSortColumn *columns, int ncolumns, bool repeatable)
{
	List	   *lists[PRIVATE_LISTS] = {NIL};

	for (int i = 0; i < ncolumns; i++)
	{
		lists[PRIVATE_ATTNOS] = lappend_int(lists[PRIVATE_ATTNOS], columns[i].attno);
		lists[PRIVATE_OPERATORS] = lappend_oid(lists[PRIVATE_OPERATORS], columns[i].sort_operator);
		lists[PRIVATE_COLLATIONS] = lappend_oid(lists[PRIVATE_COLLATIONS], columns[i].collation);
		lists[PRIVATE_NULLS_FIRST] = lappend_int(lists[PRIVATE_NULLS_FIRST], columns[i].nulls_first);
	}
	lists[PRIVATE_REPEATABLE] = list_make1_int(repeatable);
	return list_make5(lists[0], lists[1], lists[2], lists[3], lists[4]);
}

static GsSortColumn *
columns_of_plan(const CustomScan *scan, int *ncolumns)
{
	List	   *attnos = list_nth(scan->custom_private, PRIVATE_ATTNOS);
	List	   *operators = list_nth(scan->custom_private, PRIVATE_OPERATORS);
	List	   *collations = list_nth(scan->custom_private, PRIVATE_COLLATIONS);
	List	   *nulls_first = list_nth(scan->custom_private, PRIVATE_NULLS_FIRST);
	GsSortColumn *columns = palloc(sizeof(GsSortColumn) * list_length(attnos));

	*ncolumns = list_length(attnos);
	for (int i = 0; i < *ncolumns; i++)
	{
		columns[i].attno = list_nth_int(attnos, i);
		columns[i].type = exprType((Node *) list_nth_node(TargetEntry, scan->custom_scan_tlist,
														  columns[i].attno - 1)->expr);
		columns[i].sort_operator = list_nth_oid(operators, i);
		columns[i].collation = list_nth_oid(collations, i);
		columns[i].nulls_first = list_nth_int(nulls_first, i) != 0;
	}
	return columns;
}

static Node *
sort_create_state(CustomScan *scan)
{
	GsSortState *state = palloc0(sizeof(GsSortState));

	NodeSetTag(state, T_CustomScanState);
	state->css.methods = gpusort_verify ? &sort_exec_methods_verified : &sort_exec_methods;
	return (Node *) state;
}

static void
sort_begin(CustomScanState *node, EState *estate, int eflags)
{
	GsSortState *state = (GsSortState *) node;
	CustomScan *scan = (CustomScan *) node->ss.ps.plan;
	PlanState  *ps = &node->ss.ps;

	state->columns = columns_of_plan(scan, &state->ncolumns);
	state->repeatable = linitial_int(list_nth(scan->custom_private, PRIVATE_REPEATABLE)) != 0;
	state->random_access = (eflags & (EXEC_FLAG_REWIND |
									  EXEC_FLAG_BACKWARD |
									  EXEC_FLAG_MARK)) != 0;
	state->bound = gs_bound_init(scan->custom_exprs, ps);

	/* we shield the child from all of these */
	eflags &= ~(EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK);
	outerPlanState(node) = ExecInitNode(outerPlan(scan), estate, eflags);

	/*
	 * The executor has set up the node as one that projects to virtual slots.
	 * It does neither, and nodes above must know: they compile how a tuple is
	 * deformed for the kind of slot that is promised here.
	 */
	ps->ps_ProjInfo = NULL;
	ps->ps_ResultTupleSlot = ExecInitExtraTupleSlot(estate, ps->ps_ResultTupleDesc,
													&TTSOpsMinimalTuple);
	ps->resultops = &TTSOpsMinimalTuple;
	ps->resultopsfixed = true;
	ps->resultopsset = true;
}

/* -------------------------------------------------------------------- load */

static void
begin_stock(GsSortState *state, int memory_kb, const char *reason)
{
	MemoryContext old = MemoryContextSwitchTo(state->context);

	state->stock_reason = pstrdup(reason);
	gs_stock_begin(&state->stock, state->columns, state->ncolumns,
				   ExecGetResultType(outerPlanState(state)), memory_kb,
				   state->top.bound, state->random_access);
	MemoryContextSwitchTo(old);
	state->phase = GS_SORT_STOCK;
}

/* Puts one value that was kept as a key only into the result slot. */
static void
store_value(const GsSortState *state, const void *record, TupleTableSlot *slot)
{
	ExecClearTuple(slot);
	slot->tts_isnull[0] = record == NULL;
	slot->tts_values[0] = record == NULL ? (Datum) 0 : gs_sort_key_decode(state->key, record);
	ExecStoreVirtualTuple(slot);
}

/* Puts a stored row into the result slot; NULL is a counted NULL. */
static inline void
store_row(const GsSortState *state, const void *row, TupleTableSlot *slot)
{
	if (state->keys_only)
		store_value(state, row, slot);
	else
		ExecStoreMinimalTuple((MinimalTuple) unconstify(void *, row), slot, false);
}

/* A record that the merge of the runs gave, as store_row() wants it. */
static inline const void *
row_of_run(const GsSortState *state, const uint64 *record)
{
	return state->keys_only || record == NULL ? (const void *) record :
		gs_run_tuple(gs_sort_key_layout(state->key), record);
}

/* Has the window begin with the row at a position; it may get fewer than there are. */
static GsStatus
fill_window(GsSortState *state, int64 position)
{
	size_t		fetched;
	GsStatus	status = gs_engine_fetch(state->engine, position, GS_SORT_WINDOW,
										 state->window, &fetched);

	state->window_start = position;
	state->window_rows = status != GS_STATUS_OK ? 0 :
		(int) Min((int64) fetched, gs_top_nrows(&state->top) - position);
	return status;
}

/* Moves the rows of all runs to a tuplesort. */
static void
hand_over_runs(GsSortState *state, TupleTableSlot *slot)
{
	const uint64 *record;

	gs_spill_begin_merge(state->spill);
	while ((record = gs_spill_next(state->spill)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		store_row(state, row_of_run(state, record), slot);
		gs_stock_put(&state->stock, slot);
	}
	ExecClearTuple(slot);
	gs_spill_close(state->spill);
	state->spill = NULL;
}

/* Moves the rows that the engine has not sorted to a tuplesort, its memory being freed on the way. */
static GsStatus
hand_over_unsorted(GsSortState *state, TupleTableSlot *slot)
{
	const GsKeyLayout *layout = state->engine->job.layout;
	const GsBatch *batch;
	GsStatus	status = gs_engine_drain(state->engine);

	while (status == GS_STATUS_OK &&
		   (status = gs_engine_next_batch(state->engine, &batch)) == GS_STATUS_OK &&
		   batch != NULL)
	{
		for (size_t i = 0; i < batch->nrows; i++)
		{
			CHECK_FOR_INTERRUPTS();
			store_row(state, gs_batch_pushed(batch, layout, i), slot);
			gs_stock_put(&state->stock, slot);
		}
	}
	return status;
}

/* Moves those that it has sorted. */
static GsStatus
hand_over_sorted(GsSortState *state, TupleTableSlot *slot)
{
	uint64		position = 0;

	do
	{
		GsStatus	status = fill_window(state, position);

		if (status != GS_STATUS_OK)
			return status;
		CHECK_FOR_INTERRUPTS();
		for (int i = 0; i < state->window_rows; i++)
		{
			store_row(state, state->window[i], slot);
			gs_stock_put(&state->stock, slot);
		}
		position += state->window_rows;
	} while (state->window_rows > 0);
	return GS_STATUS_OK;
}

/*
 * Moves the rows taken so far from the engine, and from runs, to a tuplesort.
 * The tuplesort gets three quarters of work_mem, as it fills up while the
 * engine still has some of the rows; or what is left, and a quarter in any case, where the
 * engine gives no memory back on the way, having sorted.  False if the engine
 * failed over it.
 */
static bool
hand_over_to_stock(GsSortState *state, const char *reason)
{
	TupleTableSlot *slot = state->css.ss.ps.ps_ResultTupleSlot;
	const GsFigures *figures = gs_engine_figures(state->engine);
	int			memory_kb = work_mem - work_mem / 4;
	GsStatus	status;

	if (figures->method == GS_METHOD_NONE)
	{
		begin_stock(state, memory_kb, reason);
		status = hand_over_unsorted(state, slot);
	}
	else
	{
		memory_kb = work_mem - Min(figures->peak_bytes / 1024, work_mem);
		begin_stock(state, Max(memory_kb, work_mem / 4), reason);
		status = hand_over_sorted(state, slot);
	}
	for (uint64 i = 0; i < state->nnulls && status == GS_STATUS_OK; i++)
	{
		CHECK_FOR_INTERRUPTS();
		store_row(state, NULL, slot);
		gs_stock_put(&state->stock, slot);
	}
	ExecClearTuple(slot);
	if (status != GS_STATUS_OK)
		return false;
	gs_engine_close(state->engine);
	state->engine = NULL;
	if (state->spill != NULL)
		hand_over_runs(state, slot);
	return true;
}

/* Has the engine lost its rows? */
static inline bool
engine_failed(const GsSortState *state)
{
	return state->engine != NULL && state->engine->figures.detail != NULL;
}

static void
report_engine_failure(const GsSortState *state)
{
	ereport(ERROR,
			(errcode(ERRCODE_SYSTEM_ERROR),
			 errmsg("the %s sort engine failed", state->engine->figures.engine),
			 errdetail_internal("%s", state->engine->figures.detail),
			 errhint("Run the query again. Set gpusort.engine to cpu to sort without a device.")));
}

static void
report_no_memory(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("out of memory"),
			 errdetail("A sort has no memory to go on.")));
}

/* Why an engine gave a status other than OK. */
static const char *
status_reason(const GsSortState *state, GsStatus status)
{
	switch (status)
	{
		case GS_STATUS_FULL:
			if (state->disproved)
				return "strxfrm() and strcoll() disagree";
			return state->engine->figures.full != NULL ?
				state->engine->figures.full : "the rows outgrew work_mem";
		case GS_STATUS_OOM:
			return "out of memory";
		default:
			return "the engine failed";
	}
}

/* Moves the rows to a device, if there is one and it has room.  One try only. */
static bool
move_to_device(GsSortState *state)
{
	Plan	   *plan = state->css.ss.ps.plan;
	const GsKeyLayout *layout = state->engine->job.layout;
	double		row_bytes = gs_record_bytes(layout);
	double		nrows = gs_top_expected_rows(&state->top, plan->plan_rows);
	GsEngine   *engine;

	state->may_move = false;
	if (!layout->keys_only)
		row_bytes += MAXALIGN(SizeofMinimalTupleHeader) + MAXALIGN(plan->plan_width);
	engine = gs_engine_move_to_device(state->engine, state->context,
									  Max(nrows, (double) gs_top_rows_of_engine(state->engine)),
									  row_bytes, &state->device_reason);
	if (engine == NULL)
		return false;
	state->engine = engine;
	state->top.may_cut = false;
	state->device_reason = NULL;
	return true;
}

/*
 * Would a device take it from here?  Not as long as most of the rows will be
 * dropped before long.
 */
static bool
device_pays(const GsSortState *state, bool loaded)
{
	uint64		nrows;

	if (!state->may_move)
		return false;
	nrows = gs_top_rows_of_engine(state->engine);
	return gs_engine_device_pays(nrows) &&
		(loaded || !gs_top_will_cut(&state->top, state->css.ss.ps.plan->plan_rows));
}

static bool
is_device(const GsEngine *engine)
{
	return engine->figures.device != NULL;
}

/*
 * May the rows become a run?  A merge gives them once, so they may not where
 * they may be asked for again; nor where a device can take some of them only, which
 * are to be proven.
 */
static bool
may_spill(const GsSortState *state)
{
	return !state->random_access && !state->disproved &&
		!(is_device(state->engine) && gs_sort_key_needs_proof(state->key));
}

/* GsRowCompares: of any rows, and of those whose keys are equal. */
static int
compare_rows(void *arg, const void *a, const void *b)
{
	GsSortState *state = arg;

	return gs_sort_compare_rows(state->compare, (MinimalTuple) unconstify(void *, a),
								(MinimalTuple) unconstify(void *, b), 0);
}

static int
compare_tied(void *arg, const void *a, const void *b)
{
	GsSortState *state = arg;

	return gs_sort_compare_rows(state->compare, (MinimalTuple) unconstify(void *, a),
								(MinimalTuple) unconstify(void *, b),
								gs_sort_key_first_tied(state->key));
}

/*
 * Proves the order that the engine found, if its keys are only a hint.  FULL: it
 * does not hold, so only a tuplesort will do.
 */
static GsStatus
prove_order(GsSortState *state)
{
	MemoryContext old = MemoryContextSwitchTo(state->context);
	GsSortProof proof = {.holds = true};
	GsStatus	status = GS_STATUS_OK;

	if (gs_sort_key_needs_proof(state->key))
		status = gs_sort_prove(state->engine, state->compare, &proof);
	MemoryContextSwitchTo(old);
	state->proof.ncomparisons += proof.ncomparisons;
	state->proof.us += proof.us;
	state->disproved = !proof.holds;
	return status == GS_STATUS_OK && state->disproved ? GS_STATUS_FULL : status;
}

/* The order in which runs are merged. */
static GsMergeOrder
merge_order(GsSortState *state)
{
	GsMergeOrder order = {.layout = state->engine->job.layout};

	order.keys_decide = !gs_sort_key_needs_proof(state->key);
	order.compare = !order.keys_decide ? compare_rows :
		gs_sort_key_first_tied(state->key) >= 0 ? compare_tied : NULL;
	order.compare_arg = state;
	return order;
}

/*
 * Sorts the rows that the engine has taken, and writes them as a run, if there
 * are any.  FULL: a device has no memory to sort them, or their order was
 * disproved.
 */
static GsStatus
write_run(GsSortState *state)
{
	GsEngine   *engine = state->engine;
	GsStatus	status;

	/* rows shorter than those before can need a little more than was left for them */
	engine->job.memory_limit = SIZE_MAX;
	status = gs_engine_sort(engine);
	if (status == GS_STATUS_FULL)
		status = gs_engine_sort(engine);	/* without those that it did not take */
	if (status == GS_STATUS_OK)
		status = prove_order(state);
	if (status != GS_STATUS_OK || engine->figures.nrows == 0)
		return status;
	if (state->spill == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(state->context);
		GsMergeOrder order = merge_order(state);

		state->spill = gs_spill_create(state->columns, state->ncolumns,
									   ExecGetResultType(outerPlanState(state)),
									   &order, state->memory_limit);
		MemoryContextSwitchTo(old);
	}
	return gs_spill_write_run(state->spill, engine);
}

/* Copies the rows that another engine has not written, in input order. */
static GsStatus
take_rest(GsSortState *state, GsEngine *from)
{
	const GsKeyLayout *layout = from->job.layout;
	const GsBatch *rest;
	GsBatch    *batch = NULL;
	GsStatus	status;

	while ((status = gs_engine_next_batch(from, &rest)) == GS_STATUS_OK && rest != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		for (size_t i = 0; i < rest->nrows; i++)
		{
			Size		row_bytes = gs_batch_row_bytes(rest, layout, i);

			if ((batch == NULL || !gs_engine_has_room(batch, row_bytes)) &&
				reserve(state, row_bytes, &batch) != GS_STATUS_OK)
				report_no_memory();
			gs_batch_push_copy(batch, rest, layout, i, row_bytes);
		}
	}
	return status;
}

/*
 * Puts a CPU engine, with room for a row of row_bytes, in the place of one whose
 * rows were written as a run, but for those that it did not take; it did not
 * even sort if it is to be drained.
 */
static GsStatus
next_engine(GsSortState *state, Size row_bytes, bool drain)
{
	GsEngine   *device = is_device(state->engine) ? state->engine : NULL;
	GsJob		job = state->engine->job;
	GsStatus	status = GS_STATUS_OK;

	if (device == NULL)
		gs_engine_close(state->engine);
	job.memory_limit = Max(state->memory_limit - gs_spill_writer_bytes(state->memory_limit),
						   row_bytes + LEAST_ENGINE_BYTES);
	state->engine = gs_engine_cpu_open(&job);
	if (state->engine == NULL)
		report_no_memory();
	if (device == NULL)
		return GS_STATUS_OK;

	state->may_move = false;
	if (drain)
		status = gs_engine_drain(device);
	if (status == GS_STATUS_OK)
		status = take_rest(state, device);
	if (status != GS_STATUS_OK)
	{
		gs_engine_close(state->engine);
		state->engine = device;
		return status;
	}
	/* the next rows go to the device again, if it took more than we can */
	state->may_move = !drain && device->figures.nrows > 0 &&
		device->figures.bytes_up >= state->memory_limit;
	state->device_reason = device->figures.full;
	gs_engine_close(device);
	return GS_STATUS_OK;
}

/* Makes the engine's rows a run, and goes on with an empty engine. */
static GsStatus
spill(GsSortState *state, Size row_bytes)
{
	GsStatus	status = write_run(state);

	if (status == GS_STATUS_OK ||
		(status == GS_STATUS_FULL && is_device(state->engine) && !state->disproved))
		status = next_engine(state, row_bytes, status == GS_STATUS_FULL);
	return status;
}

/* Begins another batch for a row, whatever it takes. */
static GsStatus
reserve(GsSortState *state, Size row_bytes, GsBatch **batch)
{
	GsStatus	status = gs_engine_reserve(state->engine, row_bytes, batch);

	if (status == GS_STATUS_FULL &&
		(gs_top_cut(&state->top, state->engine, state->context, true) ||
		 (state->may_move && gpusort_engine != GS_ENGINE_CPU && move_to_device(state))))
		status = gs_engine_reserve(state->engine, row_bytes, batch);
	if ((status == GS_STATUS_FULL || status == GS_STATUS_OOM) && may_spill(state))
	{
		status = spill(state, row_bytes);
		if (status == GS_STATUS_OK)
			status = gs_engine_reserve(state->engine, row_bytes, batch);
	}
	return status;
}

/* Begins another batch for a row.  Returns NULL, or why there is none. */
static pg_noinline const char *
begin_batch(GsSortState *state, Size row_bytes, GsBatch **batch)
{
	GsStatus	status;

	(void) gs_top_cut(&state->top, state->engine, state->context, false);
	if (device_pays(state, false))
		(void) move_to_device(state);
	status = reserve(state, row_bytes, batch);
	return status == GS_STATUS_OK ? NULL : status_reason(state, status);
}

/* Sees to it that the batch has room for a row.  Returns NULL, or why it has none. */
static inline const char *
make_room(GsSortState *state, Size row_bytes, GsBatch **batch)
{
	return *batch != NULL && gs_engine_has_room(*batch, row_bytes) ? NULL :
		begin_batch(state, row_bytes, batch);
}

/* Is a row not wanted, as its first sort column tells? */
static inline bool
drop_at_first_sight(GsSortState *state, TupleTableSlot *slot)
{
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;
	bool		is_null;
	uint64		code = 0;

	if (state->top.order != NULL)
	{
		MemoryContext old;
		Datum		value;
		bool		drops;

		ResetExprContext(econtext);
		old = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
		value = slot_getattr(slot, state->columns[0].attno, &is_null);
		drops = gs_top_drops_value(&state->top, value, is_null);
		MemoryContextSwitchTo(old);
		return drops;
	}
	return gs_sort_key_peek(state->key, slot, &is_null, &code) &&
		gs_top_drops_first(&state->top,
						   gs_top_first(state->engine->job.layout, is_null, code));
}

/*
 * Takes the slot's row into the engine, unless it is known not to be wanted.
 * Returns NULL, or why it cannot be taken.
 */
static const char *
take_row(GsSortState *state, TupleTableSlot *slot, GsBatch **batch)
{
	const GsJob *job = &state->engine->job;
	GsRowSource source;
	Size		extra_bytes = 0;
	Size		row_bytes;
	const char *why_not;
	char	   *row;
	uint64	   *record;
	uint32		nulls;

	if (state->top.has_cutoff && drop_at_first_sight(state, slot))
		return NULL;
	gs_row_source_init(&source, slot);
	if (!state->direct_key &&
		!gs_sort_key_load(state->key, slot, &source, &extra_bytes, &why_not))
		return why_not;
	row_bytes = source.nbytes + extra_bytes;
	if (row_bytes > PG_UINT32_MAX)
		return "a row and its keys take more than 4 GB";
	if ((why_not = make_room(state, row_bytes, batch)) != NULL)
		return why_not;

	row = gs_batch_next_row(*batch);
	record = gs_batch_next_record(*batch);
	if (state->direct_key)
		nulls = gs_sort_key_write_direct(state->key, slot, &source, record);
	else
	{
		gs_row_store(&source, slot, row);
		nulls = gs_sort_key_write(state->key, &source, row, source.nbytes, record);
	}
	record[job->layout->nwords] = gs_batch_next_place(*batch, nulls);
	if (state->top.has_cutoff && gs_top_drops(&state->top, job, record, row))
		return NULL;
	if (state->direct_key)
		gs_row_store(&source, slot, row);
	gs_batch_push(*batch, row_bytes);
	return NULL;
}

/* The same where the one value is both key and row. */
static const char *
take_value(GsSortState *state, TupleTableSlot *slot, GsBatch **batch)
{
	const char *why_not;

	slot_getsomeattrs(slot, 1);
	if (slot->tts_isnull[0])
	{
		state->nnulls++;
		return NULL;
	}
	if ((why_not = make_room(state, 0, batch)) != NULL)
		return why_not;
	if (!gs_sort_key_write_value(state->key, slot->tts_values[0],
								 gs_batch_next_record(*batch), &why_not))
		return why_not;
	if (state->top.has_cutoff &&
		gs_top_drops(&state->top, &state->engine->job, gs_batch_next_record(*batch), NULL))
		return NULL;
	gs_batch_push(*batch, 0);
	return NULL;
}

/* Will the rows move to a device, as far as one can know?  It can compare nothing but keys. */
static bool
device_is_likely(const GsSortState *state)
{
	const char *why_not;

	return state->may_move && gs_engine_device_pays((uint64) state->css.ss.ps.plan->plan_rows) &&
		gs_service_client_is_usable(&why_not);
}

/* Opens the engine, unless the rows had better go to a tuplesort at once. */
static void
begin_load(GsSortState *state)
{
	EState	   *estate = state->css.ss.ps.state;
	TupleDesc	desc = ExecGetResultType(outerPlanState(state));
	MemoryContext old;
	char	   *why_not = NULL;
	GsJob		job = {0};
	int64		bound;

	/* small blocks: batches are pieces of their own then, which can be given back */
	state->context = AllocSetContextCreate(estate->es_query_cxt, "GpuSort",
										   ALLOCSET_SMALL_SIZES);
	state->memory_limit = (Size) work_mem * 1024;
	state->engine = NULL;
	state->spill = NULL;
	state->may_move = gpusort_engine != GS_ENGINE_CPU;
	state->device_reason = NULL;
	state->proof = (GsSortProof) {0};
	state->disproved = false;
	state->nread = 0;
	state->nnulls = 0;
	state->window_rows = 0;
	bound = gs_bound_compute(state->bound, state->css.ss.ps.ps_ExprContext);

	old = MemoryContextSwitchTo(state->context);
	if (state->css.methods == &sort_exec_methods_verified)
		state->verify = gs_sort_verify_create(state->columns, state->ncolumns, desc);
	if (!gpusort_enabled)
		why_not = "gpusort.enabled is off";
	else if (gs_sort_key_can_encode(state->columns, state->ncolumns, &why_not))
	{
		state->key = gs_sort_key_create(state->columns, state->ncolumns, desc,
										device_is_likely(state));
		if (gs_sort_key_needs_proof(state->key))
			bound = GS_UNBOUNDED;	/* what is dropped is never compared */
		state->direct_key = gs_sort_key_is_direct(state->key);
		job.layout = gs_sort_key_layout(state->key);
		state->keys_only = job.layout->keys_only;
		job.memory_limit = state->memory_limit;
		gs_engine_host_init(&job.host, state->context);
		if (gs_sort_key_needs_proof(state->key) || gs_sort_key_first_tied(state->key) >= 0)
			state->compare = gs_sort_compare_create(state->columns, state->ncolumns, desc);
		if (gs_sort_key_first_tied(state->key) >= 0)
		{
			job.compare = compare_tied;
			job.compare_arg = state;
		}
		state->engine = gs_engine_cpu_open(&job);
		if (state->engine == NULL)
			why_not = "out of memory";
	}
	gs_top_begin(&state->top, bound);
	if (state->engine != NULL && bound != GS_UNBOUNDED && gs_sort_key_first_is_costly(state->key))
		gs_top_compare_values(&state->top, state->columns, state->ncolumns, desc);
	MemoryContextSwitchTo(old);

	if (state->engine == NULL)
		begin_stock(state, work_mem, why_not);
	else
		state->phase = GS_SORT_ENGINE;
}

/* Reads the child to its end.  False: the engine failed. */
static bool
load(GsSortState *state)
{
	PlanState  *child = outerPlanState(state);
	GsBatch    *batch = NULL;

	for (;;)
	{
		TupleTableSlot *slot = ExecProcNode(child);

		if (TupIsNull(slot))
			return true;
		state->nread++;
		if (state->phase == GS_SORT_ENGINE)
		{
			const char *why_not = state->keys_only ?
				take_value(state, slot, &batch) : take_row(state, slot, &batch);

			if (why_not == NULL)
				continue;
			if (engine_failed(state) || !hand_over_to_stock(state, why_not))
				return false;
		}
		gs_stock_put(&state->stock, slot);
	}
}

/* Sorts what was loaded, proves the order if need be, and fetches the first rows. */
static GsStatus
sort_in_engine(GsSortState *state)
{
	GsStatus	status = gs_engine_sort(state->engine);

	if (status != GS_STATUS_OK)
		return status;
	state->nrows = state->engine->figures.nrows + state->nnulls;
	status = prove_order(state);
	return status == GS_STATUS_OK ? fill_window(state, 0) : status;
}

/*
 * Writes the last run and begins to merge them all.  Where that was a device's, some
 * rows may be left for another.
 */
static GsStatus
merge_runs(GsSortState *state)
{
	GsStatus	status = is_device(state->engine) ? spill(state, 0) : GS_STATUS_OK;

	if (status == GS_STATUS_OK)
		status = write_run(state);
	if (status != GS_STATUS_OK)
		return status;
	gs_engine_close(state->engine);
	state->engine = NULL;
	gs_spill_begin_merge(state->spill);
	state->nrows = gs_spill_figures(state->spill)->nrows + state->nnulls;
	state->phase = GS_SORT_MERGE;
	return GS_STATUS_OK;
}

/* Sorts what was loaded, in whichever way.  False: the engine failed. */
static bool
sort(GsSortState *state)
{
	if (state->phase == GS_SORT_ENGINE)
	{
		GsStatus	status;

		if (device_pays(state, true))
			(void) move_to_device(state);
		status = state->spill == NULL ? sort_in_engine(state) : GS_STATUS_FULL;
		if (status == GS_STATUS_FULL && may_spill(state))
			status = merge_runs(state);
		if (status == GS_STATUS_FAILED)
			return false;
		if (status != GS_STATUS_OK &&
			!hand_over_to_stock(state, status_reason(state, status)))
			return false;
	}
	if (state->phase == GS_SORT_STOCK)
		gs_stock_perform(&state->stock);
	return true;
}

static bool
is_parallel(PlanState *node, void *context)
{
	return node->plan->parallel_aware || planstate_tree_walker(node, is_parallel, context);
}

/*
 * The engine failed and has lost the rows: begins again, if the child can.  A
 * scan that is shared with other processes cannot.
 */
static void
begin_again(GsSortState *state)
{
	EState	   *estate = state->css.ss.ps.state;
	PlanState  *child = outerPlanState(state);
	char	   *reason;

	if (!state->repeatable || is_parallel(child, NULL))
		report_engine_failure(state);
	reason = MemoryContextStrdup(estate->es_query_cxt, state->engine->figures.detail);
	ereport(LOG,
			(errmsg("the %s sort engine failed: sorting again without it",
					state->engine->figures.engine),
			 errdetail_internal("%s", reason)));
	forget(state);
	ExecReScan(child);
	begin_load(state);
	state->may_move = false;
	state->device_reason = reason;
	state->begun_again = true;
}

/* Reads the child to its end and sorts its rows. */
static pg_noinline void
load_and_sort(GsSortState *state)
{
	EState	   *estate = state->css.ss.ps.state;
	ScanDirection direction = estate->es_direction;

	estate->es_direction = ForwardScanDirection;
	state->begun_again = false;
	begin_load(state);
	while (!load(state) || !sort(state))
		begin_again(state);
	state->position = -1;
	estate->es_direction = direction;
}

/* ----------------------------------------------------------------- hand-out */

/* Has the window hold a position, and what comes next in the given direction. */
static pg_noinline void
move_window(GsSortState *state, int64 position, bool forward)
{
	int64		start = forward ? position : Max(position - (GS_SORT_WINDOW - 1), 0);

	do
	{
		if (fill_window(state, start) != GS_STATUS_OK)
			report_engine_failure(state);
		start += state->window_rows;
	} while (position >= start);
}

/* The row at a position, from the window, or from a merge, where it is the next one. */
static inline const void *
row_at(GsSortState *state, int64 position, bool forward)
{
	if (state->phase == GS_SORT_MERGE)
		return row_of_run(state, gs_spill_next(state->spill));
	if (position < state->window_start ||
		position >= state->window_start + state->window_rows)
		move_window(state, position, forward);
	return state->window[position - state->window_start];
}

/* The same over all rows of a keys_only sort: NULL where a NULL belongs. */
static const void *
value_at(GsSortState *state, int64 position, bool forward)
{
	uint64		stored = state->nrows - state->nnulls;

	if (state->columns[0].nulls_first)
		position -= state->nnulls;
	return position < 0 || position >= stored ? NULL : row_at(state, position, forward);
}

/* A row that is not in the window yet, or not in an engine, or no row but a value. */
static pg_noinline TupleTableSlot *
find_row(CustomScanState *node)
{
	GsSortState *state = (GsSortState *) node;
	TupleTableSlot *slot = node->ss.ps.ps_ResultTupleSlot;
	bool		forward = ScanDirectionIsForward(node->ss.ps.state->es_direction);

	if (state->phase == GS_SORT_IDLE)
		load_and_sort(state);
	if (state->phase == GS_SORT_STOCK)
	{
		gs_stock_get(&state->stock, forward, slot);
		return slot;
	}

	if (forward)
	{
		if (state->position < (int64) state->nrows)
			state->position++;
	}
	else if (state->position >= 0)
		state->position--;
	if (state->position >= gs_top_nrows(&state->top))
		elog(ERROR, "more rows wanted of a sort than the LIMIT above it");
	if (state->position < 0 || state->position >= (int64) state->nrows)
		return ExecClearTuple(slot);

	if (state->keys_only)
		store_value(state, value_at(state, state->position, forward), slot);
	else
		ExecStoreMinimalTuple((MinimalTuple) unconstify(void *, row_at(state, state->position, forward)),
							  slot, false);
	return slot;
}

static TupleTableSlot *
sort_exec(CustomScanState *node)
{
	GsSortState *state = (GsSortState *) node;
	int64		next = state->position + 1 - state->window_start;

	/* nearly always: the next row of the window */
	if ((uint64) next < (uint64) state->window_rows && !state->keys_only &&
		ScanDirectionIsForward(node->ss.ps.state->es_direction))
	{
		state->position++;
		return ExecStoreMinimalTuple((MinimalTuple) unconstify(void *, state->window[next]),
									 node->ss.ps.ps_ResultTupleSlot, false);
	}
	return find_row(node);
}

/* The same under gpusort.verify. */
static TupleTableSlot *
sort_exec_verified(CustomScanState *node)
{
	GsSortState *state = (GsSortState *) node;
	TupleTableSlot *slot = sort_exec(node);

	if (!ScanDirectionIsForward(node->ss.ps.state->es_direction))
		gs_sort_verify_restart(state->verify, false);
	else if (!TupIsNull(slot))
		gs_sort_verify_row(state->verify, slot);
	else if (state->top.bound == GS_UNBOUNDED)
		gs_sort_verify_end(state->verify, state->nread);
	return slot;
}

/* ------------------------------------------------------ the rest of the life */

/* Frees what a sort holds; the node is as if it had never run. */
static void
forget(GsSortState *state)
{
	ExecClearTuple(state->css.ss.ps.ps_ResultTupleSlot);
	if (state->phase == GS_SORT_STOCK)
		gs_stock_end(&state->stock);	/* may own files */
	if (state->spill != NULL)
		gs_spill_close(state->spill);	/* owns files */
	if (state->engine != NULL)
		gs_engine_close(state->engine); /* may own a connection */
	if (state->context != NULL)
		MemoryContextDelete(state->context);
	state->context = NULL;
	state->key = NULL;
	state->compare = NULL;
	state->verify = NULL;
	state->engine = NULL;
	state->spill = NULL;
	state->window_rows = 0;
	state->phase = GS_SORT_IDLE;
}

static void
sort_end(CustomScanState *node)
{
	forget((GsSortState *) node);
	ExecEndNode(outerPlanState(node));
}

/* Will the rows that were kept do for the bound as it is now? */
static bool
bound_is_kept(const GsSortState *state)
{
	int64		bound = gs_bound_compute(state->bound, state->css.ss.ps.ps_ExprContext);

	if (state->phase == GS_SORT_ENGINE)
		return bound <= gs_top_nrows(&state->top);
	return bound <= state->top.bound;
}

static void
sort_rescan(CustomScanState *node)
{
	GsSortState *state = (GsSortState *) node;
	PlanState  *child = outerPlanState(node);

	/* ExecReScan() of a child with changed parameters happens by itself */
	if (state->phase == GS_SORT_IDLE)
		return;

	/*
	 * The rows can be handed out again if the child would give the same ones,
	 * and no more of them are wanted.  Without random_access nobody promised
	 * that it would.
	 */
	if (child->chgParam != NULL || !state->random_access || !bound_is_kept(state))
	{
		forget(state);
		if (child->chgParam == NULL)
			ExecReScan(child);
		return;
	}
	ExecClearTuple(node->ss.ps.ps_ResultTupleSlot);
	if (state->phase == GS_SORT_STOCK)
		tuplesort_rescan(state->stock.state);
	if (state->verify != NULL)
		gs_sort_verify_restart(state->verify, true);
	state->position = -1;
}

static void
sort_mark(CustomScanState *node)
{
	GsSortState *state = (GsSortState *) node;

	if (state->phase == GS_SORT_STOCK)
		tuplesort_markpos(state->stock.state);
	else if (state->phase == GS_SORT_ENGINE)
		state->mark = state->position;
}

static void
sort_restore(CustomScanState *node)
{
	GsSortState *state = (GsSortState *) node;

	if (state->phase == GS_SORT_STOCK)
		tuplesort_restorepos(state->stock.state);
	else if (state->phase == GS_SORT_ENGINE)
		state->position = state->mark;
	if (state->verify != NULL)
		gs_sort_verify_restart(state->verify, false);
}
