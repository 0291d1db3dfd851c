/*-------------------------------------------------------------------------
 *
 * share_streams.c
 *	  Rows that several processes have sorted, which are merged in others.
 *
 * Workers of a parallel plan send them in order, with their keys, through streams
 * (run/run_stream.h), unless they send them to one job of a device (sort/sort_parallel.c).
 * Whoever receives streams merges them with its own rows as if they were runs.
 *
 * The leader also returns the rows, one at a time, so everybody waits for it.  If there are many
 * workers, they merge for it: each receives the streams of up to three others, and the leader one
 * stream.  Workers 1 to 8:
 *
 *						  leader
 *							|
 *							1
 *				  /			|		\
 *				 2			4		 6
 *				 |			|	   /   \
 *				 3			5	  7		8
 *
 * A worker receives the rows of those that follow it, so ties are in the order of participants.
 * When all have sorted, the leader decides who sends to whom, and no one sends before.
 *
 * A query of 10 M rows of 150 bytes, 8 workers.  By a bigint: 0.95 s, and 1.20 s if the leader
 * receives all streams.  By a text "C": 1.10 s, and 1.43 s (medians of 4 by turns; 16 cores of an
 * Intel Xeon, PostgreSQL 15.20, 2026-11-24).  A bigint alone takes 1.0 s either way, so the leader
 * receives rows that are only keys.
 *
 * In an index build, a participant leaves the rows as runs in files that all processes can open, as
 * in PostgreSQL's own.  Then the leader merges all runs, or each participant a range of them, by
 * their keys.  If all rows are in one job of a device, there is nothing to merge.  Files are
 * deleted with the parallel context, also after errors.
 *
 * Keys of two processes can be merged if they have the same form (key_encoder.h).  If not,
 * because one process has met values that are better compared, or none that was out of order,
 * all rows are merged by comparisons.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sched.h>

#include "guc.h"
#include "pg_compat.h"
#include "share/share_streams.h"
#include "store/store_merge.h"

#include "miscadmin.h"
#include "storage/condition_variable.h"
#include "utils/lsyscache.h"

/* How many streams a process receives; the leader one, if there are more than these. */
#define MOST_STREAMS	3

/* What a participant sends. */
typedef struct Offer
{
	GsSharedRows rows;			/* nread = 0: nothing */
	int			receiver;		/* the participant that merges it */
	GsRunStream stream;
} Offer;

/* Where what was offered goes. */
typedef enum Decision
{
	NOT_DECIDED,
	DECIDED,					/* to the receivers */
	ABANDONED					/* nowhere */
} Decision;

struct GsShareStreams
{
	int			nparticipants;
	pg_atomic_uint32 decision;	/* of the leader */
	ConditionVariable decided;
	Offer		offers[FLEXIBLE_ARRAY_MEMBER];
};

Size
gs_share_streams_bytes(int nparticipants)
{
	return add_size(offsetof(GsShareStreams, offers), mul_size(sizeof(Offer), nparticipants));
}

void
gs_share_streams_init(GsShareStreams *streams, int nparticipants)
{
	memset(streams, 0, gs_share_streams_bytes(nparticipants));
	streams->nparticipants = nparticipants;
	gs_share_streams_reset(streams);
}

void
gs_share_streams_reset(GsShareStreams *streams)
{
	pg_atomic_init_u32(&streams->decision, NOT_DECIDED);
	ConditionVariableInit(&streams->decided);
	for (int i = 0; i < streams->nparticipants; i++)
	{
		streams->offers[i].rows.nread = 0;
		gs_run_stream_init(&streams->offers[i].stream);
	}
}

/*
 * Are the rows values of an enum alone?  A label may be added before the last participant begins.
 * Its keys then have another form, and rows that are only keys cannot be merged without keys.
 */
static bool
is_enum_alone(const GsStore *store)
{
	return store->spec->desc->natts == 1 && type_is_enum(getBaseType(store->spec->columns[0].type));
}

