/*-------------------------------------------------------------------------
 *
 * share_ranges.h
 *	  The participants of a plan that each return ranges of the rows that all have sorted.
 *
 * In shared memory.  The legal calls:
 *
 *	  leader		init { participant reset }
 *	  worker		attach participant
 *	  participant	begin [ sorted ] alone [ exchange { next end } ]
 *
 * Whoever begins before all others have sorted reads a share of the input.  The rest is too late:
 * the others read all of it, but ranges may be left.  All waits are before the first row is
 * returned, so no participant waits for one that waits for its rows to be taken.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SHARE_RANGES_H
#define GPUSORT_SHARE_RANGES_H

#include "share/share_streams.h"

typedef struct GsShareRanges GsShareRanges;

extern Size gs_share_ranges_bytes(int nparticipants);

/* The segment has the shared memory.  reset: for another sort, while no worker runs. */
extern void gs_share_ranges_init(GsShareRanges *ranges, int nparticipants, dsm_segment *segment);
extern void gs_share_ranges_reset(GsShareRanges *ranges);
extern void gs_share_ranges_attach(GsShareRanges *ranges);

/* The files for the runs of a participant. */
extern GsRunPlace gs_share_ranges_files(GsShareRanges *ranges, int participant);

/* Takes part.  False: too late to read the input. */
extern bool gs_share_ranges_begin(GsShareRanges *ranges);

/*
 * Has sorted, and has so many rows, in the job of a device or not.  Waits for the others that read
 * the input.
 */
extern void gs_share_ranges_sorted(GsShareRanges *ranges, uint64 nrows, bool in_job);

/* Has one participant read all of the input?  Once they have sorted.  Then it returns all rows. */
extern bool gs_share_ranges_alone(const GsShareRanges *ranges);

/* The number of all rows, if all are in the job of a device; else 0.  Once they have sorted. */
extern uint64 gs_share_ranges_in_job(const GsShareRanges *ranges);

/*
 * The runs of the store become everybody's, and those of the others this store's; waits for them.
 * False: the engine failed and has lost the rows.
 */
extern bool gs_share_ranges_exchange(GsShareRanges *ranges, int participant, GsStore *store);

/* The number of the next range that nobody has taken; -1: there is none. */
extern int	gs_share_ranges_next(GsShareRanges *ranges);
extern int	gs_share_ranges_count(const GsShareRanges *ranges);

/*
 * All nrows rows of a range were returned.  After the last range: an ERROR unless all ranges
 * together have `expected` rows.
 */
extern void gs_share_ranges_end(GsShareRanges *ranges, uint64 nrows, uint64 expected);

#endif							/* GPUSORT_SHARE_RANGES_H */
