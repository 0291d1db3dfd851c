/*-------------------------------------------------------------------------
 *
 * share_ranges.c
 *	  The participants of a plan that each return ranges of the rows that all have sorted.
 *
 *	  read ------> share ------> return
 *
 * A participant reads a share of the input and sorts it.  When all have, each makes its rows runs
 * that all can read (share_streams.c).  When all have, each takes one range after the other until
 * there are none left, so one that starts late, or whose rows are taken slowly, holds up no other.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "guc.h"
#include "pg_compat.h"
#include "share/share_ranges.h"

#include "port/atomics.h"
#include "storage/barrier.h"

/* The phases of the barrier. */
enum
{
	PHASE_READ,
	PHASE_SHARE,
	PHASE_RETURN
};

/*
 * For each participant that has sorted.  With one range each, whoever has the largest one, or
 * starts last, is waited for; each range costs a search of all runs.
 */
#define RANGES_PER_PARTICIPANT	4

struct GsShareRanges
{
	Barrier		barrier;
	/* fixed after PHASE_READ */
	pg_atomic_uint32 nsorters;	/* that read the input */
	pg_atomic_uint64 nkept;		/* rows that are not in the job of a device */
	pg_atomic_uint64 nthere;	/* rows that are */

	pg_atomic_uint32 next;		/* the next range to be taken */
	pg_atomic_uint32 nended;	/* whose rows were all returned */
	pg_atomic_uint64 nreturned; /* rows of these */
};

/* It follows in memory. */
static GsShareGather *
gather_of(const GsShareRanges *ranges)
{
	return (GsShareGather *) ((char *) ranges + MAXALIGN(sizeof(GsShareRanges)));
}

Size
gs_share_ranges_bytes(int nparticipants)
{
	return add_size(MAXALIGN(sizeof(GsShareRanges)), gs_share_gather_bytes(nparticipants));
}

static void
begin(GsShareRanges *ranges)
{
	BarrierInit(&ranges->barrier, 0);
	pg_atomic_init_u32(&ranges->nsorters, 0);
	pg_atomic_init_u64(&ranges->nkept, 0);
	pg_atomic_init_u64(&ranges->nthere, 0);
	pg_atomic_init_u32(&ranges->next, 0);
	pg_atomic_init_u32(&ranges->nended, 0);
	pg_atomic_init_u64(&ranges->nreturned, 0);
}

void
gs_share_ranges_init(GsShareRanges *ranges, int nparticipants, dsm_segment *segment)
{
	begin(ranges);
	gs_share_gather_init(gather_of(ranges), nparticipants, segment);
}

void
gs_share_ranges_reset(GsShareRanges *ranges)
{
	begin(ranges);
	gs_share_gather_reset(gather_of(ranges));
}

void
gs_share_ranges_attach(GsShareRanges *ranges)
{
	gs_share_gather_attach(gather_of(ranges));
}

GsRunPlace
gs_share_ranges_files(GsShareRanges *ranges, int participant)
{
	return gs_share_gather_files(gather_of(ranges), participant);
}

bool
gs_share_ranges_begin(GsShareRanges *ranges)
{
	if (BarrierAttach(&ranges->barrier) != PHASE_READ)
		return false;
	/* the phase does not end before this participant arrives */
	pg_atomic_fetch_add_u32(&ranges->nsorters, 1);
	return true;
}

void
gs_share_ranges_sorted(GsShareRanges *ranges, uint64 nrows, bool in_job)
{
	pg_atomic_fetch_add_u64(in_job ? &ranges->nthere : &ranges->nkept, nrows);
	BarrierArriveAndWait(&ranges->barrier, gs_wait_event(GS_WAIT_PARTICIPANTS));
}

bool
gs_share_ranges_alone(const GsShareRanges *ranges)
{
	return pg_atomic_read_u32(&unconstify(GsShareRanges *, ranges)->nsorters) == 1;
}

uint64
gs_share_ranges_in_job(const GsShareRanges *ranges)
{
	GsShareRanges *shared = unconstify(GsShareRanges *, ranges);

	return pg_atomic_read_u64(&shared->nkept) > 0 ? 0 : pg_atomic_read_u64(&shared->nthere);
}

bool
gs_share_ranges_exchange(GsShareRanges *ranges, int participant, GsStore *store)
{
	if (!gs_share_gather_emit(gather_of(ranges), participant, store))
		return false;
	if (BarrierPhase(&ranges->barrier) == PHASE_SHARE)
		BarrierArriveAndWait(&ranges->barrier, gs_wait_event(GS_WAIT_PARTICIPANTS));
	return gs_share_gather_adopt(gather_of(ranges), participant, store);
}

int
gs_share_ranges_count(const GsShareRanges *ranges)
{
	return (int) pg_atomic_read_u32(&unconstify(GsShareRanges *, ranges)->nsorters) *
		RANGES_PER_PARTICIPANT;
}

int
gs_share_ranges_next(GsShareRanges *ranges)
{
	const int	range = (int) pg_atomic_fetch_add_u32(&ranges->next, 1);

	return range < gs_share_ranges_count(ranges) ? range : -1;
}

void
gs_share_ranges_end(GsShareRanges *ranges, uint64 nrows, uint64 expected)
{
	uint64		nreturned;

	pg_atomic_fetch_add_u64(&ranges->nreturned, nrows);
	if ((int) pg_atomic_fetch_add_u32(&ranges->nended, 1) + 1 < gs_share_ranges_count(ranges))
		return;
	nreturned = pg_atomic_read_u64(&ranges->nreturned);
	if (nreturned != expected)
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("sort returned " UINT64_FORMAT " rows, expected " UINT64_FORMAT, nreturned,
						expected),
				 gs_errhint_bug("enable_ranges", "run the query")));
}
