/*-------------------------------------------------------------------------
 *
 * index_sample.h
 *	  Does a table have its rows in the order of an index to be built?
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INDEX_SAMPLE_H
#define GPUSORT_INDEX_SAMPLE_H

#include "nodes/execnodes.h"

/*
 * Reads a few blocks of a heap, the first of them only where rows are in no order.  An
 * answer that is wrong costs time, nothing else.
 */
extern bool gs_index_sample_in_order(Relation heap, Relation index, IndexInfo *info);

#endif							/* GPUSORT_INDEX_SAMPLE_H */
