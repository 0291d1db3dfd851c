/*-------------------------------------------------------------------------
 *
 * cluster.h
 *	  Sorts the rows of a table that CLUSTER copies.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_CLUSTER_H
#define GPUSORT_CLUSTER_H

#include "access/htup.h"
#include "executor/tuptable.h"
#include "nodes/execnodes.h"
#include "optimizer/pathnode.h"
#include "utils/rel.h"

#include "key/key_columns.h"
#include "pg_compat.h"

/* From _PG_init(). */
extern void gs_cluster_hook_install(void);

/* Why PostgreSQL sorts the rows, of which nrows are expected; NULL: gpusort does. */
extern char *gs_cluster_why_not(Relation heap, Relation index, double nrows);

/*
 * Is a sort by gpusort expected to take less than reading the table in the order of the index?
 * Both are open, and info and table are what the planner knows of them.
 */
extern bool gs_cluster_prefers_sort(Relation heap, Relation index, const IndexOptInfo *info,
									const RelOptInfo *table);

/*
 * Copies the tuples that are not dead, in the order of the index, and counts them.  Sorts with
 * maintenance_work_mem.  An ERROR leaves no more to clean up than one of PostgreSQL's copy.
 */
extern void gs_cluster_copy(GsClusterCopy *copy, double expected_rows);

/* --------------------------------------------------- writer (cluster_write.c) */

typedef struct GsClusterWriter GsClusterWriter;

/*
 * Does a tuple link to a later version, or may an earlier version that is not dead link to it?
 * HeapTupleSatisfiesVacuum() has set its hint bits.  A yes may be wrong, which takes time but does
 * no harm.
 */
extern bool gs_cluster_is_linked(HeapTuple tuple, TransactionId oldest_xmin);

/*
 * has_links: the answer is yes for one of the tuples.  Allocates in the current memory context;
 * that and `copy` must live as long.
 */
extern GsClusterWriter *gs_cluster_write_begin(const GsClusterCopy *copy, bool has_links);

/*
 * Adds `tuple`, which gets what the header of `old` says of the version of a row.  Of `old`, only
 * the header and the TID are read.  The table may get the tuple later, and toasted.
 */
extern void gs_cluster_write_add(GsClusterWriter *writer, HeapTuple old, HeapTuple tuple);

/* Ensures that no crash after the end of the transaction loses the table. */
extern void gs_cluster_write_end(GsClusterWriter *writer);

/* ----------------------------------------------------------- rows (cluster_row.c) */

/* Makes rows to be sorted of the versions of a table's rows, and back. */
typedef struct GsClusterRows
{
	TupleDesc	table;
	TupleDesc	desc;			/* row type */
	GsSortColumn *columns;
	int			ncolumns;
	bool		has_dropped;	/* the table has dropped columns */
	TupleTableSlot *slot;		/* of a row */
	MinimalTuple row;			/* memory for one that is the body of a tuple */
	Datum	   *values;			/* of a row */
	bool	   *nulls;
	char	   *tuple;			/* for the new tuple */

	/* if rows are formed of values */
	TupleTableSlot *virtual;	/* of values, of a row; NULL: they are not */
	IndexInfo  *info;
	EState	   *estate;
	TupleTableSlot *of_table;	/* for expressions */
} GsClusterRows;

/* Allocates in the current memory context, which must live as long. */
extern GsClusterRows *gs_cluster_rows_create(Relation heap, Relation index);

/* The row of a tuple, in a slot of a minimal tuple.  Valid until the next call. */
extern TupleTableSlot *gs_cluster_row_form(GsClusterRows *rows, HeapTuple tuple);

/* A number that different tuples of a table rarely have in common. */
extern uint64 gs_cluster_row_hash(const MinimalTupleData *row);

/* Adds the tuple of a row to the new table. */
extern void gs_cluster_row_write(GsClusterRows *rows, MinimalTuple row, GsClusterWriter *writer);

extern void gs_cluster_rows_free(GsClusterRows *rows);

#endif							/* GPUSORT_CLUSTER_H */
