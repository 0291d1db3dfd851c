/*-------------------------------------------------------------------------
 *
 * sort_state.h
 *	  The state of a sort, and what the files of src/sort/ offer each other.
 *
 * Only these files and those of the folders below change the parts (scripts/check-includes).
 * Callers use the functions of sort.h, and may read.  README.md lists the parts.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_STATE_H
#define GPUSORT_SORT_STATE_H

#include "key/key_stored_row.h"
#include "read/read_groups.h"
#include "read/read_limit.h"
#include "share/share_ranges.h"
#include "share/share_streams.h"
#include "share/share_state.h"
#include "stats/stats.h"
#include "store/store.h"

typedef struct GsSortState GsSortState;

/* Which rows of a group are returned (sort_group_rows.c). */
typedef struct GsGroupRows GsGroupRows;

/* The other participants of a parallel plan (sort_parallel.c). */
typedef struct GsSortParticipants
{
	GsShared   *shared;			/* NULL: there are none */
	GsShareStreams *streams;		/* of a node; NULL: its participants send each other no rows */
	GsShareRanges *ranges;		/* of a node with spec.ngrouped; NULL: it returns all rows */
	bool		reads;			/* a share of the input; false: it came too late for ranges */
	bool		leader_comes;	/* in the leader: it executes the node whenever its workers do */
	bool		in_ranges;		/* it returns rows of the range that it has taken */
	uint64		range_start;	/* the position at which that range starts */
	GsGroupRows *group_rows;	/* of the group that is returned; NULL: there is none yet, or all
								 * its rows are needed */
	dsa_area   *memory;			/* of the query, for them: it lives as long as its workers and the
								 * Gather Merge do */
	ExprContext *gather_context;	/* of the Gather Merge above; NULL: none, or in a worker */
	GsRole		role;			/* in a job; SERIAL again once the rows are where they belong */
	GsRole		of_streams;		/* the role where producers send sorted rows, which
								 * the consumer merges with its own */
	bool		sends;			/* a producer has rows to send, when its node ends */
	GsSharedJob job;			/* of a consumer or producer */
	GsEngine   *reader;			/* of a producer that will read that job; NULL: it will not */
	uint64		nsent;			/* rows sent to the consumer */
	uint64		wait_us;		/* that the consumer waited for producers */
	int			nparticipants;	/* in the leader, after shutdown */
	GsSortSummary *summaries;	/* of each of these */
} GsSortParticipants;

/* Rows come in and are sorted (sort_input.c). */
typedef struct GsSortInput
{
	GsRowForm  *form;			/* of rows that are only values; NULL: none came yet */
	bool		counting;		/* gs_key_encoder_is_counting() of the key, or it was before the
								 * last row */
	uint64		tied_check;		/* the number of rows at which they are examined for ties */
	bool		restarted;		/* a device failed, and the child ran twice */
} GsSortInput;

/* How the ties that a device leaves are ordered (sort_device_ties.c). */
typedef struct GsSortTies GsSortTies;

/* Rows are returned (sort_output.c). */
typedef struct GsSortOutput
{
	bool		leaves_ties;	/* a device has: the window is empty */
	GsSortTies *ties;			/* orders the rows; NULL: none was returned yet */
	GsOutputVerification *verification; /* NULL unless spec.verify_output */
} GsSortOutput;

/* What it tells the statistics (sort_stats.c). */
typedef struct GsSortStats
{
	GsActivity	activity;
	bool		active;			/* it has begun, and not ended */
	uint64		step_start_us;
	uint64		us[GS_NSTEPS];
	MemoryContextCallback callback; /* of the sort's context */
} GsSortStats;

struct GsSortState
{
	GsSortSpec	spec;			/* what is sorted, and how; does not change */
	GsSortParticipants participants;
	GsStore		store;			/* the rows */
	GsSortInput input;
	GsSortOutput output;
	GsSortStats stats;
};

/* Between the files of src/sort/; callers use sort.h. */

/* Back to IDLE: frees what a sort holds, but for output.ties. */
extern void gs_sort_clear(GsSortState *state);

/* ------------------------------------------------------ sort_presorted.c */

/*
 * Rows that arrive in the requested order: decides whether that is worth a try, before the engine
 * opens (order.presorted, and the comparator for it).
 */
extern void gs_presorted_begin(GsSortState *state);

/*
 * Adds the slot's row to the engine of such rows; form as for gs_row_source_init().  False: the row
 * sorts before the last one, or memory is full; gs_sort_reload() is to follow.
 */
extern bool gs_presorted_add(GsSortState *state, TupleTableSlot *slot, const GsRowForm *form);

/* ----------------------------------------------------------- sort_keys.c */

/*
 * Would other keys suit the rows that were kept (store_few.h), and those that will follow them,
 * better?
 */
extern bool gs_sort_few_want_other_keys(const GsSortState *state);

/* Would other keys suit the rows so far better?  all_read: no more rows follow. */
extern bool gs_sort_wants_other_keys(GsSortState *state, bool all_read);

/* Adds a row in the way of all rows.  False: the engine failed. */
typedef bool (*GsAddRow) (GsSortState *state, TupleTableSlot *slot);

/*
 * Adds the rows of the engine to another engine, with keys if they have none, or with other keys.
 * False: the engine failed and has lost them.
 */
extern bool gs_sort_reload(GsSortState *state, GsAddRow add);

/*
 * Adds the rows that a device has sorted in a wrong order to another engine, with the same keys:
 * in the order that it found, in which equal rows are in input order.  False: the engine failed and
 * has lost them.
 */
extern bool gs_sort_take_back(GsSortState *state, GsAddRow add);

/* ----------------------------------------------------------- sort_device_ties.c */

/*
 * Orders rows that a device leaves tied, if the last columns are only compared or have no full key.
 * The next row that the engine has sorted, in the sort's slot; forward only.  There must be one.
 * Valid until the next call.  NULL: the engine failed.  Comparators may raise errors.
 */
extern TupleTableSlot *gs_sort_device_ties_next(GsSortState *state);

/* No more rows are returned. */
extern void gs_sort_device_ties_end(GsSortState *state);

#endif							/* GPUSORT_SORT_STATE_H */
