/*-------------------------------------------------------------------------
 *
 * protocol.h
 *	  What a backend and gpusortd say to each other.
 *
 * A connection is a SOCK_SEQPACKET unix socket, so a message arrives whole or
 * not at all, and a piece of shared memory that the client made, the *ring*,
 * in equal *slots*.  Rows pass through the slots only; messages say which slot
 * holds what.  A slot belongs to one side at a time and changes hands by
 * message.  At first all are the client's.
 *
 * A connection carries one job at a time, and may carry many one after the
 * other.  C is the client, S the service:
 *
 *	  C HELLO (with the ring's memfd)		S WELCOME
 *	  C JOB_OPEN							S JOB_READY, perhaps after a wait
 *	  C BATCH_FILLED slot					S BATCH_FREE slot, once uploaded
 *	  ...
 *	  C SORT								S SORTED
 *	  C FETCH stream, position				S BATCH_READY stream, slot ...
 *	  C BATCH_RELEASED slot					  (as many as slots are free)
 *	  C JOB_CLOSE
 *
 * Several connections can feed one job.  The one that opened it as `shared` is
 * its *owner*: it alone sorts, fetches, drains and closes.  JOB_READY gives it
 * the job's *ticket*, which it passes on by other ways; whoever shows the ticket
 * on a connection that carries no job becomes a *feeder*:
 *
 *	  C JOB_JOIN ticket						S JOB_READY
 *	  C BATCH_FILLED slot					S BATCH_FREE slot, once uploaded
 *	  ...
 *	  C FEED_END							S FED, once all is uploaded
 *
 * After FED the connection carries no job any more, and all its slots are the
 * client's.  SORT and DRAIN may not be sent while a feeder is attached: the
 * owner hears from the feeders that they have got their FED.  Owner and feeders
 * have numbers, as *participants*; input order is by these, and for each
 * participant as its batches were filled.  A feeder that goes before its FED
 * takes rows with it: the job fails (GS_FAILED_JOB), for the owner and for the
 * other feeders.  When the owner goes, so does the job, and its feeders are told
 * the same.
 *
 * S FAILED may come instead of any reply and ends the job (the client then
 * closes it); but for GS_FAILED_MEMORY before SORTED, after which the job can
 * still be drained, as it can at any time before SORT:
 *
 *	  C DRAIN								S BATCH_READY ... BATCH_READY of no rows
 *
 * gives the batches back as they were filled, in order: those that were
 * uploaded.  Uploads on their way are finished first, each with its BATCH_FREE;
 * what was filled and not freed when the batch of no rows comes is still in its
 * slot and not among those given back.  A client keeps one slot back while it fills the others, so that
 * there is always one to drain through.
 *
 * Or it sends SORT with `partial` set, and goes on as if the batches that were
 * uploaded had been all.  The others stay in their slots until JOB_CLOSE; uploads on their
 * way are finished, each with its BATCH_FREE, before SORTED comes.  A sort for
 * which there is no memory ends with GS_FAILED_MEMORY and can be drained, but not
 * tried again.
 *
 * Memory that runs out for a feeder is its own matter: it gets
 * GS_FAILED_MEMORY, says FEED_END with `partial` set, and keeps the batches that
 * were not taken in their slots, as above.  The job goes on without them.
 *
 * When JOB_CLOSE was sent, all slots are the client's as soon as the next
 * job's JOB_READY has come: only then has the device let go of them.
 * Closing the socket ends everything, at any time.
 *
 * FETCH starts a new *stream* of sorted batches and ends the one before: the
 * service sends slots of the new one as they are filled, in order, up to the
 * last row.  Slots that were ready in the old stream are released by the
 * client like any other.  After FETCH, the slots that the service may fill are
 * those that it holds: the client released them, or sent them as BATCH_FILLED
 * and did not get them back.  So before its first FETCH a client gives away
 * all its slots by BATCH_RELEASED, and so it does before DRAIN.
 *
 * The service drops a connection with a ring that has carried no job for long, and
 * frees the ring's memory: so from WELCOME or JOB_CLOSE on nothing in it is safe
 * until the next JOB_READY.  (After FED it is: slots may have been kept.)  A client
 * lets go of such a connection before the service does.
 *
 * A client without a ring (ring_bytes 0, no memfd) is told by WELCOME how the
 * service is, as often as it says HELLO, and at once, whatever the device does.
 *
 * Structs go as they lie in memory: both sides are of one build, which HELLO's
 * build makes sure of.  The service refuses any other with GS_FAILED_VERSION;
 * HELLO up to there, and FAILED, are the same in all builds of one version.
 * The service trusts nothing that it reads.
 *
 * ISO C.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PROTOCOL_H
#define GPUSORT_PROTOCOL_H

#include <stdint.h>

#include "common/build_id.h"
#include "common/key_layout.h"

#define GS_WIRE_MAGIC	UINT32_C(0x47505553)	/* "GPUS" */
#define GS_WIRE_VERSION	UINT32_C(4)	/* of HELLO's beginning and FAILED */

