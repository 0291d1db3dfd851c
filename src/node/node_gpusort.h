/*-------------------------------------------------------------------------
 *
 * node_gpusort.h
 *	  The GpuSort executor node.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_NODE_GPUSORT_H
#define GPUSORT_NODE_GPUSORT_H

#include "executor/execdesc.h"
#include "nodes/extensible.h"

#include "node/node_window.h"
#include "sort/sort_state.h"

/* The executor node of a sort. */
typedef struct GsSortNode
{
	CustomScanState css;		/* must be first */
	GsSortState sort;
	GsNodeWindow *window;		/* NULL: it computes no window functions */
} GsSortNode;

static inline GsSortState *
gs_node_sort(CustomScanState *node)
{
	return &((GsSortNode *) node)->sort;
}

extern const CustomScanMethods gs_node_scan_methods;

/*
 * What a plan node carries: the list to put in custom_private.  npresorted: the first columns, by
 * which the child's rows arrive in order; 0: unknown.  repeatable: the child may be run twice,
 * nobody would notice.
 */
extern List *gs_node_private(const GsSortColumn *columns, int ncolumns, int npresorted,
							 bool repeatable);

/* Is a node of a plan a GpuSort? */
static inline bool
gs_node_is_gpusort(const Plan *plan)
{
	return IsA(plan, CustomScan) && ((const CustomScan *) plan)->methods == &gs_node_scan_methods;
}

/* By how many of its columns the rows of its child arrive in order; 0: unknown. */
extern int	gs_node_presorted_columns(const CustomScan *scan);

/*
 * Has each participant of a parallel plan return ranges of the rows of all, which do not divide
 * rows with equal leading columns, ngrouped of them.  custom_private is that of gs_node_private().
 */
extern void gs_node_divide(List *custom_private, int ngrouped);

/* Of these rows only the first so many are needed; 0, as at first: all; or GS_GROUP_MIDDLE. */
extern void gs_node_limit_groups(List *custom_private, int group_limit);

/*
 * Has a node that divides rows compute its target list and its qual from the columns of
 * custom_scan_tlist, of which the last ones are window functions (node_window.h).  Not with
 * GS_GROUP_MIDDLE.
 */
extern void gs_node_compute_window(CustomScan *scan, List *functions);

/* These functions; NIL: there are none. */
extern const List *gs_node_window_functions(const CustomScan *scan);

/*
 * The node, or the nodes above it with its rows, compute what a function of the query would.  Who
 * executes the plan must have permission to execute that function.
 */
extern void gs_node_replaces_function(CustomScan *scan, Oid function);

/* The columns of which gs_node_divide() has the number; NULL: it was not called. */
extern Bitmapset *gs_node_grouped_columns(const CustomScan *scan);

/* How many rows of a group are needed, as gs_node_limit_groups() has it. */
extern int	gs_node_group_limit(const CustomScan *scan);

/* Has the participants of a parallel plan share the node's sort. */
extern void gs_sort_node_share(CustomScan *scan);

/* After a query has started: its GpuSorts learn which Gather Merge they are below. */
extern void gs_node_started(QueryDesc *query);

/*
 * For EXPLAIN: the Sort Key, as PostgreSQL prints it, and with ANALYZE the statistics of the sort.
 * Without ANALYZE the output is the same on every machine.
 */
extern void gs_node_explain(CustomScanState *node, List *ancestors, struct ExplainState *es);

/* The Sort Key of a node that runs, in short, palloc'd.  It raises no ERROR. */
extern char *gs_node_describe_key(CustomScanState *node);

#endif							/* GPUSORT_NODE_GPUSORT_H */
