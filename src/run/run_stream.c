/*-------------------------------------------------------------------------
 *
 * run_stream.c
 *	  A sorted run that one process reads while another one writes it: see run_stream.h.
 *
 * A writer that waits is woken when half of the slots are free, or all, not for each slot,
 * because a system call for each would cost the reader more than the rows do.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pg_compat.h"
#include "run/run_stream.h"

#include "miscadmin.h"

/*
 * What the reader fetches into the cache early: the beginning of a row, which another processor
 * wrote.
 */
#define PREFETCH_BYTES	192

void
gs_run_stream_init(GsRunStream *stream)
{
	pg_atomic_init_u64(&stream->nwritten, 0);
	pg_atomic_init_u64(&stream->nread, 0);
	pg_atomic_init_u32(&stream->ended, 0);
	pg_atomic_init_u32(&stream->abandoned, 0);
	ConditionVariableInit(&stream->changed);
}

void
gs_run_stream_abandon(GsRunStream *stream)
{
	pg_atomic_write_u32(&stream->abandoned, 1);
	ConditionVariableBroadcast(&stream->changed);
}

static inline bool
is_abandoned(GsRunStream *stream)
{
	return pg_atomic_read_u32(&stream->abandoned) != 0;
}

/* The number of full slots. */
static inline uint64
full_slots(GsRunStream *stream)
{
	return pg_atomic_read_u64(&stream->nwritten) - pg_atomic_read_u64(&stream->nread);
}

/* ------------------------------------------------------------------ writing */

/* Waits until at most so many slots are full: none, or all but one.  False: nobody reads. */
static bool
wait_for_reader(GsRunStream *stream, uint64 most)
{
	if (full_slots(stream) <= most)
		return !is_abandoned(stream);
	ConditionVariablePrepareToSleep(&stream->changed);
	while (full_slots(stream) > most && !is_abandoned(stream))
		ConditionVariableSleep(&stream->changed, gs_wait_event(GS_WAIT_PARTICIPANTS));
	ConditionVariableCancelSleep();
	return !is_abandoned(stream);
}

static void
free_slot(GsStreamWriter *writer, GsStreamSlot *slot)
{
	dsa_free(writer->memory, slot->memory);
	slot->memory = InvalidDsaPointer;
	slot->allocated = 0;
}

/* Frees the slots of long rows, while all slots are free. */
static void
free_large_slots(GsStreamWriter *writer)
{
	for (int i = 0; i < GS_STREAM_SLOTS; i++)
	{
		GsStreamSlot *slot = &writer->stream->slots[i];

		if (slot->allocated > GS_STREAM_SLOT_BYTES)
			free_slot(writer, slot);
	}
}

/* Gives the slot to the reader. */
static void
publish(GsStreamWriter *writer)
{
	GsRunStream *stream = writer->stream;
	uint64		before;

	pg_write_barrier();
	before = pg_atomic_fetch_add_u64(&stream->nwritten, 1);
	/*
	 * a reader that waits has seen that all slots are empty; nread must be read after the count was
	 * changed
	 */
	if (before == pg_atomic_read_u64(&stream->nread))
		ConditionVariableBroadcast(&stream->changed);
	writer->slot = NULL;
}

/* Begins the next slot, with at least nbytes.  False: nobody reads. */
static bool
next_slot(GsStreamWriter *writer, Size nbytes)
{
	GsRunStream *stream = writer->stream;
	const bool	is_large = nbytes > GS_STREAM_SLOT_BYTES;
	const Size	slot_bytes = Max(nbytes, GS_STREAM_SLOT_BYTES);
	GsStreamSlot *slot;

	CHECK_FOR_INTERRUPTS();
	if (writer->slot != NULL)
		publish(writer);
	/* one long row at a time, as its memory is outside work_mem */
	if (!wait_for_reader(stream, is_large ? 0 : GS_STREAM_SLOTS - 1))
		return false;
	if (is_large)
		free_large_slots(writer);
	slot = &stream->slots[pg_atomic_read_u64(&stream->nwritten) % GS_STREAM_SLOTS];
	if (slot->allocated != slot_bytes)
	{
		if (DsaPointerIsValid(slot->memory))
			free_slot(writer, slot);
		slot->memory = dsa_allocate_extended(writer->memory, slot_bytes, DSA_ALLOC_HUGE);
		slot->allocated = slot_bytes;
	}
	slot->used = 0;
	writer->slot = slot;
	writer->at = dsa_get_address(writer->memory, slot->memory);
	return true;
}

