/*-------------------------------------------------------------------------
 *
 * sort_input.c
 *	  Takes the rows of a sort, those of a child to its end, and sorts them.
 *
 * For each row the sort columns are taken from the slot, the stored row is
 * written to a batch, and the key record beside it (sort_place.c has the batches).  A LIMIT
 * above has the rows dropped that cannot be among those that it wants
 * (sort_topn.c), most of them before they are stored.
 *
 * The first rows of a child are kept as they are, and if there are no more, sorted by
 * comparisons (sort_few.c).  Otherwise an engine is opened, and gets them first.
 *
 * A device can be lost, with all the rows that it has: as long as nothing was
 * handed out, and if the child can be run again unnoticed, the sort starts once
 * more and stays with the CPU.
 *
 * Where rows are compared anyway, none get keys as long as they come in order
 * (sort_presorted.c).  When one does not, those in memory are loaded again.
 *
 * Where keys are only a hint (key_encoder.h) the sorted rows are fetched once
 * before the first one leaves, to prove their order; if it does not hold the CPU
 * engine sorts once more, by comparisons, and a device's rows go to a tuplesort.
 *
 * Where the one sort column is the whole row and can be had back from its
 * code, no row is stored at all, and NULLs are only counted: one is as good as
 * another.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sort/sort_device.h"
#include "sort/sort_runtime.h"
#include "guc.h"
#include "sort/sort_fallback.h"
#include "sort/sort_presorted.h"
#include "sort/sort_input.h"
#include "sort/sort_parallel.h"
#include "sort/sort_place.h"
#include "key/key_row.h"
#include "sort/sort_seqscan.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/memutils.h"

/* ---------------------------------------------------------------- row by row */

/* Sees to it that the batch has room for a row.  Returns NULL, or why it has none. */
static inline const char *
reserve_space(GsSortState *state, Size row_bytes, GsBatch **batch)
{
	return *batch != NULL && gs_engine_has_space(*batch, row_bytes) ? NULL :
		gs_sort_begin_batch(state, row_bytes, batch);
}

/* Is a row not wanted, as its first sort column tells? */
static inline bool
drop_by_first_column(GsSortState *state, TupleTableSlot *slot)
{
	ExprContext *econtext = state->econtext;
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
		drops = gs_topn_drops_value(&state->top, value, is_null);
		MemoryContextSwitchTo(old);
		return drops;
	}
	return gs_key_encoder_read_first(state->key, slot, &is_null, &code) &&
		gs_topn_drops_first(&state->top,
						   gs_topn_first(state->engine->job.layout, is_null, code));
}

/*
 * Takes the slot's row into the engine, unless it is known not to be wanted.
 * Returns NULL, or why it cannot be taken.
 */
static const char *
add_row(GsSortState *state, TupleTableSlot *slot, GsBatch **batch)
{
	const GsJob *job;
	GsRowSource source;
	Size		extra_bytes = 0;
	Size		row_bytes;
	const char *why_not;
	char	   *row;
	uint64	   *record;
	uint32		nulls;

	if (state->top.has_cutoff && drop_by_first_column(state, slot))
		return NULL;
	gs_row_source_init(&source, slot);
	if (!state->direct_key)
	{
		if (!gs_key_encoder_read(state->key, slot, &source, &extra_bytes, &why_not))
			return why_not;
		if (gs_key_encoder_first_tied(state->key) >= 0 && state->engine->job.compare == NULL)
			gs_sort_compare_ties(state);
	}
	row_bytes = source.nbytes + extra_bytes;
	if (row_bytes > PG_UINT32_MAX)
		return "a row and its keys take more than 4 GB";
	if ((why_not = reserve_space(state, row_bytes, batch)) != NULL)
		return why_not;

	job = &state->engine->job;	/* of the engine that is there by now */
	row = gs_batch_next_row(*batch);
	record = gs_batch_next_record(*batch);
	if (state->direct_key)
		nulls = gs_key_encoder_write_direct(state->key, slot, &source, record);
	else
	{
		gs_row_store(&source, slot, row);
		nulls = gs_key_encoder_write(state->key, &source, row, source.nbytes, record);
	}
	record[job->layout->nwords] = gs_batch_next_place(*batch, nulls);
	if (state->top.has_cutoff && gs_topn_drops(&state->top, job, record, row))
		return NULL;
	if (state->direct_key)
		gs_row_store(&source, slot, row);
	gs_batch_push(*batch, row_bytes);
	return NULL;
}

