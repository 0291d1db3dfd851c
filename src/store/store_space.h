/*-------------------------------------------------------------------------
 *
 * store_space.h
 *	  Space for the next row: in the CPU engine, on a device, or freed by a run.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_STORE_SPACE_H
#define GPUSORT_STORE_SPACE_H

#include "store/store.h"

/*
 * What a backend lends to an engine: memory of the context, whose reset frees all that an engine
 * holds, also after an ERROR, with huge pages for large blocks; and CHECK_FOR_INTERRUPTS().
 */
extern void gs_store_runtime_init(GsRuntime *runtime, MemoryContext context);

/* The request for an engine that opens now. */
extern GsEngineRequest gs_store_make_request(GsStore *store);

/* Opens the CPU engine; store->engine is NULL if there is no memory for it. */
extern void gs_store_open_engine(GsStore *store);

/*
 * Begins a batch with space for a row of row_bytes, in store->batch: in the CPU engine, on a
 * device, or after the rows so far were written as a run.  NULL, or why there is no space.
 */
extern const char *gs_store_begin_batch(GsStore *store, Size row_bytes);

/* Moves the rows to a device if that pays; all_read: no more rows follow. */
extern void gs_store_consider_device(GsStore *store, bool all_read);

/* Why a status is not OK, for EXPLAIN. */
extern const char *gs_store_status_reason(const GsStore *store, GsStatus status);

/* ------------------------------------------------------------------------- runs */

/* May the rows become a run? */
extern bool gs_store_may_write_run(const GsStore *store);

/*
 * Writes the engine's rows as a run, or leaves a producer's to the consumer; an empty CPU engine,
 * which allows a row of row_bytes, replaces it.  FULL or DISPROVED: the rows are still in the
 * engine, and cannot become a run.
 */
extern GsStatus gs_store_write_run(GsStore *store, Size row_bytes);

/*
 * An empty CPU engine, which allows a row of row_bytes, replaces the engine, whose rows are in a
 * run, in another participant's sort or, if `unsorted`, still in the device, which has no memory to
 * sort them.  Copies the rows that are nowhere else.  OK or FAILED.
 */
extern GsStatus gs_store_replace_engine(GsStore *store, Size row_bytes, bool unsorted);

/* Ensures that there is a set of runs. */
extern void gs_store_begin_runs(GsStore *store);

/* Writes the rows that the engine has sorted as a run, if there are any. */
extern GsStatus gs_store_write_sorted(GsStore *store);

/*
 * Sorts the rows of the engine and writes them as a run.  FULL: a device has no memory to sort
 * them.
 */
extern GsStatus gs_store_append_run(GsStore *store);

#endif							/* GPUSORT_STORE_SPACE_H */
