/*-------------------------------------------------------------------------
 *
 * index_hook.h
 *	  Decides whether gpusort builds an index.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INDEX_HOOK_H
#define GPUSORT_INDEX_HOOK_H

/* From _PG_init(). */
extern void gs_index_hook_install(void);

#endif							/* GPUSORT_INDEX_HOOK_H */