/* The same where the one value is both key and row. */
static const char *
add_value(GsSortState *state, TupleTableSlot *slot, GsBatch **batch)
{
	const char *why_not;

	slot_getsomeattrs(slot, 1);
	if (slot->tts_isnull[0])
	{
		state->nnulls++;
		return NULL;
	}
	if ((why_not = reserve_space(state, 0, batch)) != NULL)
		return why_not;
	if (!gs_key_encoder_write_value(state->key, slot->tts_values[0],
								 gs_batch_next_record(*batch), &why_not))
		return why_not;
	if (state->top.has_cutoff &&
		gs_topn_drops(&state->top, &state->engine->job, gs_batch_next_record(*batch), NULL))
		return NULL;
	gs_batch_push(*batch, 0);
	return NULL;
}

/* --------------------------------------------------------------- all of them */

static GsJob
make_job(GsSortState *state)
{
	GsJob		job = {.layout = gs_key_encoder_layout(state->key)};

	job.memory_limit = gs_sort_engine_limit(state);
	gs_sort_runtime_init(&job.host, state->context);
	if (gs_key_encoder_first_tied(state->key) >= 0)
	{
		job.compare = gs_sort_compare_tied;
		job.compare_arg = state;
	}
	return job;
}

/* Opens the CPU engine; engine stays NULL if it is out of memory. */
static void
open_engine(GsSortState *state)
{
	GsJob		job = make_job(state);

	state->engine = state->presorted ? gs_presorted_open(&job) : gs_engine_cpu_open(&job);
}

/* What a sort begins with, whoever sorts. */
static void
begin_sort(GsSortState *state, int memory_kb)
{
	/*
	 * Small blocks, so that larger allocations are separate and can be freed.  Not
	 * ALLOCSET_SMALL_SIZES: such contexts are recycled, with the allocation limit of
	 * their last use, which may be larger.
	 */
	if (state->context == NULL)
		state->context = AllocSetContextCreate(state->parent_context, "GpuSort",
											   0, 2 * 1024, 8 * 1024);
	state->memory_limit = (Size) memory_kb * 1024;
	state->merge_limit = state->memory_limit;
	state->engine = NULL;
	state->batch = NULL;
	state->spill = NULL;
	state->may_use_device = gpusort_engine != GS_ENGINE_CPU;
	gs_sort_parallel_join(state);
	state->device_reason = NULL;
	state->verification = (GsSortVerification) {0};
	state->refuted = false;
	state->presorted = false;
	state->nread = 0;
	state->nnulls = 0;
	state->window_rows = 0;
	gs_topn_begin(&state->top, gs_limit_compute(state->bound, state->econtext));
	if (state->verified)
	{
		MemoryContext old = MemoryContextSwitchTo(state->context);

		state->verify = gs_sort_verify_create(state->columns, state->ncolumns, state->desc);
		MemoryContextSwitchTo(old);
	}
}

/* Opens the engine, unless the rows had better go to a tuplesort at once. */
static void
begin_engine(GsSortState *state)
{
	TupleDesc	desc = state->desc;
	MemoryContext old = MemoryContextSwitchTo(state->context);
	char	   *why_not = NULL;
	GsJob		job;

	if (!gpusort_enabled)
		why_not = "gpusort.enabled is off";
	else if (gs_key_columns_can_encode(state->columns, state->ncolumns, &why_not))
	{
		state->key = gs_key_encoder_create(state->columns, state->ncolumns, desc,
										state->role != GS_ROLE_SERIAL || gs_sort_device_is_likely(state));
		if (state->role == GS_ROLE_SERIAL && !state->merged_elsewhere)
			gs_key_encoder_look_for_few(state->key);
		if (gs_key_encoder_is_approximate(state->key))
			gs_topn_begin(&state->top, GS_UNBOUNDED);	/* what is dropped is never compared */
		state->direct_key = gs_key_encoder_is_direct(state->key);
		state->keys_only = gs_key_encoder_layout(state->key)->keys_only;
		if (gs_key_encoder_is_approximate(state->key) || gs_key_encoder_first_tied(state->key) >= 0)
			state->compare = gs_sort_compare_create(state->columns, state->ncolumns, desc);
		job = make_job(state);
		state->engine = gs_sort_parallel_open(state, &job);
		if (state->engine == NULL)
		{
			state->presorted = gs_presorted_pays(state);
			open_engine(state);
		}
		if (state->engine == NULL)
			why_not = "out of memory";
	}
	if (state->engine != NULL && state->top.bound != GS_UNBOUNDED &&
		gs_key_encoder_first_is_expensive(state->key))
		gs_topn_compare_values(&state->top, state->columns, state->ncolumns, desc);
	MemoryContextSwitchTo(old);

	if (state->engine == NULL)
	{
		gs_sort_parallel_leave(state);
		gs_sort_begin_fallback(state, state->memory_limit / 1024, why_not);
	}
	else
		state->phase = GS_SORT_ENGINE;
}

