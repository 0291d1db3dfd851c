/*-------------------------------------------------------------------------
 *
 * sort_few.h
 *	  A sort of few rows: without keys and without an engine.
 *
 * The legal calls, in order, any number of times:
 *
 *	  few := { put } [ sort ] { get } clear
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_FEW_H
#define GPUSORT_SORT_FEW_H

#include "access/tupdesc.h"
#include "executor/tuptable.h"

#include "key/key_columns.h"

typedef struct GsFew GsFew;

/* In the current memory context, all of it.  The columns and the type must live as long. */
extern GsFew *gs_few_create(const GsSortColumn *columns, int ncolumns, TupleDesc desc);

/* Stores the slot's row behind the others; false: they are no longer few. */
extern bool gs_few_put(GsFew *few, TupleTableSlot *slot);

/*
 * Sorts the rows; equal ones stay as they came.  Comparators run in the current memory context, and
 * may leave memory there.  May ereport what they report.
 */
extern void gs_few_sort(GsFew *few);

extern int	gs_few_count(const GsFew *few);

/*
 * Puts one of the rows into a minimal-tuple slot, by its place in the order, or if they were not
 * sorted, as they came; from 0.  The slot's row is valid until clear.
 */
extern void gs_few_get(const GsFew *few, int place, TupleTableSlot *slot);

/* Bytes that the rows take. */
extern Size gs_few_bytes(const GsFew *few);

/* Forgets the rows, and keeps the memory for others. */
extern void gs_few_clear(GsFew *few);

#endif							/* GPUSORT_SORT_FEW_H */
