/*-------------------------------------------------------------------------
 *
 * cluster_write.h
 *	  Writes the tuples of the new table, in the order in which they come.
 *
 *	  begin { add } end
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_CLUSTER_WRITE_H
#define GPUSORT_CLUSTER_WRITE_H

#include "access/htup.h"

#include "pg_compat.h"

typedef struct GsClusterWriter GsClusterWriter;

/*
 * Does a tuple link to a later version, or may an earlier version that is not dead link to it?
 * HeapTupleSatisfiesVacuum() has set its hint bits.  A yes may be wrong, which takes time but does
 * no harm.
 */
extern bool gs_cluster_is_linked(HeapTuple tuple, TransactionId oldest_xmin);

/*
 * has_links: the answer is yes for one of the tuples.  Allocates in the current memory context,
 * which must live as long.
 */
extern GsClusterWriter *gs_cluster_write_begin(const GsClusterCopy *copy, bool has_links);

/*
 * Adds `tuple`, which gets what the header of `old` says of the version of a row.  Of `old`, only
 * the header and the TID are read.  The table may get the tuple later, and toasted.
 */
extern void gs_cluster_write_add(GsClusterWriter *writer, HeapTuple old, HeapTuple tuple);

/* Ensures that no crash after the end of the transaction loses the table, and frees the writer. */
extern void gs_cluster_write_end(GsClusterWriter *writer);

#endif							/* GPUSORT_CLUSTER_WRITE_H */
