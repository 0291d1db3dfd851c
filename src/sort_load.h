/*-------------------------------------------------------------------------
 *
 * sort_load.h
 *	  Reads a GpuSort's child to its end and sorts the rows.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_LOAD_H
#define GPUSORT_SORT_LOAD_H

#include "sort_state.h"

/* From IDLE to one of the other phases, positioned before the first row. */
extern void gs_sort_load(GsSortState *state);

/* Back to IDLE: frees what a sort holds; the node is as if it had never run. */
extern void gs_sort_forget(GsSortState *state);

/* ERROR: the engine failed, and has lost the rows. */
extern void gs_sort_report_failure(const GsSortState *state);

#endif							/* GPUSORT_SORT_LOAD_H */