void
gs_sort_begin(GsSortState *state, int memory_kb)
{
	begin_sort(state, memory_kb);
	begin_engine(state);
}

/* Has a tuplesort go on with this sort's rows.  False: the engine failed. */
static bool
fall_back(GsSortState *state, const char *reason)
{
	return gs_sort_end_shared_input(state) == GS_STATUS_OK && gs_sort_fall_back(state, reason);
}

static bool reload(GsSortState *state, GsBatch **batch);
static bool put_row_again(GsSortState *state, TupleTableSlot *slot, GsBatch **batch);

/* Takes the slot's row wherever rows go by now.  False: the engine failed. */
static pg_attribute_always_inline bool
add_slot(GsSortState *state, TupleTableSlot *slot, GsBatch **batch)
{
	if (state->phase == GS_SORT_ENGINE)
	{
		const char *why_not = state->keys_only ?
			add_value(state, slot, batch) : add_row(state, slot, batch);

		if (why_not == NULL)
			return true;
		if (gs_sort_engine_failed(state))
			return false;
		if (gs_key_encoder_texts_are_many(state->key))
			return reload(state, batch) && put_row_again(state, slot, batch);
		if (!fall_back(state, why_not))
			return false;
	}
	gs_fallback_put(&state->fallback, slot);
	return true;
}

/* The same with other keys. */
static pg_noinline bool
put_row_again(GsSortState *state, TupleTableSlot *slot, GsBatch **batch)
{
	return add_slot(state, slot, batch);
}

/*
 * Are the rows so far to be loaded once more, with other keys?  Not if some are
 * elsewhere, or were dropped; nor if they are so many that memory may not have
 * them twice: shortly before is the last time to ask, as it is when all are loaded.
 */
static bool
wants_other_keys(GsSortState *state, bool loaded)
{
	Size		nbytes;

	if (state->phase != GS_SORT_ENGINE || gs_sort_is_device(state->engine) ||
		state->spill != NULL || state->top.has_cutoff)
		return false;
	nbytes = gs_engine_stats(state->engine)->peak_bytes;
	return nbytes < state->memory_limit / 4 &&
		(gs_key_encoder_texts_are_few(state->key) ||
		 gs_key_encoder_prefix_is_poor(state->key, loaded || nbytes >= state->memory_limit / 8));
}

/* Has other keys from now on.  Those of rows in runs are of no use then. */
static void
begin_other_keys(GsSortState *state)
{
	MemoryContext old = MemoryContextSwitchTo(state->context);
	GsMergeOrder order;

	state->key = gs_key_encoder_create_next(state->columns, state->ncolumns, state->desc,
										 state->key);
	if (state->spill != NULL)
	{
		order = gs_sort_compared_order(state);
		gs_run_set_drop_keys(state->spill, &order);
	}
	MemoryContextSwitchTo(old);
}

/*
 * Loads the rows in the engine once more: those without keys, since not all come in
 * order, or there is no room for them; those with keys that were cut too short; or those
 * whose texts are few, or too many.  Those of a device may be many, and stay here.
 * False: the engine failed.
 */
