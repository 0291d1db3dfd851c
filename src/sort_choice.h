/*-------------------------------------------------------------------------
 *
 * sort_choice.h
 *	  Which sorts are gpusort's.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_CHOICE_H
#define GPUSORT_SORT_CHOICE_H

#include "plan_limit.h"
#include "sort_key.h"

/* NULL if the sort is gpusort's, else why it is not, for people. */
extern char *gs_sort_choice_reason_not(const GsSortColumn *columns, int ncolumns,
									   double nrows, const GsBound *bound);

#endif							/* GPUSORT_SORT_CHOICE_H */
