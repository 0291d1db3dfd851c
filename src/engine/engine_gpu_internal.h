/*-------------------------------------------------------------------------
 *
 * engine_gpu_internal.h
 *	  What engine_gpu.c and engine_gpu_message.c share; only they include it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ENGINE_GPU_INTERNAL_H
#define GPUSORT_ENGINE_GPU_INTERNAL_H

#include "common/protocol.h"
#include "engine/engine.h"
#include "engine/engine_link.h"

typedef enum GpuPhase
{
	GPU_INPUT,
	GPU_SORTED,
	GPU_RETURNING,				/* gpusortd returns the input */
	GPU_RETURNED,				/* then follow batches that it did not take */
	GPU_PRODUCED,				/* a producer has ended; likewise */
	GPU_CLOSED					/* the link is disconnected */
} GpuPhase;

/* Buffers in the order of some event. */
typedef struct BufferQueue
{
	uint32_t	nbuffers;
	uint32_t	buffers[GS_MAX_BUFFERS];
} BufferQueue;

typedef struct GpuEngine
{
	GsEngine	base;
	GsEngineLink *link;
	int			algorithm;
	uint64_t	token;			/* of its own shared job */
	bool		is_producer;
	GpuPhase	phase;
	size_t		record_bytes;
	uint64_t	nrows;			/* in all batches but the open one */
	uint64_t	nrows_of_producers; /* that the device took */
	bool		memory_failed;	/* the device is out of memory */
	bool		has_input;		/* a batch was sent, or a job joined, which would
								 * fail without it */

	/* a buffer is free, filled, ready, being read, or owned by gpusortd */
	uint64_t	free_buffers;	/* a bit for each buffer */
	BufferQueue filled;			/* sent, and not freed yet */
	GsBatch		filled_batches[GS_MAX_BUFFERS]; /* by buffer */

	/* the batch that is being filled; while the input is returned, read */
	GsBatch		batch;
	bool		batch_open;
	uint32_t	batch_buffer;

	/* batches of sorted rows, in order; the first one is being read */
	uint32_t	stream;
	uint32_t	nready;
	GsBatchReady ready[GS_MAX_BUFFERS];
	uint64_t	next_position;	/* of the row after the last ready batch */

	char		detail[GS_FAILED_TEXT_BYTES];
} GpuEngine;

/* Copies a text to the engine. */
extern const char *gs_gpu_save_text(GpuEngine *engine, const char *text);

/* The engine has failed: disconnects the link.  Returns GS_STATUS_FAILED. */
extern GsStatus gs_gpu_fail(GpuEngine *engine, const char *detail);

/* Stores why no more rows can be taken.  Returns GS_STATUS_FULL. */
extern GsStatus gs_gpu_full(GpuEngine *engine, const char *why);

/* Send a message, one about a buffer, or one without contents. */
extern GsStatus gs_gpu_send(GpuEngine *engine, GsMessage *message, uint32_t type, size_t nbytes);
extern GsStatus gs_gpu_send_buffer(GpuEngine *engine, uint32_t type, uint32_t buffer);
extern GsStatus gs_gpu_send_plain(GpuEngine *engine, uint32_t type);

/*
 * Receives and handles the next message.  It has type 0 if there is none, without wait, or if there
 * is nothing else to do about it.  GS_STATUS_FULL: the device is out of memory.
 */
extern GsStatus gs_gpu_receive(GpuEngine *engine, bool wait, GsAnyMessage *message);

/* Receives and handles messages up to the first one of a type. */
extern GsStatus gs_gpu_wait_for_message(GpuEngine *engine, uint32_t wanted, GsAnyMessage *message);

#endif							/* GPUSORT_ENGINE_GPU_INTERNAL_H */
