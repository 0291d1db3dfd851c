/*-------------------------------------------------------------------------
 *
 * store_sort.c
 *	  Sorts the rows of an engine, and verifies their order.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "engine/word_sort.h"
#include "store/store_estimate.h"
#include "store/store_sort.h"

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

bool
gs_store_may_order_ties(const GsStore *store)
{
	GsKeyEncoder *key = store->order.key;
	const int	first_tied = gs_key_encoder_facts(key)->first_tied;

	return gs_store_returns_in_turn(store) && first_tied > 0 &&
		gs_key_encoder_facts(key)->mismatch == NULL &&
		first_tied == gs_key_encoder_layout(key)->ncolumns;
}
