/*-------------------------------------------------------------------------
 *
 * sort_state.h
 *	  The state of a sort.
 *
 *	  spec			what is sorted, and how; does not change
 *	  participants	the other processes of a parallel plan
 *	  store			the rows (store/store.h)
 *	  input			how they come in
 *	  output		how they are returned
 *
 * Only the files of src/sort/ and those of the folders below change them (scripts/check-includes).
 * Callers use the functions of sort.h, and may read.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_STATE_H
#define GPUSORT_SORT_STATE_H

#include "key/key_row.h"
#include "read/read_groups.h"
#include "read/read_limit.h"
#include "share/share_rows.h"
#include "share/share_state.h"
#include "stats/stats.h"
#include "store/store.h"

typedef struct GsSortState GsSortState;

/* The other participants of a parallel plan (sort_parallel.c). */
typedef struct GsSortParticipants
{
	GsShared   *shared;			/* NULL: there are none */
	GsSortStreams *streams;		/* of a node; NULL: its participants send each other no rows */
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
	uint64		tied_check;		/* the number of rows at which these are examined for ties (read_tied.h) */
	bool		restarted;		/* a device failed, and the child ran twice */
} GsSortInput;

/* How the ties that a device leaves are ordered (sort_ties.c). */
typedef struct GsSortTies GsSortTies;

/* Rows are returned (sort_output.c). */
typedef struct GsSortOutput
{
	bool		leaves_ties;	/* a device has: the window is empty */
	GsSortTies *ties;			/* orders them, with a window of its own; NULL: no row was returned yet */
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
	GsSortSpec	spec;
	GsSortParticipants participants;
	GsStore		store;
	GsSortInput input;
	GsSortOutput output;
	GsSortStats stats;
};

/* Back to IDLE: frees what a sort holds, but for output.ties.  Callers use gs_sort_reset(). */
extern void gs_sort_clear(GsSortState *state);

#endif							/* GPUSORT_SORT_STATE_H */
