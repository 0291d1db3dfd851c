/*-------------------------------------------------------------------------
 *
 * sort_input.c
 *	  Reads the rows of a sort and sorts them.
 *
 * read_and_sort() is the way of a serial sort, from top to bottom; README.md has its steps and its
 * branches.
 *
 * If the only column is also the sort key, and can be decoded from the key, no row is stored at
 * all (keys_only).  NULLs are then only counted.
 *
 * ERROR and cancel need no cleanup, because all memory is in one context.  The scan checks for
 * interrupts at each page, and engines while they sort.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "guc.h"
#include "key/key_stored_row.h"
#include "read/read_seqscan.h"
#include "read/read_tied.h"
#include "sort/sort.h"
#include "sort/sort_failure.h"
#include "sort/sort_parallel.h"
#include "sort/sort_stats.h"
#include "store/store_device_choice.h"
#include "store/store_fallback.h"
#include "store/store_fetch.h"
#include "store/store_merge.h"
#include "store/store_space.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"

/*
 * Whether other keys suit the rows better is asked each time as many more were read: it takes as
 * long as to read one.
 */
#define OTHER_KEYS_INTERVAL	16

/* ---------------------------------------------------------------- one row */

/* Ensures that the batch has space for a row.  Returns NULL, or why there is none. */
static inline const char *
reserve_space(GsSortState *state, Size row_bytes)
{
	GsBatch    *batch = state->store.batch;

	return batch != NULL && gs_engine_has_space(batch, row_bytes) ? NULL :
		gs_store_begin_batch(&state->store, row_bytes);
}

/* Is a row not needed for a top-N sort, as its first sort column tells? */
static inline bool
drop_by_first_column(GsSortState *state, TupleTableSlot *slot)
{
	GsStore    *store = &state->store;
	bool		is_null;
	uint64		code = 0;

	if (store->top.order != NULL)
	{
		ExprContext *econtext = state->spec.econtext;
		MemoryContext old;
		Datum		value;
		bool		drops;

		ResetExprContext(econtext);
		old = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
		value = slot_getattr(slot, state->spec.columns[0].attno, &is_null);
		drops = gs_topn_drops_value(&store->top, value, is_null);
		MemoryContextSwitchTo(old);
		return drops;
	}
	return gs_key_record_read_first(store->order.key, slot, &is_null, &code) &&
		gs_topn_drops_first(&store->top,
							gs_topn_first(store->engine->request.layout, is_null, code));
}

/* The form of rows that are only values. */
static inline const GsRowForm *
form_of(GsSortState *state, const TupleTableSlot *slot)
{
	if (slot->tts_ops != &TTSOpsVirtual)
		return NULL;
	if (unlikely(state->input.form == NULL))
	{
		MemoryContext old = MemoryContextSwitchTo(state->store.context);

		state->input.form = gs_row_form_create(state->spec.desc);
		MemoryContextSwitchTo(old);
	}
	return state->input.form;
}

/*
 * Stores the slot's row and its key record in the engine, unless top-N drops it.
 * Returns NULL, or why the engine cannot take it.
 */
static const char *
store_row(GsSortState *state, TupleTableSlot *slot)
{
	GsStore    *store = &state->store;
	GsRowSource source;
	Size		extra_bytes = 0;
	Size		row_bytes;
	const char *why_not;
	char	   *row;
	uint64	   *record;
	uint32		nulls;

	if (store->top.has_cutoff && drop_by_first_column(state, slot))
		return NULL;
	gs_row_source_init(&source, slot, form_of(state, slot));
	if (!store->order.direct_key)
	{
		if (!gs_key_record_read(store->order.key, slot, &source, &extra_bytes, &why_not))
			return why_not;
		if (gs_key_encoder_facts(store->order.key)->first_tied >= 0 &&
			store->engine->request.compare == NULL && !store->engine->on_device)
			gs_store_compare_ties(store);
	}
	row_bytes = source.nbytes + extra_bytes;
	if (row_bytes > PG_UINT32_MAX)
		return "a row and its sort key exceed 4 GB";
	if ((why_not = reserve_space(state, row_bytes)) != NULL)
		return why_not;

	row = gs_batch_next_row(store->batch);
	record = gs_batch_next_record(store->batch);
	gs_row_store(&source, slot, row);
	nulls = store->order.direct_key ?
		gs_key_record_write_direct(store->order.key, slot, &source, record) :
		gs_key_record_write(store->order.key, &source, row, source.nbytes, record);
	record[store->engine->request.layout->nwords] = gs_batch_next_location(store->batch, nulls);
	if (store->top.has_cutoff && gs_topn_drops(&store->top, &store->engine->request, record, row))
		return NULL;
	gs_batch_push(store->batch, row_bytes);
	return NULL;
}

