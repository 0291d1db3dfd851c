/*-------------------------------------------------------------------------
 *
 * plan_aggregates.h
 *	  In which order the rows of groups should arrive for aggregates that sort them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PLAN_AGGREGATES_H
#define GPUSORT_PLAN_AGGREGATES_H

#include "nodes/pathnodes.h"

/*
 * The pathkeys of GROUP BY, followed by those of the first aggregate that sorts its rows, if these
 * are columns of the path and a GpuSort by them, too, takes less time than the aggregate's sorts
 * save.  PostgreSQL has added those of some aggregates since version 16.
 */
extern List *gs_plan_aggregates_pathkeys(PlannerInfo *root, Path *input);

/* The pathkeys of the order in which an aggregate sorts its rows; NIL: it does not, or unknown. */
extern List *gs_plan_aggregate_pathkeys(PlannerInfo *root, const Aggref *aggregate);

/* A number that is cast to another type of numbers, which changes no order; or the expression. */
extern Expr *gs_plan_without_cast(Expr *expr);

/* Do the groups of a query have so many rows, of nrows in all, by the estimate? */
extern bool gs_plan_are_groups_large(PlannerInfo *root, double nrows, double least);

#endif							/* GPUSORT_PLAN_AGGREGATES_H */