static bool
reload(GsSortState *state, GsBatch **batch)
{
	GsEngine   *from = state->engine;
	const GsBatch *rest;
	TupleTableSlot *slot;
	GsStatus	status;
	bool		loaded = true;

	if (!state->presorted)
		begin_other_keys(state);
	else if (state->spill != NULL)
		gs_key_encoder_keep_low_cardinality(state->key);	/* a tuplesort would have to read the run */
	state->presorted = false;
	state->may_use_device &= !gs_sort_is_device(from);
	*batch = NULL;
	open_engine(state);
	if (state->engine == NULL)
	{
		state->engine = from;
		return gs_sort_fall_back(state, "out of memory");
	}

	slot = MakeSingleTupleTableSlot(state->desc, &TTSOpsMinimalTuple);
	status = gs_engine_return_input(from);
	while (loaded && status == GS_STATUS_OK &&
		   (status = gs_engine_next_batch(from, &rest)) == GS_STATUS_OK && rest != NULL)
	{
		for (size_t i = 0; i < rest->nrows && loaded; i++)
		{
			const void *row = gs_batch_pushed(rest, from->job.layout, i);

			CHECK_FOR_INTERRUPTS();
			ExecStoreMinimalTuple((MinimalTuple) unconstify(void *, row), slot, false);
			loaded = add_slot(state, slot, batch);
		}
	}
	ExecDropSingleTupleTableSlot(slot);
	if (status != GS_STATUS_OK)
	{
		gs_engine_close(state->engine);
		state->engine = from;
		return false;
	}
	gs_engine_close(from);
	return loaded;
}

/* The next row came.  False: the engine failed. */
static pg_attribute_always_inline bool
add_from_child(GsSortState *state, TupleTableSlot *slot, GsBatch **batch)
{
	state->nread++;
	if (state->compare != NULL)
	{
		if (state->presorted && gs_presorted_add(state, slot, batch))
			return true;
		if ((state->presorted || wants_other_keys(state, false)) && !reload(state, batch))
			return false;
	}
	return add_slot(state, slot, batch);
}

bool
gs_sort_add(GsSortState *state, TupleTableSlot *slot)
{
	return add_from_child(state, slot, &state->batch);
}

/*
 * Do the first rows wait for more before an engine is opened?  Not those of a job that
 * participants share; nor if all sorts are to go through the engines.
 */
static bool
begins_with_few(const GsSortState *state)
{
	return gpusort_enabled && !gpusort_force && state->role == GS_ROLE_SERIAL;
}

static void
begin_few(GsSortState *state)
{
	if (state->few == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(state->parent_context);

		state->few = gs_few_create(state->columns, state->ncolumns, state->desc);
		MemoryContextSwitchTo(old);
	}
	state->phase = GS_SORT_FEW;
}

/* Reads the child's first rows; returns the first one that is too many, or an empty slot or NULL. */
static TupleTableSlot *
load_few(GsSortState *state, GsSeqScan *scan)
{
	TupleTableSlot *slot;

	do
		slot = gs_seqscan_next(scan);
	while (!TupIsNull(slot) && gs_few_put(state->few, slot));
	state->nread = gs_few_count(state->few);
	return slot;
}

/* Has an engine go on, which gets the first rows.  False: it failed. */
static bool
leave_few(GsSortState *state, GsBatch **batch)
{
	const int	nrows = gs_few_count(state->few);
	TupleTableSlot *slot;
	bool		loaded = true;

	begin_engine(state);
	state->nread = 0;
	slot = MakeSingleTupleTableSlot(state->desc, &TTSOpsMinimalTuple);
	for (int i = 0; i < nrows && loaded; i++)
	{
		gs_few_get(state->few, i, slot);
		loaded = add_from_child(state, slot, batch);
	}
	ExecDropSingleTupleTableSlot(slot);
	gs_few_clear(state->few);
	return loaded;
}

/* Reads the child to its end.  False: the engine failed. */
static bool
read_input(GsSortState *state)
{
	GsBatch    *batch = NULL;
	GsSeqScan		scan;

	gs_seqscan_begin(&scan, state->child);
	if (state->phase == GS_SORT_FEW)
	{
		TupleTableSlot *slot = load_few(state, &scan);

		if (TupIsNull(slot))
			return true;
		if (!leave_few(state, &batch) || !add_from_child(state, slot, &batch))
			return false;
	}
	for (;;)
	{
		TupleTableSlot *slot = gs_seqscan_next(&scan);

		if (TupIsNull(slot))
			return true;
		if (!add_from_child(state, slot, &batch))
			return false;
	}
}

/* Sorts what was loaded, proves the order if need be, and fetches the first rows. */
static GsStatus
sort_in_engine(GsSortState *state)
{
	GsStatus	status = gs_engine_sort(state->engine);

	if (status != GS_STATUS_OK)
		return status;
	state->nrows = state->engine->stats.nrows + state->nnulls;
	status = gs_sort_verify_order(state);
	return status == GS_STATUS_OK ? gs_sort_fill_window(state, 0) : status;
}

