/*-------------------------------------------------------------------------
 *
 * node_explain.h
 *	  What EXPLAIN shows of a GpuSort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_NODE_EXPLAIN_H
#define GPUSORT_NODE_EXPLAIN_H

#include "nodes/extensible.h"

/*
 * The Sort Key, as PostgreSQL prints it, and with ANALYZE the statistics of the
 * sort.  Without ANALYZE the output is the same on every machine.
 */
extern void gs_node_explain(CustomScanState *node, List *ancestors, struct ExplainState *es);

/* The Sort Key of a node that runs, in short, palloc'd.  It raises no ERROR. */
extern char *gs_node_describe_key(CustomScanState *node);

#endif							/* GPUSORT_NODE_EXPLAIN_H */
