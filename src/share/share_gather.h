/*-------------------------------------------------------------------------
 *
 * share_gather.h
 *	  Rows that several processes have sorted, as runs that all of them can read: index builds.
 *
 * In shared memory:
 *
 *	  leader   init [ emit ] [ adopt ]
 *	  worker   attach [ emit ] [ adopt ]
 *
 * Participant 0 is the leader, n is worker n - 1.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SHARE_GATHER_H
#define GPUSORT_SHARE_GATHER_H

#include "storage/dsm.h"

#include "store/store.h"

typedef struct GsSortGather GsSortGather;

extern Size gs_sort_gather_bytes(int nparticipants);

/* The segment has the shared memory; all participants have mapped it. */
extern void gs_sort_gather_init(GsSortGather *gather, int nparticipants, dsm_segment *segment);
extern void gs_sort_gather_attach(GsSortGather *gather);

/* The set of files, which also has other files of an index build. */
extern SharedFileSet *gs_sort_gather_file_set(GsSortGather *gather);

/* The files for the runs of a participant. */
extern GsRunPlace gs_sort_gather_files(GsSortGather *gather, int participant);

/*
 * Makes runs of the rows of a performed sort, for all participants, except those that it
 * has sent to a device.  False: its engine failed and lost the rows.
 */
extern bool gs_sort_gather_emit(GsSortGather *gather, int participant, GsStore *store);

/*
 * Adds the rows of all other participants, who have emitted them, to a participant's performed
 * sort, as runs.  False as above.
 */
extern bool gs_sort_gather_adopt(GsSortGather *gather, int participant, GsStore *store);

/* The bytes of all runs. */
extern uint64 gs_sort_gather_run_bytes(const GsSortGather *gather);

#endif							/* GPUSORT_SHARE_GATHER_H */