/* Sorts the first rows, which are all. */
static void
sort_few_rows(GsSortState *state)
{
	MemoryContext old = MemoryContextSwitchTo(state->context);

	gs_few_sort(state->few);
	MemoryContextSwitchTo(old);
	state->nrows = gs_few_count(state->few);
}

/* In whichever way. */
bool
gs_sort_perform(GsSortState *state)
{
	GsBatch    *batch = NULL;

	state->position = -1;
	if (state->phase == GS_SORT_FEW)
	{
		sort_few_rows(state);
		return true;
	}
	if (wants_other_keys(state, true) && !reload(state, &batch))
		return false;
	if (state->presorted && state->spill == NULL)
	{
		if (sort_in_engine(state) == GS_STATUS_OK)
			return true;
		if (!reload(state, &batch))
			return false;
	}
	if (state->phase == GS_SORT_ENGINE)
	{
		GsStatus	status = gs_sort_end_shared_input(state);

		if (status != GS_STATUS_OK)
			return false;
		gs_sort_consider_device(state, true);
		status = state->spill == NULL ? sort_in_engine(state) : GS_STATUS_FULL;
		if (status == GS_STATUS_FULL && gs_sort_may_spill(state))
			status = gs_sort_merge_runs(state);
		if (status == GS_STATUS_FAILED)
			return false;
		if (status != GS_STATUS_OK &&
			!gs_sort_fall_back(state, gs_sort_status_reason(state, status)))
			return false;
	}
	if (state->phase == GS_SORT_FALLBACK)
		gs_fallback_perform(&state->fallback);
	return true;
}

/* ------------------------------------------------------------------ failures */

void
gs_sort_reset(GsSortState *state)
{
	ExecClearTuple(state->slot);
	if (state->phase == GS_SORT_FALLBACK)
		gs_fallback_end(&state->fallback);	/* may own files */
	if (state->spill != NULL)
		gs_run_set_close(state->spill);	/* owns files */
	if (state->engine != NULL)
		gs_engine_close(state->engine); /* may own a connection */
	if (state->few != NULL)
		gs_few_clear(state->few);
	if (state->context != NULL)
		MemoryContextReset(state->context);
	state->key = NULL;
	state->compare = NULL;
	state->verify = NULL;
	state->engine = NULL;
	state->spill = NULL;
	state->window_rows = 0;
	state->phase = GS_SORT_IDLE;
	state->role = GS_ROLE_SERIAL;
}

void
gs_sort_report_failure(const GsSortState *state)
{
	ereport(ERROR,
			(errcode(ERRCODE_SYSTEM_ERROR),
			 errmsg("the %s sort engine failed", state->engine->stats.engine),
			 errdetail_internal("%s", state->engine->stats.detail),
			 errhint("Run the query again. Set gpusort.engine to cpu to sort without a device.")));
}

void
gs_sort_log_failure(const GsSortState *state)
{
	ereport(LOG,
			(errmsg("the %s sort engine failed: sorting again without it",
					state->engine->stats.engine),
			 errdetail_internal("%s", state->engine->stats.detail)));
}

static bool
is_parallel(PlanState *node, void *context)
{
	return gs_sort_parallel_is_shared(node) || planstate_tree_walker(node, is_parallel, context);
}

/*
 * The engine failed and has lost the rows: begins again, if the child can.  A
 * scan, or a sort, that is shared with other processes cannot.
 */
static void
restart(GsSortState *state)
{
	char	   *reason;

	gs_sort_parallel_wait_for_error(state);
	if (!state->repeatable || is_parallel(state->child, NULL))
		gs_sort_report_failure(state);
	gs_sort_log_failure(state);
	reason = MemoryContextStrdup(state->parent_context, state->engine->stats.detail);
	gs_sort_reset(state);
	ExecReScan(state->child);
	gs_sort_begin(state, work_mem);
	state->may_use_device = false;
	state->device_reason = reason;
	state->restarted = true;
}

void
gs_sort_read_input(GsSortState *state)
{
	EState	   *estate = state->child->state;
	ScanDirection direction = estate->es_direction;

	estate->es_direction = ForwardScanDirection;
	state->restarted = false;
	begin_sort(state, work_mem);
	if (begins_with_few(state))
		begin_few(state);
	else
		begin_engine(state);
	while (!read_input(state) || !gs_sort_perform(state))
		restart(state);
	estate->es_direction = direction;
}
