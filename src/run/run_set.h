/*-------------------------------------------------------------------------
 *
 * run_set.h
 *	  The runs of a sort that exceeds memory, and their merge.
 *
 * The legal calls, in order:
 *
 *	  create { write_run | begin_run | write_tuple | drop_keys } [ add_engine ]
 *		  { adopt | drop_keys } begin_merge { next } | send close
 *	  create { write_run | begin_run | write_tuple } [ add_engine ]
 *		  complete [ describe ] { adopt } [ begin_merge ] send close
 *	  create { write_run | begin_run | write_tuple }
 *		  share { adopt | drop_keys } [ begin_range { next } ] close
 *
 * close is legal after any of them.  It is needed only to free resources before the query
 * ends: the files belong to the resource owner, and the memory to its context.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RUN_SET_H
#define GPUSORT_RUN_SET_H

#include "executor/tuptable.h"

#include "engine/engine.h"
#include "engine/merge_tree.h"
#include "key/key_encode_row.h"
#include "run/run_file.h"
#include "run/run_stream.h"

typedef struct GsRunSetStats
{
	int64		nruns;			/* written by engines */
	int64		device_runs;	/* of these, by a device */
	const char *device;			/* its name */
	GsDeviceSet devices;		/* of all these runs; see GsEngineStats */
	int64		nmerges;		/* of runs to a run, before the last merge */
	uint64		ncomparisons;	/* that verified merges by approximate keys */
	uint64		nrepaired;		/* of these merges, those whose order was wrong */
	uint64		nrows;			/* of all runs */
	uint64		ndropped;		/* that its runs lack, as they are not needed */
	int64		disk_bytes;		/* peak */
} GsRunSetStats;

/* How many runs a process can share with another, which merges them with its own. */
#define GS_MAX_SHARED_RUNS		256

/* What a process that merges the rows of another must know of them. */
typedef struct GsSharedRows
{
	uint64		nread;			/* rows of the input; must equal nrows + nnulls + ndropped */
	uint64		nrows;			/* rows of the runs */
	uint64		nnulls;			/* keys_only: in addition to nrows */
	uint64		ndropped;		/* that the runs lack, as they are not needed */
	Size		longest;		/* bytes of the longest row */
	uint64		form;			/* gs_key_encoder_fingerprint(), if keys order them */
	int			first_tied;		/* as GsKeyFacts has it */
	GsKeyLayout layout;			/* with statistics; no columns: comparisons order them */
} GsSharedRows;

typedef struct GsSharedRuns
{
	GsSharedRows rows;
	Size		extent_bytes;	/* of their store */
	int			nruns;
	GsRun		runs[GS_MAX_SHARED_RUNS];
} GsSharedRuns;

typedef struct GsRunSet GsRunSet;

/*
 * Creates a set in the current memory context, for rows of this type from engines with the order's
 * layout.  The caller continues to update the statistics of that layout, and to use its encoder,
 * whose keys are made again as runs are read.  If only comparisons order rows, the order's layout
 * has no columns.  memory_limit is that of the sort, in bytes; the files are created in `where`.
 */
extern GsRunSet *gs_run_set_create(const GsSortColumn *columns, int ncolumns, TupleDesc desc,
								const GsKeyEncoder *key, const GsMergeOrder *order,
								Size memory_limit, const GsRunPlace *where);

/* Compares rows with equal keys from now on, if keys decide. */
extern void gs_run_set_compare_ties(GsRunSet *set, const GsRowCompare *compare, void *compare_arg);

/* Rows that are equal in some columns are a group, of which only the first ones are needed. */
typedef struct GsRunGroups
{
	bool		(*is_one_group) (void *arg, const MinimalTupleData *a, const MinimalTupleData *b);
	void	   *arg;
	int			limit;			/* so many rows of each group; 0: all */
} GsRunGroups;

/*
 * From now on, rows that are not needed do not become a run, if these are many.  Groups must be
 * together in the set's order.
 */
extern void gs_run_set_limit_groups(GsRunSet *set, const GsRunGroups *groups);

/* Bytes of the memory limit that the engine must not use, because writing a run needs them. */
extern Size gs_run_set_writer_bytes(Size memory_limit);

