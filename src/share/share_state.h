/*-------------------------------------------------------------------------
 *
 * share_state.h
 *	  What the participants of a parallel sort know of each other, in shared memory.
 *
 * Participant 0 is the leader, n is worker n - 1.  The legal calls of each, in
 * order:
 *
 *	  consumer := join [ open ] ( close | wait { produced } )
 *	  producer := join leave
 *	  serial   := join
 *
 * Before these the leader calls init once, and reset before each sort, while no
 * worker runs.  join and wait may block, and can be interrupted.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SHARE_STATE_H
#define GPUSORT_SHARE_STATE_H

#include "common/device_table.h"
#include "common/key_layout.h"

/* Where a participant's rows go. */
typedef enum GsRole
{
	GS_ROLE_SERIAL,				/* it sorts and returns its own rows */
	GS_ROLE_CONSUMER,			/* it has a job, or merges streams, also of the producers' rows */
	GS_ROLE_PRODUCER			/* to the consumer */
} GsRole;

/* How participants sort their rows together. */
typedef enum GsSharedWay
{
	GS_SHARE_NOTHING,			/* each sorts and returns its own */
	GS_SHARE_JOB,				/* in one job of a device */
	GS_SHARE_STREAMS				/* the leader merges what the others have sorted */
} GsSharedWay;

/* What a producer must know of the consumer's job. */
typedef struct GsSharedJob
{
	bool		by_streams;		/* there is no job: the leader merges sorted rows */
	int			device;			/* its number */
	uint64		token;			/* to join it with */
	uint64		form;			/* gs_key_encoder_fingerprint() of its key */
} GsSharedJob;

/* What a producer has sent. */
typedef struct GsProduced
{
	uint64		nrows;
	uint64		nnulls;			/* keys_only: in addition to nrows */
	uint64		nbytes;			/* sent to the device, with keys */
	GsKeyLayout layout;			/* with the minimum and maximum of each key */
} GsProduced;

/* How a participant sorted, for EXPLAIN. */
typedef struct GsSortSummary
{
	bool		any;			/* it sorted */
	bool		on_disk;
	char		method[32];
	char		engine[16];
	char		reason[128];	/* for this engine; "": none */
	GsDeviceSet devices;		/* that sorted; see GsEngineStats */
	int64		kilobytes;
	uint64		nrows;			/* sorted */
	uint64		nsent;			/* to the consumer */
} GsSortSummary;

typedef struct GsShared GsShared;

/*
 * ERROR if the leader, whose gs_build_id is given, has loaded another build: a worker
 * loads the file that has the library's name now, which may have been replaced after
 * the session loaded it.
 */
extern void gs_shared_check_build(const char *build_id);

extern Size gs_shared_bytes(int nparticipants);
extern void gs_shared_init(GsShared *shared, int nparticipants);

/*
 * Begins another sort.  The consumer of a shared job is the leader or, if leader_consumes is false,
 * the first participant that joins; that of runs is the leader.
 */
extern void gs_shared_reset(GsShared *shared, GsSharedWay way, bool leader_consumes, int nkeyed);

/*
 * How many columns all participants should key (gs_key_encoder_create()): in a job what the leader
 * has chosen; otherwise what the first of them whose rows tie often has asked for.
 */
extern int	gs_shared_nkeyed(GsShared *shared);
extern void gs_shared_key_more(GsShared *shared, int nkeyed);

/* Was a shared job wanted when the sort began? */
extern bool gs_shared_is_wanted(const GsShared *shared);

/*
 * A participant is about to read rows.  Waits until its role is known; *job is set for a producer,
 * for the consumer of runs, and for one that is too late to be a producer.
 */
extern GsRole gs_shared_join(GsShared *shared, int participant, GsSharedJob *job);

/* The consumer has a job, or merges runs, which others may join; or it does neither. */
extern void gs_shared_open(GsShared *shared, const GsSharedJob *job);
extern void gs_shared_close(GsShared *shared);

/* A producer sends no more rows; NULL: it sent none. */
extern void gs_shared_leave(GsShared *shared, int participant, const GsProduced *produced);

/* The consumer has read its rows: no one may join any more.  Waits for all producers. */
extern void gs_shared_wait(GsShared *shared);

/* What a participant has sent; NULL: nothing. */
extern const GsProduced *gs_shared_produced(const GsShared *shared, int participant);

extern int	gs_shared_nparticipants(const GsShared *shared);

/* Stores the summary of one participant; copies those of all to palloc'd memory. */
extern void gs_shared_put_summary(GsShared *shared, int participant, const GsSortSummary *summary);
extern GsSortSummary *gs_shared_copy_summaries(const GsShared *shared);

#endif							/* GPUSORT_SHARE_STATE_H */
