/*-------------------------------------------------------------------------
 *
 * gin_tuples.h
 *	  Writes a GIN index from rows in order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GIN_TUPLES_H
#define GPUSORT_GIN_TUPLES_H

#include "build/build_sort.h"

/* GsBuildMethod.write(); checks for interrupts with each row. */
extern bool gs_gin_tuples_write(Relation heap, Relation index, const IndexInfo *info,
								GsBuildSort *sort, const GsBuildPart *part, uint64 *ntuples);

#endif							/* GPUSORT_GIN_TUPLES_H */
