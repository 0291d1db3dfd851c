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
