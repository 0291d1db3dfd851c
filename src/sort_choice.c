/*-------------------------------------------------------------------------
 *
 * sort_choice.c
 *	  Which sorts are gpusort's.
 *
 * Asked twice: when the planner weighs a path (sort_path.c), and when its plan
 * is rewritten (sort_plan.c).  The answers have to agree, or a plan would be
 * chosen for a GpuSort that then is none.
 *
 * A sort is PostgreSQL's when
 *
 *	- its keys have no order-preserving code;
 *	- a LIMIT above bounds it, by a value that the node cannot compute
 *	  (sort_bound.c), or keys alone do not order the rows;
 *	- it is too small to win.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "engine_choice.h"
#include "gpusort.h"
#include "service_client.h"
#include "sort_choice.h"

bool
gs_sort_choice_is_for_device(const GsSortEstimate *estimate, const char **why_not)
{
	*why_not = NULL;
	return gs_engine_device_pays((uint64) estimate->nrows) &&
		gs_service_client_is_usable(why_not);
}

char *
gs_sort_choice_reason_not(const GsSortColumn *columns, const GsBound *bound,
						  GsSortEstimate *estimate)
{
	char	   *why_not;

	estimate->key_bytes = gs_sort_key_collated_bytes(columns, estimate->ncolumns, estimate->width);
	estimate->bounded = bound->bounded;
	estimate->bound = bound->rows;
	if (!gs_sort_key_can_encode(columns, estimate->ncolumns, &why_not))
		return why_not;
	if (bound->bounded && !bound->computable)
		return "a LIMIT bounds it, by a value that is not known here";
	if (gpusort_force)
		return NULL;
	if (bound->bounded && !gs_sort_key_can_be_whole(columns, estimate->ncolumns))
		return "a LIMIT bounds it, and rows with equal keys have to be compared";
	if (estimate->nrows < gpusort_min_rows)
		return psprintf("%.0f rows are fewer than gpusort.min_rows = %d",
						estimate->nrows, gpusort_min_rows);
	return NULL;
}
