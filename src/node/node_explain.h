/*-------------------------------------------------------------------------
 *
 * node_explain.h
 *	  What EXPLAIN says of a GpuSort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_NODE_EXPLAIN_H
#define GPUSORT_NODE_EXPLAIN_H

#include "pg_compat.h"

#include "sort/sort_state.h"

/*
 * Sort Key, as core prints it; under ANALYZE also how the sort went.  Without
 * ANALYZE nothing depends on the machine.
 */
extern void gs_node_explain(CustomScanState *node, List *ancestors, ExplainState *es);

/* How a sort went that is done: what EXPLAIN says of it in another process. */
extern void gs_node_summarize(const GsSortState *state, GsSortSummary *summary);

#endif							/* GPUSORT_NODE_EXPLAIN_H */