/*
 * Stores the slot's row if its key record is all there is to store (keys_only), unless top-N
 * drops it; counts it if it is NULL.  Returns NULL, or why the engine cannot take it.
 */
static const char *
store_value(GsSortState *state, TupleTableSlot *slot)
{
	GsStore    *store = &state->store;
	const char *why_not;
	uint64	   *record;

	slot_getsomeattrs(slot, 1);
	if (slot->tts_isnull[0])
	{
		gs_store_put_null(store);
		return NULL;
	}
	if ((why_not = reserve_space(state, 0)) != NULL)
		return why_not;
	record = gs_batch_next_record(store->batch);
	if (!gs_key_record_write_value(store->order.key, slot->tts_values[0], record, &why_not))
		return why_not;
	if (store->top.has_cutoff &&
		gs_topn_drops(&store->top, &store->engine->request, record, NULL))
		return NULL;
	gs_batch_push(store->batch, 0);
	return NULL;
}

/* A tuplesort takes the rows so far; other participants keep theirs.  False: the engine failed. */
static bool
fall_back(GsSortState *state, const char *reason)
{
	const GsStatus status = state->store.space_status;

	return gs_sort_parallel_end_input(state) == GS_STATUS_OK &&
		gs_store_fall_back(&state->store, status, reason);
}

static bool add_again(GsSortState *state, TupleTableSlot *slot);

/*
 * Adds the slot's row to the engine or, after a fallback, to the tuplesort.  False: the engine
 * failed.
 */
static pg_attribute_always_inline bool
add_row(GsSortState *state, TupleTableSlot *slot)
{
	GsStore    *store = &state->store;

	if (store->phase == GS_STORE_ENGINE)
	{
		const char *why_not = store->order.keys_only ?
			store_value(state, slot) : store_row(state, slot);

		if (why_not == NULL)
			return true;
		if (gs_sort_has_failed(state))
			return false;
		if (gs_key_encoder_facts(store->order.key)->dictionary_overflowed)
			return gs_sort_reload(state, add_again) && add_again(state, slot);
		if (!fall_back(state, why_not))
			return false;
	}
	gs_store_put_fallback(store, slot);
	return true;
}

/* Without a test of the order, and for rows that were added before. */
static pg_noinline bool
add_again(GsSortState *state, TupleTableSlot *slot)
{
	return add_row(state, slot);
}

/*
 * Adds the child's next row, without a key as long as rows arrive in order.  False: the engine
 * failed.
 */
static pg_attribute_always_inline bool
add_row_from_child(GsSortState *state, TupleTableSlot *slot)
{
	GsStore    *store = &state->store;

	if (unlikely(gs_store_count_row(store) % GS_STATS_INTERVAL_ROWS == 0))
		gs_sort_stats_show(state);
	if (store->order.compare != NULL || state->input.counting)
	{
		if (store->order.presorted && gs_presorted_add(state, slot, form_of(state, slot)))
			return true;
		if ((store->order.presorted ||
			 (store->nread % OTHER_KEYS_INTERVAL == 0 && gs_sort_wants_other_keys(state, false))) &&
			!gs_sort_reload(state, add_again))
			return false;
	}
	return add_row(state, slot);
}

bool
gs_sort_add(GsSortState *state, TupleTableSlot *slot)
{
	return add_row_from_child(state, slot);
}

