/*-------------------------------------------------------------------------
 *
 * plan_replace.c
 *	  Decides whether a sort is replaced by a GpuSort.
 *
 * This is asked twice: when the planner compares paths (plan_path.c), and when its plan is
 * rewritten (plan_rewrite.c).  The answers must agree, or a plan would be chosen for a GpuSort
 * that is then not made.  Therefore both use the settings of the first time: a hint may change
 * settings while a query is planned and restore them before its plan is rewritten.
 *
 * Whether a GpuSort then uses the GPU is decided at execution time (store_device_choice.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "guc.h"
#include "plan/plan.h"

#include "utils/lsyscache.h"

/*
 * The least rows if the first column is passed by value and only compared, for which PostgreSQL
 * need not find values in rows.  PostgreSQL's time divided by gpusort's, by a comparison function
 * in C whose order can be guessed (engine/tie_sort.c), and by another one: 0.87 and 0.85 with
 * 1,000 rows, 1.3 and 1.04 with 3,000; 1.13 for the other one with 10,000 (Zen 5, busy,
 * PostgreSQL 15.20, 2026-11-24).
 */
#define COMPARED_ROWS	10000

/*
 * The least rows of a group; of text whose keys a collation makes.  With smaller groups,
 * PostgreSQL compares little but the columns by which the rows arrive in order.  ORDER BY of
 * 1 M rows from an index scan, PostgreSQL and batches, by two bigints, groups of 1 and 2 rows:
 * 153 and 160 ms, 264 and 216 ms; by a bigint and a libc text, groups of 5 and 10: 396 and
 * 410 ms, 432 and 315 ms (Zen 5, busy, PostgreSQL 15.20, 2026-11-24).
 */
#define LEAST_GROUP_ROWS	1.5
#define LEAST_GROUP_ROWS_COLLATED	9

GsReplaceSettings
gs_replace_settings(void)
{
	return (GsReplaceSettings) {
		.enabled = gpusort_enabled,
			.force = gpusort_force,
			.debug_plan = gpusort_debug_plan,
			.min_rows = gpusort_min_rows,
			.libc_collations = gpusort_libc_collations
	};
}

char *
gs_plan_replace_why_not(const GsReplaceSettings *settings, const GsSortColumn *columns,
						int ncolumns, double nrows, const GsPlanLimit *bound)
{
	char	   *why_not;

	if (gs_plan_replace_is_small(settings, nrows))
		return psprintf("the estimated number of rows, %.0f, is less than gpusort.min_rows (%d)",
						nrows, settings->min_rows);
	if (!gs_key_columns_can_encode(columns, ncolumns, &why_not))
		return why_not;
	if (nrows < COMPARED_ROWS && !settings->force && get_typbyval(columns[0].type) &&
		gs_key_columns_traits(columns, 1).compared)
		return psprintf("the estimated number of rows, %.0f, is too small for a column "
						"that is passed by value and only compared", nrows);
	if (settings->libc_collations == GS_LIBC_OFF &&
		(why_not = gs_key_columns_libc_off(columns, ncolumns)) != NULL)
		return why_not;
	if (bound->bounded && !bound->computable)
		return "the LIMIT cannot be computed at execution time";
	return NULL;
}

char *
gs_plan_replace_why_not_groups(const GsReplaceSettings *settings, const GsSortColumn *columns,
							   int ncolumns, int npresorted, double group_rows,
							   const GsPlanLimit *bound)
{
	GsKeyTraits traits;

	if (bound->bounded)
		return "an incremental sort below a LIMIT";
	if (settings->force)
		return NULL;
	if (bound->may_stop)
		return "an incremental sort of which only the first rows may be needed";
	traits = gs_key_columns_traits(columns, ncolumns);
	/* the groups are better compared one by one */
	if (traits.leave_ties)
		return "an incremental sort by columns that are only compared";
	/*
	 * PostgreSQL compares these only for equality: by a libc text, in groups of 1,000, and a
	 * bigint, it takes 386 ms, and batches 468 (as above)
	 */
	if (!gs_key_columns_traits(columns + npresorted, ncolumns - npresorted).collated &&
		gs_key_columns_are_approximate(columns, npresorted))
		return "an incremental sort of which only the presorted columns need verification";
	if (group_rows < (traits.collated ? LEAST_GROUP_ROWS_COLLATED : LEAST_GROUP_ROWS))
		return psprintf("an incremental sort of small groups, of %.0f rows by the estimate",
						group_rows);
	return NULL;
}
