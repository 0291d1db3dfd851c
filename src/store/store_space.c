/*-------------------------------------------------------------------------
 *
 * store_space.c
 *	  Space for the next row: in the CPU engine, on a device, or freed by a run.
 *
 * The rows of a serial sort start in the CPU engine.  When the batch is full:
 *
 *	  1. a top-N sort drops the rows that are not needed (store_topn.c);
 *	  2. if there are now enough rows, they move to a device (store_device_choice.c);
 *	  3. the engine gives another batch, if its memory limit allows;
 *	  4. if it does not, 1 and 2 are tried again, whatever they gain;
 *	  5. if that does not help, the rows are written as a run, and an empty
 *		 engine gives the batch.
 *
 * If all of this fails, the caller falls back to a tuplesort.
 *
 * A device that is full has not taken its last batches.  They are still in the shared buffers, and
 * are copied to the next engine first.  Those that it leaves tied are ordered as they are written.
 *
 * Each step leaves all rows in place if it fails, or if an ERROR or a cancel interrupts it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "guc.h"
#include "store/store_device_choice.h"
#include "store/store_groups.h"
#include "store/store_space.h"

#include "miscadmin.h"
#include "utils/memutils.h"

/* Rows that arrive in order leave the rest of the memory for keys, in case they are needed. */
#define PRESORTED_SHARE	0.75

/* Space for some more rows than expected costs less than another batch. */
#define EXPECTED_FACTOR	1.125

/* What an engine needs for itself, to hold one row. */
#define LEAST_ENGINE_BYTES	((Size) 32 << 10)

/* ------------------------------------------------------------------ engines */

static Size
engine_limit(const GsStore *store)
{
	Size		limit = store->memory_limit - gs_store_compared_bytes(store);

	if (store->runs != NULL)
		limit -= gs_run_set_writer_bytes(limit);
	return store->order.presorted ? limit * PRESORTED_SHARE : limit;
}

GsEngineRequest
gs_store_make_request(GsStore *store)
{
	GsEngineRequest request = {
		.layout = gs_key_encoder_layout(store->order.key),
		.memory_limit = engine_limit(store),
			.expected_bytes = store->top.may_prune ? 0 :
			Min(store->spec->expected_rows * gs_store_row_bytes(store) * EXPECTED_FACTOR,
				PG_INT32_MAX)
	};

	gs_store_runtime_init(&request.runtime, store->context);
	if (gs_key_encoder_facts(store->order.key)->first_tied >= 0)
	{
		request.compare = &gs_order_tied_rows;
		request.compare_arg = &store->order;
	}
	return request;
}

/* Opens an engine for rows without keys, which it keeps as they arrive; NULL: out of memory. */
static GsEngine *
open_unkeyed(const GsEngineRequest *request)
{
	GsEngineRequest unkeyed = *request;

	unkeyed.layout = palloc(sizeof(GsKeyLayout));
	gs_key_layout_init(unkeyed.layout);
	unkeyed.compare = NULL;
	return gs_engine_cpu_open(&unkeyed);
}

void
gs_store_open_engine(GsStore *store)
{
	const GsEngineRequest request = gs_store_make_request(store);

	store->engine = store->order.presorted ? open_unkeyed(&request) : gs_engine_cpu_open(&request);
}

const char *
gs_store_status_reason(const GsStore *store, GsStatus status)
{
	switch (status)
	{
		case GS_STATUS_FULL:
			return store->engine->stats.full != NULL ?
				store->engine->stats.full : "the rows exceed work_mem";
		case GS_STATUS_OOM:
			return "out of memory";
		case GS_STATUS_DISPROVED:
			return gs_key_encoder_facts(store->order.key)->mismatch;
		case GS_STATUS_FAILED:
			return "the engine failed";
		case GS_STATUS_OK:
		case GS_STATUS_REFUSED: /* by an engine that was not opened */
			break;
	}
	elog(ERROR, "unexpected status of a sort engine: %d", (int) status);
}

/* ------------------------------------------------------------------ devices */

/* Moves the rows to a device, if there is one and it has the memory.  Tried once only. */
static bool
move_to_device(GsStore *store)
{
	double		nrows = gs_topn_expected_rows(&store->top, store->spec->expected_rows);
	GsEngine   *engine;

	store->may_use_device = false;
	engine = gs_device_move(store->engine, store->context,
							Max(nrows, (double) gs_topn_rows_of_engine(store->engine)),
							gs_store_row_bytes(store), gs_store_may_order_ties(store),
							&store->device_reason);
	if (engine == NULL)
		return false;
	store->engine = engine;
	gs_key_encoder_keep_full(store->order.key);
	store->top.may_prune = false;
	store->device_reason = NULL;
	return true;
}

