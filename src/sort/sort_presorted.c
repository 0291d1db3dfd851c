/*-------------------------------------------------------------------------
 *
 * sort_presorted.c
 *	  Rows that arrive in the requested order.
 *
 * Rows are compared as they arrive, and get no keys, as long as none sorts before the last one
 * (README.md, "Order and verification").  They go to an engine whose layout has no columns.  For it
 * all rows are equal, so it keeps them in input order, which is already verified.
 *
 * If memory is full, and keys would not decide, the rows become a sorted run without keys, which
 * the following rows extend.  The last row is copied to compare the next one with it.  If all rows
 * are in order, this is the only run, and it is returned as it was written.  Otherwise it is merged
 * with later runs by comparisons, as PostgreSQL merges all runs (order.c).
 *
 * Of rows that arrive in groups, each batch is a sort (read_groups.c).  After a batch that was not
 * in order, the next one is not expected to be.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key/key_stored_row.h"
#include "read/read_limit.h"
#include "sort/sort_state.h"
#include "store/store_space.h"

#include "utils/memutils.h"

/* Does a key cost less than a comparison?  So it does with a single number. */
static bool
keys_cost_less(const GsOrder *order)
{
	return order->ncolumns == 1 &&
		(order->direct_key || gs_key_encoder_facts(order->key)->first_is_numeric ||
		 TupleDescAttr(order->desc, order->columns[0].attno - 1)->attbyval);
}

/*
 * May comparisons cost less than keys?  If keys decide, only if the first rows can tell whether it
 * is worth a try; and never if rows would be dropped by their keys, or sent to a device that needs
 * no comparisons.
 */
static bool
may_pay(const GsSortState *state)
{
	const GsStore *store = &state->store;

	if (store->top.bound != GS_UNBOUNDED ||
		(state->spec.groups != NULL && !state->spec.groups->may_be_in_order))
		return false;
	if (!gs_key_encoder_decides(store->order.key))
		return !(gs_key_encoder_facts(store->order.key)->can_key_more &&
				 gs_store_device_is_likely(store));
	return store->phase == GS_STORE_FEW && !keys_cost_less(&store->order) &&
		!gs_store_device_is_likely(store);
}

/*
 * Are the rows that were kept in order, as far as is known?  Values without a row are compared when
 * they become rows.
 */
static bool
few_are_in_order(const GsFew *few, GsOrderCompare *compare)
{
	const int	nrows = gs_few_count(few);

	if (nrows == 0 || gs_few_row(few, 0) == NULL)
		return true;
	gs_order_compare_begin(compare, gs_few_row(few, 0));
	for (int i = 1; i < nrows; i++)
	{
		if (gs_order_compare_next(compare, gs_few_row(few, i)) > 0)
			return false;
	}
	return true;
}

void
gs_presorted_begin(GsSortState *state)
{
	GsStore    *store = &state->store;

	if (!may_pay(state))
		return;
	gs_order_begin_presorted(&store->order);
	if (store->phase == GS_STORE_FEW && !few_are_in_order(store->few, store->order.compare))
		gs_order_end_presorted(&store->order);
}

/* Does a stored row sort before the last one, if there is a last one? */
static bool
is_below_last(GsOrderCompare *compare, bool is_first, MinimalTuple row)
{
	if (!is_first)
		return gs_order_compare_next(compare, row) > 0;
	gs_order_compare_begin(compare, row);
	return false;
}

/*
 * May the rows become a run?  Not if a device will probably take them all, because it needs keys,
 * nor if runs could be merged by keys alone.
 */
static bool
may_write_run(const GsSortState *state)
{
	return !gs_key_encoder_decides(state->store.order.key) &&
		gs_store_may_write_run(&state->store) &&
		!gs_store_device_is_likely(&state->store);
}

/*
 * Writes the rows in memory as a run, or extends the run.  *last becomes a copy of the last row, to
 * be freed after the next row was compared with it.
 */
static bool
write_run(GsSortState *state, Size row_bytes, MinimalTuple *last)
{
	GsStore    *store = &state->store;
	const GsBatch *batch = store->batch;
	const MinimalTuple row = (MinimalTuple)
		unconstify(void *, gs_batch_pushed(batch, store->engine->request.layout, batch->nrows - 1));

	gs_store_forbid_device(store, NULL);	/* it could not merge the run */
	*last = MemoryContextAllocHuge(store->context, row->t_len);
	memcpy(*last, row, row->t_len);
	gs_order_compare_begin(store->order.compare, *last);
	return gs_store_write_run(store, row_bytes) == GS_STATUS_OK;
}

/* Ensures that the batch has space for a row.  False: memory is full. */
static bool
reserve_space(GsSortState *state, Size row_bytes, MinimalTuple *last)
{
	GsStore    *store = &state->store;
	GsStatus	status;

	if (store->batch != NULL && gs_engine_has_space(store->batch, row_bytes))
		return true;
	status = gs_engine_reserve(store->engine, row_bytes, &store->batch);
	if (status == GS_STATUS_FULL && store->batch != NULL && may_write_run(state) &&
		write_run(state, row_bytes, last))
		status = gs_engine_reserve(store->engine, row_bytes, &store->batch);
	return status == GS_STATUS_OK;
}

bool
gs_presorted_add(GsSortState *state, TupleTableSlot *slot, const GsRowForm *form)
{
	GsStore    *store = &state->store;
	const bool	is_first = store->batch == NULL;
	MinimalTuple last = NULL;
	GsRowSource source;
	char	   *row;
	bool		below;

	gs_row_source_init(&source, slot, form);
	if (!reserve_space(state, source.nbytes, &last))
		return false;
	row = gs_batch_next_row(store->batch);
	gs_row_store(&source, slot, row);
	below = is_below_last(store->order.compare, is_first, (MinimalTuple) row);
	if (last != NULL)
		pfree(last);
	if (below)
		return false;
	*gs_batch_next_record(store->batch) = gs_batch_next_location(store->batch, 0);
	gs_batch_push(store->batch, source.nbytes);
	return true;
}