bool
gs_share_streams_offer(GsShareStreams *streams, int participant, GsStore *store)
{
	if (store->nread == 0 || (store->phase != GS_STORE_ENGINE && store->phase != GS_STORE_RUNS))
		return false;
	if (gs_key_encoder_dictionary_values(store->order.key) > 0)
		return false;			/* the leader's codes are others */
	if (is_enum_alone(store))
		return false;
	if (store->phase == GS_STORE_ENGINE)
		gs_store_make_run_of_engine(store);
	gs_store_complete_runs(store);
	gs_store_describe_rows(store, &streams->offers[participant].rows);
	return true;
}

bool
gs_share_streams_any(const GsShareStreams *streams)
{
	for (int i = 0; i < streams->nparticipants; i++)
	{
		if (streams->offers[i].rows.nread > 0)
			return true;
	}
	return false;
}

/* ------------------------------------------------------- who sends to whom */

static void
decide(GsShareStreams *streams, Decision decision)
{
	pg_write_barrier();
	pg_atomic_write_u32(&streams->decision, decision);
	ConditionVariableBroadcast(&streams->decided);
}

static Decision
wait_for_decision(GsShareStreams *streams)
{
	Decision	decision;

	ConditionVariablePrepareToSleep(&streams->decided);
	while ((decision = pg_atomic_read_u32(&streams->decision)) == NOT_DECIDED)
		ConditionVariableSleep(&streams->decided, gs_wait_event(GS_WAIT_PARTICIPANTS));
	ConditionVariableCancelSleep();
	pg_read_barrier();
	return decision;
}

/*
 * Divides senders, in the order of participants, into parts; the first of each receives the others
 * of its part.
 */
static void
set_receivers(GsShareStreams *streams, const int *senders, int nsenders, int receiver, int nparts)
{
	for (int i = 0; i < nparts; i++)
	{
		const int	first = nsenders * i / nparts;
		const int	nothers = nsenders * (i + 1) / nparts - first - 1;

		streams->offers[senders[first]].receiver = receiver;
		set_receivers(streams, senders + first + 1, nothers, senders[first],
					  Min(nothers, MOST_STREAMS));
	}
}

/* Are there as many processors? */
static bool
has_processors(int n)
{
	cpu_set_t	set;

	/* an error: there are more than the set has space for */
	return sched_getaffinity(0, sizeof(set), &set) != 0 || CPU_COUNT(&set) >= n;
}

/*
 * Workers merge only rows, by keys that all have or by none, and only if each has a processor: with
 * two for nine participants, the query takes an eighth more processor time.  store: the leader's.
 */
static void
choose_receivers(GsShareStreams *streams, const GsStore *store)
{
	int		   *senders = palloc(sizeof(int) * streams->nparticipants);
	int			nsenders = 0;
	bool		may_merge = !store->order.keys_only;

	for (int i = 0; i < streams->nparticipants; i++)
	{
		const GsSharedRows *rows = &streams->offers[i].rows;

		if (rows->nread == 0)
			continue;
		senders[nsenders++] = i;
		may_merge = may_merge && gs_store_merges_alike(store, rows);
	}
	may_merge = may_merge && nsenders > MOST_STREAMS &&
		(gpusort_force || has_processors(nsenders + 1));
	set_receivers(streams, senders, nsenders, 0, may_merge ? 1 : nsenders);
	pfree(senders);
}

/* Do its rows come to the receiver, by one stream or several? */
static bool
is_received(const GsShareStreams *streams, int participant, int receiver)
{
	while (participant != receiver && participant != 0)
		participant = streams->offers[participant].receiver;
	return participant == receiver;
}

/* Merges what comes to a participant with its own rows. */
static void
receive(GsShareStreams *streams, int receiver, GsStore *store, dsa_area *memory)
{
	for (int i = 0; i < streams->nparticipants; i++)
	{
		Offer	   *offer = &streams->offers[i];

		if (i != receiver && offer->rows.nread > 0 && is_received(streams, i, receiver))
			gs_store_adopt_stream(store, &offer->rows,
								  offer->receiver == receiver ? &offer->stream : NULL, memory);
	}
	gs_store_begin_merge(store);
}

