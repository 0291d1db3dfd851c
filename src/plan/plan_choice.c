/*-------------------------------------------------------------------------
 *
 * plan_choice.c
 *	  Decides whether a sort is replaced by a GpuSort.
 *
 * This is asked twice: when the planner compares paths (plan_path.c), and when
 * its plan is rewritten (plan_rewrite.c).  The answers must agree, or a plan would
 * be chosen for a GpuSort that is then not made.  Therefore both use the settings
 * of the first time: a hint may change settings while a query is planned and
 * restore them before its plan is rewritten.
 *
 * A sort is left to PostgreSQL if
 *
 *	- it is too small to be faster, which is asked first: most sorts are;
 *	- its keys have no order-preserving code;
 *	- a LIMIT bounds it, by a value that the node cannot compute (plan_limit.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "guc.h"
#include "plan/plan_choice.h"

GsChoiceSettings
gs_choice_settings(void)
{
	return (GsChoiceSettings) {
		.enabled = gpusort_enabled,
			.force = gpusort_force,
			.debug_plan = gpusort_debug_plan,
			.min_rows = gpusort_min_rows,
			.libc_collations = gpusort_libc_collations
	};
}

char *
gs_plan_choice_why_not(const GsChoiceSettings *settings, const GsSortColumn *columns,
					   int ncolumns, double nrows, const GsPlanLimit *bound)
{
	char	   *why_not;

	if (gs_plan_choice_is_small(settings, nrows))
		return psprintf("the estimated number of rows, %.0f, is less than gpusort.min_rows (%d)",
						nrows, settings->min_rows);
	if (!gs_key_columns_can_encode(columns, ncolumns, &why_not))
		return why_not;
	if (settings->libc_collations == GS_LIBC_OFF &&
		(why_not = gs_key_columns_libc_off(columns, ncolumns)) != NULL)
		return why_not;
	if (bound->bounded && !bound->computable)
		return "the LIMIT cannot be computed at execution time";
	return NULL;
}
