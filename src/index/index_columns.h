/*-------------------------------------------------------------------------
 *
 * index_columns.h
 *	  The key columns of a btree as columns of an ORDER BY.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INDEX_COLUMNS_H
#define GPUSORT_INDEX_COLUMNS_H

#include "utils/relcache.h"

#include "key/key_columns.h"

/* The sort columns of an index, followed by the heap TID, which *nkeys does not count. */
extern GsSortColumn *gs_index_columns(Relation index, int *nkeys);

/* Why PostgreSQL sorts nrows rows by the key columns of an index; NULL: gpusort does. */
extern char *gs_index_columns_why_not(Relation index, double nrows);

#endif							/* GPUSORT_INDEX_COLUMNS_H */
