/*-------------------------------------------------------------------------
 *
 * sort_parallel.h
 *	  A GpuSort in a parallel plan: one participant returns the rows of all.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_PARALLEL_H
#define GPUSORT_SORT_PARALLEL_H

#include "sort/sort_state.h"

/*
 * The Gather Merge above a sort that may be shared, before it is created: its participants may send
 * each other rows.  The context is that of the Gather Merge.
 */
extern void gs_sort_parallel_set_gather(GsSortState *state, ExprContext *context);

/* Likewise below a Gather or Gather Merge: the leader executes the sort whenever its workers do. */
extern void gs_sort_parallel_expect_leader(GsSortState *state);

/*
 * What the participants of a node's sort share.  The leader creates it in memory of so many bytes,
 * in a segment if there are workers (else NULL), before they start, and again for a rescan; workers
 * attach.  The leader detaches before the memory goes, and keeps how each participant sorted.  The
 * dsa_area is the query's.
 */
extern Size gs_sort_parallel_bytes(const GsSortState *state, int nparticipants);
extern void gs_sort_parallel_create(GsSortState *state, void *memory, int nparticipants,
									dsm_segment *segment, dsa_area *dsa);
extern void gs_sort_parallel_recreate(GsSortState *state);
extern void gs_sort_parallel_attach(GsSortState *state, void *memory, dsa_area *dsa);
extern void gs_sort_parallel_detach(GsSortState *state);

/* Is one device job for nrows rows, of all participants together, faster? */
extern bool gs_sort_parallel_pays(const GsSortColumn *columns, int ncolumns, int nparticipants,
								  double nrows);

/* Sets the shared memory of a sort that is not an executor node's.  Before it begins. */
extern void gs_sort_parallel_set_shared(GsSortState *state, GsShared *shared);

/*
 * A sort begins: determines its role, for which it may have to wait, and whether a serial one may
 * use a device of its own.
 */
extern void gs_sort_parallel_join(GsSortState *state);

/*
 * Opens the engine of a consumer or a producer.  NULL: it cannot be opened, and the role is SERIAL
 * from then on.
 */
extern GsEngine *gs_sort_parallel_open(GsSortState *state, const GsEngineRequest *request);

/* Does a participant need keys as a device does, because others have such keys? */
extern bool gs_sort_parallel_needs_full_keys(const GsSortState *state);

/*
 * The sort is performed.  Where rows are sent through streams, a producer returns none, if it can
 * send its rows; the leader waits until it is known which producers do, and merges.
 */
extern void gs_sort_parallel_gather(GsSortState *state);

/* The node ends: a producer sends its rows; the leader takes no more. */
extern void gs_sort_parallel_end(GsSortState *state);

/*
 * For a performed sort whose rows are all in the consumer's job: prepares to read those of all
 * there.  False: it cannot.  Once the consumer's sort has been performed, begin_reading makes its
 * nrows rows those of this sort.
 */
extern bool gs_sort_parallel_open_reader(GsSortState *state);
extern void gs_sort_parallel_begin_reading(GsSortState *state, uint64 nrows);

/* Leaves a shared job; the role is SERIAL from then on. */
extern void gs_sort_parallel_leave(GsSortState *state);

/*
 * Ends the input of a shared job, if there is one: this participant sends no more rows.  A consumer
 * waits for the producers, whose rows are its own then.  The role is SERIAL from then on.  OK or
 * FAILED.
 */
extern GsStatus gs_sort_parallel_end_input(GsSortState *state);

/*
 * The engine failed, perhaps because another participant did, whose error says more: waits for it,
 * as it cancels this process.  Returns if there is none.
 */
extern void gs_sort_parallel_wait_for_error(GsSortState *state);

/* Stores how this participant sorted, for EXPLAIN in the leader. */
extern void gs_sort_parallel_report(GsSortState *state, const GsSortSummary *summary);

#endif							/* GPUSORT_SORT_PARALLEL_H */
