/*-------------------------------------------------------------------------
 *
 * store_few.h
 *	  Sorts few rows by comparisons, without keys and without an engine.
 *
 * The legal calls, in order, any number of times:
 *
 *	  few := { put } [ sort ] { get } clear
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_STORE_FEW_H
#define GPUSORT_STORE_FEW_H

#include "access/tupdesc.h"
#include "executor/tuptable.h"

#include "key/key_columns.h"

typedef struct GsFew GsFew;

/*
 * In the current memory context, with all memory that it needs.  columns and desc must live as
 * long.
 */
extern GsFew *gs_few_create(const GsSortColumn *columns, int ncolumns, TupleDesc desc);

/* Stores the slot's row.  False: there is no space. */
extern bool gs_few_put(GsFew *few, TupleTableSlot *slot);

/*
 * Sorts the rows; the sort is stable.  False: an engine is better, because a value must be fetched;
 * the rows are as before.  Comparators run in the current memory context, may leave memory there,
 * and may raise errors.
 */
extern bool gs_few_sort(GsFew *few);

extern int	gs_few_count(const GsFew *few);

/*
 * Stores a row in a minimal-tuple slot, by its position in the order or, before the sort, in the
 * input, from 0.  It is valid until clear.
 */
extern void gs_few_get(const GsFew *few, int position, TupleTableSlot *slot);

/* A row by its position; NULL if it has one column, passed by value. */
extern MinimalTuple gs_few_row(const GsFew *few, int position);

/* Bytes that the rows take. */
extern Size gs_few_bytes(const GsFew *few);

/* Removes the rows, and keeps the memory. */
extern void gs_few_clear(GsFew *few);

#endif							/* GPUSORT_STORE_FEW_H */
