/*-------------------------------------------------------------------------
 *
 * store_fallback.c
 *	  Moves all rows: to a new engine, or to PostgreSQL's tuplesort.
 *
 * A tuplesort is needed where gpusort cannot continue: a value has no code, or more rows than
 * memory holds may be returned twice.  The rows so far move to the tuplesort, while the engine
 * frees its memory batch by batch; the child's following rows are added to the tuplesort
 * (sort/sort_input.c).  No row was returned yet, so the result is the same.  The limits (work_mem,
 * temp_file_limit) are PostgreSQL's.  If a device fails, nothing is left to move: then the child is
 * read again (sort/sort_failure.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pg_compat.h"
#include "store/store_device_choice.h"
#include "store/store_fallback.h"
#include "store/store_fetch.h"
#include "store/store_space.h"

#include "executor/executor.h"
#include "miscadmin.h"

/* ----------------------------------------------------------------- tuplesort */

/* A single column that is passed by value is sorted without tuples, as in a Sort node. */
static Tuplesortstate *
begin_tuplesort(const GsSortSpec *spec, bool datums, int memory_kb, int options)
{
	const GsSortColumn *columns = spec->columns;
	const int	ncolumns = spec->ncolumns + spec->nstable;
	AttrNumber *attnos;
	Oid		   *operators;
	Oid		   *collations;
	bool	   *nulls_first;

	Assert(!datums || (ncolumns == 1 && columns[0].attno == 1));
	if (datums)
		return tuplesort_begin_datum(TupleDescAttr(spec->desc, 0)->atttypid,
									 columns[0].sort_operator, columns[0].collation,
									 columns[0].nulls_first, memory_kb, NULL, options);
	attnos = palloc(sizeof(AttrNumber) * ncolumns);
	operators = palloc(sizeof(Oid) * ncolumns);
	collations = palloc(sizeof(Oid) * ncolumns);
	nulls_first = palloc(sizeof(bool) * ncolumns);
	for (int i = 0; i < ncolumns; i++)
	{
		attnos[i] = columns[i].attno;
		operators[i] = columns[i].sort_operator;
		collations[i] = columns[i].collation;
		nulls_first[i] = columns[i].nulls_first;
	}
	return tuplesort_begin_heap(spec->desc, ncolumns, attnos, operators, collations, nulls_first,
								memory_kb, NULL, options);
}

void
gs_store_put_fallback(GsStore *store, TupleTableSlot *slot)
{
	if (store->sorts_datums)
	{
		slot_getsomeattrs(slot, 1);
		tuplesort_putdatum(store->fallback, slot->tts_values[0], slot->tts_isnull[0]);
	}
	else
		tuplesort_puttupleslot(store->fallback, slot);
}

void
gs_store_get_fallback(GsStore *store, bool forward, TupleTableSlot *slot)
{
	if (!store->sorts_datums)
	{
		(void) tuplesort_gettupleslot(store->fallback, forward, false, slot, NULL);
		return;
	}
	ExecClearTuple(slot);
	if (gs_get_tuplesort_datum(store->fallback, forward, &slot->tts_values[0],
							   &slot->tts_isnull[0]))
		ExecStoreVirtualTuple(slot);
}

void
gs_store_begin_fallback(GsStore *store, int memory_kb, GsStatus status, const char *reason)
{
	const GsSortSpec *spec = store->spec;
	const bool	bounded = store->top.bound != GS_UNBOUNDED;
	MemoryContext old = MemoryContextSwitchTo(store->context);

	store->fallback_reason = pstrdup(reason);
	store->sorts_datums = spec->desc->natts == 1 && TupleDescAttr(spec->desc, 0)->attbyval;
	store->fallback = begin_tuplesort(spec, store->sorts_datums, memory_kb,
									  (spec->random_access ? TUPLESORT_RANDOMACCESS : 0) |
									  (bounded ? TUPLESORT_ALLOWBOUNDED : 0));
	if (bounded)
		tuplesort_set_bound(store->fallback, store->top.bound);
	MemoryContextSwitchTo(old);
	store->phase = GS_STORE_FALLBACK;
	gs_stats_add(status == GS_STATUS_OK ? GS_STAT_FALLBACKS_KEY :
				 status == GS_STATUS_DISPROVED ? GS_STAT_FALLBACKS_ORDER : GS_STAT_FALLBACKS_MEMORY,
					 1);
	if (status == GS_STATUS_DISPROVED)
		gs_stats_add(GS_STAT_REPAIRS, 1);
}

/* ------------------------------------------------------------------ all rows */

static GsStatus
drain_sorted(GsEngine *engine, GsTakeRow take, void *arg, bool *taken)
{
	const void *rows[GS_STORE_WINDOW];
	uint64		position = 0;
	size_t		nrows;
	GsStatus	status = GS_STATUS_OK;

	while (*taken &&
		   (status = gs_engine_fetch(engine, position, GS_STORE_WINDOW, rows,
									 &nrows)) == GS_STATUS_OK && nrows > 0)
	{
		CHECK_FOR_INTERRUPTS();
		for (size_t i = 0; i < nrows && *taken; i++)
			*taken = take(arg, rows[i]);
		position += nrows;
	}
	return status;
}

