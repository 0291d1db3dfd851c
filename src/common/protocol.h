/*-------------------------------------------------------------------------
 *
 * protocol.h
 *	  The messages between a backend and gpusortd.
 *
 * A connection is a SOCK_SEQPACKET Unix socket, so a message arrives complete or
 * not at all, and a *buffer pool*: shared memory that the client creates, divided
 * into *buffers* of equal size.  Rows are only in the buffers; messages say which
 * buffer has what.  A buffer belongs to one side at a time, and a message passes it
 * to the other.  At first all belong to the client.
 *
 * A connection carries one job at a time, and any number one after the other.  C is
 * the client, S the service:
 *
 *	  C HELLO (with the memfd of the pool)	S WELCOME
 *	  C JOB_OPEN							S JOB_READY, perhaps after a wait
 *	  C BATCH_FILLED buffer					S BATCH_FREE buffer, once uploaded
 *	  ...
 *	  C SORT								S SORTED
 *	  C FETCH stream, position				S BATCH_READY stream, buffer ...
 *	  C BATCH_RELEASED buffer				  (as many as buffers are free)
 *	  C JOB_CLOSE
 *
 * Shared jobs
 * -----------
 * Several connections can send rows to one job.  The connection that opens it as
 * `shared` is its *consumer*: only the consumer sorts, fetches, gets the input back and
 * closes.  JOB_READY tells it the job's *token*, which it passes on by other means.
 * A connection that carries no job and sends that token becomes a *producer*:
 *
 *	  C JOB_JOIN token						S JOB_READY
 *	  C BATCH_FILLED buffer					S BATCH_FREE buffer, once uploaded
 *	  ...
 *	  C PRODUCER_END						S PRODUCER_DONE, once all are uploaded
 *
 * After PRODUCER_DONE the connection carries no job, and all its buffers belong to
 * the client.  The consumer may send SORT and RETURN_INPUT only when no producer is
 * connected: the producers tell it, by other means, that they are done.
 *
 * A connection that carries no job can also become a *reader* of such a job, with
 * buffers of the size of the consumer's:
 *
 *	  C JOB_READ token						S JOB_READY
 *	  C BATCH_RELEASED buffer ...
 *	  C FETCH stream, position				S BATCH_READY stream, buffer ...
 *	  C JOB_CLOSE
 *
 * It may come before SORT, but must not FETCH before the consumer has told it, by other
 * means, that the rows are SORTED.  If a reader disconnects, nobody else is affected.
 *
 * The consumer and the producers are *participants* with numbers.  The input order of the job
 * is by participant, and for each participant the order of its batches.  If a
 * producer disconnects before its PRODUCER_DONE, its rows are lost and the job fails
 * (GS_FAILED_JOB), for the consumer and the other producers.  If the consumer
 * disconnects, the job ends, and its producers and readers get the same message.
 *
 * If memory runs out for a producer, only that producer is told: it gets
 * GS_FAILED_MEMORY, sends PRODUCER_END with `partial` set, and keeps the batches that
 * were not uploaded in its buffers (see below).  The job continues without them.
 *
 * Failures
 * --------
 * S FAILED can come instead of any reply and ends the job, which the client then
 * closes.  If gpusortd ends as well, recv() may fail with ECONNRESET first, and the
 * message follows.  After GS_FAILED_MEMORY before SORTED, the client has two more choices.
 *
 * It can get its input back, as it can at any time before SORT:
 *
 *	  C RETURN_INPUT						S BATCH_READY ... BATCH_READY of no rows
 *
 * returns the batches that were uploaded, in the order in which they were filled.
 * Uploads in progress are completed first, each with its BATCH_FREE.  A batch that
 * was filled and not freed when the batch of no rows arrives is still in its buffer,
 * and is not returned.  A client leaves one buffer unfilled, so that batches can
 * always be returned through it.
 *
 * Or it sends SORT with `partial` set, and continues as if the batches that were
 * uploaded were all.  The others stay in their buffers until JOB_CLOSE.  Uploads in
 * progress are completed, each with its BATCH_FREE, before SORTED arrives.  If there
 * is no memory for the sort, it ends with GS_FAILED_MEMORY: the input can be
 * returned, but not sorted again.
 *
 * Buffers
 * -------
 * FETCH starts a new *stream* of sorted batches and ends the previous one.  The
 * service sends the new stream's buffers as they are filled, in order, up to the
 * last row.  Buffers of the previous stream that were already sent are released by
 * the client like any other.  The service may fill the buffers that it holds: those
 * that the client released, or sent with BATCH_FILLED and did not get back.  So
 * before its first FETCH, and before RETURN_INPUT, a client passes all its buffers
 * to the service with BATCH_RELEASED.
 *
 * After JOB_CLOSE, all buffers belong to the client when JOB_READY of the next job
 * arrives: only then has the device stopped using them.  Closing the socket ends
 * everything, at any time.
 *
 * The service closes connections that have a pool and have been without a job for
 * long, and frees the memory of the pool.  So the contents of the pool are undefined
 * from WELCOME or JOB_CLOSE to the next JOB_READY.  (Not after PRODUCER_DONE: batches
 * may have been kept in buffers.)  A client closes such a connection before the
 * service does.
 *
 * A client without a pool (buffer_pool_bytes 0, no memfd) gets the state of the
 * service in a WELCOME for each HELLO, without delay, even if the device is busy.
 *
 * Structs are sent as they are in memory: both sides are of the same build, which
 * the build ID in HELLO ensures.  The service rejects any other with
 * GS_FAILED_VERSION; the beginning of HELLO, up to the build ID, and FAILED are the
 * same in all builds of one version.  The service validates everything it reads.
 *
 * C without PostgreSQL.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PROTOCOL_H
#define GPUSORT_PROTOCOL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/key_layout.h"

/* The build ID: hexadecimal digits of a hash of all sources (scripts/build-id), and a zero. */
#define GS_BUILD_ID_BYTES	16

