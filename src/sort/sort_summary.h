/*-------------------------------------------------------------------------
 *
 * sort_summary.h
 *	  How a sort was sorted, in words: for EXPLAIN, and for the log.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_SUMMARY_H
#define GPUSORT_SORT_SUMMARY_H

#include "sort/sort_state.h"

/* The summary of a sort whose rows were sorted. */
extern void gs_sort_summarize(const GsSortState *state, GsSortSummary *summary);

/* What EXPLAIN ANALYZE shows besides.  What is 0 or NULL is not shown, if not said otherwise. */
typedef struct GsSortDetails
{
	const char *device;
	const char *reason;			/* why PostgreSQL's sort was used, or no device although one was
								 * requested */
	GsDeviceSet devices;
	const GsEngineStats *engine;	/* of an engine that has all rows */
	const GsRunSetStats *runs;	/* of runs that are merged */
	bool		shows_keyed;
	bool		shows_compared;
	bool		shows_rows;
	int			nkeyed;			/* the columns that have keys */
	uint64		ncompared;		/* tied rows that were ordered by comparison */
	uint64		nrows;			/* sorted */
	int			ndictionary;	/* values that have codes */
	uint64		ndropped;		/* rows that a LIMIT could not return */
	const char *verified;		/* what the verification of approximate keys is called */
	uint64		ncomparisons;	/* by it, and so on */
	uint64		nretries;
	uint64		verification_us;
	uint64		wait_us;		/* for the other participants */
} GsSortDetails;

/* The details of a sort whose rows were sorted, valid until it is reset. */
extern void gs_sort_get_details(const GsSortState *state, GsSortDetails *details);

#endif							/* GPUSORT_SORT_SUMMARY_H */
