/*-------------------------------------------------------------------------
 *
 * order_verify.h
 *	  Verifies the order of rows by PostgreSQL's comparators: what approximate keys
 *	  have sorted, and with gpusort.verify all rows that are returned.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ORDER_VERIFY_H
#define GPUSORT_ORDER_VERIFY_H

#include "access/htup_details.h"
#include "executor/tuptable.h"

#include "engine/engine.h"
#include "key/key_encoder.h"
#include "order/order_compare.h"

/* ------------------------------ keys, before the first row is returned */

typedef struct GsKeyVerification
{
	bool		succeeded;		/* no row sorts before its predecessor */
	uint64		ncomparisons;	/* up to the first row that does */
	uint64		us;				/* time that they took */
	uint64		ncorrected;		/* orders that were wrong, and sorted again */
} GsKeyVerification;

/*
 * Compares all neighbors of the rows that an engine has sorted.  An order that holds between all
 * neighbors holds everywhere.  Works in the current memory context; checks for interrupts.  OK or
 * FAILED; comparators may raise errors.
 */
extern GsStatus gs_verify_keys(GsEngine *engine, const GsKeyEncoder *key,
							   GsOrderCompare *compare, GsKeyVerification *verification);

/* ------------------------------ the output, while rows are returned */

typedef struct GsOutputVerification GsOutputVerification;

/*
 * In the current memory context.  The columns and desc must live as long.  npresorted: columns by
 * which the rows were in order before the sort, if those of several batches are returned; else 0.
 */
extern GsOutputVerification *gs_verify_output_begin(const GsSortColumn *columns, int ncolumns,
													int npresorted,
													TupleDesc desc);

/* The slot's row is returned next, forward: an ERROR if it sorts before the last one. */
extern void gs_verify_output_row(GsOutputVerification *output, TupleTableSlot *slot);

/* All rows were returned: an ERROR unless they are as many as were read. */
extern void gs_verify_output_end(GsOutputVerification *output, uint64 nread);

/* Forgets the last row: the next one is the first row, or follows a step back or a jump. */
extern void gs_verify_output_restart(GsOutputVerification *output, bool at_first_row);

#endif							/* GPUSORT_ORDER_VERIFY_H */
