/*-------------------------------------------------------------------------
 *
 * job_validate.c
 *	  Validates the key layout that a client sent.
 *
 * From a valid layout, gs_key_packing_init() creates a packing that stays within
 * its arrays, reads only the words of a record, shifts by less than 64 bits, and
 * yields no more bits than it states.  The statistics in a layout may contradict
 * the rows; then only their order is wrong.
 *
 *-------------------------------------------------------------------------
 */
#include "job/job.h"

/* Any other value of a bool is undefined behavior in C. */
static bool
bool_is_valid(const bool *value)
{
	return *(const unsigned char *) value <= 1;
}

static bool
field_is_valid(const GsKeyField *field, int nwords)
{
	if (field->word >= nwords || field->bits < 1 || field->bits > 64 ||
		field->shift + field->bits > 64)
		return false;
	switch (field->canonical)
	{
		case GS_CANONICAL_NONE:
			return true;
		case GS_CANONICAL_FLOAT4:
			return field->bits == 32;
		case GS_CANONICAL_FLOAT8:
			return field->bits == 64;
	}
	return false;
}

/* Are the statistics of a field consistent? */
static bool
statistics_are_valid(const GsKeyField *field)
{
	return field->min <= field->max && field->max <= gs_key_field_mask(field) &&
		(field->ever_set & ~gs_key_field_mask(field)) == 0 &&
		(field->always_set & ~field->ever_set) == 0;
}

static bool
column_is_valid(const GsKeyLayout *layout, const GsKeyColumn *column, int first_field)
{
	if (!bool_is_valid(&column->descending) || !bool_is_valid(&column->nulls_first) ||
		!bool_is_valid(&column->variable) || !bool_is_valid(&column->nul_free))
		return false;
	if (column->first_field != first_field || column->nfields < 1 ||
		first_field + column->nfields > layout->nfields ||
		column->nnulls > layout->nrows)
		return false;
	if (column->variable && (column->nfields != 1 || column->tail_word >= layout->nwords))
		return false;
	for (int i = 0; i < column->nfields; i++)
	{
		const GsKeyField *field = &layout->fields[first_field + i];

		if (!field_is_valid(field, layout->nwords))
			return false;

		/* there are no statistics if all values are NULL */
		if (column->nnulls < layout->nrows && !statistics_are_valid(field))
			return false;
	}
	return true;
}

bool
gs_job_layout_is_valid(const GsKeyLayout *layout, uint32_t nwords, bool keys_only)
{
	int			nfields = 0;

	if (!bool_is_valid(&layout->keys_only) || layout->keys_only != keys_only ||
		layout->ncolumns < 1 || layout->ncolumns > GS_MAX_COLUMNS ||
		layout->ndecisive != layout->ncolumns ||
		layout->nfields < 1 || layout->nfields > GS_MAX_FIELDS ||
		layout->nwords < 1 || layout->nwords > GS_MAX_FIELDS + GS_MAX_COLUMNS ||
		(uint32_t) layout->nwords != nwords)
		return false;
	for (int i = 0; i < layout->ncolumns; i++)
	{
		if (!column_is_valid(layout, &layout->columns[i], nfields))
			return false;
		nfields += layout->columns[i].nfields;
	}
	if (nfields != layout->nfields)
		return false;

	/* a record of a keys-only job has no NULL bits and no tail */
	return !keys_only || (layout->ncolumns == 1 && layout->nfields == 1 && layout->nwords == 1 &&
						  !layout->columns[0].variable && layout->columns[0].nnulls == 0);
}
