/*-------------------------------------------------------------------------
 *
 * store.c
 *	  The store of a sort's rows as a whole: its begin and end, its order, failures of its engine.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "engine/word_sort.h"
#include "store/store.h"
#include "store/store_device_choice.h"

#include "access/htup_details.h"
#include "utils/memutils.h"

void
gs_store_begin(GsStore *store, const GsSortSpec *spec, Size memory_limit, bool may_use_device)
{
	MemoryContext context = store->context;

	/*
	 * Small blocks, so that larger allocations are separate and can be freed.  Not
	 * ALLOCSET_SMALL_SIZES: such contexts are recycled, with the allocation limit of
	 * their last use, which may be larger.
	 */
	if (context == NULL)
		context = AllocSetContextCreate(spec->parent_context, "GpuSort", 0, 2 * 1024, 8 * 1024);
	*store = (GsStore) {
		.spec = spec,.context = context,.few = store->few,
			.memory_limit = memory_limit,.merge_limit = memory_limit,
			.may_use_device = may_use_device
	};
	gs_order_begin(&store->order, spec->columns, spec->ncolumns, spec->desc, spec->caller_verifies,
				   context);
}

void
gs_store_set_policy(GsStore *store, const GsStorePolicy *policy)
{
	store->policy = *policy;
}

void
gs_store_forbid_device(GsStore *store, const char *reason)
{
	store->may_use_device = false;
	if (reason != NULL)
		store->device_reason = reason;
}

void
gs_store_begin_few(GsStore *store)
{
	const GsSortSpec *spec = store->spec;

	if (store->few == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(spec->parent_context);

		store->few = gs_few_create(spec->columns, spec->ncolumns, spec->desc);
		MemoryContextSwitchTo(old);
	}
	store->phase = GS_STORE_FEW;
}

void
gs_store_recount(GsStore *store)
{
	store->nread = 0;
}

void
gs_store_begin_engine(GsStore *store)
{
	store->phase = GS_STORE_ENGINE;
}

void
gs_store_set_engine(GsStore *store, GsEngine *engine)
{
	if (store->engine != NULL)
		gs_engine_close(store->engine);
	store->engine = engine;
}

void
gs_store_give_rows(GsStore *store, uint64 nrows)
{
	store->nread -= nrows;
	store->nnulls = 0;
	if (store->engine != NULL)
		store->engine->stats.bytes_up = 0;
}

void
gs_store_take_rows(GsStore *store, uint64 nrows, uint64 nnulls, uint64 bytes_up)
{
	store->nread += nrows + nnulls;
	store->nnulls += nnulls;
	store->engine->stats.bytes_up += bytes_up;
}

void
gs_store_clear(GsStore *store)
{
	if (store->phase == GS_STORE_FALLBACK)
		tuplesort_end(store->fallback); /* may own files */
	if (store->runs != NULL)
		gs_run_set_close(store->runs);	/* owns files */
	if (store->engine != NULL)
		gs_device_close(store->engine); /* may own a connection */
	if (store->few != NULL)
		gs_few_clear(store->few);
	if (store->context != NULL)
		MemoryContextReset(store->context);
	*store = (GsStore) {.context = store->context,.few = store->few};
}

/* ------------------------------------------------------- before rows are read */

double
gs_store_row_bytes(const GsStore *store)
{
	const GsKeyLayout *layout = gs_key_encoder_layout(store->order.key);
	double		row_bytes = gs_record_bytes(layout);

	if (!layout->keys_only)
		row_bytes += MAXALIGN(SizeofMinimalTupleHeader) + MAXALIGN(store->spec->expected_width);
	return row_bytes;
}

bool
gs_store_returns_in_turn(const GsStore *store)
{
	const GsSortSpec *spec = store->spec;

	return spec->child != NULL && !spec->may_share && !spec->random_access &&
		spec->desc->natts > 1 && store->top.bound == GS_UNBOUNDED;
}

bool
gs_store_device_is_likely(const GsStore *store)
{
	const GsSortSpec *spec = store->spec;

	return store->may_use_device && gs_device_is_likely(spec->expected_rows) &&
		(gs_store_returns_in_turn(store) ?
		 !gs_key_columns_traits(spec->columns, 1).compared :
		 !gs_key_columns_traits(spec->columns, spec->ncolumns).leave_ties);
}

bool
gs_store_may_order_ties(const GsStore *store)
{
	GsKeyEncoder *key = store->order.key;
	const int	first_tied = gs_key_encoder_facts(key)->first_tied;

	return gs_store_returns_in_turn(store) && first_tied > 0 &&
		gs_key_encoder_facts(key)->mismatch == NULL &&
		first_tied == gs_key_encoder_layout(key)->ncolumns;
}

/* --------------------------------------------------------------------- order */

void
gs_store_use_keys(GsStore *store, GsKeyEncoder *key)
{
	gs_order_use_keys(&store->order, key);
	/* no row is dropped by them */
	if (gs_key_encoder_facts(key)->mismatch != NULL)
		gs_topn_compare_rows(&store->top, &gs_order_all_rows, &store->order);
}

void
gs_store_compare_ties(GsStore *store)
{
	gs_order_create_comparator(&store->order);
	if (store->engine != NULL)
	{
		store->engine->request.compare = &gs_order_tied_rows;
		store->engine->request.compare_arg = &store->order;
	}
	if (store->runs != NULL)
		gs_run_set_compare_ties(store->runs, &gs_order_tied_rows, &store->order);
}

Size
gs_store_compared_bytes(const GsStore *store)
{
	return gs_order_compared_bytes(&store->order, store->memory_limit,
								   gs_store_row_bytes(store) + gs_word_sort_row_bytes(true));
}

GsStatus
gs_store_sort(GsStore *store)
{
	return gs_order_sort(&store->order, store->engine, gs_store_compared_bytes(store));
}

GsStatus
gs_store_verify(GsStore *store)
{
	return gs_order_verify(&store->order, store->engine, store->runs != NULL);
}

/* ------------------------------------------------------------------ failures */

void
gs_store_report_failure(const GsStore *store)
{
	const GsEngineStats *stats = gs_engine_stats(store->engine);

	gs_stats_add(GS_STAT_DEVICE_FAULTS, 1);
	ereport(ERROR,
			(errcode(ERRCODE_SYSTEM_ERROR),
			 errmsg("sort engine \"%s\" failed", stats->engine),
			 errdetail_internal("%s", stats->detail),
			 errhint("Run the query again, or set gpusort.engine to \"cpu\" to sort without a device.")));
}

void
gs_store_log_failure(const GsStore *store)
{
	const GsEngineStats *stats = gs_engine_stats(store->engine);

	gs_stats_add(GS_STAT_DEVICE_FAULTS, 1);
	ereport(LOG,
			(errmsg("sort engine \"%s\" failed, sorting again without it", stats->engine),
			 errdetail_internal("%s", stats->detail)));
}

void
gs_store_report_no_memory(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("out of memory"),
			 errdetail("Failed while allocating memory for a sort.")));
}
