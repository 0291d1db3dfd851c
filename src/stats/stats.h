/*-------------------------------------------------------------------------
 *
 * stats.h
 *	  Statistics of all sessions: what gpusort has sorted, and who sorts now.
 *
 * Each process alone writes its slot in shared memory, without a lock (README.md).  Without that
 * memory, updates have no effect; nothing here fails.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_STATS_H
#define GPUSORT_STATS_H

#include "datatype/timestamp.h"
#include "lib/ilist.h"
#include "utils/palloc.h"

#include "common/device_table.h"

/* What sorted the rows. */
typedef enum GsSorter
{
	GS_SORTER_NONE,				/* comparisons of few rows */
	GS_SORTER_CPU,				/* the CPU engine */
	GS_SORTER_DEVICE,			/* a device */
	GS_SORTER_POSTGRES			/* a tuplesort, as the fallback */
} GsSorter;

/*
 * The counters, in the order of the columns of pg_stat_gpusort.  Those of sorts and index builds
 * are in the order of GsSorter.
 */
typedef enum GsStat
{
	GS_STAT_SORTS_SMALL,		/* sorts of executor nodes whose rows were sorted */
	GS_STAT_SORTS_CPU,
	GS_STAT_SORTS_DEVICE,
	GS_STAT_SORTS_POSTGRES,
	GS_STAT_BUILDS_CPU,			/* indexes that were written */
	GS_STAT_BUILDS_DEVICE,
	GS_STAT_BUILDS_POSTGRES,
	GS_STAT_ABORTED,			/* before the rows were sorted, or the index was written */
	GS_STAT_ROWS,				/* of the input */
	GS_STAT_BYTES_SENT,			/* to devices */
	GS_STAT_BYTES_RECEIVED,		/* from devices */
	GS_STAT_TEMP_BYTES,			/* of temporary files */
	GS_STAT_INPUT_US,
	GS_STAT_SORT_US,
	GS_STAT_OUTPUT_US,
	GS_STAT_FALLBACKS_MEMORY,	/* to a tuplesort, as memory was full */
	GS_STAT_FALLBACKS_KEY,		/* as rows had no key */
	GS_STAT_FALLBACKS_ORDER,	/* as keys were disproved */
	GS_STAT_REFUSALS_DEVICE,	/* of a device: there is none that the session can use */
	GS_STAT_REFUSALS_MEMORY,	/* it has no memory for the sort, or for more rows */
	GS_STAT_REFUSALS_SESSION,	/* the session has as many sorts on devices as it may */
	GS_STAT_REFUSALS_KEY,		/* a device cannot sort such keys */
	GS_STAT_REPAIRS,			/* orders by approximate keys that were corrected */
	GS_STAT_DEVICE_FAULTS,		/* failures of devices that sorts have met */
	GS_STAT_VALIDATIONS,		/* of indexes that were built CONCURRENTLY, by gpusort */
	GS_STAT_VALIDATIONS_POSTGRES,	/* by PostgreSQL, as memory was full */
	GS_NSTATS
} GsStat;

/* What a sort is doing. */
typedef enum GsSortStep
{
	GS_STEP_INPUT,				/* reads rows */
	GS_STEP_SORT,
	GS_STEP_OUTPUT,				/* returns rows, or writes the index */
	GS_NSTEPS
} GsSortStep;

/* A sort in progress, for pg_stat_gpusort_activity. */
typedef struct GsActivity
{
	dlist_node	node;			/* in this process; outer sorts follow inner ones */
	bool		of_index;
	GsSortStep	step;
	GsSorter	sorter;			/* so far */
	GsDeviceSet devices;
	uint64		nrows;			/* of the input, so far */
	uint64		start_us;		/* gs_clock_us() */
} GsActivity;

/* Adds to a counter of this process. */
extern void gs_stats_add(GsStat stat, uint64 n);

/* A sort begins, changes, ends.  The latest sort that has not ended is shown. */
extern void gs_stats_begin_activity(GsActivity *activity);
extern void gs_stats_show_activity(const GsActivity *activity);
extern void gs_stats_end_activity(GsActivity *activity);

/* ------------------------------------------------------- for SQL functions */

typedef struct GsDatabaseStats
{
	Oid			database;		/* InvalidOid: those beyond the maximum number, together */
	uint64		counters[GS_NSTATS];
} GsDatabaseStats;

typedef struct GsProcessActivity
{
	int			pid;
	Oid			database;
	Oid			role;
	GsActivity	activity;
} GsProcessActivity;

/* The statistics of all databases that have any, palloc'd, and since when they count. */
extern GsDatabaseStats *gs_stats_read(int *ndatabases, TimestampTz *since);

/* The processes that sort, palloc'd.  The values can be of different moments. */
extern GsProcessActivity *gs_stats_read_activity(int *nprocesses);

/* Counts from zero again. */
extern void gs_stats_reset(void);

#endif							/* GPUSORT_STATS_H */
