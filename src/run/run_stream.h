/*-------------------------------------------------------------------------
 *
 * run_stream.h
 *	  A sorted run that one process reads while another one writes it.
 *
 * The writer copies rows to slots of shared memory, and the reader takes them from there.
 * The writer waits when all slots are full, the reader when all are empty, so a stream takes
 * little memory however many rows there are:
 *
 *				   full slots						 free slots
 *	  reader <--- | rows .. | rows .. | rows .. |	 |	 |	 | <--- writer
 *
 * A row is preceded by its key record, as a merge wants it (engine/merge_tree.h), so that the
 * reader neither copies it nor makes a key:
 *
 *	  | bytes of this entry | record | row |	  each 8-aligned
 *
 * The legal calls:
 *
 *	  who merges	init { next }						  and at any time: abandon
 *	  who writes	{ reserve } end_write
 *
 * Waits can be interrupted.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RUN_STREAM_H
#define GPUSORT_RUN_STREAM_H

#include "port/atomics.h"
#include "storage/condition_variable.h"
#include "utils/dsa.h"

#define GS_STREAM_SLOTS			8
#define GS_STREAM_SLOT_BYTES	((Size) 64 << 10)

/* A slot; a long row gets one of its own size, for itself alone. */
typedef struct GsStreamSlot
{
	dsa_pointer memory;			/* invalid: none yet */
	Size		allocated;
	Size		used;
} GsStreamSlot;

/* In shared memory.  Counts of slots increase forever: slot n is slots[n % GS_STREAM_SLOTS]. */
typedef struct GsRunStream
{
	pg_atomic_uint64 nwritten;	/* full slots so far */
	pg_atomic_uint64 nread;		/* of these, free again */
	pg_atomic_uint32 ended;		/* no further slot comes */
	pg_atomic_uint32 abandoned; /* nobody reads */
	ConditionVariable changed;
	/* free ones belong to the writer, full ones to the reader */
	GsStreamSlot slots[GS_STREAM_SLOTS];
} GsRunStream;

/* Before either side begins, in zeroed memory; or again, while no other process uses it. */
extern void gs_run_stream_init(GsRunStream *stream);

/* Nobody needs the rows any more: neither side need wait. */
extern void gs_run_stream_abandon(GsRunStream *stream);

/* ------------------------------------------------------------------ writing */

/* Begins with stream and memory set, and zeroes. */
typedef struct GsStreamWriter
{
	GsRunStream *stream;
	dsa_area   *memory;
	GsStreamSlot *slot;			/* being filled; NULL: none */
	char	   *at;				/* the address of its memory */
} GsStreamWriter;

/* Returns space for a record and its row, in this order, 8-aligned; NULL: nobody reads. */
extern char *gs_run_stream_reserve(GsStreamWriter *writer, Size nbytes);

extern void gs_run_stream_end_write(GsStreamWriter *writer);

/* ------------------------------------------------------------------ reading */

/* Begins with stream and memory set, and zeroes. */
typedef struct GsStreamReader
{
	GsRunStream *stream;
	dsa_area   *memory;
	GsStreamSlot *slot;			/* being read; NULL: none */
	char	   *at;				/* the next entry */
	char	   *limit;			/* of the slot */
} GsStreamReader;

/*
 * Returns the record of the next row, followed by the row, or NULL at the end, or if the stream
 * is abandoned.  It is valid until the next call, and may be changed.
 */
extern char *gs_run_stream_next(GsStreamReader *reader);

#endif							/* GPUSORT_RUN_STREAM_H */
