/*-------------------------------------------------------------------------
 *
 * sort_presorted.h
 *	  Rows that come in the order that is asked for.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_PRESORTED_H
#define GPUSORT_SORT_PRESORTED_H

#include "sort/sort_state.h"

/* May this sort count on it?  Not where it would drop rows by their keys. */
extern bool gs_presorted_pays(const GsSortState *state);

/* Opens an engine whose rows have no keys, and which keeps them as they come; NULL if out of memory. */
extern GsEngine *gs_presorted_open(const GsJob *job);

/*
 * Takes the slot's row into that engine.  False if it was not taken, being below the
 * one before, or since there is no room for it.
 */
extern bool gs_presorted_add(GsSortState *state, TupleTableSlot *slot, GsBatch **batch);

#endif							/* GPUSORT_SORT_PRESORTED_H */
