/*-------------------------------------------------------------------------
 *
 * share_streams.h
 *	  The rows of the participants of a parallel plan, which the leader merges while they
 *	  send them; if there are many, other participants merge some of them first.
 *
 * In shared memory:
 *
 *	  leader   init { reset } [ merge ] abandon
 *	  worker   [ offer send ]
 *
 * Participant 0 is the leader, n is worker n - 1.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SHARE_STREAMS_H
#define GPUSORT_SHARE_STREAMS_H

#include "utils/dsa.h"

#include "store/store.h"

/* The rows that participants send to the leader, in shared memory. */
typedef struct GsSortStreams GsSortStreams;

extern Size gs_sort_streams_bytes(int nparticipants);
extern void gs_sort_streams_init(GsSortStreams *streams, int nparticipants);

/* Makes all streams empty, while no worker runs. */
extern void gs_sort_streams_reset(GsSortStreams *streams);

/*
 * A participant will send the rows of its performed sort, of which it has returned none, and which
 * then returns none.  False: it has rows that cannot be sent.
 */
extern bool gs_sort_streams_offer(GsSortStreams *streams, int participant, GsStore *store);

/*
 * Sends what was offered, to the leader or to another participant, merged with what that one's rows
 * are to be merged with.  Waits until the leader's merge begins.  Returns when the receiver has all
 * rows, except for the last few, or the leader does not want any more.
 */
extern void gs_sort_streams_send(GsSortStreams *streams, int participant, GsStore *store,
								 dsa_area *memory);

/* Has any participant offered rows? */
extern bool gs_sort_streams_any(const GsSortStreams *streams);

/*
 * The leader's performed sort, which has returned none of its rows, returns those of all
 * participants who have offered some, merged with its own.  False: its engine failed and lost the
 * rows.
 */
extern bool gs_sort_streams_merge(GsSortStreams *streams, GsStore *store, dsa_area *memory);

/* The leader takes no more rows.  Participants must be able to end then. */
extern void gs_sort_streams_abandon(GsSortStreams *streams);

#endif							/* GPUSORT_SHARE_STREAMS_H */
