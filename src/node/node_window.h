/*-------------------------------------------------------------------------
 *
 * node_window.h
 *	  Window functions that a GpuSort by ranges computes: row_number(), and lag() of columns.
 *
 * Their values are columns after those of the sorted rows, to which the expressions of the node
 * refer.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_NODE_WINDOW_H
#define GPUSORT_NODE_WINDOW_H

#include "nodes/execnodes.h"
#include "nodes/pg_list.h"

/* In a plan, a list of integers, one for each function: that of the column of a lag(), or this. */
#define GS_WINDOW_ROW_NUMBER	0

typedef struct GsNodeWindow GsNodeWindow;

/* Has a node compute its target list and its qual from rows and these functions. */
extern GsNodeWindow *gs_node_window_begin(ScanState *node, const List *functions);

/* Before the memory of the last row is reused: keeps the values that the next row needs. */
extern void gs_node_window_keep(GsNodeWindow *window);

/*
 * What is computed from a row, which is the `number`th of its group, from 1; NULL: the qual is
 * false.
 */
extern TupleTableSlot *gs_node_window_compute(GsNodeWindow *window, TupleTableSlot *row,
											  int64 number);

/* There is no last row any more. */
extern void gs_node_window_restart(GsNodeWindow *window);

#endif							/* GPUSORT_NODE_WINDOW_H */
