/*-------------------------------------------------------------------------
 *
 * sort_deform.h
 *	  Finds some columns of a tuple, and nothing else.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_DEFORM_H
#define GPUSORT_SORT_DEFORM_H

#include "access/htup_details.h"
#include "access/tupdesc.h"
#include "access/tupmacs.h"

/* An attribute on the way to the last one wanted. */
typedef struct GsDeformAttribute
{
	int16		len;			/* as pg_type.typlen */
	uint8		align_mask;		/* bits of an offset that must be zero */
	bool		by_value;
	int16		column;			/* which of the wanted ones; -1: none of them */
} GsDeformAttribute;

/*
 * A wanted attribute of a run.  Where it is depends on where the run begins,
 * but only on the last three bits of that: nothing is aligned to more than 8.
 */
typedef struct GsDeformWanted
{
	int16		column;
	int16		len;
	bool		by_value;
	uint32		at[MAXIMUM_ALIGNOF];	/* from the start of the run */
} GsDeformWanted;

/*
 * A stretch of a tuple without NULLs: a run of attributes of fixed width, then a
 * run of variable width.  Either may be empty.
 */
typedef struct GsDeformStretch
{
	int			nwanted;
	GsDeformWanted *wanted;
	uint32		end[MAXIMUM_ALIGNOF];	/* of the run, from its start */
	const GsDeformAttribute *variable;	/* the first of the second run */
	int			nvariable;
	bool		is_last;
} GsDeformStretch;

typedef struct GsDeform
{
	int			nattributes;
	GsDeformStretch    *stretches;
	GsDeformAttribute  *attributes;
} GsDeform;

/*
 * Made once for a row type and some of its columns, in the current context.
 * NULL if a column is wanted twice.
 */
extern GsDeform *gs_deform_create(TupleDesc desc, const AttrNumber *attnos, int ncolumns);

extern void gs_deform_with_nulls(const GsDeform *deform, const char *data, const bits8 *null_bits,
								 Datum *values, bool *nulls);

static inline uint32
gs_deform_align(uint32 offset, uint8 mask)
{
	return (offset + mask) & ~(uint32) mask;
}

/*
 * Where a value of variable width begins: a byte that is not padding is the
 * short header of one that is not aligned.
 */
static inline uint32
gs_deform_start(const GsDeformAttribute *attribute, const char *data, uint32 offset)
{
	if (attribute->len == -1 && VARATT_NOT_PAD_BYTE(data + offset))
		return offset;
	return gs_deform_align(offset, attribute->align_mask);
}

static inline uint32
gs_deform_bytes(const GsDeformAttribute *attribute, const char *value)
{
	return attribute->len == -1 ? VARSIZE_ANY(value) : strlen(value) + 1;
}

/*
 * The columns of a tuple, in the order of attnos: values point into it unless
 * they are passed by value.  False if the tuple is older than one of the
 * columns; then only its slot knows.
 */
static pg_attribute_always_inline bool
gs_deform(const GsDeform *deform, HeapTupleHeader tuple, Datum *values, bool *nulls)
{
	const char *data = (const char *) tuple + tuple->t_hoff;
	uint32		offset = 0;

	if (HeapTupleHeaderGetNatts(tuple) < deform->nattributes)
		return false;
	if (tuple->t_infomask & HEAP_HASNULL)
	{
		gs_deform_with_nulls(deform, data, tuple->t_bits, values, nulls);
		return true;
	}
	for (const GsDeformStretch *stretch = deform->stretches;; stretch++)
	{
		int			residue = offset % MAXIMUM_ALIGNOF;
		const char *start = data + offset;

		for (int i = 0; i < stretch->nwanted; i++)
		{
			const GsDeformWanted *wanted = &stretch->wanted[i];

			values[wanted->column] = fetch_att(start + wanted->at[residue], wanted->by_value,
											   wanted->len);
			nulls[wanted->column] = false;
		}
		offset += stretch->end[residue];
		for (int i = 0; i < stretch->nvariable; i++)
		{
			const GsDeformAttribute *variable = &stretch->variable[i];

			offset = gs_deform_start(variable, data, offset);
			if (variable->column >= 0)
			{
				values[variable->column] = PointerGetDatum(data + offset);
				nulls[variable->column] = false;
			}
			offset += gs_deform_bytes(variable, data + offset);
		}
		if (stretch->is_last)
			return true;
	}
}

#endif							/* GPUSORT_SORT_DEFORM_H */
