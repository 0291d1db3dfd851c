/*-------------------------------------------------------------------------
 *
 * sort_choice.h
 *	  Which sorts are gpusort's.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_CHOICE_H
#define GPUSORT_SORT_CHOICE_H

#include "sort_bound.h"
#include "sort_cost.h"
#include "sort_key.h"

/*
 * NULL if the sort is gpusort's, else why it is not, for people.  The estimate
 * lacks nothing but the bound, which is filled in.
 */
extern char *gs_sort_choice_reason_not(const GsSortColumn *columns, const GsBound *bound,
									   GsSortEstimate *estimate);

/* Would a device sort so many rows? */
extern bool gs_sort_choice_is_for_device(const GsSortEstimate *estimate,
										 const char **why_not);

#endif							/* GPUSORT_SORT_CHOICE_H */
