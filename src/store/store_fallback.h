/*-------------------------------------------------------------------------
 *
 * store_fallback.h
 *	  Falls back to PostgreSQL's tuplesort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_STORE_FALLBACK_H
#define GPUSORT_STORE_FALLBACK_H

#include "store/store.h"

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

#endif							/* GPUSORT_STORE_FALLBACK_H */
