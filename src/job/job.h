/*-------------------------------------------------------------------------
 *
 * job.h
 *	  One sort: batches up, the steps of device.h, batches of sorted rows down.
 *
 * What a connection gives to a job is a *feed*: its ring, and the batches in
 * it.  A job has its owner's feed, through which it also hands out, and those
 * of feeders that joined it (protocol.h).  The connections pass on what the
 * clients say and send what the job reports.  Nothing here waits: calls queue
 * work on the job's stream, poll() looks what is done and goes on.  The legal
 * calls, in order:
 *
 *	  open { batch_filled } ( sort { fetch | slot_released }
 *							| { slot_released } drain ) close
 *	  join { batch_filled } [feed_end] [leave]
 *
 * with poll at any time, and close and leave at any time; neither sort nor
 * drain as long as a feeder is there.  The connection has checked that calls
 * come in a legal order and that slots are the side's whose they must be; the
 * job checks what is in them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_JOB_H
#define GPUSORT_JOB_H

#include "device/device.h"
#include "job/park_file.h"
#include "device/device_pool.h"

/* The ring of a connection, pinned. */
typedef struct GsBufferPool
{
	char	   *base;
	uint32_t	buffer_bytes;
	uint32_t	nbuffers;
} GsBufferPool;

/*
 * What a job reports to a connection; never from within open, join, close or
 * leave of its own.
 */
typedef struct GsJobEvents
{
	void	   *arg;
	void		(*batch_free) (void *arg, uint32_t buffer);	/* uploaded */

	/* to a feeder, after feed_end: its feed is gone */
	void		(*producer_done) (void *arg, uint64_t nrows);

	/* to the owner; but for their messages' heads */
	void		(*sorted) (void *arg, const GsSorted *sorted);
	void		(*batch_ready) (void *arg, const GsBatchReady *ready);

	/*
	 * MEMORY before sorted: the job can be drained, or the feed be ended.  Else
	 * it can only be closed, or left.  DEVICE, which the owner alone is told: so
	 * are all jobs of the device.
	 */
	void		(*failed) (void *arg, GsFailure failure, const char *text);
} GsJobEvents;

typedef struct GsSortJob GsSortJob;
typedef struct GsProducer GsProducer;

/* A connection, as a job sees it. */
typedef struct GsParticipant
{
	GsBufferPool		buffer_pool;
	uint32_t	number;			/* input order is by it */
	GsJobEvents events;
} GsParticipant;

/*
 * The memory is admitted (device_pool.h), and the job's from now on.  NULL if there
 * is no host memory or no stream: then the memory stays the caller's.
 */
extern GsSortJob *gs_job_open(GsDevice *device, const GsJobMemory *memory,
							  uint32_t nwords, bool keys_only, const GsParticipant *consumer);

/* The owner's feed, as long as the job is. */
extern GsProducer *gs_job_consumer(GsSortJob *job);

/* One more; NULL, and why_not, if it cannot be. */
extern GsProducer *gs_job_join(GsSortJob *job, uint32_t nwords, bool keys_only,
						   const GsParticipant *feeder, const char **why_not);

/* Is any of them there that has not been told that it is fed? */
extern bool gs_job_has_producers(const GsSortJob *job);

/* A slot is a batch now; the connection has checked that it fits the slot. */
extern void gs_producer_batch_filled(GsProducer *producer, uint32_t buffer, uint32_t nrows,
								 uint32_t rows_bytes);

/* A feeder has no more batches; those that were not taken are left out. */
extern void gs_producer_end(GsProducer *producer);

/*
 * A feeder goes, and the job fails, unless it has already.  False: the device
 * still uses its ring; call again later.  True: the feed is freed.
 */
extern bool gs_producer_leave(GsProducer *producer);

/*
 * No more batches; if partial, those that were not taken, for want of memory,
 * are left out.  The layout is as the client sent it: it is checked here.
 */
extern void gs_job_sort(GsSortJob *job, GsAlgorithm algorithm, bool partial,
						const GsKeyLayout *layout);

/* Starts a stream of sorted batches: see protocol.h. */
extern void gs_job_fetch(GsSortJob *job, uint32_t stream, uint64_t position);

/* The slot may be filled by the job. */
extern void gs_job_buffer_released(GsSortJob *job, uint32_t buffer);

/* Starts to give the batches back: see protocol.h. */
extern void gs_job_return_input(GsSortJob *job);

/* Is there work on the device whose end poll() should look for soon? */
extern bool gs_job_busy(const GsSortJob *job);

/* Goes on; reports events.  Queues a few slots' work at most: others wait too. */
extern void gs_job_poll(GsSortJob *job);

/* Device memory that it was promised or has. */
extern uint64_t gs_job_commitment(const GsSortJob *job);

/* Since when there has been nothing to do for it; 0: there is something. */
extern uint64_t gs_job_rests_since(const GsSortJob *job);

/*
 * A sorted job that rests can be *parked*: its batches of sorted rows are
 * written to a file, its device memory is given back, and it goes on from
 * there.  Nobody notices.  Where that fails, or the client comes back before it is
 * done, the job keeps its memory.
 */
extern bool gs_job_can_be_parked(const GsSortJob *job);
extern bool gs_job_is_being_parked(const GsSortJob *job);

/* Begins it; false: there is no room for the file, say. */
extern bool gs_job_park(GsSortJob *job, GsParkFile *disk);

/*
 * Ends the job; feeders are told at once.  False: the device still uses a
 * ring; call again later.  True: it is freed, with all its memory; feeders
 * have yet to leave.
 */
extern bool gs_job_close(GsSortJob *job);

/* Can the packing be made of this layout, whoever sent it? */
extern bool gs_job_layout_is_valid(const GsKeyLayout *layout, uint32_t nwords, bool keys_only);

#endif							/* GPUSORT_JOB_H */