static bool
has_senders(const GsShareStreams *streams, int receiver)
{
	for (int i = 0; i < streams->nparticipants; i++)
	{
		if (streams->offers[i].rows.nread > 0 && streams->offers[i].receiver == receiver)
			return true;
	}
	return false;
}

/* ------------------------------------------------------------ send and merge */

void
gs_share_streams_send(GsShareStreams *streams, int participant, GsStore *store, dsa_area *memory)
{
	if (wait_for_decision(streams) == ABANDONED)
		return;
	/* the rows of an engine alone need no merge */
	if (store->engine == NULL || has_senders(streams, participant))
		receive(streams, participant, store, memory);
	gs_run_set_send(store->runs, &streams->offers[participant].stream, memory);
}

bool
gs_share_streams_merge(GsShareStreams *streams, GsStore *store, dsa_area *memory)
{
	if (store->phase == GS_STORE_ENGINE)
		gs_store_make_run_of_engine(store);
	else if (!gs_store_make_runs(store))
		return false;
	choose_receivers(streams, store);
	decide(streams, DECIDED);
	receive(streams, 0, store, memory);
	return true;
}

void
gs_share_streams_abandon(GsShareStreams *streams)
{
	decide(streams, ABANDONED);
	for (int i = 0; i < streams->nparticipants; i++)
		gs_run_stream_abandon(&streams->offers[i].stream);
}

/* --------------------------------------------------------- runs of index builds */

struct GsShareGather
{
	dsm_handle	segment;
	SharedFileSet files;
	int			nparticipants;
	GsSharedRuns runs[FLEXIBLE_ARRAY_MEMBER];	/* of each; rows.nread = 0: none */
};

Size
gs_share_gather_bytes(int nparticipants)
{
	return add_size(offsetof(GsShareGather, runs), mul_size(sizeof(GsSharedRuns), nparticipants));
}

void
gs_share_gather_init(GsShareGather *gather, int nparticipants, dsm_segment *segment)
{
	memset(gather, 0, gs_share_gather_bytes(nparticipants));
	gather->nparticipants = nparticipants;
	gather->segment = dsm_segment_handle(segment);
	SharedFileSetInit(&gather->files, segment);
}

void
gs_share_gather_attach(GsShareGather *gather)
{
	SharedFileSetAttach(&gather->files, dsm_find_mapping(gather->segment));
}

void
gs_share_gather_reset(GsShareGather *gather)
{
	SharedFileSetDeleteAll(&gather->files);
	memset(gather->runs, 0, mul_size(sizeof(GsSharedRuns), gather->nparticipants));
}

SharedFileSet *
gs_share_gather_file_set(GsShareGather *gather)
{
	return &gather->files;
}

GsRunPlace
gs_share_gather_files(GsShareGather *gather, int participant)
{
	return (GsRunPlace) {.set = &gather->files,.owner = participant};
}

bool
gs_share_gather_emit(GsShareGather *gather, int participant, GsStore *store)
{
	if (store->nread == 0)
		return true;
	if (!gs_store_make_runs(store))
		return false;
	gs_store_share_runs(store, &gather->runs[participant], gather->nparticipants);
	return true;
}

bool
gs_share_gather_adopt(GsShareGather *gather, int participant, GsStore *store)
{
	if (!gs_store_make_runs(store))
		return false;
	for (int i = 0; i < gather->nparticipants; i++)
	{
		const GsSharedRuns *shared = &gather->runs[i];
		const GsRunPlace where = gs_share_gather_files(gather, i);

		if (i != participant && shared->rows.nread > 0)
			gs_store_adopt_runs(store, shared, &where);
	}
	return true;
}

uint64
gs_share_gather_run_bytes(const GsShareGather *gather)
{
	uint64		nbytes = 0;

	for (int i = 0; i < gather->nparticipants; i++)
	{
		const GsSharedRuns *shared = &gather->runs[i];

		for (int k = 0; k < shared->nruns; k++)
			nbytes += shared->runs[k].nbytes;
	}
	return nbytes;
}
