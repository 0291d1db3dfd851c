/*-------------------------------------------------------------------------
 *
 * job_internal.h
 *	  What the files of a job share; only they include it.
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
	GS_JOB_FULL,				/* out of memory: can return the input */
	GS_JOB_RETURNING,
	GS_JOB_FAILED,				/* can only be closed */
	GS_JOB_CLOSING
} GsJobPhase;

/* A batch on the device, and the participant that sent it. */
typedef struct GsJobBatch
{
	GsDeviceBatch device;
	uint32_t	participant;
} GsJobBatch;

/* A buffer that the device reads or writes until it passes the fence. */
typedef struct GsTransfer
{
	uint64_t	fence;
	uint32_t	buffer;
	bool		upload;
	uint64_t	fetch;			/* download: number of the FETCH of the member */
	uint64_t	batch;			/* download: number of the batch */
	GsBatchReady ready;
} GsTransfer;

/* Results of the steps that the job needs to continue. */
typedef struct GsSortResults
{
	GsTieCount	ties;
	GsPackResults pack;
	uint32_t	selector;
	GsOrderCheck words_check;	/* after the first sort */
	GsOrderCheck ties_check;	/* after each sort of ties: nmisplaced only */
	GsOrderCheck rows_check;	/* of the final order: row_sum only */
} GsSortResults;

/* The control block of a sort, on the device and, pinned, on the host. */
typedef struct GsSortControl
{
	GsKeyPacking packing;		/* copied to the device */
	GsSortResults results;		/* copied from the device */
} GsSortControl;

/* Where the rows of a batch begin and end, in units of 4 bytes: see row_end_offsets. */
typedef struct GsBatchSpan
{
	uint64_t	start;
	uint64_t	end;
} GsBatchSpan;

/* Pinned memory that the device writes asynchronously. */
typedef struct GsJobPinned
{
	GsSortControl control;
	GsBatchSpan spans[GS_MAX_BUFFERS]; /* by buffer of the consumer */
} GsJobPinned;

/* The device fills some of the buffers of parking while others are written. */
#define GS_PARK_BUFFERS	4

/* The state of a job that is being parked, or is parked: job_park.c. */
typedef struct GsParking
{
	GsParkFile *file;
	bool		canceled;		/* wait for what is in progress, then end */
	uint32_t   *rows_bytes;		/* of each batch whose write was requested */

	/* numbers of batches whose gather, and whose write, has been queued */
	uint64_t	ngathered;
	uint64_t	nrequested;
	uint64_t	fences[GS_PARK_BUFFERS];	/* of batch i in [i % GS_PARK_BUFFERS] */
	GsBatchSpan *spans;			/* indexed as fences; pinned, as are the buffers */
	char	   *buffers[GS_PARK_BUFFERS];
} GsParking;

typedef void (*GsSortContinuation) (GsSortJob *job);

/* The state of the sort. */
typedef struct GsSortContext
{
	GsSortContinuation continuation; /* when the fence has passed; NULL: none */
	uint64_t	fence;
	uint64_t	start_us;
	GsAlgorithm algorithm;
	GsSorted	result;
	bool		find_equal;		/* are there rows with equal keys? */
	GsDeviceRows rows;
	GsDeviceBatch *batches;		/* in input order, pinned */
	int			row_bits;
	int			chunk;			/* the next key chunk */
	GsSortControl *d_control;
	uint64_t   *d_words[2];
	int			sorted;			/* which of d_words has the order */
	void	   *d_temp;
	size_t		temp_bytes;

	/* ties: two allocations, whose roles alternate; see job_sort.c */
	char	   *d_lists[2];		/* NULL: no ties so far */
	void	   *d_tie_temp;
	size_t		tie_temp_bytes;
	GsTies		ties;			/* the list so far */
	int			list;			/* which of d_lists has it */

	/* batches of sorted rows */
	uint64_t	step;			/* between boundaries, in units of 4 bytes */
	uint32_t	nboundaries;
	uint64_t   *d_boundaries;
	uint64_t   *boundaries;		/* pinned */
} GsSortContext;

typedef enum GsMemberState
{
	GS_MEMBER_INPUT,
	GS_MEMBER_FULL,				/* a batch was refused for lack of memory */
	GS_MEMBER_ENDING,			/* a producer without more batches */
	GS_MEMBER_FAILED			/* a producer or reader that knows of a failure, or has left */
} GsMemberState;

/* Batches to the consumer or a reader. */
typedef struct GsJobOutput
{
	uint32_t	free_buffers[GS_MAX_BUFFERS];
	uint32_t	nfree;
	uint64_t	fetch;			/* number of the latest FETCH */
	uint32_t	stream_number;	/* its number in the messages */
	uint64_t	next;			/* batch to send; none from job->nout on */
	GsBatchSpan *spans;			/* by buffer; pinned */
} GsJobOutput;

struct GsMember
{
	GsSortJob  *job;			/* NULL: the job has been freed */
	GsMember   *next;			/* in job->members */
	GsParticipant participant;
	bool		is_reader;
	GsMemberState state;		/* of its input */
	uint64_t	nrows;			/* that it has sent, on the device */
	GsJobOutput output;

	/* a buffer is the client's, in a transfer, or free (not of a producer) */
	bool		buffer_is_ours[GS_MAX_BUFFERS];
	GsTransfer	transfers[GS_MAX_BUFFERS]; /* a circular queue, in the order of fences */
	uint32_t	first_transfer;
	uint32_t	ntransfers;
};

