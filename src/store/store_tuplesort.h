/*-------------------------------------------------------------------------
 *
 * store_tuplesort.h
 *	  PostgreSQL's tuplesort, for rows that no engine can sort.
 *
 * All rows go to it, in input order.  The results and the limits (work_mem,
 * temp_file_limit) are then those of PostgreSQL.  The legal calls, in order:
 *
 *	  begin { put } perform { get } end
 *
 * After an ERROR, memory contexts and the resource owner do what end does.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_STORE_TUPLESORT_H
#define GPUSORT_STORE_TUPLESORT_H

#include "executor/tuptable.h"
#include "utils/tuplesort.h"

#include "key/key_columns.h"

typedef struct GsTuplesort
{
	Tuplesortstate *state;
	bool		datum_sort;		/* one column, passed by value: no tuples */
} GsTuplesort;

/*
 * Begins a sort of rows of type desc with memory_kb, in the current memory
 * context.  No more than the first `bound` rows are read; GS_UNBOUNDED: all.
 */
extern void gs_tuplesort_begin(GsTuplesort *fallback, const GsSortColumn *columns,
						   int ncolumns, TupleDesc desc, int memory_kb,
						   int64 bound, bool random_access);

/* Adds the slot's row. */
extern void gs_tuplesort_put(GsTuplesort *fallback, TupleTableSlot *slot);

/* Sorts. */
extern void gs_tuplesort_perform(GsTuplesort *fallback);

/* Puts the next row in the given direction into the minimal-tuple slot, or clears it. */
extern void gs_tuplesort_get(GsTuplesort *fallback, bool forward, TupleTableSlot *slot);

extern void gs_tuplesort_end(GsTuplesort *fallback);

#endif							/* GPUSORT_STORE_TUPLESORT_H */
