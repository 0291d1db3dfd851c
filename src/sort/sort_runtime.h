/*-------------------------------------------------------------------------
 *
 * sort_runtime.h
 *	  What a backend offers to an engine: memory of a context, interrupts.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_RUNTIME_H
#define GPUSORT_SORT_RUNTIME_H

#include "engine/engine.h"

/*
 * The memory comes from the context, so that resetting it frees everything an
 * engine holds, after an ERROR too; large pieces ask for huge pages.
 * check_interrupts is CHECK_FOR_INTERRUPTS.
 */
extern void gs_sort_runtime_init(GsRuntime *host, MemoryContext context);

#endif							/* GPUSORT_SORT_RUNTIME_H */
