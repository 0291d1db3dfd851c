/*-------------------------------------------------------------------------
 *
 * job.h
 *	  One sort: batches up, the steps of device.h, batches of sorted rows down.
 *
 * A job belongs to a connection, which passes on what the client says and
 * sends what the job reports.  Nothing here waits: calls queue work on the
 * job's stream, poll() looks what is done and goes on.  The legal calls, in order:
 *
 *	  open { batch_filled } ( sort { fetch | slot_released }
 *							| { slot_released } drain ) close
 *
 * with poll at any time, and close at any time.  The connection has checked that calls come in a legal
 * order and that slots are the side's whose they must be; the job checks what is in
 * them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_JOB_H
#define GPUSORT_JOB_H

#include "device.h"
#include "slab.h"

/* The ring of a connection, pinned. */
typedef struct GsRing
{
	char	   *base;
	uint32_t	slot_bytes;
	uint32_t	nslots;
} GsRing;

/* What a job reports; never from within open or close. */
typedef struct GsJobEvents
{
	void	   *arg;
	void		(*batch_free) (void *arg, uint32_t slot);	/* uploaded */
	void		(*sorted) (void *arg, const GsSorted *sorted);	/* but for its message */
	void		(*batch_ready) (void *arg, const GsBatchReady *ready);	/* the same */

	/*
	 * MEMORY before sorted: the job can be drained.  Else it can only be
	 * closed.  DEVICE: so are all jobs of the device.
	 */
	void		(*failed) (void *arg, GsFailure failure, const char *text);
} GsJobEvents;

typedef struct GsSortJob GsSortJob;

/*
 * The memory is admitted (slab.h), and the job's from now on.  NULL if there
 * is no host memory or no stream: then the memory stays the caller's.
 */
extern GsSortJob *gs_job_open(GsDevice *device, const GsJobMemory *memory, const GsRing *ring,
							  uint32_t nwords, bool keys_only, const GsJobEvents *events);

/* A slot is a batch now; the connection has checked that it fits the slot. */
extern void gs_job_batch_filled(GsSortJob *job, uint32_t slot, uint32_t nrows, uint32_t rows_bytes);

/*
 * No more batches; if partial, those that were not taken, for want of memory,
 * are left out.  The layout is as the client sent it: it is checked here.
 */
extern void gs_job_sort(GsSortJob *job, GsAlgorithm algorithm, bool partial,
						const GsKeyLayout *layout);

/* Starts a stream of sorted batches: see protocol.h. */
extern void gs_job_fetch(GsSortJob *job, uint32_t stream, uint64_t position);

/* The slot may be filled by the job. */
extern void gs_job_slot_released(GsSortJob *job, uint32_t slot);

/* Starts to give the batches back: see protocol.h. */
extern void gs_job_drain(GsSortJob *job);

/* Is there work on the device whose end poll() should look for soon? */
extern bool gs_job_busy(const GsSortJob *job);

/* Goes on; reports events.  Queues a few slots' work at most: others wait too. */
extern void gs_job_poll(GsSortJob *job);

/*
 * Ends the job.  False: the device still uses the ring; call again later.
 * True: it is freed, with all its memory.
 */
extern bool gs_job_close(GsSortJob *job);

/* Can the packing be made of this layout, whoever sent it? */
extern bool gs_job_layout_is_valid(const GsKeyLayout *layout, uint32_t nwords, bool keys_only);

#endif							/* GPUSORT_JOB_H */
