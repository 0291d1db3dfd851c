/*-------------------------------------------------------------------------
 *
 * run_file.h
 *	  Sorted runs in temporary files.
 *
 * A run is its rows in order, without what precedes the data of a row and without padding:
 *
 *	  | length | row, from its 11th byte on |
 *
 * A length has as many bytes as it needs, mostly one.  In a keys_only layout there is
 * only the key word.
 *
 * A reader returns space for a record, followed by the row.  The location word of the
 * record (batch.h) overlaps the length and four bytes of padding of the row, and has that
 * length and, when the record has been made, the NULL bits.
 *
 * All runs of a sort share a *store* of extents, of some kB to some 100 kB, each of which
 * is written at once.  A run is a chain of extents; each ends with a link: the number of the
 * next one, and where in this one the first row begins:
 *
 *	  | rows .. | 7 |	   7: | rows .. | 9 |	   9: | rows .. end |
 *
 * If the extents of a run have successive numbers, a reader can begin at any row whose
 * position is known, or at the first row of any extent that has a link.
 *
 * The files are PostgreSQL's temporary files: temp_tablespaces, temp_file_limit and
 * log_temp_files apply, and they are removed when the query ends for any reason.  A store can be
 * in a shared file set; then another process can open it and read the complete runs.
 *
 * All functions may ereport what temporary files report.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RUN_FILE_H
#define GPUSORT_RUN_FILE_H

#include "access/htup_details.h"
#include "storage/fd.h"
#include "storage/sharedfileset.h"

#include "common/batch.h"
#include "common/key_layout.h"

/* Where the extents of a store are, if other processes can open it. */
typedef struct GsRunPlace
{
	SharedFileSet *set;			/* of this set; NULL: in files of this process */
	int			owner;			/* distinguishes the stores of a set */
} GsRunPlace;

typedef struct GsRunStore
{
	MemoryContext context;
	GsRunPlace	where;
	bool		owned_elsewhere;	/* another process has created it */
	Size		extent_bytes;
	int64		nextents;		/* ever used: its size */
	int64	   *free_extents;	/* that can be reused */
	int64		nfree;
	int64		free_allocated;
	File	   *files;			/* of 1 GB each, to use all temp_tablespaces */
	int			nfiles;
} GsRunStore;

/*
 * Creates a store in the current memory context; or opens that of another process, to read its
 * runs, which must be complete.  extent_bytes is a power of two.
 */
extern GsRunStore *gs_run_store_open(Size extent_bytes, const GsRunPlace *where,
									 bool owned_elsewhere);

/* Closes the files; those in a shared set stay as long as the set. */
extern void gs_run_store_close(GsRunStore *store);

/* Its size on disk. */
static inline int64
gs_run_store_disk_bytes(const GsRunStore *store)
{
	return store->nextents * (int64) store->extent_bytes;
}

typedef struct GsRun
{
	int64		first_extent;
	uint64		nbytes;			/* without the links of extents */
	bool		in_order;		/* its extents have successive numbers */
} GsRun;

/* ------------------------------------------------------------ rows of a run */

/* The row after the key words of a record. */
static inline const char *
gs_run_row(const GsKeyLayout *layout, const uint64 *record)
{
	return (const char *) (record + layout->nwords);
}

/* The length of the row of a record; and the location word with a length and NULL bits. */
static inline Size
gs_run_row_len(const GsKeyLayout *layout, const uint64 *record)
{
	return record[layout->nwords] >> 32;
}

static inline uint64
gs_run_last_word(Size row_len, uint32 nulls)
{
	return (uint64) row_len << 32 | nulls;
}

/* Writes what precedes the data of a row in a reader: the location word, and zeroes. */
static inline void
gs_run_begin_row(char *row, Size row_len, uint32 nulls)
{
	const uint64 last_word = gs_run_last_word(row_len, nulls);

	memcpy(row, &last_word, sizeof(last_word));
	memset(row + sizeof(last_word), 0, MINIMAL_TUPLE_DATA_OFFSET - sizeof(last_word));
}

