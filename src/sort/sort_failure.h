/*-------------------------------------------------------------------------
 *
 * sort_failure.h
 *	  Reports that an engine has failed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_FAILURE_H
#define GPUSORT_SORT_FAILURE_H

#include "sort/sort_state.h"

/* The engine failed and has lost the rows: raises the ERROR; or only logs it, as they come again. */
extern void gs_sort_report_failure(const GsSortState *state) __attribute__((noreturn));
extern void gs_sort_log_failure(const GsSortState *state);

/* There is no memory for rows that have to be in memory: raises the ERROR. */
extern void gs_sort_report_no_memory(void) __attribute__((noreturn));

#endif							/* GPUSORT_SORT_FAILURE_H */
