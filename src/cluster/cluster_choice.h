/*-------------------------------------------------------------------------
 *
 * cluster_choice.h
 *	  Who puts the rows of a table in the order of an index, and how.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_CLUSTER_CHOICE_H
#define GPUSORT_CLUSTER_CHOICE_H

#include "optimizer/pathnode.h"
#include "utils/rel.h"

/* Why PostgreSQL sorts the rows, of which nrows are expected; NULL: gpusort does. */
extern char *gs_cluster_why_not(Relation heap, Relation index, double nrows);

/*
 * Is a sort by gpusort expected to take less than reading the table in the order of the index?
 * Both are open, and info and table are what the planner knows of them.
 */
extern bool gs_cluster_prefers_sort(Relation heap, Relation index, const IndexOptInfo *info,
									const RelOptInfo *table);

#endif							/* GPUSORT_CLUSTER_CHOICE_H */
