/*-------------------------------------------------------------------------
 *
 * order.h
 *	  What decides the order of rows: keys, comparisons, or both.
 *
 *	  keys				decide					rows are compared
 *	  full				everything				never
 *	  truncated			all but ties			if their keys are equal
 *	  approximate		nothing for certain		neighbors, after the sort, or by the caller
 *	  none (presorted)	nothing					as they arrive
 *
 * The legal calls:
 *
 *	  begin { use_keys { create_comparator | sort | verify | merged | compared } }
 *
 * Comparators may raise errors, and check for interrupts as they do in a tuplesort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ORDER_H
#define GPUSORT_ORDER_H

#include "executor/tuptable.h"

#include "engine/engine.h"
#include "engine/merge_tree.h"
#include "key/key_encoder.h"
#include "order/order_compare.h"

typedef struct GsKeyVerification
{
	bool		succeeded;		/* no row sorts before its predecessor */
	uint64		ncomparisons;	/* up to the first row that does */
	uint64		us;				/* time that they took */
	uint64		ncorrected;		/* orders that were wrong, and sorted again */
} GsKeyVerification;

/* Callers may read it. */
typedef struct GsOrder
{
	const GsSortColumn *columns;
	int			ncolumns;
	TupleDesc	desc;			/* of the rows */
	bool		caller_verifies;	/* approximate keys are taken for exact */
	MemoryContext context;

	GsKeyEncoder *key;			/* NULL: none was chosen yet */
	bool		direct_key;		/* GsKeyFacts.direct of it */
	bool		keys_only;		/* its layout's: the key is the row */
	bool		presorted;		/* all rows arrived in order so far, and have no keys */
	GsOrderCompare *compare;	/* where keys do not decide; NULL: they do */
	GsKeyVerification verification;
} GsOrder;

/* GsKeyFacts.first_tied of its keys. */
static inline int
gs_order_first_tied(const GsOrder *order)
{
	return gs_key_encoder_facts(order->key)->first_tied;
}

/*
 * For rows whose keys are equal, and for any rows; the argument is the order.  A row is located by
 * the Datum of the first column that is compared, which is 0 for NULL.  Comparators may raise
 * errors.
 */
extern const GsRowCompare gs_order_tied_rows;
extern const GsRowCompare gs_order_all_rows;

/* What it refers to must live as long; its own memory is in the context. */
extern void gs_order_begin(GsOrder *order, const GsSortColumn *columns, int ncolumns,
						   TupleDesc desc, bool caller_verifies, MemoryContext context);

/* Rows get these keys from now on, and are compared as far as they do not decide. */
extern void gs_order_use_keys(GsOrder *order, GsKeyEncoder *key);

/* Ensures that there is a comparator. */
extern void gs_order_create_comparator(GsOrder *order);

/* Rows are compared with the one before as they arrive, and get no keys. */
extern void gs_order_begin_presorted(GsOrder *order);

/* Rows have keys from now on, and are compared only as far as these do not decide. */
extern void gs_order_end_presorted(GsOrder *order);

/*
 * Bytes of a sort's memory that should be left for copies of values that are compared, if a row and
 * its key record take row_bytes.
 */
extern Size gs_order_compared_bytes(const GsOrder *order, Size memory_limit, double row_bytes);

/* Sorts an engine's rows: gs_engine_sort(), with so many bytes for copies of values. */
extern GsStatus gs_order_sort(GsOrder *order, GsEngine *engine, Size compared_bytes);

/* The order in which runs are merged; or runs without keys, or with keys that do not count. */
extern GsMergeOrder gs_order_merged(GsOrder *order);
extern GsMergeOrder gs_order_compared(GsOrder *order);

/* Has a device left ties that comparisons have to order, or may it when it sorts? */
extern bool gs_order_leaves_ties(const GsOrder *order, const GsEngine *engine);

/* Are the keys approximate, and does the sort, not its caller, verify the order that they give? */
extern bool gs_order_verifies_keys(const GsOrder *order);

/*
 * Verifies the order that the engine found, if the sort has to, unless the rows were compared as
 * they arrived or as they were sorted.  extends_run: presorted rows follow those of a run.  If the
 * order is wrong, an engine that can compare sorts again by comparisons.  DISPROVED: another engine
 * must.
 */
extern GsStatus gs_order_verify(GsOrder *order, GsEngine *engine, bool extends_run);

/* ------------------------------------------------------------ order_verify.c */

/*
 * Compares all neighbors of the rows that an engine has sorted.  Works in the current memory
 * context; checks for interrupts.  OK or FAILED; comparators may raise errors.
 */
extern GsStatus gs_verify_keys(GsEngine *engine, const GsKeyEncoder *key,
							   GsOrderCompare *compare, GsKeyVerification *verification);

typedef struct GsOutputVerification GsOutputVerification;

/*
 * In the current memory context.  The columns and desc must live as long.  npresorted: columns by
 * which the rows were in order before the sort, if those of several batches are returned; else 0.
 */
extern GsOutputVerification *gs_verify_output_begin(const GsSortColumn *columns, int ncolumns,
													int npresorted, TupleDesc desc);

/* The slot's row is returned next, forward: an ERROR if it sorts before the last one. */
extern void gs_verify_output_row(GsOutputVerification *output, TupleTableSlot *slot);

/* All rows were returned: an ERROR unless they are as many as were read. */
extern void gs_verify_output_end(GsOutputVerification *output, uint64 nread);

/* Forgets the last row: the next one is the first row, or follows a step back or a jump. */
extern void gs_verify_output_restart(GsOutputVerification *output, bool at_first_row);

#endif							/* GPUSORT_ORDER_H */
