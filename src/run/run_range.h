/*-------------------------------------------------------------------------
 *
 * run_range.h
 *	  Divides sorted runs into ranges of rows, for several processes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RUN_RANGE_H
#define GPUSORT_RUN_RANGE_H

#include "run/run_set.h"

/*
 * Returns, in palloc'd memory, where a range begins in each run; and in *end what
 * gs_run_set_begin_range() does.  NULL: the runs cannot be divided.  All runs are complete.
 */
extern uint64 *gs_run_range_find(GsRunSet *set, int range, int nranges, MinimalTuple *end);

#endif							/* GPUSORT_RUN_RANGE_H */