extern const char gs_build_id[GS_BUILD_ID_BYTES + 1];

#define GS_WIRE_MAGIC	UINT32_C(0x47505553)	/* "GPUS" */
#define GS_WIRE_VERSION	UINT32_C(4) /* of FAILED and the beginning of HELLO */

/* Exit codes of gpusortd after which its supervisor does not start it again before a reload. */
#define GS_EXIT_NO_DEVICE	3
#define GS_EXIT_WRONG_ORDER	5	/* a sort by the device was wrong */

/* Limits that the service enforces. */
#define GS_MIN_BUFFER_BYTES	((uint32_t) 64 << 10)
#define GS_MAX_BUFFER_BYTES	((uint32_t) 16 << 20)
#define GS_MAX_BUFFERS		64
#define GS_MAX_JOB_ROWS		(UINT64_C(0xFFFFFFFE))	/* a row number has 32
													 * bits */
#define GS_MAX_PARTICIPANTS	1024	/* of a job */

/* The longest stored row: a batch of sorted rows has room for at least two. */
#define GS_MAX_ROW_BYTES(buffer_bytes) \
	((buffer_bytes) / 2 < ((uint32_t) 2 << 20) ? (buffer_bytes) / 2 - 16 : \
	 ((uint32_t) 2 << 20) - 16)

typedef enum GsMessageType
{
	/* from the client */
	GS_MESSAGE_HELLO = 1,
	GS_MESSAGE_JOB_OPEN,
	GS_MESSAGE_JOB_JOIN,
	GS_MESSAGE_JOB_READ,
	GS_MESSAGE_BATCH_FILLED,
	GS_MESSAGE_PRODUCER_END,
	GS_MESSAGE_SORT,
	GS_MESSAGE_FETCH,
	GS_MESSAGE_BATCH_RELEASED,
	GS_MESSAGE_RETURN_INPUT,
	GS_MESSAGE_JOB_CLOSE,
	/* from the service */
	GS_MESSAGE_WELCOME = 64,
	GS_MESSAGE_JOB_READY,
	GS_MESSAGE_BATCH_FREE,
	GS_MESSAGE_PRODUCER_DONE,
	GS_MESSAGE_SORTED,
	GS_MESSAGE_BATCH_READY,
	GS_MESSAGE_FAILED
} GsMessageType;

