/*-------------------------------------------------------------------------
 *
 * cluster_hook.h
 *	  Lets gpusort sort the rows of a table that CLUSTER copies.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_CLUSTER_HOOK_H
#define GPUSORT_CLUSTER_HOOK_H

/* From _PG_init(). */
extern void gs_cluster_hook_install(void);

#endif							/* GPUSORT_CLUSTER_HOOK_H */
