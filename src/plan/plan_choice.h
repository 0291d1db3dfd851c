/*-------------------------------------------------------------------------
 *
 * plan_choice.h
 *	  Which sorts are gpusort's.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PLAN_CHOICE_H
#define GPUSORT_PLAN_CHOICE_H

#include "plan/plan_limit.h"
#include "key/key_columns.h"

/* The settings that decide. */
typedef struct GsChoiceSettings
{
	bool		enabled;
	bool		force;
	bool		debug_plan;
	int			min_rows;
	int			libc_collations;	/* a GsLibcChoice */
} GsChoiceSettings;

/* As they are now. */
extern GsChoiceSettings gs_choice_settings(void);

/* NULL if the sort is gpusort's, else why it is not, for people. */
extern char *gs_plan_choice_reason_not(const GsChoiceSettings *settings,
									   const GsSortColumn *columns, int ncolumns,
									   double nrows, const GsLimit *bound);

#endif							/* GPUSORT_PLAN_CHOICE_H */