static GsStatus
drain_unsorted(GsEngine *engine, GsTakeRow take, void *arg, bool *taken)
{
	const GsKeyLayout *layout = engine->request.layout;
	const GsBatch *batch;
	GsStatus	status = gs_engine_return_input(engine);

	while (*taken && status == GS_STATUS_OK &&
		   (status = gs_engine_next_batch(engine, &batch)) == GS_STATUS_OK && batch != NULL)
	{
		for (size_t i = 0; i < batch->nrows && *taken; i++)
		{
			CHECK_FOR_INTERRUPTS();
			*taken = take(arg, gs_batch_pushed(batch, layout, i));
		}
	}
	return status;
}

/*
 * Passes on the rows of an engine: in its order if it has sorted them, otherwise in input order,
 * while it frees its memory batch by batch.  Ends when a row is not taken: *taken becomes false.
 * OK or FAILED, which is the engine's.
 */
static GsStatus
drain(GsEngine *engine, GsTakeRow take, void *arg, bool *taken)
{
	*taken = true;
	return gs_engine_stats(engine)->method == GS_METHOD_NONE ?
		drain_unsorted(engine, take, arg, taken) : drain_sorted(engine, take, arg, taken);
}

/*
 * Moves one row; NULL is a counted NULL.  A top-N sort has more rows than its bound; the tuplesort
 * drops them.
 */
static bool
move_row(void *arg, const void *row)
{
	GsStore *store = arg;
	TupleTableSlot *slot = store->spec->slot;

	gs_store_row_to_slot(store, row, slot);
	gs_store_put_fallback(store, slot);
	return true;
}

static void
move_runs(GsStore *store)
{
	const void *row;

	/* the tuplesort has the rest of the memory */
	gs_run_set_begin_merge(store->runs, store->memory_limit / 4);
	while ((row = gs_run_set_next(store->runs)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		(void) move_row(store, row);
	}
	ExecClearTuple(store->spec->slot);
	gs_run_set_close(store->runs);
	store->runs = NULL;
}

/*
 * The tuplesort gets all of the memory, because the engine frees its own as the tuplesort fills;
 * runs need some of it to be read.  With three quarters, a tuplesort of more rows than that merges
 * more runs, some of them once more.  Processor time, relative to PostgreSQL's: three quarters
 * 1.10, all 0.95 to 0.97 (200,000 rows of 120 bytes by an int, work_mem = 256kB or 1MB; Intel Xeon,
 * PostgreSQL 15.20, 2026-11-27).  Peak, relative to work_mem: three quarters 0.88 to 1.10, all 1.00
 * to 1.20, since an engine takes less for most rows than a tuplesort.
 *
 * An engine that has sorted frees no memory meanwhile: then the tuplesort gets what is left,
 * and at least a quarter.  If the system has no more memory, it gets little,
 * because the first batches that the engine frees are small.
 */
static int
fallback_memory_kb(const GsStore *store, GsStatus status)
{
	const GsEngineStats *stats = gs_engine_stats(store->engine);
	const int	limit_kb = store->memory_limit / 1024;

	if (status == GS_STATUS_OOM)
		return Min(stats->peak_bytes / 1024, limit_kb) / 32;
	if (stats->method == GS_METHOD_NONE)
		return store->runs == NULL ? limit_kb : limit_kb - limit_kb / 4;
	return Max(limit_kb - (int) Min(stats->peak_bytes / 1024, limit_kb), limit_kb / 4);
}

bool
gs_store_fall_back(GsStore *store, GsStatus status, const char *reason)
{
	bool		moved;

	gs_store_begin_fallback(store, fallback_memory_kb(store, status), status, reason);
	status = drain(store->engine, move_row, store, &moved);
	for (uint64 i = 0; i < store->nnulls && status == GS_STATUS_OK; i++)
		(void) move_row(store, NULL);
	ExecClearTuple(store->spec->slot);
	if (status != GS_STATUS_OK)
		return false;
	gs_device_close(store->engine);
	store->engine = NULL;
	if (store->runs != NULL)
		move_runs(store);
	return true;
}

bool
gs_store_renew_engine(GsStore *store, GsTakeRow take, void *arg)
{
	GsEngine   *from = store->engine;
	GsStatus	status;
	bool		taken;

	/* the rows that the LIMIT has kept must not be dropped as equal to the last of them */
	gs_topn_forget_cutoff(&store->top);
	/* a device's rows may be many; they stay in this process now */
	store->may_use_device &= !from->on_device;
	store->batch = NULL;
	gs_store_open_engine(store);
	if (store->engine == NULL)
	{
		store->engine = from;
		return gs_store_fall_back(store, GS_STATUS_OOM, "out of memory");
	}
	status = drain(from, take, arg, &taken);
	if (status != GS_STATUS_OK)
	{
		if (store->engine != NULL)	/* a fallback closes it */
			gs_engine_close(store->engine);
		store->engine = from;
		return false;
	}
	gs_device_close(from);
	return taken;
}
