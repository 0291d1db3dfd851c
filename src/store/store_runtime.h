/*-------------------------------------------------------------------------
 *
 * store_runtime.h
 *	  What a backend lends to an engine: memory of a context, interrupts.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_STORE_RUNTIME_H
#define GPUSORT_STORE_RUNTIME_H

#include "engine/engine.h"

/*
 * Memory is allocated in the context, so resetting it frees all that an engine
 * holds, also after an ERROR.  Large blocks use huge pages.  check_interrupts is
 * CHECK_FOR_INTERRUPTS().
 */
extern void gs_sort_runtime_init(GsRuntime *runtime, MemoryContext context);

#endif							/* GPUSORT_STORE_RUNTIME_H */
