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
 *	- it is too small to be faster, which is asked first: most sorts are; with a first column
 *	  that is passed by value and only compared, more sorts are (COMPARED_ROWS);
 *	- its keys have no order-preserving code;
 *	- a LIMIT bounds it, by a value that the node cannot compute (plan_limit.c).
 *
 * An incremental sort is left to PostgreSQL also if
 *
 *	- a LIMIT, a cursor that is planned for its first rows, or a nested loop or a subquery that
 *	  looks for one row may end it early, because PostgreSQL reads smaller batches than
 *	  read_groups.c, and below a LIMIT keeps only the first rows of a large group;
 *	- columns are only compared: the groups are better compared one by one;
 *	- only columns by which the rows arrive in order have approximate keys: PostgreSQL
 *	  compares these only for equality.  By a libc text, in groups of 1000, and a bigint:
 *	  386 and 468 ms, in the units below;
 *	- its groups are small, so that PostgreSQL compares little but the columns by which
 *	  the rows arrive in order.
 *
 * Processor time of an ORDER BY of 1 M rows from an index scan, of PostgreSQL and of
 * batches, in ms, by the rows of a group:
 *
 *							1			2			3			5			10			1000
 *	 two bigints			153, 160	264, 216	305, 230	320, 205	238, 177	226, 179
 *	 bigint, libc text		154, 164	282, 400	321, 415	396, 410	432, 315	740, 350
 *
 * (Zen 5, 2 cores, busy, PostgreSQL 15.20, 2026-11-24.)
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "guc.h"
#include "plan/plan_choice.h"

#include "utils/lsyscache.h"

/*
 * The least rows if the first column is passed by value and only compared, for which PostgreSQL
 * need not find values in rows.  PostgreSQL's time divided by gpusort's, by a comparison function
 * in C whose order can be guessed (engine/guess_sort.c), and by another one (one query again and
 * again; Zen 5, busy, PostgreSQL 15.20, 2026-11-24):
 *
 *				1,000 rows		3,000			10,000
 *				0.87, 0.85		1.3, 1.04		1.13 for the other one
 */
#define COMPARED_ROWS	10000

/* The least rows of a group; of text whose keys a collation makes. */
#define LEAST_GROUP_ROWS	1.5
#define LEAST_GROUP_ROWS_COLLATED	9

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
	if (nrows < COMPARED_ROWS && !settings->force && get_typbyval(columns[0].type) &&
		gs_key_columns_are_compared(columns, ncolumns))
		return psprintf("the estimated number of rows, %.0f, is too small for a column that is passed by value and only compared",
						nrows);
	if (settings->libc_collations == GS_LIBC_OFF &&
		(why_not = gs_key_columns_libc_off(columns, ncolumns)) != NULL)
		return why_not;
	if (bound->bounded && !bound->computable)
		return "the LIMIT cannot be computed at execution time";
	return NULL;
}

char *
gs_plan_choice_why_not_groups(const GsChoiceSettings *settings, const GsSortColumn *columns,
							  int ncolumns, int npresorted, double group_rows,
							  const GsPlanLimit *bound)
{
	if (bound->bounded)
		return "an incremental sort below a LIMIT";
	if (settings->force)
		return NULL;
	if (bound->may_stop)
		return "an incremental sort of which only the first rows may be needed";
	if (gs_key_columns_leave_ties(columns, ncolumns))
		return "an incremental sort by columns that are only compared";
	if (gs_key_columns_are_approximate(columns, npresorted) &&
		!gs_key_columns_are_collated(columns + npresorted, ncolumns - npresorted))
		return "an incremental sort of which only the presorted columns need verification";
	if (group_rows < (gs_key_columns_are_collated(columns, ncolumns) ?
					  LEAST_GROUP_ROWS_COLLATED : LEAST_GROUP_ROWS))
		return psprintf("an incremental sort of small groups, of %.0f rows by the estimate",
						group_rows);
	return NULL;
}
