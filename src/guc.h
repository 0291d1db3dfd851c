/*-------------------------------------------------------------------------
 *
 * guc.h
 *	  The settings, and the path of the library.
 *
 * docs/settings.md documents the settings.
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

typedef enum GsLibcChoice
{
	GS_LIBC_VERIFY,
	GS_LIBC_OFF
} GsLibcChoice;

extern bool gpusort_enabled;
extern bool gpusort_enable_cluster;
extern bool gpusort_enable_create_index;
extern bool gpusort_enable_gin;
extern bool gpusort_enable_index_validation;
extern bool gpusort_enable_ranges;
extern bool gpusort_enable_parallel_index_write;
extern int	gpusort_engine;		/* a GsEngineChoice */
extern int	gpusort_min_rows;
extern int	gpusort_device_min_rows;
extern int	gpusort_device_wait;	/* ms */
extern int	gpusort_device_session_sorts;	/* each has a socket and pinned memory */
extern int	gpusort_algorithm;	/* a GsAlgorithm: src/common/protocol.h */
extern int	gpusort_libc_collations;	/* a GsLibcChoice */
extern bool gpusort_verify;
extern bool gpusort_planner_cost;
extern bool gpusort_force;
extern bool gpusort_debug_plan;
extern int	gpusort_log_min_duration;	/* ms; -1: none */

/* settings of gpusortd */
extern char *gpusort_device;	/* for gs_device_choice_parse(): src/common/device_table.h */
extern int	gpusort_device_memory_limit;	/* MB, of each; 0: nine tenths */
extern int	gpusort_device_park_limit;	/* MB, of each; 0: no files, -1: no limit */
extern int	gpusort_device_idle;	/* s */
extern int	gpusort_service_timeout;	/* ms; 0: none */
extern char *gpusort_service_path;	/* "": in the server's directory */

/* From _PG_init(). */
extern void gs_guc_define(void);

/*
 * The DETAIL of a message of gpusort.debug_plan: the reason why gpusort does not do something, as a
 * sentence.  In the parameters of ereport().
 */
extern int	gs_errdetail_reason(const char *reason);

/*
 * The HINT of an ERROR that only a bug can cause, likewise.  setting, such as "enable_cluster",
 * avoids the code; what: such as "cluster the table".
 */
extern int	gs_errhint_bug(const char *setting, const char *what);

/*
 * The NOTICE of gpusort.debug_plan whether gpusort does `what`, such as "building index".  detail,
 * or NULL: why not, or how, as in gs_errdetail_reason().
 */
extern void gs_report_choice(const char *what, const char *name, bool by_gpusort,
							 const char *detail);

/*
 * The file that this library was loaded from.  Other processes must load
 * the same file, because a second copy would define the settings again, which is an ERROR.
 */
extern const char *gs_library_path(void);

#endif							/* GPUSORT_GUC_H */