struct GsSortJob
{
	GsDevice   *device;
	GsJobMemory memory;
	GsMember	consumer;
	GsMember   *members;		/* producers and readers */
	bool		keys_only;
	uint32_t	record_bytes;
	GsJobPhase	phase;
	bool		device_failed;

	/* fences of the stream; or requests of the file, if the job is parked */
	GsStream   *stream;
	uint64_t	last_fence;
	uint64_t	passed_fence;
	GsJobPinned *pinned;

	/* batches in order of arrival, and their input order */
	GsJobBatch *batches;
	uint32_t   *order;			/* numbers of batches; see gs_job_order_batches() */
	uint32_t	nbatches;
	uint32_t	batches_allocated;
	uint64_t	nrows;
	uint64_t	nunits;			/* size of all rows, in units of 8 bytes */
	char	   *d_next;			/* free space in the last block */
	size_t		left;
	size_t		next_block_bytes;
	uint32_t	nuploads;		/* in progress */
	uint64_t	upload_start_us;
	uint64_t	upload_us;

	GsSortContext sort;
	GsParking  *parking;		/* NULL: not being parked */
	bool		parked;			/* all data is in the file */
	uint64_t	idle_since_us;	/* 0: not idle */

	/* output */
	uint64_t	nout;			/* number of batches */
	char	   *d_staging;		/* as large as a buffer */
	bool		input_returned; /* the end has been reported */
};

/* The size of the consumer's buffers. */
static inline uint32_t
gs_job_buffer_bytes(const GsSortJob *job)
{
	return job->consumer.participant.buffer_pool.buffer_bytes;
}

/* The start of a shared buffer. */
static inline char *
gs_member_buffer(const GsMember *member, uint32_t buffer)
{
	const GsBufferPool *buffer_pool = &member->participant.buffer_pool;

	return buffer_pool->base + (size_t) buffer * buffer_pool->buffer_bytes;
}

/* The first block for rows and records; each one is twice as large as the one before. */
#define GS_FIRST_BLOCK_BYTES	((size_t) 1 << 20)

/* Allocations of device memory are aligned to this. */
#define GS_DEVICE_ALIGN(nbytes) (((size_t) (nbytes) + 255) & ~(size_t) 255)

/* The longest row that a client may send, in units of 8 bytes. */
#define GS_MAX_ROW_UNITS(buffer_bytes) (GS_MAX_ROW_BYTES(buffer_bytes) / GS_ROW_ALIGN)

/* Reports a failure and stops; job.h says which calls are still legal. */
extern void gs_job_fail(GsSortJob *job, GsFailure failure, const char *text);

/* Fails the job if a call of the device returned false.  Returns its argument. */
extern bool gs_job_check(GsSortJob *job, bool device_is_fine);

/* Puts a fence behind the queued work.  False: the device failed. */
extern bool gs_job_record_fence(GsSortJob *job, uint64_t *fence);

/* Updates passed_fence. */
extern void gs_job_check_fence(GsSortJob *job);

/* Adds a transfer, with a fence behind it.  False: the device failed. */
extern bool gs_member_add_transfer(GsMember *member, GsTransfer *transfer);

/* Ends transfers whose fence has passed, and producers without transfers. */
extern void gs_job_end_transfers(GsSortJob *job);

/* Are there producers that gs_job_end_transfers() would end? */
extern bool gs_job_has_ended_producers(const GsSortJob *job);

/* Reports a failure of the job to its producers and readers. */
extern void gs_job_fail_members(GsSortJob *job, const char *text);

/* Detaches those that remain, before the job is freed. */
extern void gs_job_detach_members(GsSortJob *job);

/* Computes the input order of the batches, by participant and arrival, and their first rows. */
extern void gs_job_order_batches(GsSortJob *job);

/* Device memory to sort nrows rows of nunits units. */
extern uint64_t gs_job_sort_bytes(const GsSortJob *job, uint64_t nrows, uint64_t nunits);

/*
 * Queues the copy of a batch of sorted rows to memory as large as a buffer, and of
 * its span to *span, which is pinned.
 */
extern bool gs_job_queue_sorted(GsSortJob *job, uint64_t batch, char *to, GsBatchSpan *span);

/* Size of the rows of a batch that has been copied. */
extern uint32_t gs_job_rows_bytes(const GsSortJob *job, uint64_t batch, const GsBatchSpan *span);

/* Queues the read of a batch of a parked job to memory as large as a buffer. */
extern bool gs_job_queue_parked(GsSortJob *job, uint64_t batch, char *to);

/* The number of completed requests of the file; fails the job if one has failed. */
extern uint64_t gs_job_parked_passed_fence(GsSortJob *job);

/* Cancels parking, because the client is not idle any more. */
extern void gs_job_cancel_parking(GsSortJob *job);

/* Proceeds with parking, if it is in progress. */
extern void gs_job_continue_parking(GsSortJob *job);

/* Frees the file and buffers; false: they are still in use. */
extern bool gs_job_end_parking(GsSortJob *job);

/* A batch has been uploaded from a buffer of a member, or copied to it. */
extern void gs_member_end_upload(GsMember *producer, uint32_t buffer);
extern void gs_member_end_download(GsMember *member, GsTransfer *transfer);

/* Queues batches for free buffers, a few at a time. */
extern void gs_job_send_output(GsSortJob *job);
extern bool gs_job_has_output(const GsSortJob *job);

#endif							/* GPUSORT_JOB_INTERNAL_H */