/* Limits that the service holds a client to. */
#define GS_MIN_BUFFER_BYTES	((uint32_t) 64 << 10)
#define GS_MAX_BUFFER_BYTES	((uint32_t) 16 << 20)
#define GS_MAX_BUFFERS		64
#define GS_MAX_JOB_ROWS		(UINT64_C(0xFFFFFFFE))	/* a row number has 32 bits */
#define GS_MAX_PARTICIPANTS	1024	/* in a job */

/* A stored row is at most so long: a batch of sorted rows holds two or more. */
#define GS_MAX_ROW_BYTES(buffer_bytes) \
	((buffer_bytes) / 2 < ((uint32_t) 2 << 20) ? (buffer_bytes) / 2 - 16 : ((uint32_t) 2 << 20) - 16)

typedef enum GsMessageType
{
	/* from the client */
	GS_MESSAGE_HELLO = 1,
	GS_MESSAGE_JOB_OPEN,
	GS_MESSAGE_JOB_JOIN,
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
	char		build[GS_BUILD_ID_BYTES];	/* as in build_id.h, without the zero */
	uint64_t	buffer_pool_bytes;		/* nslots * slot_bytes, or 0 */
	uint32_t	buffer_bytes;		/* a multiple of 4096 */
	uint32_t	nbuffers;
} GsHello;

typedef enum GsDeviceKind
{
	GS_DEVICE_KIND_HOST = 1,
	GS_DEVICE_KIND_CUDA
} GsDeviceKind;

#define GS_DEVICE_NAME_BYTES	64

typedef struct GsWelcome
{
	GsMessage	message;
	uint32_t	version;
	uint32_t	device_kind;	/* a GsDeviceKind */
	char		device_name[GS_DEVICE_NAME_BYTES];
	uint64_t	memory_total;	/* bytes of the device */
	uint64_t	memory_limit;	/* what jobs may take of it */
	uint64_t	memory_used;	/* what they have now */
	uint64_t	memory_reserved;	/* with what is kept for the next job */
	uint32_t	njobs;			/* open now */
	uint32_t	nwaiting;		/* not yet admitted */
	uint64_t	jobs_done;		/* since the service started */
	uint32_t	pid;			/* of the service */
	uint32_t	stalled_ms;		/* for how long jobs have not been looked after, since a
								 * call of the device blocks */
} GsWelcome;

typedef struct GsJobOpen
{
	GsMessage	message;
	uint32_t	nwords;			/* of a record (key_layout.h) */
	uint32_t	keys_only;		/* 0 or 1 */
	uint64_t	expected_bytes; /* of device memory, as estimated; may be 0 */
	uint32_t	wait_ms;		/* for admission; then FAILED */
	uint32_t	shared;			/* 0 or 1: others may join */
	uint32_t	participant;	/* below GS_MAX_PARTICIPANTS */
	uint32_t	reserved;
	uint64_t	session_bytes;	/* of device memory that all jobs of this process may have;
								 * 0: no limit but the service's */
} GsJobOpen;

/* The records are of the job's form, and slots not larger than its owner's. */
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
	uint64_t	token;			/* of a shared job, to its owner; else 0 */
} GsJobReady;

