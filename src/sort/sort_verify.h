/*-------------------------------------------------------------------------
 *
 * sort_verify.h
 *	  Is the order right?  Two checks by PostgreSQL's own comparators.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_VERIFY_H
#define GPUSORT_SORT_VERIFY_H

#include "access/htup_details.h"
#include "executor/tuptable.h"
#include "port/pg_crc32c.h"

#include "engine/engine.h"
#include "key/key_encoder.h"
#include "sort/sort_compare.h"

/* ------------------------------------------------- before the first row leaves */

typedef struct GsSortVerification
{
	bool		succeeded;			/* no row is below the one before */
	uint64		ncomparisons;	/* made, up to the first that is */
	uint64		us;				/* time that they took */
	uint64		ncorrected;		/* orders that did not hold, and were put right */
	bool		compared;		/* the order is one that comparisons found right */
	uint32		checksum;		/* of the rows in that order, then */
} GsSortVerification;

/*
 * Compares all neighbours of an engine that has sorted by a key, once: a comparator
 * whose order is total and which finds no inversion there would find none
 * anywhere.  Works in the current memory context.  OK or FAILED; may ereport what
 * comparators report.
 */
extern GsStatus gs_sort_verify_rows(GsEngine *engine, const GsKeyEncoder *key, GsSortCompare *compare,
							  GsSortVerification *verification);

/*
 * A row goes into a checksum of rows and their order, which is 0 before the first.  If rows leave
 * with the checksum of a proof, they are those compared, in that order.  Beside its length a batch
 * keeps something else while the row is there (batch.h), and runs do not keep what is there (run_file.h).
 */
static inline uint32
gs_sort_checksum(uint32 checksum, MinimalTuple row)
{
	COMP_CRC32C(checksum, (const char *) row + MINIMAL_TUPLE_DATA_OFFSET,
				row->t_len - MINIMAL_TUPLE_DATA_OFFSET);
	return checksum;
}

/* ----------------------------------------------------------- while rows leave */

typedef struct GsSortVerify GsSortVerify;

/* In the current memory context.  The columns and the type must live as long. */
extern GsSortVerify *gs_sort_verify_create(const GsSortColumn *columns, int ncolumns,
										   TupleDesc desc);

/* The slot's row leaves, as the next one forward: an ERROR if it is below the last. */
extern void gs_sort_verify_row(GsSortVerify *verify, TupleTableSlot *slot);

/* All have left: an ERROR unless they are as many as came. */
extern void gs_sort_verify_end(GsSortVerify *verify, uint64 ncame);

/* Begins anew, at the first row or somewhere. */
extern void gs_sort_verify_restart(GsSortVerify *verify, bool at_first_row);

#endif							/* GPUSORT_SORT_VERIFY_H */
