/*-------------------------------------------------------------------------
 *
 * sort_tuplesort.h
 *	  PostgreSQL's own sort, for what no engine can take.
 *
 * An input that outgrows the engine's memory, a value without a code, a
 * cached plan executed after gpusort was switched off: the rows go to a
 * tuplesort, all of them and in input order, and the node hands out what that
 * returns.  The results and the limits (work_mem, temp_file_limit) are then
 * PostgreSQL's.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_TUPLESORT_H
#define GPUSORT_SORT_TUPLESORT_H

#include "executor/tuptable.h"
#include "utils/tuplesort.h"

#include "key/key_columns.h"

typedef struct GsFallbackSort
{
	Tuplesortstate *state;
	bool		datum_sort;		/* the one column is by value: no tuples */
} GsFallbackSort;

/*
 * Begins a sort of rows of the given type within memory_kb, in the current
 * memory context.  No more than the first `bound` rows will be asked for.
 */
extern void gs_fallback_begin(GsFallbackSort *fallback, const GsSortColumn *columns,
						   int ncolumns, TupleDesc desc, int memory_kb,
						   int64 bound, bool random_access);

/* Adds the slot's row. */
extern void gs_fallback_put(GsFallbackSort *fallback, TupleTableSlot *slot);

/* Sorts. */
extern void gs_fallback_perform(GsFallbackSort *fallback);

/* Puts the next row in the given direction into the minimal-tuple slot, or clears it. */
extern void gs_fallback_get(GsFallbackSort *fallback, bool forward, TupleTableSlot *slot);

extern void gs_fallback_end(GsFallbackSort *fallback);

#endif							/* GPUSORT_SORT_TUPLESORT_H */
