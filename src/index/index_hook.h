/*-------------------------------------------------------------------------
 *
 * index_hook.h
 *	  Which index builds are gpusort's.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INDEX_HOOK_H
#define GPUSORT_INDEX_HOOK_H

/* To be called once, when the library is loaded. */
extern void gs_index_hook_install(void);

#endif							/* GPUSORT_INDEX_HOOK_H */
