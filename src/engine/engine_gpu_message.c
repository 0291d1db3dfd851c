/*-------------------------------------------------------------------------
 *
 * engine_gpu_message.c
 *	  The GPU engine: messages to and from gpusortd, which may arrive in any phase.
 *
 *-------------------------------------------------------------------------
 */
#include "engine/engine_gpu_internal.h"

#include <string.h>

#include "common/basics.h"

const char *
gs_gpu_save_text(GpuEngine *engine, const char *text)
{
	const size_t len = Min(strlen(text), sizeof(engine->detail) - 1);

	memcpy(engine->detail, text, len);
	engine->detail[len] = '\0';
	return engine->detail;
}

GsStatus
gs_gpu_fail(GpuEngine *engine, const char *detail)
{
	engine->base.stats.detail = gs_gpu_save_text(engine, detail);
	if (engine->phase != GPU_CLOSED)
		engine->link->release(engine->link, false);
	engine->phase = GPU_CLOSED;
	return GS_STATUS_FAILED;
}

GsStatus
gs_gpu_full(GpuEngine *engine, const char *why)
{
	engine->base.stats.full = why;
	return GS_STATUS_FULL;
}

/*
 * gpusortd has closed the connection: its last message, which may not have been received, says why.
 */
static GsStatus
fail_closed(GpuEngine *engine)
{
	GsAnyMessage message;

	while (engine->link->receive(engine->link, 0, &message) && message.message.type != 0)
	{
		if (message.message.type != GS_MESSAGE_FAILED || message.failed.failure == GS_FAILED_MEMORY)
			continue;
		message.failed.text[sizeof(message.failed.text) - 1] = '\0';
		return gs_gpu_fail(engine, message.failed.text);
	}
	return gs_gpu_fail(engine, "gpusortd closed the connection");
}

GsStatus
gs_gpu_send(GpuEngine *engine, GsMessage *message, uint32_t type, size_t nbytes)
{
	if (engine->phase == GPU_CLOSED)
		return GS_STATUS_FAILED;
	message->type = type;
	message->nbytes = (uint32_t) nbytes;
	if (!engine->link->send(engine->link, message))
		return fail_closed(engine);
	return GS_STATUS_OK;
}

GsStatus
gs_gpu_send_buffer(GpuEngine *engine, uint32_t type, uint32_t buffer)
{
	GsBufferMessage message = {.buffer = buffer};

	return gs_gpu_send(engine, &message.message, type, sizeof(message));
}

GsStatus
gs_gpu_send_plain(GpuEngine *engine, uint32_t type)
{
	GsMessage	message;

	return gs_gpu_send(engine, &message, type, sizeof(message));
}

/* A filled buffer is free again.  False: it was not filled. */
static bool
receive_freed(GpuEngine *engine, uint32_t buffer)
{
	BufferQueue *filled = &engine->filled;

	for (uint32_t i = 0; i < filled->nbuffers; i++)
	{
		if (filled->buffers[i] != buffer)
			continue;
		filled->nbuffers--;
		memmove(&filled->buffers[i], &filled->buffers[i + 1],
				sizeof(filled->buffers[0]) * (filled->nbuffers - i));
		engine->free_buffers |= UINT64_C(1) << buffer;
		return true;
	}
	return false;
}

/* A batch of sorted rows, or of the input, is ready.  False: it is invalid. */
static bool
receive_ready(GpuEngine *engine, const GsBatchReady *ready)
{
	uint64_t	used = ready->rows_bytes;

	if (engine->nready == GS_MAX_BUFFERS)
		return false;
	if (ready->nrows > 0)
	{
		if (engine->phase == GPU_RETURNING)
			used += (uint64_t) ready->nrows * engine->record_bytes;
		else if (!engine->base.request.layout->keys_only)
			used += (uint64_t) ready->nrows * sizeof(uint32_t);
		if (ready->buffer >= engine->link->nbuffers || used > engine->link->buffer_bytes)
			return false;
		if (engine->phase == GPU_SORTED && ready->stream == engine->stream &&
			engine->nready > 0 && ready->position != engine->next_position)
			return false;
	}
	engine->ready[engine->nready++] = *ready;
	engine->next_position = ready->position + ready->nrows;
	engine->base.stats.bytes_down += used;
	return true;
}

GsStatus
gs_gpu_receive(GpuEngine *engine, bool wait, GsAnyMessage *message)
{
	bool		fine = true;

	if (engine->phase == GPU_CLOSED)
		return GS_STATUS_FAILED;
	if (!engine->link->receive(engine->link, wait ? -1 : 0, message))
		return gs_gpu_fail(engine, "gpusortd closed the connection");
	switch (message->message.type)
	{
		case 0:
		case GS_MESSAGE_SORTED:
		case GS_MESSAGE_PRODUCER_DONE:
			break;
		case GS_MESSAGE_BATCH_FREE:
			fine = receive_freed(engine, message->buffer.buffer);
			break;
		case GS_MESSAGE_BATCH_READY:
			if (message->ready.stream != engine->stream)
			{
				/* for a previous FETCH: only releases the buffer */
				message->message.type = 0;
				if (message->ready.nrows > 0)
					return gs_gpu_send_buffer(engine, GS_MESSAGE_BATCH_RELEASED,
											  message->ready.buffer);
				break;
			}
			fine = receive_ready(engine, &message->ready);
			break;
		case GS_MESSAGE_FAILED:
			message->failed.text[sizeof(message->failed.text) - 1] = '\0';
			if (message->failed.failure == GS_FAILED_MEMORY && engine->phase == GPU_INPUT)
			{
				engine->memory_failed = true;
				return gs_gpu_full(engine, "the rows exceed device memory");
			}

			/* sent before gpusortd received RETURN_INPUT */
			if (message->failed.failure == GS_FAILED_MEMORY && engine->phase == GPU_RETURNING)
				break;
			return gs_gpu_fail(engine, message->failed.text);
		default:
			fine = false;
	}
	return fine ? GS_STATUS_OK : gs_gpu_fail(engine, "gpusortd sent an invalid message");
}

GsStatus
gs_gpu_wait_for_message(GpuEngine *engine, uint32_t wanted, GsAnyMessage *message)
{
	GsStatus	status;

	do
		status = gs_gpu_receive(engine, true, message);
	while (status == GS_STATUS_OK && message->message.type != wanted);
	return status;
}
