/*-------------------------------------------------------------------------
 *
 * store.h
 *	  The rows of a sort: where they are, and how they get from one place to another.
 *
 * Where they are (GsStorePhase):
 *
 *			read		 more rows			memory was full
 *	  IDLE ------> FEW ------------> ENGINE ----------------> RUNS
 *	   ^ |							 ^ | |	 cannot continue
 *	   | +---------------------------+ | +------------------> FALLBACK
 *	   |		   restart			   |
 *	   +-------------------------------+
 *
 * An engine that is full writes its rows as a run, and takes the following ones.
 * Restart: a device failed before a row was returned, and the child runs again.
 * FALLBACK follows IDLE or FEW if no engine can sort.  A rescan leads back to
 * IDLE from every phase.
 *
 * All memory of a sort is in its context.  ERROR, cancel and the end of the query need no other
 * cleanup: files belong to the resource owner, and a callback of the context closes the connection
 * to gpusortd.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_STORE_H
#define GPUSORT_STORE_H

#include "engine/engine.h"
#include "order/order.h"
#include "run/run_set.h"
#include "stats/stats.h"
#include "store/sort_spec.h"
#include "store/store_few.h"
#include "store/store_topn.h"

#include "utils/tuplesort.h"

/* Where the rows are: see above. */
typedef enum GsStorePhase
{
	GS_STORE_IDLE,				/* nowhere: none was read yet */
	GS_STORE_FEW,				/* in few */
	GS_STORE_ENGINE,			/* in engine, earlier ones in runs */
	GS_STORE_RUNS,				/* in runs, being merged */
	GS_STORE_FALLBACK			/* in fallback */
} GsStorePhase;

/* Rows fetched from an engine at a time. */
#define GS_STORE_WINDOW	8

/* What participants of a parallel plan do with the rows of a full store. */
typedef struct GsStorePolicy
{
	bool		gives_rows;		/* to another process, which sorts them: those that a device has */
	bool		merged_elsewhere;	/* someone else merges the runs, or adds those of others before
									 * the merge */

	/*
	 * Called before the rows become a run.  True: they are another process's now, and *status
	 * counts.  May be NULL.
	 */
	bool		(*end_input) (void *arg, Size row_bytes, GsStatus *status);
	void	   *arg;			/* of this, and of spec.write_tied */
} GsStorePolicy;

/* Others may read it; only the files of src/store/ change it (scripts/check-includes). */
typedef struct GsStore
{
	const GsSortSpec *spec;
	MemoryContext context;		/* of all that it refers to; NULL before the first sort */
	GsStorePhase phase;
	GsOrder		order;
	GsStorePolicy policy;

	/* memory */
	Size		memory_limit;	/* for rows, keys, and the sort itself */
	Size		merge_limit;	/* for a merge of runs, while rows are returned */

	/* where the rows are */
	GsFew	   *few;			/* in spec.parent_context, kept for the next sort */
	GsEngine   *engine;			/* in RUNS: its rows are one of the runs; NULL: none is */
	GsBatch    *batch;			/* of the engine, being filled; NULL: none */
	GsRunSet   *runs;			/* NULL: none */
	Tuplesortstate *fallback;	/* PostgreSQL's sort */
	bool		sorts_datums;	/* of one column, passed by value: without tuples, as in a Sort */
	const char *fallback_reason;
	GsStatus	space_status;	/* why there is no space for a row; OK: there is */
	GsTopN		top;

	/* the device */
	bool		may_use_device; /* rows may move there from the CPU engine */
	const char *device_reason;	/* why they did not; NULL: not tried */

	uint64		nread;			/* rows that came in */
	uint64		ndropped;		/* of these, that became no run: spec.group_limit */
	uint64		nnulls;			/* keys_only: NULLs, which are counted, not stored */

	/* rows are returned */
	uint64		nrows;			/* without those that top-N has dropped */
	uint64		nordered;		/* tied rows that comparisons have ordered, in runs and of those
								 * that a device left */
	int64		position;		/* of the row last returned, from 0; -1 before the
								 * first, nrows after the last */
	int64		mark;			/* a position */
	bool		partial;		/* a range of the rows, which the caller verifies */
	GsOrder    *groups;			/* of the columns of groups; NULL: not compared yet */
	int64		window_start;	/* position of window[0] */
	int			window_rows;	/* 0: the window is empty */
	const void *window[GS_STORE_WINDOW];
} GsStore;

/*
 * Begins the store of a sort, which is IDLE.  May be called again after clear; zeroed memory at
 * first.
 */
