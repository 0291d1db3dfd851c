/*-------------------------------------------------------------------------
 *
 * store_fallback.h
 *	  Moves all rows: to a new engine, or to PostgreSQL's tuplesort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_STORE_FALLBACK_H
#define GPUSORT_STORE_FALLBACK_H

#include "store/store.h"

/* Takes a row, which is valid during the call.  False: it cannot. */
typedef bool (*GsTakeRow) (void *arg, const void *row);

/*
 * A new CPU engine takes the place of the engine, whose rows are passed to take(), which adds them
 * again.  False: the engine failed and has lost them, or take() did.
 */
extern bool gs_store_renew_engine(GsStore *store, GsTakeRow take, void *arg);

/*
 * Begins a tuplesort, which gets all rows from now on.  EXPLAIN shows the reason.  The status is
 * that of the engine; OK: the keys are the reason.
 */
extern void gs_store_begin_fallback(GsStore *store, int memory_kb, GsStatus status,
									const char *reason);

/*
 * Begins a tuplesort as gs_store_begin_fallback() does, and moves all rows so far to it, those of
 * runs too.  None may have been returned.  False: the engine failed and has lost them.
 */
extern bool gs_store_fall_back(GsStore *store, GsStatus status, const char *reason);

/* Adds the slot's row to the tuplesort. */
extern void gs_store_put_fallback(GsStore *store, TupleTableSlot *slot);

/*
 * Puts the next row of the tuplesort, which has sorted, into the slot of a minimal tuple, or clears
 * the slot.
 */
extern void gs_store_get_fallback(GsStore *store, bool forward, TupleTableSlot *slot);

#endif							/* GPUSORT_STORE_FALLBACK_H */
