/*-------------------------------------------------------------------------
 *
 * plan_choice.h
 *	  Decides whether a sort is replaced by a GpuSort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PLAN_CHOICE_H
#define GPUSORT_PLAN_CHOICE_H

#include "key/key_columns.h"
#include "plan/plan_limit.h"

/* The settings that the decision depends on. */
typedef struct GsChoiceSettings
{
	bool		enabled;
	bool		force;
	bool		debug_plan;
	int			min_rows;
	int			libc_collations;	/* a GsLibcChoice */
} GsChoiceSettings;

/* Their current values. */
extern GsChoiceSettings gs_choice_settings(void);

/* Is a sort of this many estimated rows left to PostgreSQL in any case? */
static inline bool
gs_plan_choice_is_small(const GsChoiceSettings *settings, double nrows)
{
	return nrows < settings->min_rows && !settings->force;
}

/*
 * Returns NULL if the sort is replaced, else the reason, a phrase that starts
 * in lower case.
 */
extern char *gs_plan_choice_why_not(const GsChoiceSettings *settings,
									const GsSortColumn *columns, int ncolumns,
									double nrows, const GsPlanLimit *bound);

/*
 * For a sort of rows that arrive in the order of the first npresorted columns, in groups of about
 * group_rows rows: returns NULL if it is replaced, else the reason, a phrase that starts in lower
 * case.  Only if gs_plan_choice_why_not() returns NULL.
 */
extern char *gs_plan_choice_why_not_groups(const GsChoiceSettings *settings,
										   const GsSortColumn *columns, int ncolumns,
										   int npresorted, double group_rows,
										   const GsPlanLimit *bound);

#endif							/* GPUSORT_PLAN_CHOICE_H */