/* Every message starts with this. */
typedef struct GsMessage
{
	uint32_t	type;			/* a GsMessageType */
	uint32_t	nbytes;			/* of the whole message */
} GsMessage;

typedef struct GsHello
{
	GsMessage	message;
	uint32_t	magic;
	uint32_t	version;
	char		build[GS_BUILD_ID_BYTES];	/* gs_build_id without the zero */
	uint64_t	buffer_pool_bytes;	/* nbuffers * buffer_bytes, or 0 */
	uint32_t	buffer_bytes;	/* a multiple of 4096 */
	uint32_t	nbuffers;
} GsHello;

typedef enum GsDeviceKind
{
	GS_DEVICE_KIND_HOST = 1,	/* the CPU, in a test build only (test/doubles/) */
	GS_DEVICE_KIND_CUDA
} GsDeviceKind;

#define GS_DEVICE_NAME_BYTES	64

/*
 * The UUID of a GPU, or of a slice of one; zeros: not known.  The number of a device is that
 * of CUDA when the process started; after a device was lost, later processes count otherwise.
 */
typedef struct GsDeviceIdentity
{
	uint64_t	words[2];
} GsDeviceIdentity;

static inline bool
gs_is_same_device(GsDeviceIdentity a, GsDeviceIdentity b)
{
	return (a.words[0] | a.words[1]) != 0 && a.words[0] == b.words[0] && a.words[1] == b.words[1];
}

typedef struct GsWelcome
{
	GsMessage	message;
	uint32_t	version;
	uint32_t	device_kind;	/* a GsDeviceKind */
	char		device_name[GS_DEVICE_NAME_BYTES];
	uint64_t	memory_total;	/* bytes of the device */
	uint64_t	memory_limit;	/* that jobs may use */
	uint64_t	memory_used;	/* by jobs */
	uint64_t	memory_lent;	/* to jobs of other devices */
	uint64_t	memory_reserved;	/* allocated, including free blocks for
									 * the next job */
	uint32_t	njobs;			/* open */
	uint32_t	nwaiting;		/* waiting for admission */
	uint64_t	jobs_done;		/* since the service started */
	uint32_t	pid;			/* of the service */
	uint32_t	stalled_ms;		/* how long a call of the device has blocked
								 * all jobs; 0 if none does */
} GsWelcome;

typedef struct GsJobOpen
{
	GsMessage	message;
	uint32_t	nwords;			/* of a record (key_layout.h) */
	uint32_t	keys_only;		/* 0 or 1 */
	uint64_t	expected_bytes; /* estimate of device memory; may be 0 */
	uint32_t	wait_ms;		/* for admission; after that FAILED */
	uint32_t	shared;			/* 0 or 1: producers may join */
	uint32_t	participant;	/* below GS_MAX_PARTICIPANTS */
	uint32_t	reserved;
} GsJobOpen;

/*
 * JOB_JOIN and JOB_READ.  Records must have the job's layout, and buffers be no larger than
 * the consumer's; those of a reader must be as large.
 */
typedef struct GsJobJoin
{
	GsMessage	message;
	uint64_t	token;
	uint32_t	nwords;
	uint32_t	keys_only;
	uint32_t	participant;
	uint32_t	reserved;
} GsJobJoin;

typedef struct GsJobReady
{
	GsMessage	message;
	uint64_t	token;			/* of a shared job, to its consumer; else 0 */
} GsJobReady;

/* The buffer is the block of a batch (batch.h). */
typedef struct GsBatchFilled
{
	GsMessage	message;
	uint32_t	buffer;
	uint32_t	nrows;			/* at least 1 */
	uint32_t	rows_bytes;		/* rows_end - base; 0 if keys_only */
	uint32_t	reserved;
} GsBatchFilled;

typedef struct GsProducerEnd
{
	GsMessage	message;
	uint32_t	partial;		/* 0 or 1: although a batch was not uploaded */
	uint32_t	reserved;
} GsProducerEnd;

typedef struct GsProducerDone
{
	GsMessage	message;
	uint64_t	nrows;			/* of the producer, that were uploaded */
} GsProducerDone;

/* BATCH_FREE and BATCH_RELEASED. */
typedef struct GsBufferMessage
{
	GsMessage	message;
	uint32_t	buffer;
	uint32_t	reserved;
} GsBufferMessage;

