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

/* The number of the row that was returned last in its group, from 1, if spec.numbers_rows. */
extern int64 gs_sort_group_rows_number(const GsSortState *state);

#endif							/* GPUSORT_SORT_GROUP_ROWS_H */
