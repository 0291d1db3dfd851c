/*-------------------------------------------------------------------------
 *
 * store_groups.c
 *	  Groups of rows, of which perhaps only the first are needed.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "store/store_groups.h"

GsOrder *
gs_store_group_order(GsStore *store)
{
	const GsSortSpec *spec = store->spec;

	if (store->groups == NULL)
	{
		store->groups = MemoryContextAlloc(store->context, sizeof(GsOrder));
		gs_order_begin(store->groups, spec->columns, spec->ngrouped, spec->desc, false,
					   store->context);
		gs_order_create_comparator(store->groups);
	}
	return store->groups;
}

bool
gs_store_is_one_group(GsStore *store, const MinimalTupleData *a, const MinimalTupleData *b)
{
	return gs_order_compare_rows(gs_store_group_order(store)->compare, a, b) == 0;
}

static bool
is_one_group(void *store, const MinimalTupleData *a, const MinimalTupleData *b)
{
	return gs_store_is_one_group(store, a, b);
}

void
gs_store_limit_groups(GsStore *store)
{
	const GsRunGroups groups = {
		.is_one_group = is_one_group,.arg = store,.limit = store->spec->group_limit
	};

	if (store->spec->group_limit > 0)
		gs_run_set_limit_groups(store->runs, &groups);
}
