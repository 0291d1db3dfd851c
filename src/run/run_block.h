/*-------------------------------------------------------------------------
 *
 * run_block.h
 *	  Rows of a merge by approximate keys, verified a block at a time.
 *
 * The merge goes by the keys, a block of rows ahead.  Before a row of the block is returned, each
 * one is compared with the one before, unless both are of the same run, and the last one with the
 * next row of each run.  That proves the order.  If it is wrong, the rows of the block go back to
 * their runs, and are merged again by comparisons, as are all that follow (README.md has the
 * reasons).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RUN_BLOCK_H
#define GPUSORT_RUN_BLOCK_H

#include "run/run_set.h"

typedef struct GsRunBlock GsRunBlock;

/* The bytes of a block, within this limit of the sort's memory. */
extern Size gs_run_block_bytes(Size memory_limit);

/* For a merge of nsources runs that has begun.  In the current memory context. */
extern GsRunBlock *gs_run_block_create(Size memory_limit, int nsources);
extern void gs_run_block_free(GsRunBlock *block);

/*
 * The record of the next row, followed by the row; NULL: there is none, or the order by keys
 * was wrong.  Then the set's merge has begun again, with the next row, and is to be continued.
 */
extern const uint64 *gs_run_block_next(GsRunSet *set);

/* Was the order by keys wrong? */
extern bool gs_run_block_failed(const GsRunBlock *block);

/* After that: the next of the rows that went back to a run; NULL: it has to be read. */
extern const uint64 *gs_run_block_returned(GsRunBlock *block, int source);

#endif							/* GPUSORT_RUN_BLOCK_H */
