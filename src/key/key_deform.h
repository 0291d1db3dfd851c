/*-------------------------------------------------------------------------
 *
 * key_deform.h
 *	  Finds some columns of a tuple, and nothing else.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_DEFORM_H
#define GPUSORT_KEY_DEFORM_H

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
typedef struct GsDeformSegment
{
	int			nwanted;
	GsDeformWanted *wanted;
	uint32		end[MAXIMUM_ALIGNOF];	/* of the run, from its start */
	const GsDeformAttribute *variable;	/* the first of the second run */
	int			nvariable;
	bool		is_last;
} GsDeformSegment;

typedef struct GsDeform
{
	int			nattributes;
	GsDeformSegment    *segments;
	GsDeformAttribute  *attributes;
} GsDeform;

/*
 * Made once for a row type and some of its columns, in the current context.
 * NULL if a column is wanted twice.
 */
extern GsDeform *gs_deform_create(TupleDesc desc, const AttrNumber *attnos, int ncolumns);

/*
 * The wanted columns of a tuple, in the order of attnos: values point into it
 * unless they are passed by value.  False if the tuple does not have them all:
 * one that is older than a column has not, and only its slot knows the value.
 */
extern bool gs_deform(const GsDeform *deform, HeapTupleHeader tuple, Datum *values, bool *nulls);

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

/* The same for one with a short header, as most are; 0 if it has none. */
static inline uint32
gs_deform_min_bytes(const GsDeformAttribute *attribute, const char *value)
{
	return attribute->len == -1 && VARATT_IS_1B(value) && !VARATT_IS_1B_E(value) ?
		VARSIZE_1B(value) : 0;
}

/* What is done with a wanted column; see gs_deform_visit(). */
typedef void (*GsDeformVisit) (void *arg, int column, Datum value);

/*
 * Visits the wanted columns of a tuple without NULLs, in the order in which
 * they stand there; columns are numbered as in attnos.  Values point into the
 * tuple unless they are passed by value.  Inlined with the visit, so that a
 * value goes from the tuple to where it is wanted in registers.
 */
static pg_attribute_always_inline void
gs_deform_visit(const GsDeform *deform, HeapTupleHeader tuple, GsDeformVisit visit, void *arg)
{
	const char *data = (const char *) tuple + tuple->t_hoff;
	uint32		offset = 0;

	for (const GsDeformSegment *stretch = deform->segments;; stretch++)
	{
		const int	residue = offset % MAXIMUM_ALIGNOF;
		const GsDeformWanted *wanted = stretch->wanted;
		const GsDeformWanted *wanted_end = wanted + stretch->nwanted;
		const GsDeformAttribute *variable = stretch->variable;
		const GsDeformAttribute *variable_end = variable + stretch->nvariable;

		for (; wanted < wanted_end; wanted++)
			visit(arg, wanted->column, fetch_att(data + offset + wanted->at[residue],
												 wanted->by_value, wanted->len));
		offset += stretch->end[residue];
		for (; variable < variable_end; variable++)
		{
			uint32		nbytes = gs_deform_min_bytes(variable, data + offset);

			if (unlikely(nbytes == 0))
			{
				offset = gs_deform_start(variable, data, offset);
				nbytes = gs_deform_bytes(variable, data + offset);
			}
			if (variable->column >= 0)
				visit(arg, variable->column, PointerGetDatum(data + offset));
			offset += nbytes;
		}
		if (stretch->is_last)
			return;
	}
}

/* May gs_deform_visit() be called? */
static inline bool
gs_deform_can_visit(const GsDeform *deform, HeapTupleHeader tuple)
{
	return HeapTupleHeaderGetNatts(tuple) >= deform->nattributes &&
		!(tuple->t_infomask & HEAP_HASNULL);
}

#endif							/* GPUSORT_KEY_DEFORM_H */
