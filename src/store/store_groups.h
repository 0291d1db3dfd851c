/*-------------------------------------------------------------------------
 *
 * store_groups.h
 *	  Groups of rows: those with equal leading columns, spec.ngrouped of them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_STORE_GROUPS_H
#define GPUSORT_STORE_GROUPS_H

#include "store/store.h"

/* Compares the columns of groups. */
extern GsOrder *gs_store_group_order(GsStore *store);

/* Are two rows in one group? */
extern bool gs_store_is_one_group(GsStore *store, const MinimalTupleData *a,
								  const MinimalTupleData *b);

/* The runs of the store lack rows that are not needed (spec.group_limit). */
extern void gs_store_limit_groups(GsStore *store);

#endif							/* GPUSORT_STORE_GROUPS_H */
