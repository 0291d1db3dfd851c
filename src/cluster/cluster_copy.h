/*-------------------------------------------------------------------------
 *
 * cluster_copy.h
 *	  Copies a table in the order of an index.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_CLUSTER_COPY_H
#define GPUSORT_CLUSTER_COPY_H

#include "pg_compat.h"

/*
 * Copies the tuples that are not dead, in the order of the index, and counts
 * them.  Sorts with maintenance_work_mem.  An ERROR leaves no more to clean up than one
 * of PostgreSQL's copy.
 */
extern void gs_cluster_copy(GsClusterCopy *copy, double expected_rows);

#endif							/* GPUSORT_CLUSTER_COPY_H */
