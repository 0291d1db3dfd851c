/*-------------------------------------------------------------------------
 *
 * cluster_row.h
 *	  A version of a table's row as a row to be sorted, and back.
 *
 *	  create { form | write } free
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_CLUSTER_ROW_H
#define GPUSORT_CLUSTER_ROW_H

#include "access/htup.h"
#include "executor/tuptable.h"
#include "utils/relcache.h"

#include "cluster/cluster_write.h"
#include "key/key_columns.h"

typedef struct GsClusterRows GsClusterRows;

/* Allocates in the current memory context, which must live as long. */
extern GsClusterRows *gs_cluster_rows_create(Relation heap, Relation index);

/* The row type, and the sort columns. */
extern TupleDesc gs_cluster_rows_type(const GsClusterRows *rows);
extern const GsSortColumn *gs_cluster_rows_columns(const GsClusterRows *rows, int *ncolumns);

/* The row of a tuple, in a slot of a minimal tuple.  Valid until the next call. */
extern TupleTableSlot *gs_cluster_row_form(GsClusterRows *rows, HeapTuple tuple);

/* A number that different tuples of a table rarely have in common. */
extern uint64 gs_cluster_row_hash(const MinimalTupleData *row);

/* Adds the tuple of a row to the new table. */
extern void gs_cluster_row_write(GsClusterRows *rows, MinimalTuple row, GsClusterWriter *writer);

extern void gs_cluster_rows_free(GsClusterRows *rows);

#endif							/* GPUSORT_CLUSTER_ROW_H */
