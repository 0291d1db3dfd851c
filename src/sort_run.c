/*-------------------------------------------------------------------------
 *
 * sort_run.c
 *	  Sorted runs in temporary files: see sort_run.h.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sort_run.h"

#include "commands/tablespace.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "portability/instr_time.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"

/* At most so much in one system call, between two interrupt checks. */
#define MAX_TRANSFER_BYTES	((Size) 1 << 20)

#define FILE_BYTES		((int64) 1 << 30)

#define LINK_BYTES		sizeof(int64)

/* ------------------------------------------------------------------ the store */

GsRunStore *
gs_run_store_create(Size extent_bytes, const GsRunFiles *where)
{
	GsRunStore *store = palloc0(sizeof(GsRunStore));

	store->context = CurrentMemoryContext;
	store->where = *where;
	store->extent_bytes = extent_bytes;
	store->free_allocated = 64;
	store->free_extents = palloc(sizeof(int64) * store->free_allocated);
	store->files = palloc(sizeof(File));
	return store;
}

GsRunStore *
gs_run_store_open(Size extent_bytes, const GsRunFiles *where)
{
	GsRunStore *store = gs_run_store_create(extent_bytes, where);

	store->foreign = true;
	return store;
}

void
gs_run_store_close(GsRunStore *store)
{
	for (int i = 0; i < store->nfiles; i++)
		FileClose(store->files[i]);
	pfree(store->files);
	pfree(store->free_extents);
	pfree(store);
}

static int64
take_extent(GsRunStore *store)
{
	return store->nfree > 0 ? store->free_extents[--store->nfree] : store->nextents++;
}

static void
give_extent(GsRunStore *store, int64 extent)
{
	if (store->nfree == store->free_allocated)
	{
		store->free_allocated *= 2;
		store->free_extents = repalloc_huge(store->free_extents,
											sizeof(int64) * store->free_allocated);
	}
	store->free_extents[store->nfree++] = extent;
}

/* The next file of a store. */
static File
open_file(const GsRunStore *store)
{
	SharedFileSet *set = store->where.set;
	char		name[MAXPGPATH];
	File		file;

	if (set == NULL)
	{
		PrepareTempTablespaces();
		return OpenTemporaryFile(false);
	}
	snprintf(name, sizeof(name), "%d.%d", store->where.owner, store->nfiles);
	file = store->foreign ? FileSetOpen(&set->fs, name, O_RDONLY) : FileSetCreate(&set->fs, name);
	if (file <= 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not open the shared temporary file \"%s\": %m", name)));
	return file;
}

/* The file with an extent, and where it begins there. */
static File
locate(GsRunStore *store, int64 extent, off_t *start)
{
	int64		per_file = FILE_BYTES / store->extent_bytes;
	int			number = (int) (extent / per_file);

	while (number >= store->nfiles)
	{
		store->files = repalloc(store->files, sizeof(File) * (store->nfiles + 1));
		store->files[store->nfiles] = open_file(store);
		store->nfiles++;
	}
	*start = (off_t) (extent % per_file) * store->extent_bytes;
	return store->files[number];
}

/* As a BufFile counts: in blocks. */
static int64
blocks_of(Size nbytes)
{
	return (nbytes + BLCKSZ - 1) / BLCKSZ;
}

/* Begins and ends the time of a transfer, if anyone wants to know. */
static void
begin_io(instr_time *start)
{
	CHECK_FOR_INTERRUPTS();
	if (track_io_timing)
		INSTR_TIME_SET_CURRENT(*start);
}

static void
end_io(instr_time *start, instr_time *sum)
{
	if (track_io_timing)
	{
		instr_time	end;

		INSTR_TIME_SET_CURRENT(end);
		INSTR_TIME_ACCUM_DIFF(*sum, end, *start);
	}
}

/* Writes the first nbytes of an extent. */
static void
write_extent(GsRunStore *store, int64 extent, char *data, Size nbytes)
{
	off_t		offset;
	File		file = locate(store, extent, &offset);

	while (nbytes > 0)
	{
		instr_time	start;
		int			written;

		begin_io(&start);
		written = FileWrite(file, data, (int) Min(nbytes, MAX_TRANSFER_BYTES), offset,
							WAIT_EVENT_BUFFILE_WRITE);
		if (written <= 0)
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not write to file \"%s\": %m", FilePathName(file))));
		end_io(&start, &pgBufferUsage.temp_blk_write_time);
		pgBufferUsage.temp_blks_written += blocks_of(written);
		data += written;
		nbytes -= written;
		offset += written;
	}
}

static void
read_extent(GsRunStore *store, int64 extent, Size at, char *data, Size nbytes)
{
	off_t		offset;
	File		file = locate(store, extent, &offset);

	offset += at;
	while (nbytes > 0)
	{
		instr_time	start;
		int			got;

		begin_io(&start);
		got = FileRead(file, data, (int) Min(nbytes, MAX_TRANSFER_BYTES), offset,
					   WAIT_EVENT_BUFFILE_READ);
		if (got < 0)
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not read file \"%s\": %m", FilePathName(file))));
		if (got == 0)
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("could not read file \"%s\": it is shorter than what was written to it",
							FilePathName(file))));
		end_io(&start, &pgBufferUsage.temp_blk_read_time);
		pgBufferUsage.temp_blks_read += blocks_of(got);
		data += got;
		nbytes -= got;
		offset += got;
	}
}

/* ------------------------------------------------------------------ writing */

