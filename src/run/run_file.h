/*-------------------------------------------------------------------------
 *
 * run_file.h
 *	  Sorted runs in temporary files.
 *
 * A run is its rows in order, without what any row has in front and without padding:
 *
 *	  | length, is there a record? | row, from its 11th byte on |
 *	  | length, is there a record? | NULL bits, key words | row, from its 11th byte on | its keys |
 *
 * Lengths and NULL bits are numbers of as many bytes as they need, mostly one.  Behind
 * the row are the bytes of keys that do not stand in it, such as those of a value that had to be
 * fetched.  In a keys_only layout there is the one key word and nothing else.
 *
 * Most records are made again from the row when that is read (run_set.c): so a run takes no more
 * disk than a tape of PostgreSQL's.  That of a bigint takes 5 ns, and 8 bytes less are written and read.
 * A value that had to be fetched is fetched again, as it would fill the disk with bytes that PostgreSQL
 * does not write, and the kernel takes 0.25 s to delete 1 GB of them, which a cancel would wait for.  Records
 * with a truncated or approximate key are kept, and those with keys that only ICU can make.
 * In a layout without columns there are no records: those are runs that only comparisons merge.
 *
 * As a reader hands a row out, it stands behind its record, whose last word (batch.h) is in the place
 * of the row's length and four bytes of padding, and has that length beside the NULL bits.
 *
 * All runs of a sort share a *store* of extents, pieces of some kB to some 100 kB that are
 * written at once.  A run is a chain of extents, each of which ends with the number of
 * the next one:
 *
 *	  | rows .. | 7 |	   7: | rows .. | 9 |	   9: | rows .. end |
 *
 * A merge of runs to a run gives extents back as it has read them and puts its
 * rows there, so that it takes no more disk than the rows do, and no fresh pages of the
 * kernel's.  That is what PostgreSQL's logical tapes do with blocks of 8 kB;
 * they and BufFiles would be in the way of large transfers: the kernel takes 600 MB
 * in pieces of 256 kB in 0.13 s, in pieces of 8 kB in 0.34 s (Zen 5, Linux 6.18,
 * ext4, 2026-11).
 *
 * The files are PostgreSQL's temporary files: temp_tablespaces, temp_file_limit
 * and log_temp_files apply, and they go with the query however it ends.  A store can be in a
 * shared set of files; then another process may open it and read the runs that are ended.
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

/* Where the files of a store are that others may open. */
typedef struct GsRunFiles
{
	SharedFileSet *set;			/* NULL: nobody may */
	int			owner;			/* tells its stores apart */
} GsRunFiles;

typedef struct GsRunStore
{
	MemoryContext context;
	GsRunFiles	where;
	bool		owned_elsewhere;		/* another process has made it */
	Size		extent_bytes;
	int64		nextents;		/* ever used, and so its size on disk */
	int64	   *free_extents;	/* given back */
	int64		nfree;
	int64		free_allocated;
	File	   *files;			/* of 1 GB each, so that all temp_tablespaces have their share */
	int			nfiles;
} GsRunStore;

/* In the current memory context.  extent_bytes is a power of two. */
extern GsRunStore *gs_run_store_create(Size extent_bytes, const GsRunFiles *where);

/* The same to read another process's, of which all runs are ended. */
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
	uint64		nbytes;			/* without what links the extents */
} GsRun;

/* ------------------------------------------------------------ rows of a run */

/* The row behind a record's key words. */
static inline const char *
gs_run_row(const GsKeyLayout *layout, const uint64 *record)
{
	return (const char *) (record + layout->nwords);
}

/* Bytes of a row and the keys behind it, given the row's own. */
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

/* The length of the row behind a record; and has a row of that length and these NULLs. */
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

/* The row as a tuple again, in place; its record loses the NULL bits. */
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
	int64		extent;			/* which the buffer will fill */
	char	   *buffer;
	Size		room;			/* bytes of an extent but for its link */
	Size		used;
	GsRun		run;			/* so far */
	Size		longest;		/* of its rows, with their keys */
} GsRunWriter;

/* Begins a run.  The buffer is of the size of an extent, and 8-aligned. */
extern void gs_run_writer_begin(GsRunWriter *writer, GsRunStore *store,
								const GsKeyLayout *layout, char *buffer);

/* Adds a row, with its record or without; if keys_only, the record. */
extern void gs_run_write_row(GsRunWriter *writer, const uint64 *record, const char *row,
							 Size row_len, bool with_record);

/* Ends the run. */
extern GsRun gs_run_writer_end(GsRunWriter *writer);

/* ------------------------------------------------------------------ reading */

typedef struct GsRunReader
{
	GsRunStore *store;
	const GsKeyLayout *layout;
	bool		consume;		/* the store gets back what was read */
	int64		extent;			/* where to read on */
	Size		offset;			/* in it */
	uint64		left;			/* bytes of the run that were not read */
	char	   *buffer;
	Size		buffer_bytes;
	char	   *at;				/* what comes next */
	char	   *limit;			/* the end of what was read */
	char	   *entry;			/* the last record, and its row */
	Size		entry_bytes;	/* that there is room for */
} GsRunReader;

/* A buffer must have room for more than a link. */
extern void gs_run_reader_begin(GsRunReader *reader, GsRunStore *store,
								const GsKeyLayout *layout, const GsRun *run, bool consume,
								char *buffer, Size buffer_bytes);

/*
 * The next record, its row behind it; NULL at the end.  Valid until the next call.  Where there
 * is none, there is room for it, and its last word has no NULL bits.
 */
extern uint64 *gs_run_reader_next(GsRunReader *reader, bool *has_record);

/* Room for so many bytes of a record, its row and its keys: where they are then. */
static inline bool
gs_run_reader_has_room(const GsRunReader *reader, Size nbytes)
{
	return nbytes <= reader->entry_bytes;
}

extern uint64 *gs_run_reader_reserve(GsRunReader *reader, Size nbytes);

/* Frees what it holds beside the buffer. */
extern void gs_run_reader_end(GsRunReader *reader);

#endif							/* GPUSORT_RUN_FILE_H */
