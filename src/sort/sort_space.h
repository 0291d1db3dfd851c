/*-------------------------------------------------------------------------
 *
 * sort_space.h
 *	  Space for the next row: in the CPU engine, on a device, or freed by a run.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_SPACE_H
#define GPUSORT_SORT_SPACE_H

#include "sort/sort_state.h"

/* The request for an engine that opens now, and how much memory it may take. */
extern GsEngineRequest gs_sort_make_request(GsSortState *state);
extern Size gs_sort_engine_limit(const GsSortState *state);

/* Opens the CPU engine; input.engine is NULL if there is no memory for it. */
extern void gs_sort_open_engine(GsSortState *state);

/*
 * Begins a batch with space for a row of row_bytes, in input.batch: in the CPU engine, on a device, or
 * after the rows so far were written as a run.  Returns NULL, or the reason why there is no space.
 */
extern const char *gs_sort_begin_batch(GsSortState *state, Size row_bytes);

/* Like gs_sort_begin_batch(), but does not ask first whether a device is faster. */
extern GsStatus gs_sort_reserve(GsSortState *state, Size row_bytes);

/* Moves the rows to a device if that pays; all_read: no more rows follow. */
extern void gs_sort_consider_device(GsSortState *state, bool all_read);

/* Will the rows probably move to a device?  It compares nothing but keys, so these must be full. */
extern bool gs_sort_device_is_likely(const GsSortState *state);

/* Why a status is not OK, for EXPLAIN. */
extern const char *gs_sort_status_reason(const GsSortInput *input, GsStatus status);

/* Bytes of a row and its key record, as estimated. */
extern double gs_sort_row_bytes(const GsSortState *state);

#endif							/* GPUSORT_SORT_SPACE_H */
