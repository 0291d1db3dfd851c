/*-------------------------------------------------------------------------
 *
 * gpusort.h
 *	  The settings.  gpusort.c defines and documents them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_H
#define GPUSORT_H

typedef enum GsEngineChoice
{
	GS_ENGINE_AUTO,
	GS_ENGINE_CPU,
	GS_ENGINE_CUDA
} GsEngineChoice;

extern bool gpusort_enabled;
extern int	gpusort_engine;		/* a GsEngineChoice */
extern int	gpusort_min_rows;
extern bool gpusort_force;
extern bool gpusort_debug_plan;
extern bool gpusort_explain_as_sort;

#endif							/* GPUSORT_H */