char *
gs_run_stream_reserve(GsStreamWriter *writer, Size nbytes)
{
	const Size	entry_bytes = sizeof(uint64) + TYPEALIGN(sizeof(uint64), nbytes);
	char	   *entry;

	if ((writer->slot == NULL || writer->slot->used + entry_bytes > writer->slot->allocated) &&
		!next_slot(writer, entry_bytes))
		return NULL;
	entry = writer->at + writer->slot->used;
	*(uint64 *) entry = entry_bytes;
	writer->slot->used += entry_bytes;
	return entry + sizeof(uint64);
}

void
gs_run_stream_end_write(GsStreamWriter *writer)
{
	if (writer->slot != NULL)
		publish(writer);
	pg_atomic_write_u32(&writer->stream->ended, 1);
	ConditionVariableBroadcast(&writer->stream->changed);
}

/* ------------------------------------------------------------------ reading */

/* The last slot is counted before the end. */
static bool
has_ended(GsRunStream *stream)
{
	if (pg_atomic_read_u32(&stream->ended) == 0)
		return false;
	pg_read_barrier();
	return full_slots(stream) == 0;
}

/* Waits for a full slot.  False: the stream has ended, or is abandoned. */
static bool
wait_for_full(GsRunStream *stream)
{
	bool		any;

	if (full_slots(stream) > 0)
		return true;
	ConditionVariablePrepareToSleep(&stream->changed);
	while (!(any = full_slots(stream) > 0) && !has_ended(stream) && !is_abandoned(stream))
		ConditionVariableSleep(&stream->changed, gs_wait_event(GS_WAIT_PARTICIPANTS));
	ConditionVariableCancelSleep();
	return any || full_slots(stream) > 0;
}

/* Gives the slot back. */
static void
release(GsStreamReader *reader)
{
	GsRunStream *stream = reader->stream;
	uint64		nfull;

	reader->slot = NULL;
	pg_memory_barrier();		/* rows have been read, and changed, before */
	pg_atomic_fetch_add_u64(&stream->nread, 1);
	nfull = full_slots(stream);
	if (nfull == GS_STREAM_SLOTS / 2 || nfull == 0)
		ConditionVariableBroadcast(&stream->changed);
}

/* Begins the next slot.  False: the stream has ended. */
static pg_noinline bool
next_full_slot(GsStreamReader *reader)
{
	GsRunStream *stream = reader->stream;

	CHECK_FOR_INTERRUPTS();
	if (reader->slot != NULL)
		release(reader);
	if (!wait_for_full(stream))
		return false;
	pg_read_barrier();
	reader->slot = &stream->slots[pg_atomic_read_u64(&stream->nread) % GS_STREAM_SLOTS];
	reader->at = dsa_get_address(reader->memory, reader->slot->memory);
	reader->limit = reader->at + reader->slot->used;
	return true;
}

char *
gs_run_stream_next(GsStreamReader *reader)
{
	char	   *entry;

	if (unlikely(reader->slot == NULL || reader->at == reader->limit) && !next_full_slot(reader))
		return NULL;
	entry = reader->at;
	reader->at += *(const uint64 *) entry;
	/* other streams have their turn before this one is needed */
	for (int i = 0; i < PREFETCH_BYTES; i += 64)
		__builtin_prefetch(reader->at + i);
	return entry + sizeof(uint64);
}
