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

typedef struct GsDeform GsDeform;

/* Made once for a row type and some of its columns, in the current context. */
extern GsDeform *gs_deform_create(TupleDesc desc, const AttrNumber *attnos, int ncolumns);

/*
 * The columns of a tuple, in the order of attnos: values point into it unless
 * they are passed by value.  False if the tuple is older than one of the
 * columns; then only its slot knows.
 */
extern bool gs_deform(const GsDeform *deform, HeapTupleHeader tuple,
					  Datum *values, bool *nulls);

#endif							/* GPUSORT_SORT_DEFORM_H */
