/*-------------------------------------------------------------------------
 *
 * sort_group_rows.h
 *	  Which rows of each group a GpuSort by ranges returns.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_GROUP_ROWS_H
#define GPUSORT_SORT_GROUP_ROWS_H

#include "sort/sort_state.h"

/* The next row of this participant; NULL: there is none.  Valid until the next call. */
typedef const void *(*GsNextRow) (GsSortState *state);

/* The next of these that is needed, by spec.group_limit. */
extern const void *gs_sort_group_rows_next(GsSortState *state, GsNextRow next_row);

#endif							/* GPUSORT_SORT_GROUP_ROWS_H */