/* ----------------------------------------------------------------- begin */

/*
 * Batches have one verification, which compares the first row of each with the last one of the
 * batch before.
 */
static void
begin_verification(GsSortState *state)
{
	const GsSortSpec *spec = &state->spec;
	GsSortGroups *groups = spec->groups;
	GsOutputVerification **verification =
		groups != NULL ? &groups->verification : &state->output.verification;
	MemoryContext old = MemoryContextSwitchTo(groups != NULL ? spec->parent_context :
											  state->store.context);

	if (*verification == NULL)
		*verification = gs_verify_output_begin(spec->columns, spec->ncolumns,
											   groups != NULL ? groups->npresorted : 0, spec->desc);
	state->output.verification = *verification;
	MemoryContextSwitchTo(old);
}

static void
begin_sort(GsSortState *state, int memory_kb)
{
	const GsSortSpec *spec = &state->spec;

	gs_store_begin(&state->store, spec, (Size) memory_kb * 1024,
				   gpusort_engine != GS_ENGINE_CPU && spec->groups == NULL);
	state->input = (GsSortInput) {.tied_check = GS_TIED_FIRST_CHECK};
	state->output = (GsSortOutput) {0};
	gs_sort_parallel_join(state);
	gs_topn_begin(&state->store.top, gs_read_limit_compute(spec->limit, spec->econtext));
	if (spec->verify_output)
		begin_verification(state);
}

/* How many columns are keyed, whatever they cost. */
static int
nkeyed_columns(const GsSortState *state)
{
	const GsSortSpec *spec = &state->spec;
	const GsSortParticipants *participants = &state->participants;

	if (participants->role == GS_ROLE_SERIAL && participants->of_streams == GS_ROLE_SERIAL &&
		gs_store_device_is_likely(&state->store))
		return !gs_store_returns_in_turn(&state->store) ? spec->ncolumns :
			gs_tied_keyed_on_device(spec->child, spec->columns, spec->ncolumns, spec->desc, false);
	if (participants->shared != NULL)
		return gs_shared_nkeyed(participants->shared);
	return spec->groups != NULL ? spec->groups->nkeyed : 0;
}

/* Chooses how keys are encoded. */
static void
begin_keys(GsSortState *state)
{
	const GsSortSpec *spec = &state->spec;
	GsStore    *store = &state->store;
	const bool	serial = state->participants.role == GS_ROLE_SERIAL;
	const bool	full_keys = gs_sort_parallel_needs_full_keys(state) ||
		(spec->groups != NULL && spec->groups->full_keys) || gs_store_device_is_likely(store);

	gs_store_use_keys(store, gs_key_encoder_create(spec->columns, spec->ncolumns, spec->desc,
												   nkeyed_columns(state), full_keys));
	while (store->phase == GS_STORE_FEW && gs_sort_few_want_other_keys(state))
		gs_store_use_keys(store, gs_key_encoder_create_next(spec->columns, spec->ncolumns,
														spec->desc, store->order.key));
	if (store->phase == GS_STORE_FEW)
		state->input.tied_check *= GS_TIED_CHECK_FACTOR;
	/* nor for a batch: see gs_sort_wants_other_keys() */
	if (serial && spec->groups == NULL && !spec->merged_elsewhere &&
		state->participants.ranges == NULL)
		gs_key_encoder_count_values(store->order.key);
	state->input.counting = gs_key_encoder_is_counting(store->order.key);
}

/* Opens the engine of a shared job, or the CPU engine.  False: out of memory. */
static bool
open_engine(GsSortState *state)
{
	GsStore    *store = &state->store;

	if (state->participants.role != GS_ROLE_SERIAL)
	{
		GsEngineRequest request = gs_store_make_request(store);

		request.find_equal = request.compare != NULL;
		/* the consumer orders ties as it returns rows (sort_device_ties.c) */
		request.compare = NULL;
		gs_store_set_engine(store, gs_sort_parallel_open(state, &request));
	}
	if (store->engine == NULL)
	{
		gs_presorted_begin(state);
		gs_store_open_engine(store);
	}
	if (store->engine == NULL)
		gs_order_end_presorted(&store->order);
	return store->engine != NULL;
}