extern void gs_store_begin(GsStore *store, const GsSortSpec *spec, Size memory_limit,
						   bool may_use_device);

/* Frees what it holds; IDLE again. */
extern void gs_store_clear(GsStore *store);

/* How participants of a parallel plan treat the rows from now on. */
extern void gs_store_set_policy(GsStore *store, const GsStorePolicy *policy);

/* No row moves to a device from now on.  The reason is for EXPLAIN; NULL: as it was. */
extern void gs_store_forbid_device(GsStore *store, const char *reason);

/*
 * The first rows are kept without an engine: gs_store_put_few() is called for each as long as it
 * is true.
 */
extern void gs_store_begin_few(GsStore *store);

static inline bool
gs_store_put_few(GsStore *store, TupleTableSlot *slot)
{
	const bool	kept = gs_few_put(store->few, slot);

	store->nread += kept;
	return kept;
}

/* Those that were kept come in again. */
extern void gs_store_recount(GsStore *store);

/* Another engine takes the place of that of the store; the CPU engine opens in store_space.h. */
extern void gs_store_set_engine(GsStore *store, GsEngine *engine);

/* The engine, which is open, gets the rows from now on. */
extern void gs_store_begin_engine(GsStore *store);

/* Counts a row that comes in; returns how many did. */
static inline uint64
gs_store_count_row(GsStore *store)
{
	return ++store->nread;
}

/* The rows that came in and may be returned. */
static inline uint64
gs_store_nneeded(const GsStore *store)
{
	return store->nread - store->ndropped;
}

/* A NULL of keys only, which is not stored. */
static inline void
gs_store_put_null(GsStore *store)
{
	store->nnulls++;
}

/* Rows were pushed to a copy of the batch, and come in now. */
static inline void
gs_store_set_batch(GsStore *store, const GsBatch *batch)
{
	store->nread += batch->nrows - store->batch->nrows;
	*store->batch = *batch;
}

/* Rows, and all NULLs, are another process's now.  Or other processes' are of this store. */
extern void gs_store_give_rows(GsStore *store, uint64 nrows);
extern void gs_store_take_rows(GsStore *store, uint64 nrows, uint64 nnulls, uint64 bytes_up);

/* Comparisons have ordered so many tied rows. */
static inline void
gs_store_count_ordered(GsStore *store, uint64 nrows)
{
	store->nordered += nrows;
}

/* Are the rows, or the last of them, in the memory of a device? */
static inline bool
gs_store_is_on_device(const GsStore *store)
{
	return store->phase == GS_STORE_ENGINE && store->engine->on_device;
}

/* ------------------------------------------------------- before rows are read */

/* Bytes of a row and its key record, as estimated. */
extern double gs_store_row_bytes(const GsStore *store);

/*
 * Does a node return all rows of this process by gs_sort_next(), forward?  Nobody else reads the
 * rows of the engine, and each has more than a value.
 */
extern bool gs_store_returns_in_turn(const GsStore *store);

/* Will the rows probably move to a device?  It compares nothing but keys, so these must be full. */
extern bool gs_store_device_is_likely(const GsStore *store);

/*
 * May a device sort by the columns before the first one that is compared?  Then rows that are equal
 * in these columns are ordered as they are returned (sort/sort_device_ties.c).
 */
extern bool gs_store_may_order_ties(const GsStore *store);

/* --------------------------------------------------------------------- order */

/* Rows get these keys from now on. */
extern void gs_store_use_keys(GsStore *store, GsKeyEncoder *key);

/* Rows with equal keys are compared from now on, because a key was truncated. */
extern void gs_store_compare_ties(GsStore *store);

/* The bytes of memory that a sort should leave for copies of values that are compared. */
extern Size gs_store_compared_bytes(const GsStore *store);

/* Sorts the engine's rows: gs_engine_sort(). */
extern GsStatus gs_store_sort(GsStore *store);

/* Verifies the order that the engine found: gs_order_verify(). */
extern GsStatus gs_store_verify(GsStore *store);

/* ------------------------------------------------------------------ failures */

/*
 * The engine failed and has lost the rows: raises the ERROR; or only logs it, as they come again.
 */
extern void gs_store_report_failure(const GsStore *store) __attribute__((noreturn));
extern void gs_store_log_failure(const GsStore *store);

/* There is no memory for rows that have to be in memory: raises the ERROR. */
extern void gs_store_report_no_memory(void) __attribute__((noreturn));

#endif							/* GPUSORT_STORE_H */
