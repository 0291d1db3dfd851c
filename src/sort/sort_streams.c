/*-------------------------------------------------------------------------
 *
 * sort_streams.c
 *	  The rows of the participants of a parallel plan, which the leader merges while they
 *	  send them.
 *
 * Each worker sorts its rows, in memory or in runs on disk, and sends them in order, with
 * their keys, through a stream (run/run_stream.h).  The leader merges these streams with its
 * own rows as if they were runs.
 *
 * Keys of two processes can be merged if they have the same form (key_encoder.h).  If not,
 * because one process has met values that are better compared, or none that was out of order,
 * all rows are merged by comparisons.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sort/sort_runs.h"
#include "sort/sort_streams.h"

/* What a participant sends. */
typedef struct Offer
{
	GsSharedRows rows;			/* nread = 0: nothing */
	GsRunStream stream;
} Offer;

struct GsSortStreams
{
	int			nparticipants;
	Offer		offers[FLEXIBLE_ARRAY_MEMBER];
};

Size
gs_sort_streams_bytes(int nparticipants)
{
	return add_size(offsetof(GsSortStreams, offers), mul_size(sizeof(Offer), nparticipants));
}

void
gs_sort_streams_init(GsSortStreams *streams, int nparticipants)
{
	memset(streams, 0, gs_sort_streams_bytes(nparticipants));
	streams->nparticipants = nparticipants;
	gs_sort_streams_reset(streams);
}

void
gs_sort_streams_reset(GsSortStreams *streams)
{
	for (int i = 0; i < streams->nparticipants; i++)
	{
		streams->offers[i].rows.nread = 0;
		gs_run_stream_init(&streams->offers[i].stream);
	}
}

bool
gs_sort_streams_offer(GsSortStreams *streams, int participant, GsSortState *sort)
{
	if (sort->input.nread == 0 || sort->input.keys_only)
		return false;
	if (gs_key_encoder_dictionary_texts(sort->input.key) > 0)
		return false;			/* the leader's codes are others */
	if (sort->phase == GS_SORT_ENGINE)
		gs_sort_make_run_of_engine(sort);
	else if (sort->phase == GS_SORT_RUNS)
		gs_sort_begin_merge(sort);
	else
		return false;
	gs_sort_describe_rows(sort, &streams->offers[participant].rows);
	return true;
}

void
gs_sort_streams_send(GsSortStreams *streams, int participant, GsSortState *sort, dsa_area *memory)
{
	gs_run_set_send(sort->input.runs, &streams->offers[participant].stream, memory);
}

bool
gs_sort_streams_any(const GsSortStreams *streams)
{
	for (int i = 0; i < streams->nparticipants; i++)
	{
		if (streams->offers[i].rows.nread > 0)
			return true;
	}
	return false;
}

bool
gs_sort_streams_merge(GsSortStreams *streams, GsSortState *sort, dsa_area *memory)
{
	if (sort->phase == GS_SORT_ENGINE)
		gs_sort_make_run_of_engine(sort);
	else if (!gs_sort_make_runs(sort))
		return false;
	for (int i = 0; i < streams->nparticipants; i++)
	{
		Offer	   *offer = &streams->offers[i];

		if (offer->rows.nread > 0)
			gs_sort_adopt_stream(sort, &offer->rows, &offer->stream, memory);
	}
	gs_sort_begin_merge(sort);
	return true;
}

void
gs_sort_streams_abandon(GsSortStreams *streams)
{
	for (int i = 0; i < streams->nparticipants; i++)
		gs_run_stream_abandon(&streams->offers[i].stream);
}
