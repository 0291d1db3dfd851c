/*-------------------------------------------------------------------------
 *
 * job_internal.h
 *	  What the files of a job share; only they include it.
 *
 *	  job			opens, closes, polls
 *	  job_feed		who feeds it; slots, and batches up
 *	  job_layout	is a layout sound?
 *	  job_sort		the steps from batches to an order
 *	  job_stream	batches down: sorted, or as they came
 *	  job_park		a sorted job that moves from the device to a file
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_JOB_INTERNAL_H
#define GPUSORT_JOB_INTERNAL_H

#include "job/job.h"

typedef enum GsJobPhase
{
	GS_JOB_INPUT,
	GS_JOB_SORTING,
	GS_JOB_SORTED,
	GS_JOB_FULL,				/* out of memory: can be drained */
	GS_JOB_RETURNING,
	GS_JOB_FAILED,				/* can be closed */
	GS_JOB_CLOSING
} GsJobPhase;

/* A batch that was taken, and whose it was. */
typedef struct GsJobBatch
{
	GsDeviceBatch device;
	uint32_t	participant;
} GsJobBatch;

/* A slot that the device reads or writes, until the ticket is reached. */
typedef struct GsTransfer
{
	uint64_t	fence;
	uint32_t	buffer;
	bool		upload;
	uint64_t	fetch;			/* down: which FETCH wanted it */
	uint64_t	batch;			/* down: its number */
	GsBatchReady ready;
} GsTransfer;

/* What the device finds out on the way. */
typedef struct GsSortResults
{
	GsTieCount	ties;
	GsPackResults pack;
	uint32_t	selector;
} GsSortResults;

/* The same on the device and, pinned, on the host: what is small and goes to and fro. */
typedef struct GsSortControl
{
	GsKeyPacking packing;		/* up */
	GsSortResults results;			/* down */
} GsSortControl;

/* Units of 4 bytes: where the rows of a batch on its way down begin and end. */
typedef struct GsBatchSpan
{
	uint64_t	start;
	uint64_t	end;
} GsBatchSpan;

/* Memory that a device writes beside its other work. */
typedef struct GsJobPinned
{
	GsSortControl control;
	GsBatchSpan spans[GS_MAX_BUFFERS];	/* of each slot */
} GsJobPinned;

/* A job on its way from the device to a file, or there: job_park.c. */
typedef struct GsParking GsParking;

typedef void (*GsSortContinuation) (GsSortJob *job);

/* The sort: what it is made of, and where it stands. */
typedef struct GsSortContext
{
	GsSortContinuation go_on;	/* when the ticket is reached; NULL: nothing */
	uint64_t	fence;
	uint64_t	start_us;
	GsAlgorithm algorithm;
	GsSorted	result;
	GsDeviceRows rows;
	GsDeviceBatch *batches;		/* in input order, pinned */
	int			row_bits;
	int			chunk;			/* the next one */
	GsSortControl *d_control;
	uint64_t   *d_words[2];
	int			sorted;			/* which of them has the order */
	void	   *d_temp;
	size_t		temp_bytes;

	/* ties: two pieces of memory, which change roles; see job_sort.c */
	char	   *d_lists[2];		/* NULL as long as there were none */
	void	   *d_tie_temp;
	size_t		tie_temp_bytes;
	GsTies		ties;			/* the list so far */
	int			list;			/* which piece has it */

	/* batches of sorted rows */
	uint64_t	step;			/* 4-byte units from one to the next */
	uint32_t	nboundaries;
	uint64_t   *d_boundaries;
	uint64_t   *boundaries;			/* pinned */
} GsSortContext;

/* A feed, as long as its job is loaded. */
typedef enum GsProducerState
{
	GS_PRODUCER_INPUT,
	GS_PRODUCER_FULL,				/* a batch was refused for want of memory */
	GS_PRODUCER_ENDING,				/* of a feeder, which has no more batches */
	GS_PRODUCER_FAILED				/* of a feeder, which knows, or is not there any more */
} GsProducerState;

struct GsProducer
{
	GsSortJob  *job;			/* NULL: it is over */
	GsProducer	   *next;			/* of the job's feeders */
	GsParticipant participant;
	GsProducerState state;
	uint64_t	nrows;			/* taken */

	/* slots: the client's, in a transfer, or free (of the owner) */
	bool		buffer_is_ours[GS_MAX_BUFFERS];
	GsTransfer	transfers[GS_MAX_BUFFERS];	/* a ring, in the order of tickets */
	uint32_t	first_transfer;
	uint32_t	ntransfers;
};

struct GsSortJob
{
	GsDevice   *device;
	GsJobMemory memory;
	GsProducer		consumer;
	GsProducer	   *producers;
	bool		keys_only;
	int			nwords;
	uint32_t	record_bytes;
	GsJobPhase	phase;
	bool		device_lost;			/* the device broke */

	/* the stream, and how far it is; or the file, once the job is parked */
	GsStream   *stream;
	uint64_t	marked;
	uint64_t	passed_fence;
	GsJobPinned *pinned;