/* Why a sort of these columns cannot use an engine; NULL: it can. */
static char *
reason_for_fallback(const GsSortSpec *spec)
{
	char	   *reason;

	if (!gpusort_enabled)
		return "gpusort.enabled is off";
	return gs_key_columns_can_encode(spec->columns, spec->ncolumns, &reason) ? NULL : reason;
}

/* Begins an engine, or a tuplesort if no engine can sort. */
static void
begin_engine(GsSortState *state)
{
	const GsSortSpec *spec = &state->spec;
	GsStore    *store = &state->store;
	MemoryContext old = MemoryContextSwitchTo(store->context);
	char	   *why_not = reason_for_fallback(spec);
	GsStatus	status = GS_STATUS_OK;

	gs_sort_stats_begin(state);
	if (why_not == NULL)
	{
		begin_keys(state);
		if (!open_engine(state))
		{
			status = GS_STATUS_OOM;
			why_not = "out of memory";
		}
		else if (store->top.bound != GS_UNBOUNDED &&
				 (gs_key_encoder_facts(store->order.key)->first_is_expensive ||
				  gs_key_encoder_facts(store->order.key)->mismatch != NULL))
			gs_topn_compare_values(&store->top, spec->columns, spec->ncolumns, spec->desc);
	}
	MemoryContextSwitchTo(old);

	if (why_not != NULL)
	{
		gs_sort_parallel_leave(state);
		gs_store_begin_fallback(store, store->memory_limit / 1024, status, why_not);
	}
	else
		gs_store_begin_engine(store);
}

void
gs_sort_begin(GsSortState *state, int memory_kb)
{
	begin_sort(state, memory_kb);
	begin_engine(state);
}

void
gs_sort_disable_device(GsSortState *state)
{
	gs_store_forbid_device(&state->store, NULL);
}

void
gs_sort_clear(GsSortState *state)
{
	ExecClearTuple(state->spec.slot);
	gs_sort_stats_end(state);
	/* its memory, and perhaps a connection, are the store's context's */
	if (state->participants.reader != NULL)
		gs_device_close(state->participants.reader);
	gs_store_clear(&state->store);
	state->input = (GsSortInput) {0};
	state->output = (GsSortOutput) {0};
	state->participants.reader = NULL;
	state->participants.in_ranges = false;
	state->participants.group_rows = NULL;
	state->participants.role = GS_ROLE_SERIAL;
	state->participants.of_streams = GS_ROLE_SERIAL;
	state->participants.sends = false;
}

/* ---------------------------------------------------------------- few rows */

/*
 * Are the first rows kept without an engine?  Not if participants share a job or runs, nor if
 * settings send all sorts through an engine, or none.
 */
static bool
may_be_few(const GsSortState *state)
{
	return gpusort_enabled && !gpusort_force && state->participants.role == GS_ROLE_SERIAL &&
		state->participants.of_streams == GS_ROLE_SERIAL && state->participants.ranges == NULL;
}

/* May rows of the scan's page be stored without their slot? */
static inline bool
can_store_page(const GsSortState *state, const GsSeqScan *scan)
{
	const GsStore *store = &state->store;

	return gs_seqscan_can_skip(scan) && store->phase == GS_STORE_ENGINE &&
		store->batch != NULL &&
		store->order.direct_key && !store->order.presorted && !store->order.keys_only &&
		!store->top.has_cutoff;
}

/*
 * Does what store_row() does with the next rows of the scan's page, as long as they
 * have no NULLs and the batch has space.  At least the last row of the page is left.
 * 2 M rows of 182 bytes by a bigint take 4 to 5 % less time (Intel Xeon, Sapphire
 * Rapids, 2026-11-26).
 */
