/*-------------------------------------------------------------------------
 *
 * sort_state.h
 *	  The state of a sort: what its parts share.
 *
 * Rows come from the child of an executor node (node_gpusort.c), or from an index build
 * (index_sort.c), each of which fills in what is sorted.  sort_input.c takes them,
 * sort_place.c finds room for them, sort_fallback.c gives them up to PostgreSQL's
 * sort, sort_parallel.c to another participant; sort_output.c hands them out in order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_STATE_H
#define GPUSORT_SORT_STATE_H

#include "executor/tuptable.h"
#include "nodes/execnodes.h"

#include "engine/engine.h"
#include "sort/sort_limit.h"
#include "sort/sort_compare.h"
#include "sort/sort_few.h"
#include "key/key_record.h"
#include "sort/sort_shared.h"
#include "run/run_set.h"
#include "sort/sort_tuplesort.h"
#include "sort/sort_topn.h"
#include "sort/sort_verify.h"

/* Where the rows are: see node_gpusort.c. */
typedef enum GsSortPhase
{
	GS_SORT_IDLE,				/* nowhere: nothing was read yet */
	GS_SORT_FEW,				/* here, being few, sorted */
	GS_SORT_ENGINE,				/* in the engine, sorted */
	GS_SORT_MERGE,				/* in sorted runs that are being merged */
	GS_SORT_FALLBACK				/* in a tuplesort, sorted */
} GsSortPhase;

/* Rows taken from the engine at a time. */
#define GS_SORT_WINDOW	8

typedef struct GsSortState
{
	/* what is sorted */
	TupleDesc	desc;			/* of the rows */
	GsSortColumn *columns;
	int			ncolumns;
	int			nstable;		/* further columns, by which ties come: a sort that
								 * is stable need not look at them */
	double		expected_rows;
	int			expected_width; /* of a row's values, in bytes */
	bool		random_access;	/* may be rewound, marked, read backward */
	GsLimitState *bound;		/* NULL: no LIMIT */
	ExprContext *econtext;		/* of the bound */
	bool		verified;		/* rows are looked at as they leave */
	PlanState  *child;			/* gives the rows; NULL: gs_sort_add() does */
	bool		repeatable;		/* it may run again, for the same rows */
	MemoryContext parent_context;	/* of the sort's own */
	bool		merged_elsewhere;		/* its runs are merged with others', by who says when */
	GsRunFiles	run_files;		/* where they go, if another process does that */
	TupleTableSlot *slot;		/* of a minimal tuple: rows are handed out in it */

	/* the other participants of a parallel plan: sort_parallel.c */
	bool		may_share;		/* a job with them */
	GsShared   *shared;			/* NULL: there are none */
	GsRole		role;			/* until all rows are where they belong: ALONE then */
	GsSharedJob shared_job;		/* unless ALONE */
	uint64		nsent;			/* rows that are the owner's */
	uint64		wait_us;		/* that the owner waited for feeders */
	int			nparticipants;	/* once they are through */
	GsSortSummary *summaries;	/* of each, in the leader */

	/* the sort */
	GsSortPhase phase;
	GsFew	   *few;			/* the first rows, in parent_context, where it stays
								 * for the next sort; NULL before the first */
	MemoryContext context;		/* of everything below; empty if idle, NULL before
								 * the first sort */
	GsKeyEncoder  *key;
	bool		direct_key;		/* gs_key_encoder_is_direct() of it */
	bool		keys_only;		/* its layout's */
	Size		memory_limit;	/* for rows, keys, and to sort them */
	Size		merge_limit;	/* for a merge of runs, while rows leave */
	GsEngine   *engine;			/* once past FEW, unless all went elsewhere */
	GsBatch    *batch;			/* of it, that rows are put in; NULL before the first */
	GsTopN		top;			/* if a LIMIT asks for the first rows only */
	GsRunSet    *spill;			/* runs of those before it; NULL if there are none */
	GsFallbackSort fallback;
	bool		may_use_device;		/* from the CPU engine to a device */
	const char *device_reason;	/* why they did not; NULL if not tried */
	bool		restarted;	/* a device was lost, and the child ran twice */
	const char *fallback_reason;	/* why the rows are in a tuplesort */
	GsSortCompare *compare;		/* decides where the key does not; NULL if it does */
	bool		presorted;		/* no row was below the one before, and none has
								 * a key, nor has the run: see sort_presorted.c */
	GsSortVerification verification;			/* of the order, where the key needs one */
	bool		refuted;		/* it failed */
	uint64		nread;			/* rows that came */
	uint64		nnulls;			/* keys_only: rows that are a NULL, not stored */
	uint64		nrows;			/* in all, once sorted; not those that top has
								 * dropped */

	/* the hand-out */
	int64		position;		/* of the row last handed out, from 0; -1
								 * before the first, nrows after the last */
	int64		mark;			/* a position */
	int64		window_start;	/* position of window[0] */
	int			window_rows;	/* 0 if the window is empty */
	const void *window[GS_SORT_WINDOW];
	GsSortVerify *verify;		/* looks on; NULL if gpusort.verify is off */
} GsSortState;

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

/* Bytes of a row and its record, as estimated. */
static inline double
gs_sort_row_bytes(const GsSortState *state)
{
	const GsKeyLayout *layout = gs_key_encoder_layout(state->key);
	double		row_bytes = gs_record_bytes(layout);

	if (!layout->keys_only)
		row_bytes += MAXALIGN(SizeofMinimalTupleHeader) + MAXALIGN(state->expected_width);
	return row_bytes;
}

static inline bool
gs_sort_is_device(const GsEngine *engine)
{
	return engine->stats.device != NULL;
}

/* Has the engine lost its rows? */
static inline bool
gs_sort_engine_failed(const GsSortState *state)
{
	return state->engine != NULL && state->engine->stats.detail != NULL;
}

/* Has the window begin with the row at a position; it may get fewer than there are. */
static inline GsStatus
gs_sort_fill_window(GsSortState *state, int64 position)
{
	size_t		fetched;
	GsStatus	status = gs_engine_fetch(state->engine, position, GS_SORT_WINDOW,
										 state->window, &fetched);

	state->window_start = position;
	state->window_rows = status != GS_STATUS_OK ? 0 :
		(int) Min((int64) fetched, gs_topn_nrows(&state->top) - position);
	return status;
}

/* Puts one value that was kept as a key only into the result slot. */
static inline void
gs_sort_store_value(const GsSortState *state, const void *record, TupleTableSlot *slot)
{
	ExecClearTuple(slot);
	slot->tts_isnull[0] = record == NULL;
	slot->tts_values[0] = record == NULL ? (Datum) 0 : gs_key_record_decode(state->key, record);
	ExecStoreVirtualTuple(slot);
}

/* Puts a stored row into the result slot; NULL is a counted NULL. */
static inline void
gs_sort_store_row(const GsSortState *state, const void *row, TupleTableSlot *slot)
{
	if (state->keys_only)
		gs_sort_store_value(state, row, slot);
	else
		ExecStoreMinimalTuple((MinimalTuple) unconstify(void *, row), slot, false);
}

#endif							/* GPUSORT_SORT_STATE_H */
