/*-------------------------------------------------------------------------
 *
 * store_estimate.c
 *	  What is known of a sort before it has read its rows.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "store/store_device.h"
#include "store/store_estimate.h"

#include "access/htup_details.h"

double
gs_store_row_bytes(const GsStore *store)
{
	const GsKeyLayout *layout = gs_key_encoder_layout(store->order.key);
	double		row_bytes = gs_record_bytes(layout);

	if (!layout->keys_only)
		row_bytes += MAXALIGN(SizeofMinimalTupleHeader) + MAXALIGN(store->spec->expected_width);
	return row_bytes;
}

bool
gs_store_returns_in_turn(const GsStore *store)
{
	const GsSortSpec *spec = store->spec;

	return spec->child != NULL && !spec->may_share && !spec->random_access &&
		spec->desc->natts > 1 && store->top.bound == GS_UNBOUNDED;
}

bool
gs_store_device_is_likely(const GsStore *store)
{
	const GsSortSpec *spec = store->spec;

	return store->may_use_device && gs_device_is_likely(spec->expected_rows) &&
		(gs_store_returns_in_turn(store) ?
		 !gs_key_columns_traits(spec->columns, 1).compared :
		 !gs_key_columns_traits(spec->columns, spec->ncolumns).leave_ties);
}