static void
store_page(GsSortState *state, GsSeqScan *scan)
{
	GsStore    *store = &state->store;
	const int	nwords = store->engine->request.layout->nwords;
	const uint64 nread = store->nread;
	GsBatch		batch = *store->batch;

	while (gs_seqscan_can_skip(scan))
	{
		uint32		nbytes;
		HeapTupleHeader tuple = gs_seqscan_tuple(scan, &nbytes);
		const GsRowSource source = {
			.body = (const char *) tuple + MINIMAL_TUPLE_OFFSET,
			.nbytes = nbytes - MINIMAL_TUPLE_OFFSET
		};
		uint64	   *record = gs_batch_next_record(&batch);

		if (!gs_engine_has_space(&batch, source.nbytes) ||
			!gs_key_record_write_tuple(store->order.key, tuple, record))
			break;
		record[nwords] = gs_batch_next_location(&batch, 0);
		gs_row_store(&source, NULL, gs_batch_next_row(&batch));
		gs_batch_push(&batch, source.nbytes);
		gs_seqscan_skip(scan);
	}
	gs_store_set_batch(store, &batch);
	if (store->nread / GS_STATS_INTERVAL_ROWS != nread / GS_STATS_INTERVAL_ROWS)
		gs_sort_stats_show(state);
}

/* The child's next row; empty or NULL: there is none, or it does not belong to the batch. */
static inline TupleTableSlot *
next_row(const GsSortSpec *spec, GsSeqScan *scan)
{
	return likely(spec->groups == NULL) ? gs_seqscan_next(scan) : gs_sort_groups_next(spec->groups);
}

/*
 * Keeps the child's first rows.  Returns the first one that is not kept; empty or NULL: there is
 * none.
 */
static TupleTableSlot *
read_few(GsSortState *state, GsSeqScan *scan)
{
	const GsSortSpec *spec = &state->spec;
	GsStore    *store = &state->store;
	TupleTableSlot *slot;

	gs_store_begin_few(store);
	do
		slot = next_row(spec, scan);
	while (!TupIsNull(slot) && gs_store_put_few(store, slot));
	return slot;
}

/* Sorts the rows that were kept.  False: an engine must. */
static bool
sort_few(GsSortState *state)
{
	MemoryContext old = MemoryContextSwitchTo(state->store.context);
	bool		sorted = gs_few_sort(state->store.few);

	MemoryContextSwitchTo(old);
	if (!sorted)
		return false;
	gs_store_begin_output(&state->store, gs_few_count(state->store.few));
	if (state->spec.groups == NULL || state->spec.groups->nbatches == 1)
		gs_stats_add(GS_STAT_SORTS_SMALL, 1);
	gs_stats_add(GS_STAT_ROWS, state->store.nread);
	return true;
}

/* Begins an engine and adds the rows that were kept.  False: it failed. */
static bool
move_few_to_engine(GsSortState *state)
{
	GsFew	   *few = state->store.few;
	const int	nrows = gs_few_count(few);
	TupleTableSlot *slot;
	bool		added = true;

	begin_engine(state);
	gs_store_recount(&state->store);
	slot = MakeSingleTupleTableSlot(state->spec.desc, &TTSOpsMinimalTuple);
	for (int i = 0; i < nrows && added; i++)
	{
		gs_few_get(few, i, slot);
		added = add_row_from_child(state, slot);
	}
	ExecDropSingleTupleTableSlot(slot);
	gs_few_clear(few);
	return added;
}

/* --------------------------------------------------------------------- sort */

/* Sorts the engine's rows, verifies their order, and fetches the first of them. */
static GsStatus
sort_in_engine(GsSortState *state)
{
	GsEngine   *engine = state->store.engine;
	GsStatus	status = gs_store_sort(&state->store);

	if (status != GS_STATUS_OK)
		return status;
	gs_store_begin_output(&state->store, engine->stats.nrows + state->store.nnulls);
	status = gs_store_verify(&state->store);
	if (status == GS_STATUS_OK)
		status = gs_store_fill_window(&state->store, 0);
	if (status == GS_STATUS_OK && gs_order_leaves_ties(&state->store.order, engine))
	{
		state->output.leaves_ties = true;
		gs_store_clear_window(&state->store);
	}
	return status;
}

