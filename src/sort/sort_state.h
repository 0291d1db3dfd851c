/*-------------------------------------------------------------------------
 *
 * sort_state.h
 *	  The state of a sort, in four parts.
 *
 *	  spec			what is sorted, and how; does not change
 *	  participants	the other processes of a parallel plan
 *	  input			rows come in: keys, the engine, memory, runs
 *	  output		rows are returned: positions, the window
 *
 * Only the files of src/sort/ change them (scripts/check-includes).  Callers use
 * the functions of sort_input.h, sort_output.h, sort_parallel.h and
 * sort_runs.h, and may read.
 *
 * Where the rows are (GsSortPhase):
 *
 *			read		 more rows			memory was full
 *	  IDLE ------> FEW ------------> ENGINE ----------------> RUNS
 *	   ^ |							 ^ | |	 cannot continue
 *	   | +---------------------------+ | +------------------> FALLBACK
 *	   |		   restart			   |
 *	   +-------------------------------+
 *
 * An engine that is full writes its rows as a run, and takes the following ones.
 * Restart: a device failed before a row was returned, and the child runs again.
 * FALLBACK follows IDLE or FEW if no engine can sort.  A rescan leads back to
 * IDLE from every phase.
 *
 * Everything that a sort allocates is in its memory context.  ERROR, cancel and
 * the end of the query need no other cleanup: files belong to the resource
 * owner, and a callback of the context closes the connection to gpusortd.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_STATE_H
#define GPUSORT_SORT_STATE_H

#include "nodes/execnodes.h"

#include "engine/engine.h"
#include "key/key_encoder.h"
#include "key/key_row.h"
#include "run/run_set.h"
#include "sort/sort_spec.h"
#include "sort_parts/sort_compare.h"
#include "sort_parts/sort_few.h"
#include "sort_parts/sort_shared.h"
#include "sort_parts/sort_topn.h"
#include "sort_parts/sort_tuplesort.h"
#include "sort_parts/sort_verify.h"
#include "stats/stats.h"

/* Where the rows are: see above. */
typedef enum GsSortPhase
{
	GS_SORT_IDLE,				/* nowhere: none was read yet */
	GS_SORT_FEW,				/* in input.few */
	GS_SORT_ENGINE,				/* in input.engine, earlier ones in input.runs */
	GS_SORT_RUNS,				/* in input.runs, being merged */
	GS_SORT_FALLBACK			/* in input.fallback */
} GsSortPhase;

typedef struct GsSortState GsSortState;

/* The rows that participants send to the leader, in shared memory (sort_streams.h). */
typedef struct GsSortStreams GsSortStreams;

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
	/* Called before the rows become a run.  True: they are those of another process now.  NULL: nothing is shared. */
	bool		(*end_input) (GsSortState *state, Size row_bytes, GsStatus *status);
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
	/* memory */
	Size		memory_limit;	/* for rows, keys, and the sort itself */
	Size		merge_limit;	/* for a merge of runs, while rows are returned */

	/* where the rows are */
	GsFew	   *few;			/* in parent_context, kept for the next sort */
	GsEngine   *engine;			/* in RUNS: its rows are one of the runs; NULL: none is */
	GsBatch    *batch;			/* of the engine, being filled; NULL: none */
	GsRunSet   *runs;			/* NULL: none */
	GsTuplesort fallback;
	const char *fallback_reason;
	GsStatus	space_status;	/* why there is no space for a row; OK: there is */

	/* their keys and order */
	GsKeyEncoder *key;
	bool		direct_key;		/* gs_key_encoder_is_direct() of it */
	bool		keys_only;		/* its layout's: the key is the row */
	GsRowForm  *form;			/* of rows that are only values; NULL: none came yet */
	GsSortCompare *compare;		/* where keys do not decide; NULL: they do */
	bool		counting;		/* gs_key_encoder_is_counting() of the key, or it was before the
								 * last row */
	uint64		tied_check;		/* the number of rows at which these are examined for ties (sort_tied.h) */
	bool		presorted;		/* all rows arrived in order so far, and have no
								 * keys: see sort_presorted.c */
	GsTopN		top;
	GsKeyVerification verification;

	/* the device */
	bool		may_use_device; /* rows may move there from the CPU engine */
	const char *device_reason;	/* why they did not; NULL: not tried */
	bool		restarted;		/* a device failed, and the child ran twice */

	uint64		nread;			/* rows that came in */
	uint64		nnulls;			/* keys_only: NULLs, which are counted, not stored */
} GsSortInput;

/* How the ties that a device leaves are ordered (sort_ties.c). */
typedef struct GsSortTies GsSortTies;

/* Rows fetched from an engine at a time. */
#define GS_SORT_WINDOW	8

/* Rows are returned (sort_output.c). */
typedef struct GsSortOutput
{
	uint64		nrows;			/* without those that top-N has dropped */
	int64		position;		/* of the row last returned, from 0; -1 before the
								 * first, nrows after the last */
	int64		mark;			/* a position */
	int64		window_start;	/* position of window[0] */
	int			window_rows;	/* 0: the window is empty */
	const void *window[GS_SORT_WINDOW];
	bool		leaves_ties;	/* a device has: the window is empty */
	GsSortTies *ties;			/* orders them, with a window of its own; NULL: no row was returned yet */
	uint64		nordered;		/* tied rows that comparisons have ordered, in runs and of those that a device left */
	bool		partial;		/* a range of the rows, which the caller verifies */
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
	GsSortPhase phase;
	MemoryContext context;		/* of what input and output refer to; NULL before
								 * the first sort */
	GsSortInput input;
	GsSortOutput output;
	GsSortStats stats;
};

/* The executor node of a sort. */
typedef struct GsSortNode
{
	CustomScanState css;		/* must be first */
	GsSortState sort;
} GsSortNode;

static inline GsSortState *
gs_node_sort(CustomScanState *node)
{
	return &((GsSortNode *) node)->sort;
}

/* Are the rows, or the last of them, in the memory of a device? */
static inline bool
gs_sort_is_on_device(const GsSortState *state)
{
	return state->phase == GS_SORT_ENGINE && state->input.engine->capabilities->on_device;
}

#endif							/* GPUSORT_SORT_STATE_H */
