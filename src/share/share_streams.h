/*-------------------------------------------------------------------------
 *
 * share_streams.h
 *	  Rows that several processes have sorted, which are merged in others.
 *
 * Participant 0 is the leader, n is worker n - 1.  In shared memory, and in this order:
 *
 *	  streams, of a parallel plan		leader	init { reset } [ merge ] abandon
 *										worker	[ offer send ]
 *	  gather, of an index build			leader	init [ emit ] [ adopt ]
 *										worker	attach [ emit ] [ adopt ]
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SHARE_STREAMS_H
#define GPUSORT_SHARE_STREAMS_H

#include "storage/dsm.h"
#include "utils/dsa.h"

#include "store/store.h"

/*
 * The rows of a parallel plan, which the leader merges while the others send them; if there are
 * many, other participants merge some of them first.
 */
typedef struct GsShareStreams GsShareStreams;

extern Size gs_share_streams_bytes(int nparticipants);
extern void gs_share_streams_init(GsShareStreams *streams, int nparticipants);

/* Makes all streams empty, while no worker runs. */
extern void gs_share_streams_reset(GsShareStreams *streams);

/*
 * A participant will send the rows of its performed sort, of which it has returned none, and which
 * then returns none.  False: it has rows that cannot be sent.
 */
extern bool gs_share_streams_offer(GsShareStreams *streams, int participant, GsStore *store);

/*
 * Sends what was offered, to the leader or to another participant, merged with what that one's rows
 * are to be merged with.  Waits until the leader's merge begins.  Returns when the receiver has all
 * rows, except for the last few, or the leader does not want any more.
 */
extern void gs_share_streams_send(GsShareStreams *streams, int participant, GsStore *store,
								  dsa_area *memory);

/* Has any participant offered rows? */
extern bool gs_share_streams_any(const GsShareStreams *streams);

/*
 * The leader's performed sort, which has returned none of its rows, returns those of all
 * participants who have offered some, merged with its own.  False: its engine failed and lost the
 * rows.
 */
extern bool gs_share_streams_merge(GsShareStreams *streams, GsStore *store, dsa_area *memory);

/* The leader takes no more rows.  Participants must be able to end then. */
extern void gs_share_streams_abandon(GsShareStreams *streams);

/* The rows of an index build, as runs that all participants can read. */
typedef struct GsShareGather GsShareGather;

extern Size gs_share_gather_bytes(int nparticipants);

/* The segment has the shared memory; all participants have mapped it. */
extern void gs_share_gather_init(GsShareGather *gather, int nparticipants, dsm_segment *segment);
extern void gs_share_gather_attach(GsShareGather *gather);

/* Forgets and deletes all runs, while no worker runs. */
extern void gs_share_gather_reset(GsShareGather *gather);

/* The set of files, which also has other files of an index build. */
extern SharedFileSet *gs_share_gather_file_set(GsShareGather *gather);

/* The files for the runs of a participant. */
extern GsRunPlace gs_share_gather_files(GsShareGather *gather, int participant);

/*
 * Makes runs of the rows of a performed sort, for all participants, except those that it
 * has sent to a device.  False: its engine failed and lost the rows.
 */
extern bool gs_share_gather_emit(GsShareGather *gather, int participant, GsStore *store);

/*
 * Adds the rows of all other participants, who have emitted them, to a participant's performed
 * sort, as runs.  False as above.
 */
extern bool gs_share_gather_adopt(GsShareGather *gather, int participant, GsStore *store);

/* The bytes of all runs. */
extern uint64 gs_share_gather_run_bytes(const GsShareGather *gather);

#endif							/* GPUSORT_SHARE_STREAMS_H */
