/*-------------------------------------------------------------------------
 *
 * cluster.h
 *	  Sorts the rows of a table that CLUSTER copies: cluster_hook.c, cluster_choice.c and
 *	  cluster_copy.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_CLUSTER_H
#define GPUSORT_CLUSTER_H

#include "optimizer/pathnode.h"
#include "utils/rel.h"

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

#endif							/* GPUSORT_CLUSTER_H */
