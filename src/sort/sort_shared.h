/*-------------------------------------------------------------------------
 *
 * sort_shared.h
 *	  What the participants of a parallel sort know of each other, in shared
 *	  memory.
 *
 * Participant 0 is the leader, n is worker n - 1.  The legal calls of each, in
 * order:
 *
 *	  owner	 := enter ( close | open wait { feed } )
 *	  feeder := enter leave
 *	  alone	 := enter
 *
 * Before them init, once, and reset, in the leader, while no worker runs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_SHARED_H
#define GPUSORT_SORT_SHARED_H

#include "common/key_layout.h"

/* Whose job a participant's rows go to. */
typedef enum GsRole
{
	GS_ROLE_SERIAL,				/* it sorts them itself, and hands them out */
	GS_ROLE_CONSUMER,				/* it has a job, and others' rows come to it, too */
	GS_ROLE_PRODUCER				/* the owner's */
} GsRole;

/* The owner's job, as far as feeders must know. */
typedef struct GsSharedJob
{
	uint64		token;			/* to join it by */
	uint64		form;			/* gs_key_encoder_fingerprint() of its key */
} GsSharedJob;

/* What a feeder's rows were. */
typedef struct GsProduced
{
	uint64		nrows;			/* that are the owner's now */
	uint64		nnulls;			/* keys_only: NULLs beside them */
	uint64		nbytes;			/* sent to the device, keys and all */
	GsKeyLayout layout;			/* as observed */
} GsProduced;

/* How a participant's sort went, for EXPLAIN. */
typedef struct GsSortSummary
{
	bool		any;			/* it sorted */
	bool		on_disk;
	char		method[32];
	char		engine[16];
	char		reason[128];	/* why it is that one; "" where there is nothing to say */
	int64		kilobytes;
	uint64		nrows;			/* sorted */
	uint64		nsent;			/* given to the owner */
} GsSortSummary;

typedef struct GsShared GsShared;

extern Size gs_shared_bytes(int nparticipants);
extern void gs_shared_init(GsShared *shared, int nparticipants);

/*
 * Begins anew.  wanted: there is to be a shared job.  Its owner is the leader,
 * or else whoever comes first.
 */
extern void gs_shared_reset(GsShared *shared, bool wanted, bool leader_consumes);

/* Is there to be one, or was there? */
extern bool gs_shared_is_wanted(const GsShared *shared);

/*
 * A participant is about to load.  Waits until it is known where its rows go; a
 * feeder is given the job.
 */
extern GsRole gs_shared_join(GsShared *shared, int participant, GsSharedJob *job);

/* The owner has a job, which others may join; or it has none. */
extern void gs_shared_open(GsShared *shared, const GsSharedJob *job);
extern void gs_shared_close(GsShared *shared);

/* A feeder will give no more rows; NULL: it gave none. */
extern void gs_shared_leave(GsShared *shared, int participant, const GsProduced *produced);

/* The owner's input ends: nobody may join any more, and all feeders are waited for. */
extern void gs_shared_wait(GsShared *shared);

/* What a participant gave; NULL if nothing. */
extern const GsProduced *gs_shared_produced(const GsShared *shared, int participant);

extern int	gs_shared_nparticipants(const GsShared *shared);

/* A participant's own, or those of all of them: a palloc'd copy. */
extern void gs_shared_put_summary(GsShared *shared, int participant, const GsSortSummary *summary);
extern GsSortSummary *gs_shared_copy_summaries(const GsShared *shared);

#endif							/* GPUSORT_SORT_SHARED_H */