/* The slot is a batch as batch.h draws it, its block the whole slot. */
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
	uint32_t	partial;		/* 0 or 1: although a batch was not taken */
	uint32_t	reserved;
} GsProducerEnd;

typedef struct GsProducerDone
{
	GsMessage	message;
	uint64_t	nrows;			/* of the feeder, that were taken */
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
	GS_ALGORITHM_AUTO = 0,
	GS_ALGORITHM_RADIX,
	GS_ALGORITHM_MERGE
} GsAlgorithm;

typedef struct GsSortRequest
{
	GsMessage	message;
	uint32_t	algorithm;		/* a GsAlgorithm */
	uint32_t	partial;		/* 0 or 1: although a batch was not taken */
	GsKeyLayout layout;			/* with all that was observed, of these and
								 * perhaps of other rows */
} GsSortRequest;

typedef struct GsSorted
{
	GsMessage	message;
	uint64_t	nrows;
	uint32_t	algorithm;		/* of the first sort: RADIX or MERGE */
	uint32_t	key_bits;		/* packed, without tails */
	uint32_t	key_tails;		/* 0 or 1 */
	uint32_t	passes;			/* digit places of the first sort */
	uint64_t	tied_rows;		/* that took more than the first sort */
	uint64_t	device_bytes;	/* most device memory that the job held */
	uint64_t	upload_us;		/* time in which a batch was on its way */
	uint64_t	sort_us;		/* from SORT to SORTED */
} GsSorted;

typedef struct GsFetch
{
	GsMessage	message;
	uint64_t	position;		/* of a row that is to be in the first batch */
	uint32_t	stream;			/* a number that the client chose */
	uint32_t	reserved;
} GsFetch;

/*
 * Sorted rows: from the slot's start on row after row, each aligned to 8
 * bytes; from its end downwards, for each row, a uint32 that says where it
 * begins, in units of 8 bytes: that of row i at slot_end - 4 * (i + 1).  If
 * keys_only, the uint64 keys in order from the start, and nothing else.
 *
 * In answer to DRAIN, a batch as it was filled; position counts input rows,
 * and a batch of no rows, with no slot, is the end.
 */
typedef struct GsBatchReady
{
	GsMessage	message;
	uint32_t	stream;			/* of the FETCH; 0 for DRAIN */
	uint32_t	buffer;
	uint64_t	position;		/* of its first row */
	uint32_t	nrows;
	uint32_t	rows_bytes;
} GsBatchReady;

/* SORT's, DRAIN's and JOB_CLOSE's plain form is a GsMessage alone. */

typedef enum GsFailure
{
	GS_FAILED_PROTOCOL = 1,		/* the client broke the rules; the connection ends */
	GS_FAILED_VERSION,			/* the two are of different builds */
	GS_FAILED_MEMORY,			/* no device memory: drain, or close */
	GS_FAILED_JOB,				/* there is no such job to join, or it has lost
								 * its owner or a feeder */
	GS_FAILED_ROWS,				/* the rows say what cannot be */
	GS_FAILED_DEVICE,			/* the device is broken; the service ends */
	GS_FAILED_SHUTDOWN			/* gpusortd is shutting down */
} GsFailure;

#define GS_FAILED_TEXT_BYTES	240

typedef struct GsFailed
{
	GsMessage	message;
	uint32_t	failure;		/* a GsFailure */
	uint32_t	reserved;
	char		text[GS_FAILED_TEXT_BYTES]; /* ends with a zero */
} GsFailed;

/* Room for any of them. */
typedef union GsAnyMessage
{
	GsMessage	message;
	GsHello		hello;
	GsWelcome	welcome;
	GsJobOpen	job_open;
	GsJobJoin	job_join;
	GsJobReady	job_ready;
	GsBatchFilled filled;
	GsProducerEnd	producer_end;
	GsProducerDone		producer_done;
	GsBufferMessage buffer;
	GsSortRequest sort;
	GsSorted	sorted;
	GsFetch		fetch;
	GsBatchReady ready;
	GsFailed	failed;
} GsAnyMessage;

#endif							/* GPUSORT_PROTOCOL_H */