/* Is a device faster for the rest?  Not while most of the rows will soon be dropped. */
static bool
device_pays(const GsStore *store, bool all_read)
{
	return store->may_use_device &&
		gs_device_pays(gs_topn_rows_of_engine(store->engine)) &&
		(all_read || !gs_topn_will_prune(&store->top, store->spec->expected_rows));
}

void
gs_store_consider_device(GsStore *store, bool all_read)
{
	if (device_pays(store, all_read))
		(void) move_to_device(store);
}

/* ------------------------------------------------------------------- memory */

/*
 * Sorts the rows of the CPU engine, to drop some of them.  False: their order is not certain, and
 * they are not sorted.
 */
static bool
sort_and_verify(GsStore *store)
{
	if (gs_store_sort(store) != GS_STATUS_OK)
		return false;
	if (gs_store_verify(store) == GS_STATUS_OK)
		return true;
	gs_engine_cpu_unsort(store->engine);
	return false;
}

/*
 * Drops rows that a LIMIT cannot return, if there are many.  True: it did; the batch is not valid
 * any more.
 */
static bool
drop_rows(GsStore *store, bool memory_is_short)
{
	GsTopN	   *top = &store->top;

	if (!gs_topn_should_prune(top, store->engine, memory_is_short))
		return false;
	if (top->compare != NULL)
		top->may_prune = sort_and_verify(store);
	return top->may_prune && gs_topn_prune(top, store->engine, store->context);
}

/* Memory is full: makes space in the engine, or moves to one that has it. */
static bool
make_space(GsStore *store)
{
	return drop_rows(store, true) ||
		(store->may_use_device && gpusort_engine != GS_ENGINE_CPU && move_to_device(store));
}

/* ------------------------------------------------------------------------- runs */

/*
 * A merge returns its rows once, so runs are no use where rows may be returned twice.  Nor may a
 * device's rows become a run if approximate keys have to be verified, because the device has only
 * some of the rows.  A producer's rows are verified by the consumer.
 */
bool
gs_store_may_write_run(const GsStore *store)
{
	if (store->policy.gives_rows)
		return true;
	return !store->spec->random_access &&
		!(store->engine->on_device && gs_order_verifies_keys(&store->order));
}

void
gs_store_begin_runs(GsStore *store)
{
	const GsSortSpec *spec = store->spec;
	MemoryContext old;
	GsMergeOrder order;

	if (store->runs != NULL)
		return;
	old = MemoryContextSwitchTo(store->context);
	/* a tuplesort returns rows without keys, so runs of its rows have none */
	order = store->phase == GS_STORE_FALLBACK ? gs_order_compared(&store->order) :
		gs_order_merged(&store->order);
	store->runs = gs_run_set_create(spec->columns, spec->ncolumns, spec->desc, store->order.key,
									&order, store->memory_limit, &spec->run_files);
	gs_store_limit_groups(store);
	MemoryContextSwitchTo(old);
}

GsStatus
gs_store_write_sorted(GsStore *store)
{
	GsStatus	status;

	if (store->engine->stats.nrows == 0)
		return GS_STATUS_OK;
	gs_store_begin_runs(store);
	if (gs_order_leaves_ties(&store->order, store->engine))
		return store->spec->write_tied(store->policy.arg);
	store->nordered += store->engine->stats.compared_rows;
	status = gs_run_set_write_run(store->runs, store->engine, store->order.presorted);
	store->ndropped = gs_run_set_stats(store->runs)->ndropped;
	return status;
}

GsStatus
gs_store_append_run(GsStore *store)
{
	GsEngine   *engine = store->engine;
	GsStatus	status;

	/* rows shorter than those before can need a little more than was left for them */
	engine->request.memory_limit = SIZE_MAX;
	status = gs_store_sort(store);
	if (status == GS_STATUS_FULL)
		status = gs_store_sort(store);	/* without those that it did not take */
	if (status == GS_STATUS_OK)
		status = gs_store_verify(store);
	return status == GS_STATUS_OK ? gs_store_write_sorted(store) : status;
}

