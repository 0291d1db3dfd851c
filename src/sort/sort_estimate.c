/*-------------------------------------------------------------------------
 *
 * sort_estimate.c
 *	  What is known of a sort before it has read its rows.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sort/sort_estimate.h"
#include "sort_parts/sort_device.h"

#include "access/htup_details.h"

double
gs_sort_row_bytes(const GsSortState *state)
{
	const GsKeyLayout *layout = gs_key_encoder_layout(state->input.key);
	double		row_bytes = gs_record_bytes(layout);

	if (!layout->keys_only)
		row_bytes += MAXALIGN(SizeofMinimalTupleHeader) + MAXALIGN(state->spec.expected_width);
	return row_bytes;
}

bool
gs_sort_returns_in_turn(const GsSortState *state)
{
	const GsSortSpec *spec = &state->spec;

	return spec->child != NULL && !spec->may_share && !spec->random_access &&
		spec->desc->natts > 1 && state->input.top.bound == GS_UNBOUNDED;
}

bool
gs_sort_device_is_likely(const GsSortState *state)
{
	const GsSortSpec *spec = &state->spec;

	return state->input.may_use_device && gs_device_is_likely(spec->expected_rows) &&
		(gs_sort_returns_in_turn(state) ? !gs_key_columns_are_compared(spec->columns, spec->ncolumns) :
		 !gs_key_columns_leave_ties(spec->columns, spec->ncolumns));
}
