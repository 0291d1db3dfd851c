/*-------------------------------------------------------------------------
 *
 * sort_node.h
 *	  The GpuSort executor node.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_NODE_H
#define GPUSORT_SORT_NODE_H

#include "nodes/execnodes.h"
#include "nodes/extensible.h"

#include "engine.h"
#include "sort_bound.h"
#include "sort_compare.h"
#include "sort_key.h"
#include "sort_spill.h"
#include "sort_stock.h"
#include "sort_top.h"
#include "sort_verify.h"

extern const CustomScanMethods gs_sort_scan_methods;

/*
 * What a plan node carries: the list to put in custom_private.  repeatable: the
 * child may be run twice, nobody would notice.
 */
extern List *gs_sort_node_private(const GsSortColumn *columns, int ncolumns,
								  bool repeatable);

/* Where the rows are: see sort_node.c. */
typedef enum GsSortPhase
{
	GS_SORT_IDLE,				/* nowhere: nothing was read yet */
	GS_SORT_ENGINE,				/* in the engine, sorted */
	GS_SORT_MERGE,				/* in sorted runs that are being merged */
	GS_SORT_STOCK				/* in a tuplesort, sorted */
} GsSortPhase;

/* Rows taken from the engine at a time. */
#define GS_SORT_WINDOW	8

typedef struct GsSortState
{
	CustomScanState css;		/* must be first */

	/* the plan */
	GsSortColumn *columns;
	int			ncolumns;
	bool		repeatable;		/* the child may run again, for the same rows */
	bool		random_access;	/* may be rewound, marked, read backward */
	GsBoundState *bound;		/* NULL: no LIMIT */

	/* the sort */
	GsSortPhase phase;
	MemoryContext context;		/* of everything below; NULL if idle */
	GsSortKey  *key;
	bool		direct_key;		/* gs_sort_key_is_direct() of it */
	bool		keys_only;		/* its layout's */
	Size		memory_limit;	/* work_mem when it began */
	GsEngine   *engine;			/* once past IDLE, unless all went elsewhere */
	GsTop		top;			/* if a LIMIT asks for the first rows only */
	GsSpill    *spill;			/* runs of those before it; NULL if there are none */
	GsStockSort stock;
	bool		may_move;		/* from the CPU engine to a device */
	const char *device_reason;	/* why they did not; NULL if not tried */
	bool		begun_again;	/* a device was lost, and the child ran twice */
	const char *stock_reason;	/* why the rows are in a tuplesort */
	GsSortCompare *compare;		/* decides where the key does not; NULL if it does */
	GsSortProof proof;			/* of the order, where the key needs one */
	bool		disproved;		/* it failed */
	uint64		nread;			/* rows that the child gave */
	uint64		nnulls;			/* keys_only: rows that are a NULL, not stored */
	uint64		nrows;			/* in all, once sorted; not those that top has
								 * dropped */

	/* the hand-out */
	int64		position;		/* of the row last handed out, from 0; -1
								 * before the first, nrows after the last */
	int64		mark;			/* a position */
	int64		window_start;	/* position of window[0] */
	int			window_rows;	/* 0 if the window is empty */
	const void *window[GS_SORT_WINDOW];
	GsSortVerify *verify;		/* looks on; NULL if gpusort.verify is off */
} GsSortState;

#endif							/* GPUSORT_SORT_NODE_H */
