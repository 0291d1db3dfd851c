/*-------------------------------------------------------------------------
 *
 * gin_columns.h
 *	  The order of the keys of a GIN index, as that of rows (gin_row.h).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GIN_COLUMNS_H
#define GPUSORT_GIN_COLUMNS_H

#include "access/tupdesc.h"
#include "utils/relcache.h"

#include "key/key_columns.h"

/* Where the columns of a row are, from 0 on. */
typedef struct GsGinLayout
{
	int			attribute;		/* -1: there is none */
	int			key;			/* of the first column of the index */
	int			category;
	int			rest;
	int			tid;
} GsGinLayout;

extern GsGinLayout gs_gin_layout(Relation index);

/* The row type, in the current memory context. */
extern TupleDesc gs_gin_row_type(Relation index);

/* The sort columns, followed by that of the TID, which *nkeys does not count. */
extern GsSortColumn *gs_gin_columns(Relation index, int *nkeys);

/* Why PostgreSQL builds an index of nrows rows; NULL: gpusort does. */
extern char *gs_gin_columns_why_not(Relation index, double nrows);

#endif							/* GPUSORT_GIN_COLUMNS_H */