void
gs_run_writer_begin(GsRunWriter *writer, GsRunStore *store, const GsKeyLayout *layout,
					char *buffer)
{
	writer->store = store;
	writer->layout = layout;
	writer->extent = take_extent(store);
	writer->buffer = buffer;
	writer->room = store->extent_bytes - LINK_BYTES;
	writer->used = 0;
	writer->longest = 0;
	writer->run.first_extent = writer->extent;
	writer->run.nbytes = 0;
}

/* The buffer is full: begins the next extent. */
static void
next_extent(GsRunWriter *writer)
{
	int64		next = take_extent(writer->store);

	memcpy(writer->buffer + writer->room, &next, LINK_BYTES);
	write_extent(writer->store, writer->extent, writer->buffer, writer->store->extent_bytes);
	writer->extent = next;
	writer->run.nbytes += writer->used;
	writer->used = 0;
}

/* Adds bytes, however many. */
static void
write_bytes(GsRunWriter *writer, const void *data, Size nbytes)
{
	for (;;)
	{
		Size		piece = Min(nbytes, writer->room - writer->used);

		memcpy(writer->buffer + writer->used, data, piece);
		writer->used += piece;
		nbytes -= piece;
		if (nbytes == 0)
			break;
		data = (const char *) data + piece;
		next_extent(writer);
	}
}

void
gs_run_write_row(GsRunWriter *writer, const uint64 *record, const char *row)
{
	const GsKeyLayout *layout = writer->layout;
	Size		words_bytes = sizeof(uint64) * layout->nwords;
	Size		row_bytes;
	uint64		place;

	if (layout->keys_only)
	{
		write_bytes(writer, record, words_bytes);
		return;
	}
	place = (uint64) ((const MinimalTupleData *) row)->t_len << 32 |
		gs_record_nulls(record, layout->nwords);
	row_bytes = gs_run_row_bytes(layout, record, place >> 32);
	writer->longest = Max(writer->longest, words_bytes + row_bytes);
	write_bytes(writer, record, words_bytes);
	write_bytes(writer, &place, sizeof(place));
	write_bytes(writer, row + sizeof(place), row_bytes - sizeof(place));
}

void
gs_run_write_entry(GsRunWriter *writer, const uint64 *record)
{
	write_bytes(writer, record, gs_run_entry_bytes(writer->layout, record));
}

GsRun
gs_run_writer_end(GsRunWriter *writer)
{
	write_extent(writer->store, writer->extent, writer->buffer, writer->used);
	writer->run.nbytes += writer->used;
	return writer->run;
}

/* ------------------------------------------------------------------ reading */

void
gs_run_reader_begin(GsRunReader *reader, GsRunStore *store, const GsKeyLayout *layout,
					const GsRun *run, bool consume, char *buffer, Size buffer_bytes)
{
	reader->store = store;
	reader->layout = layout;
	reader->consume = consume;
	reader->extent = run->first_extent;
	reader->offset = 0;
	reader->left = run->nbytes;
	reader->own = NULL;
	reader->buffer = buffer;
	reader->buffer_bytes = buffer_bytes;
	reader->at = reader->limit = buffer;
}

/* Reads on, up to nbytes; a link may be written behind them. */
static Size
read_on(GsRunReader *reader, char *to, Size nbytes)
{
	Size		in_extent = reader->store->extent_bytes - LINK_BYTES - reader->offset;
	Size		piece = Min(Min(nbytes, in_extent), reader->left);
	bool		ends_extent = piece == in_extent && reader->left > piece;
	int64		extent = reader->extent;

	read_extent(reader->store, extent, reader->offset, to,
				piece + (ends_extent ? LINK_BYTES : 0));
	reader->offset += piece;
	reader->left -= piece;
	if (ends_extent)
	{
		memcpy(&reader->extent, to + piece, LINK_BYTES);
		reader->offset = 0;
	}
	if (reader->consume && (ends_extent || reader->left == 0))
		give_extent(reader->store, extent);
	return piece;
}

/* Has at least so many bytes at hand, if the run has any more. */
static void
fill(GsRunReader *reader, Size wanted)
{
	Size		have = reader->limit - reader->at;
	char	   *before = reader->own;
	Size		room = reader->buffer_bytes - LINK_BYTES;
	char	   *to = reader->buffer;

	reader->own = NULL;
	if (wanted > room)
	{
		room = wanted;
		to = reader->own = MemoryContextAllocHuge(reader->store->context, room + LINK_BYTES);
	}
	memmove(to, reader->at, have);
	if (before != NULL)
		pfree(before);
	reader->at = to;
	while (have < wanted && reader->left > 0)
		have += read_on(reader, to + have, room - have);
	reader->limit = to + have;
}

const uint64 *
gs_run_reader_next(GsRunReader *reader)
{
	const GsKeyLayout *layout = reader->layout;
	Size		nbytes;

	if (reader->limit - reader->at < gs_record_bytes(layout))
	{
		fill(reader, gs_record_bytes(layout));
		if (reader->at == reader->limit)
			return NULL;
	}
	nbytes = gs_run_entry_bytes(layout, (const uint64 *) reader->at);
	if (reader->limit - reader->at < nbytes)
		fill(reader, nbytes);
	reader->at += nbytes;
	return (const uint64 *) (reader->at - nbytes);
}

void
gs_run_reader_end(GsRunReader *reader)
{
	if (reader->own != NULL)
		pfree(reader->own);
	reader->own = NULL;
}
