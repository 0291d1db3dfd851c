/*-------------------------------------------------------------------------
 *
 * guc.h
 *	  The settings, which gpusort.c defines and documents; and where the library is.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GUC_H
#define GPUSORT_GUC_H

typedef enum GsEngineChoice
{
	GS_ENGINE_AUTO,
	GS_ENGINE_CPU,
	GS_ENGINE_CUDA
} GsEngineChoice;

typedef enum GsDeviceChoice
{
	GS_DEVICE_CHOICE_AUTO,
	GS_DEVICE_CHOICE_HOST
} GsDeviceChoice;

typedef enum GsLibcChoice
{
	GS_LIBC_VERIFY,
	GS_LIBC_OFF
} GsLibcChoice;

extern bool gpusort_enabled;
extern bool gpusort_enable_create_index;
extern int	gpusort_engine;		/* a GsEngineChoice */
extern int	gpusort_min_rows;
extern int	gpusort_device_min_rows;
extern int	gpusort_device_wait;	/* ms */
extern int	gpusort_device_session_memory;	/* MB; 0: no limit of its own */
extern int	gpusort_device_session_sorts;	/* each has a link: a descriptor, pinned memory */
extern int	gpusort_algorithm;	/* a GsAlgorithm: src/common/protocol.h */
extern int	gpusort_libc_collations;	/* a GsLibcChoice */
extern bool gpusort_verify;
extern bool gpusort_planner_cost;
extern bool gpusort_force;
extern bool gpusort_debug_plan;
extern bool gpusort_explain_as_sort;
extern bool gpusort_collation_fault;

/* of gpusortd */
extern int	gpusort_device;		/* a GsDeviceChoice */
extern int	gpusort_device_memory_limit;	/* MB; 0: most of it */
extern int	gpusort_device_park_limit;	/* MB; 0: none, -1: no limit */
extern int	gpusort_device_idle;	/* s */
extern int	gpusort_service_timeout;	/* ms; 0: none */
extern char *gpusort_service_path;	/* "": in the server's folder */
extern char *gpusort_service_fault; /* "": none */

/*
 * The file that this library was loaded from.  Other processes must load that
 * one: another copy would define the settings once more, which is an ERROR.
 */
extern const char *gs_library_path(void);

#endif							/* GPUSORT_GUC_H */
