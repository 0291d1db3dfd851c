/*-------------------------------------------------------------------------
 *
 * read_groups.h
 *	  Reads rows that arrive ordered by the first sort columns, a few groups at a time.
 *
 * The legal calls, in order:
 *
 *	  create { begin { next } [ add_summary ] } [ restart ... ]
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_READ_GROUPS_H
#define GPUSORT_READ_GROUPS_H

#include "nodes/execnodes.h"

#include "key/key_columns.h"
#include "order/order.h"
#include "share/share_state.h"

typedef struct GsSortGroups
{
	int			npresorted;		/* columns by which the rows arrive in order */
	bool		at_end;			/* all rows were read */
	bool		full_keys;		/* truncated keys have left too many ties */
	int			nkeyed;			/* columns to key whatever they cost, as others tied too often */
	bool		may_be_in_order;	/* all columns may order the rows of the next batch already */
	GsOutputVerification *verification; /* of all batches; NULL: not begun, or not wanted */

	/* for EXPLAIN and the log */
	uint64		nbatches;
	uint64		nrows;			/* of all batches */
	uint64		input_us;
	uint64		sort_us;
	GsSortSummary largest;		/* of the batch with the most rows */

	/* not for callers */
	PlanState  *child;
	const GsSortColumn *columns;
	FmgrInfo   *equality;		/* of the presorted ones */
	ExprContext *econtext;		/* for its memory */
	TupleTableSlot *last_group; /* a row of the group that ends the batch; empty: not there yet */
	TupleTableSlot *next;		/* the slot with the first row of the next batch; NULL: none */
	uint64		enough;			/* rows after which the batch ends with their group */
	uint64		most;			/* of these */
	uint64		nread;			/* rows of the batch */
} GsSortGroups;

/*
 * Rows after which a batch ends with their group, if memory allows.  ORDER BY of 1 M rows from an
 * index scan by numeric, groups of 100: 226, 208 and 223 ms with 256, 2,048 and 16,384; PostgreSQL
 * 697 (Zen 5, busy, PostgreSQL 15.20, 2026-11-24).
 */
#define GS_GROUPS_BATCH_ROWS	2048

/*
 * In the current memory context, where columns stay.  The rows of the child arrive in the order of
 * the first npresorted columns.  memory_rows: estimated rows for which a sort has memory.
 */
extern GsSortGroups *gs_sort_groups_create(PlanState *child, const GsSortColumn *columns,
										   int npresorted, double memory_rows);

/* Begins the next batch. */
extern void gs_sort_groups_begin(GsSortGroups *groups);

/* The next row, in the child's slot; empty or NULL: the batch ends. */
extern TupleTableSlot *gs_sort_groups_next(GsSortGroups *groups);

/* Counts a batch that was sorted. */
extern void gs_sort_groups_add_summary(GsSortGroups *groups, const GsSortSummary *batch);

/* Begins with the first row again: the child is rescanned. */
extern void gs_sort_groups_restart(GsSortGroups *groups);

#endif							/* GPUSORT_READ_GROUPS_H */