/*
 * Writes the sorted rows of an engine as the next run; or appends them to the last run, if none
 * sorts before its rows, as the caller knows (in_order) or a comparison finds.  Returns OK or
 * FAILED.
 */
extern GsStatus gs_run_set_write_run(GsRunSet *set, GsEngine *engine, bool in_order);

/*
 * Begins the next run, of rows that the engine has sorted, but for those that tie; write_tuple
 * appends them.
 */
extern void gs_run_set_begin_run(GsRunSet *set, const GsEngine *engine);

/* Appends a row to the last run, or begins the first run; not of keys only. */
extern void gs_run_set_write_tuple(GsRunSet *set, MinimalTuple row);

/*
 * Adds the sorted rows of a CPU engine as the next run, without writing them: they are read from
 * the engine, which stays open.  Once.  Later runs can only be adopted.
 */
extern void gs_run_set_add_engine(GsRunSet *set, GsEngine *engine);

/*
 * Describes the rows for a process that merges them.  The caller sets nread, nnulls, ndropped, form
 * and first_tied.
 */
extern void gs_run_set_describe(const GsRunSet *set, GsSharedRows *rows);

/*
 * Completes the runs, and describes them and their rows.  Merges some, so that the runs of so many
 * sets can be merged at once.
 */
extern void gs_run_set_share(GsRunSet *set, GsSharedRuns *shared, int nsets);

/*
 * Adds the runs of another process to the merge.  If the order has keys, theirs must have had the
 * same fingerprint, and the statistics of the order's layout must cover their rows.  Merging them
 * does not free their extents.
 */
extern void gs_run_set_adopt(GsRunSet *set, const GsSharedRuns *shared, const GsRunPlace *where);

/*
 * Adds the rows that another process sends, as one run, while they are merged; if the order has
 * keys, the requirements are those of gs_run_set_adopt().  stream NULL: they come with those of
 * another stream.
 */
extern void gs_run_set_adopt_stream(GsRunSet *set, const GsSharedRows *rows, GsRunStream *stream,
									dsa_area *memory);

/* Sends the rows of the merge that has begun, or else those of the engine, the only ones. */
extern void gs_run_set_send(GsRunSet *set, GsRunStream *stream, dsa_area *memory);

/* Are rows merged by keys? */
extern bool gs_run_set_has_keys(const GsRunSet *set);

/* Uses no keys from now on: rows are merged by comparisons only. */
extern void gs_run_set_drop_keys(GsRunSet *set, const GsMergeOrder *order);

/*
 * Completes the runs: drops keys that are not worth it, and merges some of the runs until the rest
 * can be merged at once within memory_limit bytes.
 */
extern void gs_run_set_complete(GsRunSet *set, Size memory_limit);

/* Completes the runs (gs_run_set_complete()), and begins to merge the rest. */
extern void gs_run_set_begin_merge(GsRunSet *set, Size memory_limit);

/*
 * Divides the rows of all runs into ranges of about equal numbers of bytes, none of them
 * empty, and begins to merge the rows from the first one of a range on.  *end: a copy of the
 * first row of the next range; NULL: there is none.  The merge goes on beyond it.
 *
 * All processes that have adopted the same runs divide them in the same way, if no two rows
 * are equal.  False, for all of them: the runs are too small, or too many for memory_limit,
 * or were merged before.  Then begin_merge is legal.
 */
extern bool gs_run_set_begin_range(GsRunSet *set, Size memory_limit, int range, int nranges,
								   MinimalTuple *end);

/*
 * Divides the rows of all runs into ranges, and begins to merge those of a range; legal again for
 * another one.  A range ends where the columns change that groups compares (its layout is not
 * used), so it may be empty.  False as above.
 */
extern bool gs_run_set_begin_groups(GsRunSet *set, Size memory_limit, int range, int nranges,
									const GsMergeOrder *groups);

/*
 * Returns the next row, or its record if keys_only, or NULL at the end.  It is valid until
 * the next call.
 */
extern const void *gs_run_set_next(GsRunSet *set);

extern const GsRunSetStats *gs_run_set_stats(GsRunSet *set);
extern void gs_run_set_close(GsRunSet *set);

#endif							/* GPUSORT_RUN_SET_H */