typedef enum GsAlgorithm
{
	GS_ALGORITHM_RADIX = 0,
	GS_ALGORITHM_MERGE
} GsAlgorithm;

typedef struct GsSortRequest
{
	GsMessage	message;
	uint32_t	algorithm;		/* a GsAlgorithm */
	uint32_t	partial;		/* 0 or 1: although a batch was not uploaded */
	uint32_t	find_equal;		/* 0 or 1: SORTED tells whether all keys differ */
	uint32_t	reserved;
	GsKeyLayout layout;			/* with statistics of these and perhaps of
								 * other rows */
} GsSortRequest;

typedef struct GsSorted
{
	GsMessage	message;
	uint64_t	nrows;
	uint32_t	algorithm;		/* of the first sort: RADIX or MERGE */
	uint32_t	key_bits;		/* packed, without tails */
	uint32_t	key_tails;		/* 0 or 1 */
	uint32_t	passes;			/* digit places of the first sort */
	uint32_t	all_differ;		/* 0 or 1: no rows have equal keys; 0 if it was not asked */
	uint32_t	reserved;
	uint64_t	tied_rows;		/* rows that tied in the first sort */
	uint64_t	device_bytes;	/* peak device memory of the job */
	uint64_t	upload_us;		/* time in which any batch was being uploaded */
	uint64_t	sort_us;		/* from SORT to SORTED */
} GsSorted;

typedef struct GsFetch
{
	GsMessage	message;
	uint64_t	position;		/* of a row that the first batch must have */
	uint32_t	stream;			/* a number that the client chooses */
	uint32_t	reserved;
} GsFetch;

/*
 * Sorted rows: from the start of the buffer, the rows, each aligned to 8 bytes; from
 * its end downwards, the offset of each row as a uint32 in units of 8 bytes, that of
 * row i at the end of the buffer - 4 * (i + 1).  If keys_only, only the uint64 keys
 * in order, from the start.
 *
 * In reply to RETURN_INPUT, a batch as it was filled; position counts input rows.
 * A batch of no rows, with no buffer, is the end.
 */
typedef struct GsBatchReady
{
	GsMessage	message;
	uint32_t	stream;			/* of the FETCH; 0 for RETURN_INPUT */
	uint32_t	buffer;
	uint64_t	position;		/* of its first row */
	uint32_t	nrows;
	uint32_t	rows_bytes;
} GsBatchReady;

/* RETURN_INPUT and JOB_CLOSE are a GsMessage alone. */

typedef enum GsFailure
{
	GS_FAILED_PROTOCOL = 1,		/* invalid message; the service disconnects */
	GS_FAILED_VERSION,			/* client and service are of different builds */
	GS_FAILED_MEMORY,			/* no device memory; see Failures above */
	GS_FAILED_JOB,				/* there is no such job to join, or its consumer
								 * or a producer disconnected */
	GS_FAILED_ROWS,				/* invalid rows or records */
	GS_FAILED_DEVICE,			/* the device failed; the service exits */
	GS_FAILED_ORDER,			/* the device sorted wrongly; the service exits */
	GS_FAILED_SHUTDOWN			/* the service is shutting down */
} GsFailure;

#define GS_FAILED_TEXT_BYTES	240

typedef struct GsFailed
{
	GsMessage	message;
	uint32_t	failure;		/* a GsFailure */
	uint32_t	reserved;
	char		text[GS_FAILED_TEXT_BYTES]; /* ends with a zero */
} GsFailed;

/* Any message. */
typedef union GsAnyMessage
{
	GsMessage	message;
	GsHello		hello;
	GsWelcome	welcome;
	GsJobOpen	job_open;
	GsJobJoin	job_join;
	GsJobReady	job_ready;
	GsBatchFilled filled;
	GsProducerEnd producer_end;
	GsProducerDone producer_done;
	GsBufferMessage buffer;
	GsSortRequest sort;
	GsSorted	sorted;
	GsFetch		fetch;
	GsBatchReady ready;
	GsFailed	failed;
} GsAnyMessage;

#endif							/* GPUSORT_PROTOCOL_H */
