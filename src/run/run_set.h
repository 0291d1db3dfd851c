/*-------------------------------------------------------------------------
 *
 * run_set.h
 *	  A sort of more rows than memory holds: sorted runs, merged.
 *
 * The legal calls, in order:
 *
 *	  create { write_run | write_tuple } [ forget_keys ] { adopt } begin_merge { next } close
 *	  create { write_run | write_tuple } share close
 *
 * close is legal after any of them, and needed only to free what is no memory
 * before the query ends: files go with it anyway, memory with its context.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RUN_SET_H
#define GPUSORT_RUN_SET_H

#include "executor/tuptable.h"

#include "engine/engine.h"
#include "engine/run_merge.h"
#include "key/key_record.h"
#include "run/run_file.h"

typedef struct GsRunSetStats
{
	int64		nruns;			/* that were written by engines */
	int64		device_runs;	/* of these, by a device */
	const char *device;			/* its name */
	int64		nmerges;		/* of runs to a run, before the last merge */
	uint64		nrows;			/* of all runs */
	int64		disk_bytes;		/* at most */
} GsRunSetStats;

/* Runs that one process has written, for another to merge with its own. */
#define GS_MAX_SHARED_RUNS		64

typedef struct GsSharedRuns
{
	uint64		nread;			/* rows that came; those of the runs, unless some got lost */
	uint64		nrows;			/* of all of them */
	Size		longest;		/* of the rows, with their keys */
	Size		extent_bytes;	/* of their store */
	uint64		form;			/* gs_key_encoder_fingerprint() of the key, if they have any */
	int			first_tied;		/* of it */
	GsKeyLayout layout;			/* as observed; no columns: runs have no keys */
	int			nruns;
	GsRun		runs[GS_MAX_SHARED_RUNS];
} GsSharedRuns;

typedef struct GsRunSet GsRunSet;

/*
 * In the current memory context, where it may also make a small one of its own.
 * For runs of engines whose rows are of this type and have the order's layout, which
 * the driver goes on observing, as it does its key.  Where keys decide nothing the
 * order's layout has no columns, and runs have no keys.  memory_limit is the sort's; its files
 * go to `where`.
 */
extern GsRunSet *gs_run_set_create(const GsSortColumn *columns, int ncolumns, TupleDesc desc,
								const GsKeyEncoder *key, const GsMergeOrder *order,
								Size memory_limit, const GsRunFiles *where);

/* Has rows with equal keys compared, which was not known when it was made; if keys decide. */
extern void gs_run_set_compare_ties(GsRunSet *spill, GsRowCompare compare, void *compare_arg);

/* What of the memory limit a run's engine must leave, since it is needed to write the run. */
extern Size gs_run_set_writer_bytes(Size memory_limit);

/*
 * Writes the rows that an engine has sorted as the next run; or, if they are known
 * not to come before those of the last one, as more of it.  OK or FAILED.
 */
extern GsStatus gs_run_set_write_run(GsRunSet *spill, GsEngine *engine, bool lengthen);

/* Writes a row without keys as more of the last run; the order has none. */
extern void gs_run_set_write_tuple(GsRunSet *spill, MinimalTuple row);

/*
 * No run follows here: ends those that there are, and describes them for the process that is to
 * merge them, but for what the driver knows: how many rows came, and of the key.
 */
extern void gs_run_set_share(GsRunSet *spill, GsSharedRuns *shared);

/*
 * Has the merge take another process's runs, too.  Their keys do not count if the spill's order has
 * none; else they are of the same form, and the order's layout has observed these rows.  Where there
 * are more runs than can be merged at once, these give no room on disk back for what is merged of them.
 */
extern void gs_run_set_adopt(GsRunSet *spill, const GsSharedRuns *shared, const GsRunFiles *where);

/* Have its runs keys that count? */
extern bool gs_run_set_has_keys(const GsRunSet *spill);

/* Has rows merged by comparisons only, whatever keys they have: from begin_merge on. */
extern void gs_run_set_drop_keys(GsRunSet *spill, const GsMergeOrder *order);

/*
 * No run follows: merges runs until the rest can be merged at once, which
 * begins; all within a memory limit.
 */
extern void gs_run_set_begin_merge(GsRunSet *spill, Size memory_limit);

/*
 * The next row, or in a keys_only layout its record; NULL at the end.  Valid until
 * the next call.
 */
extern const void *gs_run_set_next(GsRunSet *spill);

extern const GsRunSetStats *gs_run_set_stats(GsRunSet *spill);
extern void gs_run_set_close(GsRunSet *spill);

#endif							/* GPUSORT_RUN_SET_H */
