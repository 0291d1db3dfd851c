/*-------------------------------------------------------------------------
 *
 * index_hook.h
 *	  Lets gpusort build and validate indexes: index_hook.c and index_validate.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INDEX_HOOK_H
#define GPUSORT_INDEX_HOOK_H

#include "access/genam.h"
#include "utils/snapshot.h"

/* From _PG_init(). */
extern void gs_index_hook_install(void);

/*
 * Why PostgreSQL would build this btree of a user's table, if gpusort is enabled: a phrase that
 * starts in lower case; NULL: gpusort would.  *nrows is the estimated number of the table's rows, 0
 * if unknown.
 */
extern char *gs_index_hook_why_not(Relation heap, Relation index, double *nrows);

/* ----------------------------------------------------------------- validation */

struct ValidateIndexState;

/* The transactions that had ended when a snapshot was taken. */
typedef struct GsEndedTransactions GsEndedTransactions;

/* Notes those of a snapshot, in one chunk of the current memory context. */
extern GsEndedTransactions *gs_ended_transactions_note(Snapshot snapshot);

/*
 * Begins to validate an index of a table.  Call it instead of the access method's ambulkdelete
 * function, with the arguments that PostgreSQL's validation passes.  before: transactions that had
 * ended when a snapshot was taken, that of whose rows the index was built or an earlier one.  It
 * must live until the end of the transaction, which fails if PostgreSQL does not call
 * index_validate_scan() of the heap next.  False: the table is not a heap, and nothing was done.
 */
extern bool gs_index_validate_begin(Relation heap, IndexVacuumInfo *info,
									IndexBulkDeleteCallback callback,
									struct ValidateIndexState *state,
									const GsEndedTransactions *before);

/* From _PG_init(). */
extern void gs_index_validate_install(void);

#endif							/* GPUSORT_INDEX_HOOK_H */
