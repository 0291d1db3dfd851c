/*-------------------------------------------------------------------------
 *
 * order.c
 *	  What decides the order of rows: keys, comparisons, or both.
 *
 * An engine sorts by keys, and by gs_order_tied_rows where these are equal.  Runs are merged
 * in the same way; by approximate keys a block ahead, whose order is verified (run/run_block.c),
 * unless the caller verifies it.  If some run has no keys, only comparisons decide.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "order/order.h"
#include "stats/stats.h"

#include "utils/memutils.h"

/* -------------------------------------------------------------------- keys */

void
gs_order_begin(GsOrder *order, const GsSortColumn *columns, int ncolumns, TupleDesc desc,
			   bool caller_verifies, MemoryContext context)
{
	*order = (GsOrder) {
		.columns = columns,.ncolumns = ncolumns,.desc = desc,
			.caller_verifies = caller_verifies,.context = context
	};
}

void
gs_order_create_comparator(GsOrder *order)
{
	MemoryContext old;

	if (order->compare != NULL)
		return;
	old = MemoryContextSwitchTo(order->context);
	order->compare = gs_order_compare_create(order->columns, order->ncolumns, order->desc);
	MemoryContextSwitchTo(old);
}

void
gs_order_use_keys(GsOrder *order, GsKeyEncoder *key)
{
	order->key = key;
	order->direct_key = gs_key_encoder_facts(key)->direct;
	order->keys_only = gs_key_encoder_layout(key)->keys_only;
	if (!gs_key_encoder_decides(key))
		gs_order_create_comparator(order);
}

void
gs_order_begin_presorted(GsOrder *order)
{
	order->presorted = true;
	gs_order_create_comparator(order);
}

void
gs_order_end_presorted(GsOrder *order)
{
	if (!order->presorted)
		return;
	order->presorted = false;
	if (gs_key_encoder_decides(order->key))
		order->compare = NULL;
}

/* -------------------------------------------------------------------- sort */

Size
gs_order_compared_bytes(const GsOrder *order, Size memory_limit, double row_bytes)
{
	const int	first = gs_order_first_tied(order);

	if (first < 0 || order->compare == NULL || gs_key_encoder_facts(order->key)->can_key_more)
		return 0;
	return memory_limit * gs_order_compare_copies_share(order->compare, first, row_bytes);
}

GsStatus
gs_order_sort(GsOrder *order, GsEngine *engine, Size compared_bytes)
{
	const Size	nbytes = engine->request.compare != NULL ? compared_bytes : 0;
	MemoryContext old = CurrentMemoryContext;
	GsStatus	status;

	if (order->compare != NULL)
		MemoryContextSwitchTo(gs_order_compare_context(order->compare));
	if (nbytes > 0)
		(void) gs_order_compare_keep(order->compare, nbytes);
	status = gs_engine_sort(engine);
	if (nbytes > 0)
		engine->stats.peak_bytes += gs_order_compare_keep(order->compare, 0);
	MemoryContextSwitchTo(old);
	return status;
}

/* ------------------------------------------------------------------- merge */

GsMergeOrder
gs_order_compared(GsOrder *order)
{
	static const GsKeyLayout no_keys = {0};

	gs_order_create_comparator(order);
	return (GsMergeOrder) {
		.layout = &no_keys,.compare = &gs_order_all_rows,.compare_arg = order
	};
}

/* Keys that leave all rows tied are not worth being made again. */
GsMergeOrder
gs_order_merged(GsOrder *order)
{
	const GsRowCompare *verify;

	if (order->presorted || gs_key_columns_traits(order->columns, 1).compared)
		return gs_order_compared(order);
	if (!gs_key_encoder_decides(order->key))
		gs_order_create_comparator(order);
	verify = gs_key_encoder_facts(order->key)->mismatch != NULL ? &gs_order_all_rows : NULL;
	return (GsMergeOrder) {
		.layout = gs_key_encoder_layout(order->key),
			.keys_decide = true,
			.compare = gs_order_first_tied(order) < 0 ? NULL : verify != NULL ? verify :
			&gs_order_tied_rows,
			.verify = order->caller_verifies ? NULL : verify,
			.instead = verify,
			.compare_arg = order
	};
}

/* ------------------------------------------------------------ verification */

bool
gs_order_leaves_ties(const GsOrder *order, const GsEngine *engine)
{
	return engine->on_device && gs_order_first_tied(order) >= 0 && !engine->stats.all_differ;
}

bool
gs_order_verifies_keys(const GsOrder *order)
{
	return gs_key_encoder_facts(order->key)->mismatch != NULL && !order->caller_verifies;
}

GsStatus
gs_order_verify(GsOrder *order, GsEngine *engine, bool extends_run)
{
	GsKeyVerification *total = &order->verification;
	GsKeyVerification found = {.succeeded = true};
	const uint64 nrows = engine->stats.nrows;
	MemoryContext old = MemoryContextSwitchTo(order->context);
	GsStatus	status = GS_STATUS_OK;

	if (order->presorted)		/* each row was compared with the one before as it arrived */
		found.ncomparisons = nrows - (!extends_run && nrows > 0 ? 1 : 0);
	else if (gs_order_verifies_keys(order) &&
			 !(engine->stats.all_compared && gs_order_first_tied(order) == 0))
		status = gs_verify_keys(engine, order->key, order->compare, &found);
	if (!found.succeeded && !engine->on_device &&
		gs_engine_cpu_resort(engine, &gs_order_all_rows, order) == GS_STATUS_OK)
	{
		found.succeeded = true;
		total->ncorrected++;
		gs_stats_add(GS_STAT_REPAIRS, 1);
	}
	MemoryContextSwitchTo(old);
	total->ncomparisons += found.ncomparisons;
	total->us += found.us;
	return status == GS_STATUS_OK && !found.succeeded ? GS_STATUS_DISPROVED : status;
}