	/* batches, as they arrived, and their input order */
	GsJobBatch *batches;
	uint32_t   *order;			/* numbers of batches, once arranged */
	uint32_t	nbatches;
	uint32_t	batches_allocated;
	uint64_t	nrows;
	uint64_t	nunits;			/* of all rows, 8 bytes each */
	char	   *d_next;			/* room in the last slab */
	size_t		left;
	size_t		next_block_bytes;
	uint32_t	nuploads;		/* on their way */
	uint64_t	upload_start_us;
	uint64_t	upload_us;

	GsSortContext	sort;
	GsParking  *parking;		/* NULL: it is all on the device */
	bool		parked;			/* nothing of it is there any more */
	uint64_t	rests_since;	/* 0: it does not */

	/* batches down, through the owner's ring */
	uint32_t	free_buffers[GS_MAX_BUFFERS];
	uint32_t	nfree;
	uint64_t	fetch;			/* number of the latest FETCH */
	uint32_t	stream_number;	/* the client's for it */
	uint64_t	next_out;		/* batch to be sent */
	uint64_t	nout;			/* batches to send in all */
	char	   *d_staging;		/* a slot's worth */
	bool		input_returned;		/* the end was reported */
};

/* Of the owner's slots, through which batches go down. */
static inline uint32_t
gs_job_buffer_bytes(const GsSortJob *job)
{
	return job->consumer.participant.buffer_pool.buffer_bytes;
}

/* Of rows and records; each slab is twice as large as the one before. */
#define GS_FIRST_BLOCK_BYTES	((size_t) 1 << 20)

/* Device memory begins at such addresses. */
#define GS_DEVICE_ALIGN(nbytes) (((size_t) (nbytes) + 255) & ~(size_t) 255)

/* The longest row that a client may send, in units of 8 bytes. */
#define GS_MAX_ROW_UNITS(buffer_bytes) (GS_MAX_ROW_BYTES(buffer_bytes) / GS_ROW_ALIGN)

/* The job goes no further; see job.h for what is left. */
extern void gs_job_fail(GsSortJob *job, GsFailure failure, const char *text);

/* The same if a call of the device returned false; gives what it is given. */
extern bool gs_job_check(GsSortJob *job, bool device_is_fine);

/* Puts a mark behind what was queued. */
extern bool gs_job_record_fence(GsSortJob *job, uint64_t *fence);

/* Notes which tickets were reached. */
extern void gs_job_check_fence(GsSortJob *job);

/* Remembers that a free slot or a batch is on its way; the mark is behind it. */
extern bool gs_producer_add_transfer(GsProducer *producer, GsTransfer *transfer);

/* Ends the transfers that are through, and the feeds that wait for theirs. */
extern void gs_job_end_transfers(GsSortJob *job);

extern bool gs_job_has_to_end_producers(const GsSortJob *job);

/* Tells the feeders that the job is over for them. */
extern void gs_job_fail_producers(GsSortJob *job, const char *text);

/* The job is freed: what is left of its feeders are feeds of none. */
extern void gs_job_detach_producers(GsSortJob *job);

/* Puts the batches into input order: participant by participant, first_row too. */
extern void gs_job_order_batches(GsSortJob *job);

/* Device memory that sorting so many rows, of so many units, will take. */
extern uint64_t gs_job_sort_bytes(const GsSortJob *job, uint64_t nrows, uint64_t nunits);

/* The first row of a batch of sorted rows; of the one past the last, nrows. */
extern uint64_t gs_job_first_row(const GsSortJob *job, uint64_t batch);

/*
 * Queues a batch of sorted rows for a piece of memory as large as a slot, and where it
 * begins and ends for *span, which is pinned.
 */
extern bool gs_job_queue_sorted(GsSortJob *job, uint64_t batch, char *to, GsBatchSpan *span);

/* How long the rows are, once they have come. */
extern uint32_t gs_job_rows_bytes(const GsSortJob *job, uint64_t batch, const GsBatchSpan *span);

/* The same of a job that is parked: queues a batch, or says how long its rows are. */
extern bool gs_job_queue_parked(GsSortJob *job, uint64_t batch, char *to);
extern uint32_t gs_job_parked_bytes(const GsSortJob *job, uint64_t batch);

/* The last request of a file, and the last one that is done. */
extern uint64_t gs_job_parked_mark(const GsSortJob *job);
extern uint64_t gs_job_parked_reached(GsSortJob *job);

/* The client is back: there is no point in going on. */
extern void gs_job_stop_parking(GsSortJob *job);

/* Goes on with what has been begun. */
extern void gs_job_go_on_parking(GsSortJob *job);

/* Frees what there is; false: the disk still uses it. */
extern bool gs_job_end_parking(GsSortJob *job);

/* The transfer of a batch down is through. */
extern void gs_job_batch_arrived(GsSortJob *job, GsTransfer *transfer);

/* Queues what free slots allow, a few at a time. */
extern void gs_job_emit(GsSortJob *job);
extern bool gs_job_has_to_emit(const GsSortJob *job);

#endif							/* GPUSORT_JOB_INTERNAL_H */
