/*-------------------------------------------------------------------------
 *
 * key_deform.c
 *	  Locates some columns of a tuple, and no others.
 *
 * A slot deforms all columns up to the last one that is needed.  For a sort key after eight other
 * columns that takes 24 ns a row, as long as the rest of the input (Xeon with an H200, 2026-11).
 * Here, only columns of variable width are visited on the way.  The distances from one of them to
 * the next, and to the columns wanted in between, are computed in advance.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key/key_deform.h"

StaticAssertDecl(MAXIMUM_ALIGNOF == 8, "offsets are precomputed for 8 residues");

/* Makes the segment that begins with attribute `first`; returns the first one after it. */
static int
make_segment(const GsDeform *deform, GsDeformSegment *segment, int first)
{
	int			i;

	segment->nwanted = 0;
	segment->wanted = palloc(sizeof(GsDeformWanted) * (deform->nattributes - first));
	for (int residue = 0; residue < MAXIMUM_ALIGNOF; residue++)
	{
		uint32		offset = residue;

		segment->nwanted = 0;
		for (i = first; i < deform->nattributes && deform->attributes[i].len > 0; i++)
		{
			const GsDeformAttribute *attribute = &deform->attributes[i];

			offset = gs_deform_align(offset, attribute->align_mask);
			if (attribute->column >= 0)
			{
				GsDeformWanted *wanted = &segment->wanted[segment->nwanted++];

				wanted->column = attribute->column;
				wanted->len = attribute->len;
				wanted->by_value = attribute->by_value;
				wanted->at[residue] = offset - residue;
			}
			offset += attribute->len;
		}
		segment->end[residue] = offset - residue;
	}
	segment->variable = &deform->attributes[i];
	segment->nvariable = 0;
	while (i < deform->nattributes && deform->attributes[i].len < 0)
	{
		segment->nvariable++;
		i++;
	}
	segment->is_last = i == deform->nattributes;
	return i;
}

GsDeform *
gs_deform_create(TupleDesc desc, const AttrNumber *attnos, int ncolumns)
{
	GsDeform   *deform = palloc0(sizeof(GsDeform));
	int			nsegments = 0;
	int			next = 0;

	deform->desc = desc;
	deform->attnos = palloc(sizeof(AttrNumber) * ncolumns);
	memcpy(deform->attnos, attnos, sizeof(AttrNumber) * ncolumns);
	deform->ncolumns = ncolumns;
	for (int i = 0; i < ncolumns; i++)
		deform->nattributes = Max(deform->nattributes, attnos[i]);
	deform->attributes = palloc(sizeof(GsDeformAttribute) * deform->nattributes);
	for (int i = 0; i < deform->nattributes; i++)
	{
		Form_pg_attribute form = TupleDescAttr(desc, i);
		GsDeformAttribute *attribute = &deform->attributes[i];

		attribute->len = form->attlen;
		attribute->align_mask = att_align_nominal(1, form->attalign) - 1;
		attribute->by_value = form->attbyval;
		attribute->column = -1;
	}
	for (int i = 0; i < ncolumns; i++)
	{
		if (deform->attributes[attnos[i] - 1].column >= 0)
		{
			deform->nattributes = HEAP_NATTS_MASK + 1;
			return deform;
		}
		deform->attributes[attnos[i] - 1].column = i;
	}

	deform->segments = palloc(sizeof(GsDeformSegment) * (deform->nattributes + 1));
	do
	{
		next = make_segment(deform, &deform->segments[nsegments++], next);
	} while (!deform->segments[nsegments - 1].is_last);
	deform->only = ncolumns == 1 && nsegments == 1 && deform->segments->nvariable == 0 ?
		deform->segments->wanted : NULL;
	return deform;
}

/* Deforms a tuple that has NULLs. */
static void
deform_with_nulls(const GsDeform *deform, HeapTupleHeader tuple, Datum *values, bool *nulls)
{
	const char *data = (const char *) tuple + tuple->t_hoff;
	uint32		offset = 0;

	for (int i = 0; i < deform->nattributes; i++)
	{
		const GsDeformAttribute *attribute = &deform->attributes[i];
		int			column = attribute->column;

		if (att_isnull(i, tuple->t_bits))
		{
			if (column >= 0)
				nulls[column] = true;
			continue;
		}
		offset = attribute->len > 0 ? gs_deform_align(offset, attribute->align_mask) :
			gs_deform_start(attribute, data, offset);
		if (column >= 0)
		{
			values[column] = fetch_att(data + offset, attribute->by_value, attribute->len);
			nulls[column] = false;
		}
		offset += attribute->len > 0 ? attribute->len : gs_deform_bytes(attribute, data + offset);
	}
}

typedef struct ValuesTarget
{
	Datum	   *values;
	bool	   *nulls;
} ValuesTarget;

static pg_attribute_always_inline void
keep_value(void *arg, int column, Datum value)
{
	const ValuesTarget *target = arg;

	target->values[column] = value;
	target->nulls[column] = false;
}

bool
gs_deform(const GsDeform *deform, HeapTupleHeader tuple, Datum *values, bool *nulls)
{
	ValuesTarget target = {values, nulls};

	if (gs_deform_can_visit(deform, tuple))
		gs_deform_visit(deform, tuple, keep_value, &target);
	else if (HeapTupleHeaderGetNatts(tuple) >= deform->nattributes)
		deform_with_nulls(deform, tuple, values, nulls);
	else
		return false;
	return true;
}

void
gs_deform_any(const GsDeform *deform, HeapTupleHeader tuple, Datum *values, bool *nulls)
{
	HeapTupleData found = {.t_data = tuple};

	if (gs_deform(deform, tuple, values, nulls))
		return;
	for (int i = 0; i < deform->ncolumns; i++)
		values[i] = heap_getattr(&found, deform->attnos[i], deform->desc, &nulls[i]);
}
