/*-------------------------------------------------------------------------
 *
 * index_hook.h
 *	  Decides whether gpusort builds an index.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INDEX_HOOK_H
#define GPUSORT_INDEX_HOOK_H

#include "utils/relcache.h"

/* From _PG_init(). */
extern void gs_index_hook_install(void);

/*
 * Why PostgreSQL would build this btree of a user's table, if gpusort is enabled: a phrase that
 * starts in lower case; NULL: gpusort would.  *nrows is the estimated number of the table's rows, 0
 * if unknown.
 */
extern char *gs_index_hook_why_not(Relation heap, Relation index, double *nrows);

#endif							/* GPUSORT_INDEX_HOOK_H */
