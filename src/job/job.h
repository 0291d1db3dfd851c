/*-------------------------------------------------------------------------
 *
 * job.h
 *	  One sort on the device: uploads batches, sorts them by the steps of
 *	  device.h, and returns batches of sorted rows.
 *
 * A job has one *consumer*, which opens it, sends rows and gets them sorted, any
 * number of *producers*, which join it and only send rows, and any number of
 * *readers*, which only get sorted rows (protocol.h).  Struct GsMember is the part
 * of each of them.  The connections pass on the messages of their clients and
 * send what the job reports.  Nothing here blocks: calls queue work on the
 * stream of the job, and gs_job_poll() checks what has finished and continues.
 * The legal calls, in order:
 *
 *	  open { batch_filled } ( sort { fetch | buffer_released }
 *							| { buffer_released } return_input ) close
 *	  join { batch_filled } [member_end] [leave]
 *	  read { fetch | buffer_released } leave
 *
 * poll, close and leave are legal at any time; sort and return_input only when no producer is left;
 * the fetch of a reader only when the rows are sorted.  The connection has checked the order of
 * calls and the ownership of buffers; the job checks the contents of buffers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_JOB_H
#define GPUSORT_JOB_H

#include "device/device.h"
#include "device/device_pool.h"
#include "job/park_file.h"

/* The shared buffers of a connection, pinned. */
typedef struct GsBufferPool
{
	char	   *base;
	uint32_t	buffer_bytes;
	uint32_t	nbuffers;
} GsBufferPool;

/*
 * What a job reports to a connection.  It is never called from within gs_job_open(),
 * join, close or leave of the same connection.
 */
typedef struct GsJobEvents
{
	void	   *arg;
	void		(*batch_free) (void *arg, uint32_t buffer);	/* has been uploaded */

	/* To a producer, after its end: its GsMember has been freed. */
	void		(*producer_done) (void *arg, uint64_t nrows);

	/* To the consumer, the second also to readers: the messages, without their headers. */
	void		(*sorted) (void *arg, const GsSorted *sorted);
	void		(*batch_ready) (void *arg, const GsBatchReady *ready);

	/*
	 * GS_FAILED_MEMORY before sorted: the input can be returned, or the producer
	 * ended.  Otherwise the job can only be closed, or left.  GS_FAILED_DEVICE
	 * is reported to the consumer only; all jobs of the device have failed.
	 */
	void		(*failed) (void *arg, GsFailure failure, const char *text);
} GsJobEvents;

typedef struct GsSortJob GsSortJob;
typedef struct GsMember GsMember;

/* A connection as a participant of a job. */
typedef struct GsParticipant
{
	GsBufferPool buffer_pool;
	uint32_t	nwords;			/* of its records */
	bool		keys_only;
	uint32_t	number;			/* determines the input order */
	GsJobEvents events;
} GsParticipant;

/*
 * Opens a job, which takes over the admitted memory (device_pool.h).  NULL if out
 * of host memory or streams; then the caller keeps the memory.
 */
extern GsSortJob *gs_job_open(GsDevice *device, const GsJobMemory *memory,
							  const GsParticipant *consumer);

/* The consumer's part, which lives as long as the job. */
extern GsMember *gs_job_consumer(GsSortJob *job);

/*
 * Adds a producer, or a reader, whose buffers are as large as the consumer's.  A reader may be
 * added before the rows are sorted.  NULL, with the reason in *why_not: that is not possible.
 */
extern GsMember *gs_job_join(GsSortJob *job, const GsParticipant *participant, bool is_reader,
							 const char **why_not);

/* Are there producers that have not been reported as done? */
extern bool gs_job_has_producers(const GsSortJob *job);

/* A buffer has a batch; the connection has checked that it fits the buffer. */
extern void gs_member_batch_filled(GsMember *producer, uint32_t buffer, uint32_t nrows,
									 uint32_t rows_bytes);

/* The producer has no more batches; those refused for lack of memory are not in the job. */
extern void gs_member_end(GsMember *producer);

/*
 * A reader leaves; or a producer before its end, and the job fails, unless it has already.
 * False: the device still uses its buffers; call again later.  True: it has been
 * freed.
 */
extern bool gs_member_leave(GsMember *member);

/*
 * Ends the input and sorts; partial: without the batches that were refused for lack of memory;
 * find_equal: and finds out whether any keys are equal.  The layout is as the client sent it and is
 * validated here.
 */
extern void gs_job_sort(GsSortJob *job, GsAlgorithm algorithm, bool partial, bool find_equal,
						const GsKeyLayout *layout);

/*
 * Starts a stream of sorted batches to the consumer or a reader: see protocol.h.  False: there is
 * no such position, or the rows are not sorted yet.
 */
extern bool gs_member_fetch(GsMember *member, uint32_t stream, uint64_t position);

/* The job may fill the buffer. */
extern void gs_member_buffer_released(GsMember *member, uint32_t buffer);

/* Starts to return the input: see protocol.h. */
extern void gs_job_return_input(GsSortJob *job);

/* Is work on the device in progress, so that gs_job_poll() should be called soon? */
extern bool gs_job_busy(const GsSortJob *job);

/* Proceeds and reports events.  Queues the work of a few buffers only, for fairness. */
extern void gs_job_poll(GsSortJob *job);

/* Its device memory; none if it is parked. */
extern const GsJobMemory *gs_job_memory(const GsSortJob *job);

/* Since when the job has had nothing to do; 0: it has. */
extern uint64_t gs_job_idle_since(const GsSortJob *job);

/*
 * An idle sorted job can be *parked*: its batches of sorted rows are written to a
 * file and its device memory is freed; later it reads them from the file.  The
 * client does not notice.  If that fails, or the client returns before it is
 * complete, the job keeps its memory.
 */
extern bool gs_job_can_be_parked(const GsSortJob *job);
extern bool gs_job_is_being_parked(const GsSortJob *job);

/* Starts parking; false: that is not possible, for example because of the limit of files. */
extern bool gs_job_park(GsSortJob *job, GsParkFolder *folder);

/*
 * Ends the job and reports that to producers and readers.  False: the device still uses
 * buffers; call again later.  True: the job and its memory have been freed;
 * they still have to leave.
 */
extern bool gs_job_close(GsSortJob *job);

/* Is the layout, which a client sent, safe to use? */
extern bool gs_job_layout_is_valid(const GsKeyLayout *layout, uint32_t nwords, bool keys_only);

#endif							/* GPUSORT_JOB_H */
