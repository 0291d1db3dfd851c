/*-------------------------------------------------------------------------
 *
 * store_merge.c
 *	  Merges runs, of one sort or several.
 *
 * store_space.c writes runs if memory does not hold all rows; run/run_merge.c merges the rows.  In
 * a parallel index build each process writes runs, and then merges a range of all of them, or the
 * leader merges all.
 *
 * Temporary files belong to the resource owner, which removes them after ERROR and cancel.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "store/store_device_choice.h"
#include "store/store_fallback.h"
#include "store/store_fetch.h"
#include "store/store_groups.h"
#include "store/store_merge.h"
#include "store/store_space.h"

#include "miscadmin.h"

/* -------------------------------------------------------------------- merge */

/* Does someone else merge the runs, or add those of others before they are merged? */
static bool
are_merged_elsewhere(const GsStore *store)
{
	return store->spec->merged_elsewhere || store->policy.merged_elsewhere;
}

/* The rows are in runs only. */
static void
close_engine(GsStore *store)
{
	if (store->engine != NULL)
		gs_device_close(store->engine);
	store->engine = NULL;
	store->phase = GS_STORE_RUNS;
}

GsStatus
gs_store_merge_runs(GsStore *store)
{
	GsStatus	status = GS_STATUS_OK;

	/* the rows that a device did not take become a run of their own */
	if (store->engine->on_device)
		status = gs_store_write_run(store, 0);
	if (status == GS_STATUS_OK)
		status = gs_store_append_run(store);
	if (status != GS_STATUS_OK)
		return status;
	close_engine(store);
	if (!are_merged_elsewhere(store))
		gs_store_begin_merge(store);
	return GS_STATUS_OK;
}

/* What the engine leaves for a merge, if its rows are one of the runs. */
static Size
merge_limit(const GsStore *store)
{
	const Size	held = store->engine == NULL ? 0 : gs_engine_stats(store->engine)->peak_bytes;

	return store->merge_limit - Min(held, store->merge_limit);
}

void
gs_store_begin_merge(GsStore *store)
{
	gs_run_set_begin_merge(store->runs, merge_limit(store));
	gs_store_begin_output(store, gs_run_set_stats(store->runs)->nrows + store->nnulls);
}

bool
gs_store_begin_range(GsStore *store, int range, int nranges, MinimalTuple *end)
{
	if (!gs_run_set_begin_range(store->runs, store->merge_limit, range, nranges, end))
		return false;
	gs_store_begin_output(store, gs_run_set_stats(store->runs)->nrows);
	store->partial = true;
	return true;
}

bool
gs_store_begin_groups(GsStore *store, int range, int nranges)
{
	GsOrder    *order = gs_store_group_order(store);
	GsMergeOrder groups;

	if (store->phase == GS_STORE_ENGINE)
	{
		gs_store_begin_groups_of_engine(store, range, nranges, order->compare);
		return true;
	}
	groups = gs_order_compared(order);
	if (!gs_run_set_begin_groups(store->runs, store->merge_limit, range, nranges, &groups))
		return false;
	gs_store_begin_output(store, gs_run_set_stats(store->runs)->nrows);
	store->partial = true;
	return true;
}

void
gs_store_set_merge_memory(GsStore *store, int memory_kb)
{
	store->merge_limit = (Size) memory_kb * 1024;
}

/* --------------------------------------------------- the runs of several sorts */

/* Writes the rows of a tuplesort as a run. */
static void
write_fallback(GsStore *store)
{
	TupleTableSlot *slot = store->spec->slot;

	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		gs_store_get_fallback(store, true, slot);
		if (TupIsNull(slot))
			break;
		gs_run_set_write_tuple(store->runs, ((MinimalTupleTableSlot *) slot)->mintuple);
	}
	tuplesort_end(store->fallback);
}

bool
gs_store_make_runs(GsStore *store)
{
	if (store->phase == GS_STORE_RUNS)
		return true;
	if (store->nread == 0)
		gs_order_end_presorted(&store->order); /* no row lacks a key */
	gs_store_begin_runs(store);
	if (store->phase == GS_STORE_FALLBACK)
		write_fallback(store);
	else if (gs_store_write_sorted(store) != GS_STATUS_OK)
		return false;
	close_engine(store);
	return true;
}

void
gs_store_make_run_of_engine(GsStore *store)
{
	if (store->nread == 0)
		gs_order_end_presorted(&store->order); /* no row lacks a key */
	gs_store_begin_runs(store);
	gs_run_set_add_engine(store->runs, store->engine);
	store->phase = GS_STORE_RUNS;
}

void
gs_store_describe_rows(GsStore *store, GsSharedRows *rows)
{
	gs_run_set_describe(store->runs, rows);
	if (gs_run_set_has_keys(store->runs))
	{
		rows->form = gs_key_encoder_fingerprint(store->order.key);
		rows->first_tied = gs_key_encoder_facts(store->order.key)->first_tied;
	}
	rows->nread = store->nread;
	rows->nnulls = store->nnulls;
	rows->ndropped = store->ndropped;
}

void
gs_store_complete_runs(GsStore *store)
{
	gs_run_set_complete(store->runs, merge_limit(store));
}

void
gs_store_share_runs(GsStore *store, GsSharedRuns *runs, int nparticipants)
{
	gs_run_set_share(store->runs, runs, nparticipants);
	gs_store_describe_rows(store, &runs->rows);
}

/* Do both have keys, and do these mean the same in both processes? */
static bool
has_equal_keys(const GsStore *store, const GsSharedRows *rows)
{
	return gs_run_set_has_keys(store->runs) && rows->layout.ncolumns > 0 &&
		rows->form == gs_key_encoder_fingerprint(store->order.key);
}

bool
gs_store_merges_alike(const GsStore *store, const GsSharedRows *rows)
{
	return has_equal_keys(store, rows) ||
		!(gs_run_set_has_keys(store->runs) || rows->layout.ncolumns > 0);
}

/* Makes the order of all rows one that also orders those of another process. */
static void
adopt_order(GsStore *store, const GsSharedRows *rows)
{
	if (has_equal_keys(store, rows))
	{
		gs_key_layout_merge(gs_key_encoder_layout(store->order.key), &rows->layout);
		if (rows->first_tied >= 0)
		{
			gs_key_encoder_tie_from(store->order.key, rows->first_tied);
			gs_store_compare_ties(store);
		}
	}
	else if (rows->layout.keys_only)
	{
		/* of the same form in all processes; only without memory this one has rows */
		gs_store_report_no_memory();
	}
	else
	{
		const GsMergeOrder order = gs_order_compared(&store->order);

		gs_run_set_drop_keys(store->runs, &order);
	}
	store->nread += rows->nread;
	store->nnulls += rows->nnulls;
	store->ndropped += rows->ndropped;
}

void
gs_store_adopt_runs(GsStore *store, const GsSharedRuns *runs, const GsRunPlace *where)
{
	adopt_order(store, &runs->rows);
	gs_run_set_adopt(store->runs, runs, where);
}

void
gs_store_adopt_stream(GsStore *store, const GsSharedRows *rows, GsRunStream *stream,
					  dsa_area *memory)
{
	adopt_order(store, rows);
	gs_run_set_adopt_stream(store->runs, rows, stream, memory);
}
