/*-------------------------------------------------------------------------
 *
 * run_file.h
 *	  Sorted runs in temporary files.
 *
 * A run is its rows in order, without what precedes the data of a row and without
 * padding:
 *
 *	  | length, is there a record? | row, from its 11th byte on |
 *	  | length, is there a record? | NULL bits, key words | row, from its 11th byte on | its keys |
 *
 * Lengths and NULL bits are numbers of variable length, mostly one byte.  After the row
 * are the bytes of its keys that are not part of it, such as those of a value that had
 * to be fetched.  In a keys_only layout there is only the key word.
 *
 * Most records are not stored, but made again when the row is read (run_set.c), so a run
 * takes no more disk than a tape of PostgreSQL.  The record of a bigint takes 5 ns, and 8
 * bytes less are written and read.  A long value that had to be fetched is fetched
 * again: otherwise the files would contain bytes that PostgreSQL does not write, and a
 * cancel would wait for the kernel, which takes 0.25 s to delete 1 GB.  Records
 * with a truncated or approximate key are stored, and those with keys that only ICU can
 * make.  If the layout has no columns there are no records: such runs are merged by
 * comparisons only.
 *
 * A reader returns a record followed by its row.  The place word of the record (batch.h)
 * overlaps the length and four bytes of padding of the row, and has that length and the
 * NULL bits.
 *
 * All runs of a sort share a *store* of extents, of some kB to some 100 kB, each of which
 * is written at once.  A run is a chain of extents; each ends with the number of the next
 * one:
 *
 *	  | rows .. | 7 |	   7: | rows .. | 9 |	   9: | rows .. end |
 *
 * A merge of runs to a run frees extents as it reads them and writes its rows there, so
 * it takes no more disk than the rows, and no new pages of the kernel.  PostgreSQL's
 * logical tapes do the same with blocks of 8 kB; neither they nor BufFiles can transfer
 * larger ones.  The kernel takes 600 MB in pieces of 256 kB in 0.13 s, in pieces of 8 kB
 * in 0.34 s (Zen 5, Linux 6.18, ext4, 2026-11).
 *
 * The files are PostgreSQL's temporary files: temp_tablespaces, temp_file_limit and
 * log_temp_files apply, and they are removed when the query ends for any reason.  A store
 * can be in a shared file set; then another process can open it and read the complete
 * runs.
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

/* Where the files of a store are, if other processes can open them. */
typedef struct GsRunFiles
{
	SharedFileSet *set;			/* NULL: they cannot */
	int			owner;			/* distinguishes the stores of a set */
} GsRunFiles;

typedef struct GsRunStore
{
	MemoryContext context;
	GsRunFiles	where;
	bool		owned_elsewhere;	/* another process has created it */
	Size		extent_bytes;
	int64		nextents;		/* ever used: its size on disk */
	int64	   *free_extents;	/* that can be reused */
	int64		nfree;
	int64		free_allocated;
	File	   *files;			/* of 1 GB each, to use all temp_tablespaces */
	int			nfiles;
} GsRunStore;

/* Creates a store in the current memory context.  extent_bytes is a power of two. */
extern GsRunStore *gs_run_store_create(Size extent_bytes, const GsRunFiles *where);

/* Opens the store of another process to read its runs, which must be complete. */
extern GsRunStore *gs_run_store_open(Size extent_bytes, const GsRunFiles *where);

/* Closes the files; those in a shared set stay as long as the set. */
extern void gs_run_store_close(GsRunStore *store);

static inline int64
gs_run_store_bytes(const GsRunStore *store)
{
	return store->nextents * (int64) store->extent_bytes;
}

typedef struct GsRun
{
	int64		first_extent;
	uint64		nbytes;			/* without the links of extents */
} GsRun;

/* ------------------------------------------------------------ rows of a run */

/* The row after the key words of a record. */
static inline const char *
gs_run_row(const GsKeyLayout *layout, const uint64 *record)
{
	return (const char *) (record + layout->nwords);
}

/* Bytes of a row and the keys after it, given the length of the row. */
static inline Size
gs_run_row_bytes(const GsKeyLayout *layout, const uint64 *record, Size row_len)
{
	Size		nbytes = row_len;

	for (int i = 0; i < layout->ncolumns; i++)
	{
		const GsKeyColumn *column = &layout->columns[i];

		if (column->variable)
		{
			uint64		tail = record[column->tail_word];

			nbytes = Max(nbytes, (Size) gs_tail_offset(tail) + gs_tail_len(tail));
		}
	}
	return nbytes;
}

/* The length of the row of a record; and the place word with a length and NULL bits. */
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
	const GsKeyLayout *layout;
	int64		extent;			/* where the buffer will be written */
	char	   *buffer;
	Size		room;			/* bytes of an extent without its link */
	Size		used;
	GsRun		run;			/* so far */
	Size		longest;		/* of its rows, with their keys */
} GsRunWriter;

/* Begins a run.  The buffer has the size of an extent and is 8-aligned. */
extern void gs_run_writer_begin(GsRunWriter *writer, GsRunStore *store,
								const GsKeyLayout *layout, char *buffer);

/* Writes a row with or without its record; if keys_only, only the record. */
extern void gs_run_write_row(GsRunWriter *writer, const uint64 *record, const char *row,
							 Size row_len, bool with_record);

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
 * Returns the next record, followed by its row, or NULL at the end.  It is valid until the
 * next call.  If the run has no record for the row (*has_record is false), there is space
 * for it, and its place word has no NULL bits.
 */
extern uint64 *gs_run_reader_next(GsRunReader *reader, bool *has_record);

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

/* Frees all memory of the reader except the buffer. */
extern void gs_run_reader_end(GsRunReader *reader);

#endif							/* GPUSORT_RUN_FILE_H */
