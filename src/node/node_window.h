/*-------------------------------------------------------------------------
 *
 * node_window.h
 *	  Window functions that a GpuSort by ranges computes: row_number(), and lag() of columns.
 *
 * Their values are parameters (PARAM_EXEC) of the expressions of the node.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_NODE_WINDOW_H
#define GPUSORT_NODE_WINDOW_H

#include "nodes/execnodes.h"
#include "nodes/plannodes.h"

/*
 * Window functions in a plan: the parameter that is row_number(), or -1; then, for each lag(), the
 * number of the column and the parameter.
 */
enum
{
	GS_WINDOW_ROW_NUMBER,
	GS_WINDOW_LAGS
};

typedef struct GsNodeWindow GsNodeWindow;

/* Has a node compute its target list and its qual from rows of this form, which are in *slot. */
extern GsNodeWindow *gs_node_window_begin(ScanState *node, const List *functions, TupleDesc desc,
										  TupleTableSlot **slot);

/* Before the next row is in the slot: keeps the values that it will need. */
extern void gs_node_window_keep(GsNodeWindow *window);

/*
 * The columns of the row in the slot, which is the `number`th of its group, from 1; NULL: the qual
 * is false.
 */
extern TupleTableSlot *gs_node_window_compute(GsNodeWindow *window, int64 number);

#endif							/* GPUSORT_NODE_WINDOW_H */
