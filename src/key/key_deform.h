/*-------------------------------------------------------------------------
 *
 * key_deform.h
 *	  Locates some columns of a tuple, and no others.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_DEFORM_H
#define GPUSORT_KEY_DEFORM_H

#include "access/htup_details.h"
#include "access/tupdesc.h"
#include "access/tupmacs.h"

/* An attribute up to the last one that is wanted. */
typedef struct GsDeformAttribute
{
	int16		len;			/* as pg_type.typlen */
	uint8		align_mask;		/* bits of an offset that must be zero */
	bool		by_value;
	int16		column;			/* its index in attnos; -1: not wanted */
} GsDeformAttribute;

/*
 * A wanted attribute of fixed width in a segment.  Its offset in the segment depends only on the
 * last three bits of the segment's offset, because no type is aligned to more than 8 bytes.
 */
typedef struct GsDeformWanted
{
	int16		column;
	int16		len;
	bool		by_value;
	uint32		at[MAXIMUM_ALIGNOF];	/* offset in the segment */
} GsDeformWanted;

/* A segment of a tuple without NULLs: attributes of fixed width, then of variable width, if any. */
typedef struct GsDeformSegment
{
	int			nwanted;
	GsDeformWanted *wanted;
	uint32		end[MAXIMUM_ALIGNOF];	/* of fixed width: offset of their end */
	const GsDeformAttribute *variable;	/* the first of variable width */
	int			nvariable;
	bool		is_last;
} GsDeformSegment;

typedef struct GsDeform
{
	int			nattributes;	/* more than a tuple can have if a column is wanted twice */
	TupleDesc	desc;
	AttrNumber *attnos;
	int			ncolumns;
	const GsDeformWanted *only; /* the wanted attribute, if it is one and always at
								 * the same offset; else NULL */
	GsDeformSegment *segments;
	GsDeformAttribute *attributes;
} GsDeform;

/* Prepares to locate some columns of a row type; allocates in the current memory context. */
extern GsDeform *gs_deform_create(TupleDesc desc, const AttrNumber *attnos, int ncolumns);

/*
 * Locates the wanted columns of a tuple, in the order of attnos.  Values point into the tuple
 * unless they are passed by value.  Returns false if the tuple lacks some of them because they were
 * added to the table later, or if a column is wanted twice.
 */
extern bool gs_deform(const GsDeform *deform, HeapTupleHeader tuple, Datum *values, bool *nulls);

/* Locates them in any tuple: as the row type tells the values that a tuple lacks. */
extern void gs_deform_any(const GsDeform *deform, HeapTupleHeader tuple, Datum *values,
						  bool *nulls);

static inline uint32
gs_deform_align(uint32 offset, uint8 mask)
{
	return (offset + mask) & ~(uint32) mask;
}

/* Where a value of variable width begins: one with a short header is not aligned. */
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

/* The bytes of a value with a short header, as most have; 0 if it has none. */
static inline uint32
gs_deform_min_bytes(const GsDeformAttribute *attribute, const char *value)
{
	return attribute->len == -1 && VARATT_IS_1B(value) && !VARATT_IS_1B_E(value) ?
		VARSIZE_1B(value) : 0;
}

/* The callback of gs_deform_visit(). */
typedef void (*GsDeformVisit) (void *arg, int column, Datum value);

/*
 * Calls visit() for the wanted columns of a tuple without NULLs, in physical order, with
 * their index in attnos.  Values point into the tuple unless they are passed by value.
 * Inlined together with visit(), so that values stay in registers.
 */
static pg_attribute_always_inline void
gs_deform_visit(const GsDeform *deform, HeapTupleHeader tuple, GsDeformVisit visit, void *arg)
{
	const char *data = (const char *) tuple + tuple->t_hoff;
	uint32		offset = 0;

	for (const GsDeformSegment *segment = deform->segments;; segment++)
	{
		const int	residue = offset % MAXIMUM_ALIGNOF;
		const GsDeformWanted *wanted = segment->wanted;
		const GsDeformWanted *wanted_end = wanted + segment->nwanted;
		const GsDeformAttribute *variable = segment->variable;
		const GsDeformAttribute *variable_end = variable + segment->nvariable;

		for (; wanted < wanted_end; wanted++)
			visit(arg, wanted->column, fetch_att(data + offset + wanted->at[residue],
												 wanted->by_value, wanted->len));
		offset += segment->end[residue];
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
		if (segment->is_last)
			return;
	}
}

/* The value of the only wanted attribute, of a tuple without NULLs. */
static inline Datum
gs_deform_only(const GsDeform *deform, HeapTupleHeader tuple)
{
	const GsDeformWanted *only = deform->only;

	return fetch_att((const char *) tuple + tuple->t_hoff + only->at[0], only->by_value, only->len);
}

/* Can gs_deform_visit() be called for this tuple, or gs_deform_only()? */
static inline bool
gs_deform_can_visit(const GsDeform *deform, HeapTupleHeader tuple)
{
	return HeapTupleHeaderGetNatts(tuple) >= deform->nattributes &&
		!(tuple->t_infomask & HEAP_HASNULL);
}

#endif							/* GPUSORT_KEY_DEFORM_H */
