/*-------------------------------------------------------------------------
 *
 * batch.h
 *	  A batch of rows and their key records, in one block of memory.
 *
 * The layout is that of a slotted page.  Rows grow upwards from the start,
 * fixed-size records downwards from the end, and the batch is full when they
 * meet.  So neither the width nor the number of rows needs to be known:
 *
 *	  base                rows_end        records                       top
 *	  | row 0 | row 1 | row 2 |    free    | record 2 | record 1 | record 0 |
 *
 * Rows are opaque, except for bytes 4 to 7, which are the batch's: the number of
 * the row's *entry* in the batch.  The caller stores a MinimalTuple, which has
 * padding there, followed by the bytes of keys that are not part of the tuple.
 * Rows are aligned to 8 bytes and have at least 8.
 *
 * A record is `nwords` key words (key_layout.h) and a *location word*: the row's
 * *unit*, its offset from base in units of 8 bytes (upper half), and the NULL bits
 * of its columns (lower half).  So a row leads to its record, and a record to its
 * row.
 *
 * In a `keys_only` layout the only key word is the row itself, and there is
 * neither a row nor a location word: `SELECT k ... ORDER BY k` takes 8 bytes a row.
 * The unit is then the entry.
 *
 * The writer asks for space, writes the row and the record in place, then calls
 * gs_batch_push().  Without that call, the row is not part of the batch.
 *
 * C without PostgreSQL.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BATCH_H
#define GPUSORT_BATCH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/key_layout.h"

#define GS_ROW_ALIGN	8
#define GS_ROW_ENTRY_OFFSET	4	/* of the entry number in a row, a uint32 */
#define GS_ALIGN_ROW(nbytes) \
	(((size_t) (nbytes) + (GS_ROW_ALIGN - 1)) & ~(size_t) (GS_ROW_ALIGN - 1))

typedef struct GsBatch
{
	char	   *base;			/* the block */
	char	   *top;			/* its end */
	char	   *rows_end;		/* where the next row goes */
	char	   *records;		/* the lowest record; the next goes below it */
	size_t		record_bytes;
	size_t		nrows;
} GsBatch;

/* Bytes of a record. */
GS_HOST_DEVICE size_t
gs_record_bytes(const GsKeyLayout *layout)
{
	return sizeof(uint64_t) * ((size_t) layout->nwords + (layout->keys_only ? 0 : 1));
}

/* Removes all rows. */
static inline void
gs_batch_clear(GsBatch *batch)
{
	batch->rows_end = batch->base;
	batch->records = batch->top;
	batch->nrows = 0;
}

static inline void
gs_batch_init(GsBatch *batch, void *block, size_t nbytes, size_t record_bytes)
{
	batch->base = (char *) block;
	batch->top = batch->base + (nbytes & ~(size_t) (GS_ROW_ALIGN - 1));
	batch->record_bytes = record_bytes;
	gs_batch_clear(batch);
}

/* Is there space for a row of that many bytes and its record? */
static inline int
gs_batch_has_space(const GsBatch *batch, size_t row_bytes)
{
	return (size_t) (batch->records - batch->rows_end) >=
		GS_ALIGN_ROW(row_bytes) + batch->record_bytes;
}

/* Where the next row and its record are written. */
static inline char *
gs_batch_next_row(const GsBatch *batch)
{
	return batch->rows_end;
}

static inline uint64_t *
gs_batch_next_record(const GsBatch *batch)
{
	return (uint64_t *) (batch->records - batch->record_bytes);
}

/* The location word of the next record; not for keys_only. */
static inline uint64_t
gs_batch_next_location(const GsBatch *batch, uint32_t nulls)
{
	return ((uint64_t) (batch->rows_end - batch->base) / GS_ROW_ALIGN) << 32 | nulls;
}

/* Appends the row that was written; row_bytes is 0 if keys_only. */
static inline void
gs_batch_push(GsBatch *batch, size_t row_bytes)
{
	if (row_bytes > 0)
	{
		uint32_t	entry = (uint32_t) batch->nrows;

		memcpy(batch->rows_end + GS_ROW_ENTRY_OFFSET, &entry, sizeof(entry));
	}
	batch->rows_end += GS_ALIGN_ROW(row_bytes);
	batch->records -= batch->record_bytes;
	batch->nrows++;
}

GS_HOST_DEVICE const uint64_t *
gs_batch_record(const GsBatch *batch, size_t entry)
{
	return (const uint64_t *) (batch->top - (entry + 1) * batch->record_bytes);
}

/* The row at a unit; not for keys_only. */
GS_HOST_DEVICE const char *
gs_batch_row(const GsBatch *batch, size_t unit)
{
	return batch->base + unit * GS_ROW_ALIGN;
}

/* The entry of a stored row. */
static inline size_t
gs_batch_entry_of_row(const char *row)
{
	uint32_t	entry;

	memcpy(&entry, row + GS_ROW_ENTRY_OFFSET, sizeof(entry));
	return entry;
}

/* The record of a stored row. */
static inline const uint64_t *
gs_batch_record_of_row(const GsBatch *batch, const char *row)
{
	return gs_batch_record(batch, gs_batch_entry_of_row(row));
}

/* The unit of the row that a record belongs to; not for keys_only. */
GS_HOST_DEVICE size_t
gs_record_unit(const uint64_t *record, int nwords)
{
	return (size_t) (record[nwords] >> 32);
}

GS_HOST_DEVICE uint32_t
gs_record_nulls(const uint64_t *record, int nwords)
{
	return (uint32_t) record[nwords];
}

/*
 * Appends a copy of an entry of another batch of the same layout; there must be
 * space.  row_bytes is gs_batch_row_bytes() of the entry.  Both batches may be in the
 * same block, as long as no entry is copied to a later position than it had.
 */
static inline void
gs_batch_push_copy(GsBatch *batch, const GsBatch *from, const GsKeyLayout *layout,
				   size_t entry, size_t row_bytes)
{
	const uint64_t *record = gs_batch_record(from, entry);
	uint64_t   *copy = gs_batch_next_record(batch);

	memmove(copy, record, batch->record_bytes);
	if (row_bytes > 0)
	{
		memmove(gs_batch_next_row(batch),
				gs_batch_row(from, gs_record_unit(record, layout->nwords)), row_bytes);
		copy[layout->nwords] =
			gs_batch_next_location(batch, gs_record_nulls(record, layout->nwords));
	}
	gs_batch_push(batch, row_bytes);
}

/* The row of an entry, or its record if keys_only. */
static inline const void *
gs_batch_pushed(const GsBatch *batch, const GsKeyLayout *layout, size_t entry)
{
	const uint64_t *record = gs_batch_record(batch, entry);

	return layout->keys_only ? (const void *) record :
		gs_batch_row(batch, gs_record_unit(record, layout->nwords));
}

/* Bytes of a stored row, including alignment padding; 0 if keys_only. */
static inline size_t
gs_batch_row_bytes(const GsBatch *batch, const GsKeyLayout *layout, size_t entry)
{
	const char *row;

	if (layout->keys_only)
		return 0;
	row = (const char *) gs_batch_pushed(batch, layout, entry);
	if (entry + 1 == batch->nrows)
		return (size_t) (batch->rows_end - row);
	return (size_t) ((const char *) gs_batch_pushed(batch, layout, entry + 1) - row);
}

#endif							/* GPUSORT_BATCH_H */
