/*-------------------------------------------------------------------------
 *
 * store.c
 *	  Begins and clears the store of a sort's rows.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "store/store.h"
#include "store/store_device.h"

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
	store->phase = GS_SORT_FEW;
}

void
gs_store_recount(GsStore *store)
{
	store->nread = 0;
}

void
gs_store_begin_engine(GsStore *store)
{
	store->phase = GS_SORT_ENGINE;
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
	if (store->phase == GS_SORT_FALLBACK)
		gs_tuplesort_end(&store->fallback);	/* may own files */
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