/* Turns the row of a record into a tuple, in place.  The record loses its NULL bits. */
static inline MinimalTuple
gs_run_tuple(const GsKeyLayout *layout, const uint64 *record)
{
	MinimalTuple tuple = (MinimalTuple) unconstify(char *, gs_run_row(layout, record));

	tuple->t_len = (uint32) gs_run_row_len(layout, record);
	return tuple;
}

/* ------------------------------------------------------------------ writing */

typedef struct GsRunWriter
{
	GsRunStore *store;
	int64		extent;			/* where the buffer will be written */
	char	   *buffer;
	Size		room;			/* bytes of an extent without its link */
	Size		used;
	int64		first_row;		/* where the first row of this extent begins; -1: none does */
	GsRun		run;			/* so far */
	Size		longest;		/* of its rows */
} GsRunWriter;

/* Begins a run.  The buffer has the size of an extent and is 8-aligned. */
extern void gs_run_writer_begin(GsRunWriter *writer, GsRunStore *store, char *buffer);

/* Writes a row; or, if keys_only, its key word. */
extern void gs_run_write_row(GsRunWriter *writer, const char *row, Size row_len);
extern void gs_run_write_key(GsRunWriter *writer, uint64 key);

/* Ends the run. */
extern GsRun gs_run_writer_end(GsRunWriter *writer);

/* ------------------------------------------------------------------ reading */

typedef struct GsRunReader
{
	GsRunStore *store;
	const GsKeyLayout *layout;
	bool		consume;		/* extents are freed when they have been read */
	int64		extent;			/* to be read next */
	Size		offset;			/* in that extent */
	uint64		left;			/* bytes of the run that have not been read */
	char	   *buffer;
	Size		buffer_bytes;
	char	   *at;				/* the next byte in the buffer */
	char	   *limit;			/* the end of the bytes in the buffer */
	char	   *entry;			/* the current record and its row */
	Size		entry_bytes;	/* allocated */
} GsRunReader;

/* Begins to read a run.  The buffer must be larger than a link. */
extern void gs_run_reader_begin(GsRunReader *reader, GsRunStore *store,
								const GsKeyLayout *layout, const GsRun *run, bool consume,
								char *buffer, Size buffer_bytes);

/*
 * Returns space for the key words of the next row, followed by the row, whose location word
 * has no NULL bits; if keys_only, its key word.  NULL: there is none.  It is valid until the
 * next call.
 */
extern uint64 *gs_run_reader_next(GsRunReader *reader);

/*
 * Is there space for nbytes of the current record, its row and its keys?  Otherwise
 * gs_run_reader_reserve() makes it, and returns where they are then.
 */
static inline bool
gs_run_reader_has_room(const GsRunReader *reader, Size nbytes)
{
	return nbytes <= reader->entry_bytes;
}

extern uint64 *gs_run_reader_reserve(GsRunReader *reader, Size nbytes);

/* ---------------------------------------------- positions in a run in order */

/* A position is a number of bytes before it, without links. */

/* The number of extents that are full, and have a link. */
extern int64 gs_run_full_extents(const GsRunStore *store, const GsRun *run);

/* The position of the first row that begins in a full extent, counted from 0; -1: there is none. */
extern int64 gs_run_row_position(GsRunStore *store, const GsRun *run, int64 extent);

/* The row at this position is the next.  To be called after gs_run_reader_begin(). */
extern void gs_run_reader_move(GsRunReader *reader, const GsRun *run, uint64 position);

/* The position of the next row. */
extern uint64 gs_run_reader_position(const GsRunReader *reader, const GsRun *run);

/* Frees all memory of the reader except the buffer. */
extern void gs_run_reader_end(GsRunReader *reader);

#endif							/* GPUSORT_RUN_FILE_H */