/* Sorts in the engine, or merges runs if memory does not hold all rows. */
static GsStatus
sort_or_merge(GsSortState *state)
{
	if (state->store.runs == NULL)
	{
		GsStatus	status = sort_in_engine(state);

		if (status != GS_STATUS_FULL)
			return status;
	}
	return gs_store_may_write_run(&state->store) ? gs_store_merge_runs(&state->store) :
		GS_STATUS_FULL;
}

/* Sorts all rows, or falls back to a tuplesort.  False: the engine failed. */
static bool
sort_rows(GsSortState *state)
{
	GsStatus	status = gs_sort_parallel_end_input(state);

	if (status != GS_STATUS_OK)
		return false;
	gs_store_consider_device(&state->store, true);
	status = sort_or_merge(state);
	if (status == GS_STATUS_DISPROVED && gs_store_is_on_device(&state->store))
	{
		if (!gs_sort_take_back(state, add_again))
			return false;
		if (state->store.phase == GS_STORE_FALLBACK)
			return true;
		status = sort_or_merge(state);
	}
	if (status == GS_STATUS_OK || status == GS_STATUS_FAILED)
		return status == GS_STATUS_OK;
	return gs_store_fall_back(&state->store, status, gs_store_status_reason(&state->store, status));
}

static bool
perform(GsSortState *state)
{
	GsStore    *store = &state->store;

	while (gs_sort_wants_other_keys(state, true))
	{
		if (!gs_sort_reload(state, add_again))
			return false;
	}
	if (store->order.presorted && store->runs == NULL)
	{
		if (sort_in_engine(state) == GS_STATUS_OK)
			return true;
		/* memory is full; rows that have keys can also move to a device */
		if (!gs_sort_reload(state, add_again))
			return false;
	}
	if (store->phase == GS_STORE_ENGINE && !sort_rows(state))
		return false;
	if (store->phase == GS_STORE_FALLBACK)
		tuplesort_performsort(store->fallback);
	return true;
}

bool
gs_sort_perform(GsSortState *state)
{
	gs_sort_stats_begin_step(state, GS_STEP_SORT);
	if (!perform(state))
		return false;
	gs_sort_stats_sorted(state);
	return true;
}

/* --------------------------------------------------------- from first to last */

/*
 * Reads the child's rows to the end, and sorts them.  False: the engine failed and has lost the
 * rows.
 */
static bool
read_and_sort(GsSortState *state, bool begin_with_few)
{
	const GsSortSpec *spec = &state->spec;
	TupleTableSlot *slot;
	GsSeqScan	scan = {.child = spec->child};

	if (!state->participants.reads)
	{
		begin_engine(state);
		return gs_sort_perform(state);
	}
	if (spec->groups != NULL)
		gs_sort_groups_begin(spec->groups);
	if (begin_with_few)
	{
		slot = read_few(state, &scan);
		if (TupIsNull(slot) && sort_few(state))
			return true;
		if (!move_few_to_engine(state))
			return false;
	}
	else
	{
		begin_engine(state);
		slot = next_row(spec, &scan);
	}
	for (; !TupIsNull(slot); slot = next_row(spec, &scan))
	{
		if (!add_row_from_child(state, slot))
			return false;
		if (can_store_page(state, &scan))
			store_page(state, &scan);
	}
	return gs_sort_perform(state);
}

void
gs_sort_read_input(GsSortState *state)
{
	EState	   *estate = state->spec.child->state;
	ScanDirection direction = estate->es_direction;
	bool		begin_with_few;
	const char *reason;

	estate->es_direction = ForwardScanDirection;
	begin_sort(state, work_mem);
	begin_with_few = may_be_few(state);
	while (!read_and_sort(state, begin_with_few))
	{
		reason = gs_sort_accept_failure(state);
		gs_sort_clear(state);
		ExecReScan(state->spec.child);
		begin_sort(state, work_mem);
		gs_store_forbid_device(&state->store, reason);
		state->input.restarted = true;
		begin_with_few = false;
	}
	estate->es_direction = direction;
}