/* Like gs_store_begin_batch(), but does not ask first whether a device is faster. */
static GsStatus reserve(GsStore *store, Size row_bytes);

/* Copies rows that a device returns unsorted to the engine, in input order. */
static GsStatus
copy_returned(GsStore *store, GsEngine *device)
{
	const GsKeyLayout *layout = device->request.layout;
	const GsBatch *from;
	GsStatus	status;

	store->batch = NULL;
	while ((status = gs_engine_next_batch(device, &from)) == GS_STATUS_OK && from != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		for (size_t i = 0; i < from->nrows; i++)
		{
			Size		row_bytes = gs_batch_row_bytes(from, layout, i);

			if ((store->batch == NULL || !gs_engine_has_space(store->batch, row_bytes)) &&
				reserve(store, row_bytes) != GS_STATUS_OK)
				gs_store_report_no_memory();
			gs_batch_push_copy(store->batch, from, layout, i, row_bytes);
		}
	}
	return status;
}

/* The memory limit of a CPU engine that allows a row of row_bytes. */
static Size
cpu_engine_limit(const GsStore *store, Size row_bytes)
{
	return Max(engine_limit(store), row_bytes + LEAST_ENGINE_BYTES);
}

/* An empty CPU engine. */
static void
open_cpu_engine(GsStore *store, const GsEngineRequest *last, Size row_bytes)
{
	GsEngineRequest request = *last;

	request.memory_limit = cpu_engine_limit(store, row_bytes);
	store->engine = gs_engine_cpu_open(&request);
	if (store->engine == NULL)
		gs_store_report_no_memory();
}

GsStatus
gs_store_replace_engine(GsStore *store, Size row_bytes, bool unsorted)
{
	GsEngine   *last = store->engine;
	const GsEngineRequest request = last->request;
	GsStatus	status = GS_STATUS_OK;

	if (!last->on_device)
	{
		gs_engine_cpu_restart(last, cpu_engine_limit(store, row_bytes));
		return GS_STATUS_OK;
	}
	open_cpu_engine(store, &request, row_bytes);
	if (gs_key_encoder_facts(store->order.key)->first_tied >= 0)
		gs_store_compare_ties(store);
	store->may_use_device = false;
	if (unsorted)
		status = gs_engine_return_input(last);
	if (status == GS_STATUS_OK)
		status = copy_returned(store, last);
	if (status != GS_STATUS_OK)
	{
		gs_engine_close(store->engine);
		store->engine = last;
		return status;
	}
	/* the next rows go to the device again, if it holds more than memory does */
	store->may_use_device = !unsorted && last->stats.nrows > 0 &&
		last->stats.bytes_up >= store->memory_limit;
	store->device_reason = last->stats.full;
	if (last->stats.full != NULL)
		gs_stats_add(GS_STAT_REFUSALS_MEMORY, 1);
	gs_device_close(last);
	return GS_STATUS_OK;
}

GsStatus
gs_store_write_run(GsStore *store, Size row_bytes)
{
	const GsStorePolicy *policy = &store->policy;
	GsStatus	status;

	if (policy->end_input != NULL && policy->end_input(policy->arg, row_bytes, &status))
		return status;
	status = gs_store_append_run(store);
	if (status == GS_STATUS_OK)
		return gs_store_replace_engine(store, row_bytes, false);
	if (status == GS_STATUS_FULL && store->engine->on_device)
		return gs_store_replace_engine(store, row_bytes, true);
	return status;
}

static GsStatus
reserve(GsStore *store, Size row_bytes)
{
	GsStatus	status = gs_engine_reserve(store->engine, row_bytes, &store->batch);

	if (status == GS_STATUS_FULL && make_space(store))
		status = gs_engine_reserve(store->engine, row_bytes, &store->batch);
	if ((status == GS_STATUS_FULL || status == GS_STATUS_OOM) && gs_store_may_write_run(store))
	{
		status = gs_store_write_run(store, row_bytes);
		if (status == GS_STATUS_OK)
			status = gs_engine_reserve(store->engine, row_bytes, &store->batch);
	}
	return status;
}

const char *
gs_store_begin_batch(GsStore *store, Size row_bytes)
{
	GsStatus	status;

	(void) drop_rows(store, false);
	gs_store_consider_device(store, false);
	status = reserve(store, row_bytes);
	store->space_status = status;
	return status == GS_STATUS_OK ? NULL : gs_store_status_reason(store, status);
}
